"""One process that runs everything on one machine: PostgreSQL, Redis, web, worker, beat, and the demo fleet.

    python -m sensaka.supervisor run     for real hardware
    python -m sensaka.supervisor demo    with the simulated fleet

Children write to one log, each line with its name in front. A child that dies is started again with
growing pauses. Ctrl-C ends all within ten seconds; when this process itself is killed the kernel
ends the children.
"""

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

from sensaka import embedded

ROOT = Path(__file__).resolve().parent.parent
_COLOURS = {"web": 36, "worker": 33, "beat": 35, "fleet": 32, "sensaka": 1}
# Shipped by libraries, used by no page of ours, and slow to compress.
_UNUSED_STATIC = ("redoc", "rest_framework", "ext")
_SERVICE_PAUSE = 10.0  # s between two tries to start a service that does not start
_PRINTING = threading.Lock()


def say(name: str, line: str) -> None:
    """One line of the common log."""
    label = f"{name:<8}|"
    if sys.stdout.isatty():
        label = f"\x1b[{_COLOURS.get(name, 0)}m{label}\x1b[0m"
    with _PRINTING:
        sys.stdout.write(f"{label} {line}\n")
        sys.stdout.flush()


@contextlib.contextmanager
def step(title: str) -> Iterator[None]:
    """A step of the start, with what it took."""
    say("sensaka", f"{title} ...")
    began = time.monotonic()
    yield
    say("sensaka", f"{title}: done in {time.monotonic() - began:.1f} s")


@dataclass
class Child:
    """A program of ours that has to run all the time."""

    name: str
    command: Sequence[str]
    environment: dict[str, str]
    stop_signal: signal.Signals = signal.SIGTERM
    orphan_signal: signal.Signals = signal.SIGTERM
    """What the kernel sends when the supervisor is gone."""
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    pause: float = 1.0
    retry_at: float = field(default=0.0)

    def start(self) -> None:
        """Start it in a process group of its own; its output goes to the common log."""
        self.started_at = time.monotonic()
        self.process = subprocess.Popen(
            self.command, cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=embedded.die_with_parent(self.orphan_signal),
        )  # fmt: skip
        assert self.process.stdout is not None
        threading.Thread(target=self._copy_log, args=(self.process.stdout,), daemon=True).start()

    def _copy_log(self, stream: IO[bytes]) -> None:
        for line in stream:
            say(self.name, line.decode(errors="replace").rstrip())

    def look_after(self) -> None:
        """Start it again when it has died, later each time it dies soon after its start."""
        if self.process is not None and self.process.poll() is None:
            return
        now = time.monotonic()
        if self.process is not None:
            lived = now - self.started_at
            self.pause = 1.0 if lived > 60 else min(self.pause * 2, 30.0)
            say("sensaka", f"{self.name} ended with {self.process.returncode}; starting it again in {self.pause:.0f} s")
            self._sweep()
            self.process, self.retry_at = None, now + self.pause
        elif now >= self.retry_at:
            self.start()

    def _sweep(self) -> None:
        """End what a killed child left behind in its process group."""
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def ask_to_stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(self.stop_signal)

    def wait_or_kill(self, deadline: float) -> None:
        if self.process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.1, deadline - time.monotonic()))
        self._sweep()
        self.process.wait()


