"""One supervisor runs everything: it restarts what dies, ends cleanly, and leaves nothing behind (X1)."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Running:
    """A supervisor on a folder of its own, with everything that it says."""

    def __init__(self, var: Path) -> None:
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in {"DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE"} and "SENSAKA" not in name
        }
        environment |= {"SENSAKA_VAR": str(var), "PORT": "18100", "WEB_CONCURRENCY": "1", "WORKER_CONCURRENCY": "1"}
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sensaka.supervisor", "run"],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(iter(self.process.stdout.readline, ""))

    def wait_for(self, pattern: str, seconds: float = 240, *, after: int = 0) -> re.Match[str]:
        deadline = time.monotonic() + seconds
        while True:
            for line in self.lines[after:]:
                if found := re.search(pattern, line):
                    return found
            assert time.monotonic() < deadline, f"no line like {pattern!r} in:\n{''.join(self.lines[-40:])}"
            assert self.process.poll() is None, f"ended early:\n{''.join(self.lines[-40:])}"
            time.sleep(0.05)

    def descendants(self) -> set[int]:
        return descendants(self.process.pid)

    def end(self, number: signal.Signals = signal.SIGINT) -> float:
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(30)
        self._reader.join(10)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return time.monotonic() - began


def descendants(root: int) -> set[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if fields[0] != "Z":
                parents[int(entry.name)] = int(fields[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}


def alive(pids: set[int]) -> set[int]:
    """The processes of `pids` that still run."""
    running = set()
    for pid in pids:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                running.add(pid)
        except OSError:
            continue
    return running


def eventually_dead(pids: set[int], seconds: float = 20) -> set[int]:
    deadline = time.monotonic() + seconds
    while (left := alive(pids)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def wait_ready(address: str, seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not ready(address):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def child(running: Running, marker: str) -> int:
    """The topmost process of the supervisor whose command line holds `marker`."""
    for pid in sorted(running.descendants()):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
        if marker in command:
            return pid
    raise AssertionError(f"no child like {marker}")


@pytest.fixture
def var() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sensaka run ", dir="/tmp"))
    folder.chmod(0o755)
    built = ROOT / "var" / "assets"
    if built.exists():  # built once for all; building them is tested by the demo itself
        shutil.copytree(built, folder / "var" / "assets", symlinks=True)
    yield folder / "var"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("supervisor")
def test_it_starts_restarts_what_dies_ends_in_time_and_starts_again(var: Path) -> None:
    running = Running(var)
    try:
        address = running.wait_for(r"ready:\s+(http://\S+)")[1]
        password = running.wait_for(r"sign in as admin\s+password (\S+)")[1]
        assert len(password) >= 12
        assert ready(address)

        for marker, name in (("gunicorn", "web"), ("--app sensaka worker", "worker"), ("sensaka beat", "beat")):
            mark = len(running.lines)
            os.kill(child(running, marker), signal.SIGKILL)
            running.wait_for(f"{name} ended with -9", after=mark)
        assert wait_ready(address)
        mark = len(running.lines)
        os.kill(child(running, "bin/postgres"), signal.SIGKILL)
        running.wait_for("PostgreSQL ended; starting it again", after=mark)
        assert wait_ready(address)
        os.kill(child(running, "redis-server"), signal.SIGKILL)
        assert wait_ready(address)

        refused = Running(var)
        refused.process.wait(30)
        refused.end()
        assert any("already runs on" in line for line in refused.lines)
        left = running.descendants()
    finally:
        took = running.end()
    assert took < 10
    assert running.process.returncode == 0
    assert eventually_dead(left) == set()

    again = Running(var)
    try:
        again.wait_for(r"ready:\s+http://")
        assert not any("sign in as admin" in line for line in again.lines)
        left = again.descendants()
    finally:
        again.end(signal.SIGKILL)
    assert eventually_dead(left) == set()


def test_a_senseless_mode_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sensaka.supervisor", "fly"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "invalid choice" in done.stderr
