"""Where the embedded services keep data, sockets and keys, and as which user they run."""

import hashlib
import os
import pwd
import re
import secrets as random_secrets
import shutil
import stat
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cryptography.fernet import Fernet

from sensaka.embedded.processes import ServiceError

DATABASE = "sensaka"
_SOCKET_PATH_LIMIT = 90  # sun_path holds 108 bytes; the socket's own name needs some


@dataclass(frozen=True, slots=True)
class Account:
    """The system user that PostgreSQL runs as."""

    name: str
    uid: int
    gid: int


def service_account() -> Account | None:
    """None for an ordinary user; for root the user `sensaka`, made when missing, else `nobody`."""
    if os.geteuid() != 0:
        return None
    for name in ("sensaka", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            useradd = shutil.which("useradd") or "/usr/sbin/useradd"
            if name != "sensaka" or not Path(useradd).exists():
                continue
            made = subprocess.run(
                [useradd, "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", name],
                capture_output=True,
                check=False,
            )
            if made.returncode:
                continue
            entry = pwd.getpwnam(name)
        return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise ServiceError("running as root needs a user `sensaka` for PostgreSQL: create it with useradd --system sensaka")


def reachable_by_others(path: Path) -> bool:
    """Whether another user can walk down to `path`."""
    existing = [folder for folder in (path, *path.parents) if folder.exists()]
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in existing)


def own_folder(path: Path, *, mode: int) -> Path:
    """A folder of this process's user; ServiceError for a link or somebody else's (it may lie in /tmp)."""
    path.mkdir(mode=mode, parents=True, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise ServiceError(f"{path} is not a folder of this user: remove it, or set SENSAKA_VAR to another folder")
    path.chmod(mode)
    return path


def private_folder(path: Path, account: Account | None) -> Path:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if account is not None:
        os.chown(path, account.uid, account.gid)
    elif path.stat().st_uid != os.geteuid():
        raise ServiceError(f"{path} belongs to somebody else: remove it or set SENSAKA_VAR to another folder")
    path.chmod(0o700)
    return path


@dataclass(frozen=True)
class Layout:
    """Where the embedded services keep data and sockets, computed from the var folder alone."""

    var: Path

    @cached_property
    def _fingerprint(self) -> str:
        return hashlib.sha256(str(self.var.resolve()).encode()).hexdigest()[:12]

    @cached_property
    def home(self) -> Path:
        """The folder for PostgreSQL's data: var itself, or /var/lib/sensaka/… when root's checkout is closed."""
        var = self.var.resolve()
        if os.geteuid() == 0 and not reachable_by_others(var.parent):
            return Path("/var/lib/sensaka") / self._fingerprint
        return var

    @cached_property
    def run(self) -> Path:
        """The folder for sockets: short and without characters that a URL would quote."""
        folder = self.home / "run"
        if len(str(folder)) > _SOCKET_PATH_LIMIT or not re.fullmatch(r"[\w./-]+", str(folder), re.ASCII):
            return Path("/tmp") / f"sensaka-{os.geteuid()}-{self._fingerprint}"  # noqa: S108 - its owner is checked
        return folder

    @property
    def postgres_socket(self) -> Path:
        return self.run / "postgres"

    @property
    def redis_socket(self) -> Path:
        return self.run / "redis" / "redis.sock"

    @property
    def database_url(self) -> str:
        return f"postgresql://sensaka@/{DATABASE}?host={self.postgres_socket}"

    @property
    def redis_url(self) -> str:
        return f"unix://{self.redis_socket}"


@dataclass(frozen=True, slots=True)
class Secrets:
    """Keys of an embedded installation, made at first start and kept in var/secrets."""

    secret_key: str = field(repr=False)
    encryption_key: str = field(repr=False)


def secrets(var: Path) -> Secrets:
    """Read the keys of this installation, making them first when missing (mode 0600)."""
    folder = var / "secrets"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def keep(name: str, make: Callable[[], str]) -> str:
        path = folder / name
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return path.read_text().strip()
        with os.fdopen(handle, "w") as file:
            value = make()
            file.write(value)
        return value

    return Secrets(
        secret_key=keep("secret_key", lambda: random_secrets.token_urlsafe(50)),
        encryption_key=keep("encryption_key", lambda: Fernet.generate_key().decode()),
    )