def _fingerprint(sources: Sequence[Path]) -> str:
    """Changes when a file below `sources` is added, removed or changed."""
    digest = hashlib.sha256()
    for source in sources:
        files = sorted(source.rglob("*")) if source.is_dir() else [source]
        for file in files:
            if file.is_file():
                status = file.stat()
                digest.update(f"{file.relative_to(source.parent)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


class Supervisor:
    """Starts everything in order, watches it, and ends it in the reverse order."""

    def __init__(self, *, demo: bool, host: str, port: int) -> None:
        self.demo, self.host, self.port = demo, host, port
        self.var = Path(os.environ.get("SENSAKA_VAR", ROOT / "var"))
        self.layout = embedded.Layout(self.var)
        self.services: list[embedded.PostgreSQL | embedded.Redis] = []
        self.children: list[Child] = []
        self.service_retry_at = 0.0
        self.ending = False

    @property
    def address(self) -> str:
        return f"http://{'127.0.0.1' if self.host in {'0.0.0.0', '::'} else self.host}:{self.port}"  # noqa: S104

    def environment(self) -> dict[str, str]:
        """What every child is told."""
        environment = {
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            # Celery warns about root; the embedded mode may run as root and serves loopback only
            "C_FORCE_ROOT": "1",
            "SENSAKA_VAR": str(self.var),
            "DJANGO_SETTINGS_MODULE": os.environ.get("DJANGO_SETTINGS_MODULE", "sensaka.settings.dev"),
        }
        if self.demo:
            environment["SENSAKA_SIMULATED_FLEET"] = "true"
        return environment

    def manage(self, *arguments: str) -> str:
        """Run one management command to its end; its output, or RuntimeError with it."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments], cwd=ROOT, env=self.environment(), capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"manage.py {arguments[0]} failed:\n{(done.stdout + done.stderr).strip()[-3000:]}")
        return done.stdout

    def prepare(self) -> list[dict[str, str]]:
        """Bring assets, services, schema and accounts up; returns the log-ins to print."""
        with step("Browser assets"):
            built = subprocess.run([sys.executable, "-m", "sensaka.assets"], cwd=ROOT, env=self.environment())
            if built.returncode:
                raise RuntimeError("the browser assets could not be built; see above")
        if "DATABASE_URL" not in os.environ:
            with step("PostgreSQL"):
                self._open(embedded.PostgreSQL(self.layout))
        if "REDIS_URL" not in os.environ:
            with step("Redis"):
                self._open(embedded.Redis(self.layout))
        with step("Database schema and catalogue"):
            self.manage("migrate", "--no-input")
            self.manage("load_catalogue")
        self._collect_static_files()
        accounts = ["first_accounts", "--json"] + (["--demo"] if self.demo else [])
        logins: list[dict[str, str]] = json.loads(self.manage(*accounts).strip().splitlines()[-1])
        return logins

    def _collect_static_files(self) -> None:
        """Collect and compress static files, unless nothing that goes into them has changed."""
        stamp = self.var / "static.stamp"
        wanted = _fingerprint([ROOT / "static", self.var / "assets", ROOT / "requirements.txt"])
        if (self.var / "static").exists() and stamp.exists() and stamp.read_text() == wanted:
            return
        with step("Static files"):
            ignored = [part for pattern in _UNUSED_STATIC for part in ("--ignore", pattern)]
            self.manage("collectstatic", "--no-input", "--clear", *ignored)
        stamp.write_text(wanted)

    def _open(self, service: embedded.PostgreSQL | embedded.Redis) -> None:
        self.services.append(service)
        service.start()

    def programs(self) -> list[Child]:
        """The children, in the order in which they start."""
        environment = self.environment()
        python = sys.executable
        web = [
            python, "-m", "gunicorn", "sensaka.asgi:application", "--worker-class", "uvicorn_worker.UvicornWorker",
            "--workers", os.environ.get("WEB_CONCURRENCY", "2"), "--bind", f"{self.host}:{self.port}",
            # longer than agents and proxies keep a connection, so that none is closed under a request
            "--keep-alive", "75",
            "--graceful-timeout", "3", "--timeout", "60", "--log-level", "warning", "--no-control-socket",
        ]  # fmt: skip
        worker = [
            python, "-m", "celery", "--quiet", "--app", "sensaka", "worker", "--loglevel", "WARNING", "--concurrency",
            os.environ.get("WORKER_CONCURRENCY", "3"), "--without-gossip", "--without-mingle",
        ]  # fmt: skip
        beat = [
            python, "-m", "celery", "--quiet", "--app", "sensaka", "beat", "--loglevel", "WARNING", "--pidfile", "",
            "--schedule", str(self.var / "beat-schedule"),
        ]  # fmt: skip
        children = [
            Child("web", web, environment),
            # Warm shutdown would wait for a poll to end; leases make a cold one safe. An orphan waits for a Redis
            # that ended at the same moment, whatever it is asked.
            Child("worker", worker, environment, stop_signal=signal.SIGQUIT, orphan_signal=signal.SIGKILL),
            Child("beat", beat, environment),
        ]
        if self.demo:
            fleet = [
                python, "-m", "sensaka.fleet", "--server", self.address, "--operator-token-file",
                str(self.var / "secrets" / "fleet_token"), "--state", str(self.var / "fleet"),
            ]  # fmt: skip
            children.append(Child("fleet", fleet, environment))
        return children

    def wait_until_ready(self) -> None:
        """Wait until the web process answers /readyz; RuntimeError after a minute."""
        deadline = time.monotonic() + 60
        while not self.ending:
            try:
                with urllib.request.urlopen(f"{self.address}/readyz", timeout=5):  # noqa: S310 - our own address
                    return
            except (urllib.error.URLError, OSError):
                if time.monotonic() > deadline:
                    raise RuntimeError(
                        "the web process did not become ready within a minute; see its lines above"
                    ) from None
                time.sleep(0.2)

    def run(self) -> None:
        """Everything, until SIGINT or SIGTERM."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._end)
        logins = self.prepare()
        self.children = self.programs()
        with step("Web, worker and beat"):
            for child in self.children:
                child.start()
            self.wait_until_ready()
        self.announce(logins)
        while not self.ending:
            for child in self.children:
                child.look_after()
            self._look_after_services()
            time.sleep(0.5)

    def _look_after_services(self) -> None:
        for service in self.services:
            name = type(service).__name__
            if self.ending or time.monotonic() < self.service_retry_at:
                return
            if service.is_leaving():
                # its clients here would never go, and nobody new is let in
                say("sensaka", f"{name} was asked to end; ending it now")
                service.stop()
            if service.process is None or service.process.poll() is not None:
                say("sensaka", f"{name} ended; starting it again")
                try:
                    service.start()
                except embedded.ServiceError as error:
                    say("sensaka", f"{error}; once more in {_SERVICE_PAUSE:.0f} s")
                    self.service_retry_at = time.monotonic() + _SERVICE_PAUSE

    def _end(self, number: int, frame: FrameType | None) -> None:
        if not self.ending:
            self.ending = True
            say("sensaka", "stopping ...")

    def announce(self, logins: list[dict[str, str]]) -> None:
        """Where to go and who may enter."""
        lines = ["", f"Sensaka is ready:  {self.address}", ""]
        lines += [
            f"   sign in as {login['username']:<10} password {login['password']}   ({login['role']})"
            for login in logins
        ]
        if not logins:
            lines.append(
                "   sign in with the accounts you made; `manage.py first_accounts --reset` makes a new password"
            )
        if self.demo:
            lines += ["", "   The fleet is simulated: 64 nodes appear within a minute (docs/demo.md)."]
        lines += ["", "   Ctrl-C stops everything.", ""]
        for line in lines:
            say("sensaka", line)

    def stop(self) -> None:
        """End children, then services; ten seconds at most."""
        self.ending = True
        for child in reversed(self.children):
            child.ask_to_stop()
        deadline = time.monotonic() + 5
        for child in reversed(self.children):
            child.wait_or_kill(deadline)
        for service in reversed(self.services):
            service.stop()
        say("sensaka", "stopped")


def free_port(host: str, wanted: int) -> int:
    """`wanted`, or the next of twenty ports that nobody listens on."""
    for port in range(wanted, wanted + 20):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind((host, port))
                return port
    raise RuntimeError(f"ports {wanted} to {wanted + 19} are taken: set PORT to a free one")


@contextlib.contextmanager
def only_one(var: Path) -> Iterator[None]:
    """Refuse a second supervisor on the same folder."""
    var.mkdir(mode=0o711, parents=True, exist_ok=True)
    with (var / "supervisor.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RuntimeError(
                f"Sensaka already runs on {var}: stop it first, or set SENSAKA_VAR to another folder"
            ) from None
        yield


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; exit status 0 after a clean stop."""
    parser = argparse.ArgumentParser(prog="sensaka.supervisor", description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=["run", "demo"])
    parser.add_argument("--host", default=os.environ.get("HOST", "127.0.0.1"))
    parser.add_argument("--port", type=int, default=int(os.environ.get("PORT", "8000")))
    chosen = parser.parse_args(arguments)
    failures: tuple[type[Exception], ...] = (RuntimeError, embedded.ServiceError)
    return _guarded(lambda: _run(chosen), failures)


def _run(chosen: argparse.Namespace) -> None:
    supervisor = Supervisor(demo=chosen.mode == "demo", host=chosen.host, port=free_port(chosen.host, chosen.port))
    with only_one(supervisor.var):
        try:
            supervisor.run()
        finally:
            supervisor.stop()


def _guarded(act: Callable[[], None], failures: tuple[type[Exception], ...]) -> int:
    try:
        act()
    except failures as error:
        say("sensaka", f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
