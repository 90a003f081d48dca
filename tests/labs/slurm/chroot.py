"""A newer Slurm than the system's own: Debian's next release in a folder, entered by a mount namespace and chroot.

The folder is made once (`mmdebstrap` from the mirror that apt uses here) and kept in the user's cache.
"""

import fcntl
import os
import shutil
import subprocess
import time
from pathlib import Path

RELEASE = "trixie"  # has Slurm 24.11
_PACKAGES = (
    "slurmctld", "slurmd", "slurm-client", "slurmdbd", "slurmrestd", "munge", "slurm-wlm-basic-plugins",
    "slurm-wlm-jwt-plugin", "slurm-wlm-mysql-plugin", "mariadb-server", "hostname", "procps",
)  # fmt: skip
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
_BUILD_SECONDS = 900


def missing() -> str | None:
    """Why there can't be one here, None when there can."""
    if os.geteuid() != 0:
        return "a chroot needs root"
    if root().exists():
        return None
    if shutil.which("mmdebstrap") is None:
        return "not installed: mmdebstrap (a Debian package)"
    return None if _mirror() else "apt has no Debian mirror here"


def root() -> Path:
    """Where the system's files are, or will be."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "sensaka-tests" / f"slurm-{RELEASE}"


def build() -> str | None:
    """Makes the folder where it isn't there yet. Why it could not be made, None when it is there."""
    wanted = root()
    wanted.parent.mkdir(parents=True, exist_ok=True)
    with (wanted.parent / f"{wanted.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if wanted.exists():
            return None
        half = wanted.with_suffix(".half")
        shutil.rmtree(half, ignore_errors=True)
        options = ["--variant=apt", "--skip=check/empty", '--aptopt=APT::Install-Recommends "false"']
        options += [f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT]
        command = ["mmdebstrap", *options, f"--include={','.join(_PACKAGES)}", RELEASE, str(half), _mirror()]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"Debian {RELEASE} could not be made within {_BUILD_SECONDS} s"
        if done.returncode != 0:
            return f"Debian {RELEASE} could not be made: {done.stderr.strip()[-500:]}"
        half.rename(wanted)
    return None


def _mirror() -> str:
    """The address from which apt gets Debian here; empty when it gets none."""
    columns = "$(LABEL) $(COMPONENT) $(REPO_URI)"
    command = ["apt-get", "indextargets", "--format", columns, "Created-By: Packages"]
    try:
        lines = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return ""
    found = [line.split() for line in lines]
    return next((words[2] for words in found if words[:2] == ["Debian", "main"]), "")


_ENTER = """
set -eu
mount --make-rprivate /
mount --bind "$1" "$1"
mount -t tmpfs none "$1/tmp"
mount -t tmpfs none "$1/run"
mount --rbind /proc "$1/proc"
mount --rbind /dev "$1/dev"
touch "$1/run/hosts" && cat /etc/hosts > "$1/run/hosts"
[ -e "$1/etc/hosts" ] || touch "$1/etc/hosts"
mount --bind "$1/run/hosts" "$1/etc/hosts"
mkdir -p "$1$2"
mount --bind "$2" "$1$2"
touch "$2/entered"
exec chroot "$1" sleep infinity
"""


class Chroot:
    """The mount namespace of one lab; its folder lies inside under the same path. Dies with this process."""

    def __init__(self, folder: Path) -> None:
        words = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "sh", "-c", _ENTER, "sh"]
        self._holder = subprocess.Popen([*words, str(root()), str(folder)], start_new_session=True)
        sign = folder / "entered"
        end = time.monotonic() + 10
        while not sign.exists():
            assert self._holder.poll() is None, "the mounts of the chroot failed"
            assert time.monotonic() < end, "the mounts of the chroot took too long"
            time.sleep(0.02)
        sign.unlink()

    @property
    def prefix(self) -> tuple[str, ...]:
        """What goes before a command to run it inside, with the environment that it is given."""
        return ("nsenter", "--target", str(self._holder.pid), "--mount", "--root", "--wd")

    @staticmethod
    def user(name: str) -> tuple[int, int]:
        """Numbers of a user and its group inside."""
        lines = (root() / "etc/passwd").read_text().splitlines()
        words = next(line.split(":") for line in lines if line.startswith(f"{name}:"))
        return int(words[2]), int(words[3])

    def close(self) -> None:
        """Ends the namespace; what still runs inside keeps its mounts until it ends."""
        self._holder.kill()
        self._holder.wait(timeout=10)
