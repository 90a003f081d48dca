"""A real Slurm with fake cards, started from Debian's packages in a folder of its own and stopped whole."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.labs.slurm import configuration
from tests.labs.slurm.chroot import Chroot, root
from tests.labs.slurm.configuration import CLUSTER, NODES, free_ports
from tests.labs.slurm.processes import end_tree, holds, listens, name_of, pids, wait_for

DAEMONS = ("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "munged", "mariadbd", "mariadb-install-db", "setpriv")
_SEARCH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def missing() -> str | None:
    """Why the lab can't be started here, None when it can."""
    absent = [name for name in DAEMONS if shutil.which(name, path=_SEARCH) is None]
    if absent:
        return f"not installed: {' '.join(absent)} (Debian: slurmctld slurmd slurmdbd slurmrestd munge mariadb-server)"
    return None if os.geteuid() == 0 else "Slurm's daemons change users: the lab needs root"


class SlurmLab:
    """munged, MariaDB, slurmdbd, slurmctld, twelve slurmd and slurmrestd. Each is our child and dies with us."""

    def __init__(self, *, newer: bool = False) -> None:
        """`newer`: Debian's next release in a chroot, which is to be built before."""
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-lab-"))
        self._newer = newer
        self._inside: Chroot | None = None
        self.ports = free_ports()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {
            "PATH": _SEARCH,
            "SLURM_CONF": str(self.folder / "etc/slurm.conf"),
            "LC_ALL": "C",
            "TZ": "UTC",
            "SLURM_TIME_FORMAT": "%s",
        }

    @property
    def prefix(self) -> tuple[str, ...]:
        """What goes before Slurm's commands: the way into the chroot, if there is one."""
        return self._inside.prefix if self._inside is not None else ()

    @property
    def rest_url(self) -> str:
        return f"http://127.0.0.1:{self.ports.rest}"

    def start(self) -> None:
        self._lay_out()
        if self._newer:
            self._inside = Chroot(self.folder)
        self._start_munge()
        self._start_database()
        self.start_accounting()
        self.run("sacctmgr", "-i", "-Q", "add", "cluster", CLUSTER)
        self.start_controller()
        for name in NODES:
            self.start_node(name)
        self.start_rest()
        wait_for("all nodes", self._all_idle)

    def _all_idle(self) -> bool:
        return len(self.run("sinfo", "-h", "-N", "-p", "all", "-t", "idle").splitlines()) == len(NODES)

    def start_accounting(self) -> None:
        self.daemon("slurmdbd", "slurmdbd", "-D")
        wait_for("slurmdbd", lambda: self.succeeds("sacctmgr", "-n", "show", "cluster"))

    def start_controller(self) -> None:
        self.daemon("slurmctld", str(self.folder / "bin/slurmctld"), "-D")
        wait_for("slurmctld", lambda: self.succeeds("scontrol", "ping"))

    def start_node(self, name: str) -> None:
        (self.folder / "spool" / name).mkdir(exist_ok=True)
        stepd = str(self.folder / "bin/slurmstepd")
        self.daemon(f"slurmd-{name}", str(self.folder / "bin/slurmd"), "-D", "-N", name, "-d", stepd)

    def kill_node(self, name: str) -> None:
        """A node loses power: its slurmd and what it runs are gone at once."""
        steps = [pid for pid in self._steps() if holds(pid, f"{self.folder}/log/slurmd-{name}.log")]
        self.kill(f"slurmd-{name}")
        for pid in steps:
            end_tree(pid)

    def busy(self) -> bool:
        """Whether slurmctld still has messages for slurmdbd in its queue."""
        lines = self.run("sdiag").splitlines()
        return any("DBD Agent queue size" in line and line.split()[-1] != "0" for line in lines)

    def start_rest(self) -> None:
        address = f"127.0.0.1:{self.ports.rest}"
        self.daemon("slurmrestd", "slurmrestd", "-a", "rest_auth/jwt", address, user="slurm", SLURM_JWT="daemon")
        wait_for("slurmrestd", lambda: listens(self.ports.rest))

    def runs(self, name: str) -> bool:
        """Whether a daemon was started and not ended by us."""
        return name in self._running

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Ends one daemon and waits for it."""
        process = self._running.pop(name)
        process.send_signal(number)
        process.wait(timeout=20)

    @contextmanager
    def away(self, name: str, number: int = signal.SIGKILL) -> Iterator[None]:
        """One daemon is gone for a while, and back afterwards whatever happened meanwhile: others need it."""
        again = {
            "slurmrestd": self.start_rest,
            "slurmctld": self.start_controller,
            "slurmdbd": self.start_accounting,
        }
        self.kill(name, number)
        try:
            yield
        finally:
            again[name]()

    @contextmanager
    def paused(self, name: str) -> Iterator[None]:
        """A daemon that answers nothing for a while."""
        process = self._running[name]
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Cancels what runs, ends steps, then all daemons in order, and removes the folder."""
        if "slurmctld" in self._running:
            self.succeeds("scancel", "-u", "root")
            end = time.monotonic() + 4
            while self._steps() and time.monotonic() < end:
                time.sleep(0.05)
        order = ["slurmrestd", "slurmctld", *(f"slurmd-{name}" for name in NODES)]
        self._end(order)
        for pid in self._steps():
            end_tree(pid)
        self._end(["slurmdbd"])
        self._end(["mariadbd"])
        self._end(["munged", "munged-other"])
        if self._inside is not None:
            self._inside.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def seed(self) -> None:
        """An account for root, and a quality of service that pushes out another."""
        for words in (
            ("add", "qos", "high", "Priority=1000"),
            ("add", "qos", "low", "Priority=10"),
            ("modify", "qos", "high", "set", "Preempt=low"),
            ("add", "account", "research"),
            ("add", "user", "root", "account=research", "qos=normal,high,low", "DefaultQOS=normal"),
            ("modify", "user", "root", "set", "DefaultAccount=research"),
        ):
            self.run("sacctmgr", "-i", "-Q", *words)

    def calm(self) -> None:
        """Cancels all jobs, waits until they are gone, and returns every node."""
        self.succeeds("scancel", "-u", "root")
        wait_for("no jobs", lambda: not self.run("squeue", "-h", "-a").strip())
        for name in self.run("sinfo", "-h", "-N", "-p", "all", "-t", "drain,down", "-o", "%N").split():
            self.succeeds("scontrol", "update", f"nodename={name}", "state=resume")  # it may be back by itself
        wait_for("all nodes idle", self._all_idle)

    def submit(self, *options: str, script: str = "sleep 60") -> str:
        """sbatch of a script; its number."""
        fixed = ("sbatch", "--parsable", "-o", "/dev/null", "-D", str(self.folder / "work"))
        return self.run(*fixed, *options, script=f"#!/bin/sh\n{script}\n").strip()

    def run(self, *command: str, script: str = "") -> str:
        """Output of a Slurm command as root; an error fails the test with the command's words."""
        words = [*self.prefix, *command]
        done = subprocess.run(
            words, env=self.environment, input=script, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def succeeds(self, *command: str) -> bool:
        words = [*self.prefix, *command]
        done = subprocess.run(words, env=self.environment, capture_output=True, timeout=20, check=False)
        return done.returncode == 0

    def token(self, user: str = "root", lifespan: int = 3600) -> str:
        return self.run("scontrol", "token", f"username={user}", f"lifespan={lifespan}").strip().partition("=")[2]

    def daemon(self, name: str, *command: str, user: str = "", **environment: str) -> None:
        """Starts one daemon in the foreground; it is ended when this process dies."""
        uid, gid = self._user(user) if user else (0, 0)
        switch = ["--reuid", str(uid), "--regid", str(gid), "--clear-groups"] if user else []
        with (self.folder / "log" / f"{name}.out").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [*self.prefix, "setpriv", "--pdeathsig", "KILL", *switch, *command],
                env={**self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder / "work",
                start_new_session=True,
            )

    def _user(self, name: str) -> tuple[int, int]:
        """Numbers of a user and its group where the daemons run."""
        if self._inside is not None:
            return self._inside.user(name)
        found = pwd.getpwnam(name)
        return found.pw_uid, found.pw_gid

    def _lay_out(self) -> None:
        for name in ("etc", "run", "log", "state", "spool", "dev", "work", "bin"):
            (self.folder / name).mkdir()
        self.folder.chmod(0o755)
        (self.folder / "work").chmod(0o777)
        (self.folder / "run").chmod(0o755)
        for number in range(8):  # a device file must be one; where it leads does not matter
            (self.folder / f"dev/nvidia{number}").symlink_to("/dev/null")
            (self.folder / f"dev/mi{number}").symlink_to("/dev/null")
        system = root() if self._newer else Path("/")
        for name in ("slurmctld", "slurmd", "slurmstepd"):  # Slurm looks at its own program name
            own = (system / f"usr/sbin/{name}-wlm").exists()
            (self.folder / "bin" / name).symlink_to(f"/usr/sbin/{name}-wlm" if own else f"/usr/sbin/{name}")
        self._write("etc/jwt.key", os.urandom(32), 0o600)
        files: Mapping[str, str] = {
            "etc/slurm.conf": configuration.slurm_conf(self.folder, self.ports),
            "etc/gres.conf": configuration.gres_conf(self.folder),
            "etc/slurmdbd.conf": configuration.slurmdbd_conf(self.folder, self.ports),
        }
        if self._newer:  # without a cgroup mount it needs this; 22.05 does not start with it
            files = {**files, "etc/cgroup.conf": "CgroupPlugin=disabled\n"}
        for name, text in files.items():
            self._write(name, text.encode(), 0o600 if "dbd" in name else 0o644)

    def _write(self, name: str, content: bytes, mode: int) -> None:
        path = self.folder / name
        path.write_bytes(content)
        path.chmod(mode)

    def _start_munge(self) -> None:
        own = self.folder / "munge"
        own.mkdir(mode=0o700)
        self._write("munge/key", os.urandom(1024), 0o400)
        for path in (own, own / "key", self.folder / "run"):
            os.chown(path, *self._user("munge"))
        self._munged("munge")

    def _munged(self, name: str, clock: str = "") -> None:
        own, door = self.folder / "munge", self.folder / "run" / f"{name}.socket"
        options = {"key-file": own / "key", "socket": door, "pid-file": own / f"{name}.pid"}
        options |= {"log-file": own / f"{name}.log", "seed-file": own / f"{name}.seed"}
        words = [f"--{key}={value}" for key, value in options.items()]
        daemon, skewed = name.replace("munge", "munged"), []
        if clock:  # its library alone, taken by munged's own user: faketime would stay as munged's parent
            library = self.run("faketime", "-f", clock, "printenv", "LD_PRELOAD").strip()
            skewed = ["env", f"LD_PRELOAD={library}", f"FAKETIME={clock}"]
        self.daemon(daemon, *skewed, "munged", "--foreground", "--force", *words, user="munge")
        wait_for(daemon, lambda: self.succeeds("munge", "-n", "-S", str(door)))

    def start_other_host(self, clock: str = "") -> str:
        """munged of a host with a clock of its own (faketime's offset, like -20m); the path of its slurm.conf.

        Once more: its clock is set.
        """
        if self.runs("munged-other"):
            self.kill("munged-other", signal.SIGTERM)  # so that the library leaves nothing behind
        self._munged("munge-other", clock)
        text = (self.folder / "etc/slurm.conf").read_text().replace("/run/munge.socket", "/run/munge-other.socket")
        self._write("etc/other.conf", text.encode(), 0o644)
        return str(self.folder / "etc/other.conf")

    def _start_database(self) -> None:
        data, door = self.folder / "mysql", self.folder / "mysql.run" / "s"
        for path in (data, door.parent):
            path.mkdir(mode=0o755)
            os.chown(path, *self._user("mysql"))
        self.run(
            "mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={data}",
            "--auth-root-authentication-method=normal", "--skip-test-db",
        )  # fmt: skip
        self.daemon(
            "mariadbd", "mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={door}",
            f"--port={self.ports.database}", "--bind-address=127.0.0.1", "--innodb-buffer-pool-size=64M",
            "--innodb-lock-wait-timeout=900", "--innodb-flush-log-at-trx-commit=0", "--skip-name-resolve",
            user="mysql",
        )  # fmt: skip
        client = ("mariadb", "--no-defaults", "-uroot", "-S", str(door))
        wait_for("mariadbd", lambda: self.succeeds(*client, "-e", "select 1"))
        self.run(
            *client,
            "-e",
            "create database accounting; create user 'slurm'@'127.0.0.1' identified by 'lab';"
            "grant all on accounting.* to 'slurm'@'127.0.0.1';",
        )

    def _end(self, names: Sequence[str]) -> None:
        ended = [self._running.pop(name) for name in names if name in self._running]
        for process in ended:
            process.terminate()
        for process in ended:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=10)

    def _steps(self) -> list[int]:
        """The slurmstepd of this lab: they outlive slurmd, and hold files of this folder open."""
        return [pid for pid in pids() if name_of(pid) == "slurmstepd" and holds(pid, str(self.folder))]
