"""The agent under faults (I4): cut off for a day, killed at any moment, a server in trouble, a full disk.

The agent is the real one in a process of its own, with a clock that runs fast; the server is a small real HTTP server
that records what it acknowledged.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from inventory.agent.config import State
from tests.inventory.agent.doubles import CutLine, Memory, server

ROOT = Path(__file__).resolve().parents[2]
HOST = [sys.executable, "-m", "tests.faults.agent_host"]
DAY = 8640  # rounds of ten seconds
CARDS = 8
MEMORY_BOUND = 60 * 1024 * 1024
START = 1_800_000_000
NOBODY = "http://127.0.0.1:9"  # the discard port, where nothing listens


@pytest.fixture
def state(tmp_path: Path) -> State:
    state = State(tmp_path / "state")
    state.save_token("ska_test")
    return state


class Host:
    """One run of tests/faults/agent_host.py."""

    def __init__(self, state: State, url: str, *options: str, wrap: list[str] | None = None) -> None:
        number = len(list(state.folder.parent.glob("out-*")))
        self._out = (state.folder.parent / f"out-{number}").open("wb")
        self.log = state.folder.parent / "err"
        with self.log.open("ab") as err:
            self.process = subprocess.Popen(
                [*(wrap or []), *HOST, str(state.folder), url, *options],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=self._out,
                stderr=err,
            )

    def lines(self) -> list[str]:
        return Path(self._out.name).read_text().splitlines()

    @property
    def taken(self) -> list[int]:
        return [int(line.split()[1]) for line in self.lines() if line.startswith("taken ")]

    def wait_for(self, enough: Callable[[], bool], *, seconds: float = 90) -> None:
        deadline = time.monotonic() + seconds
        while not enough():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, "the agent took too long"
            time.sleep(0.01)

    def paused(self) -> dict[str, Any]:
        self.wait_for(lambda: any(line.startswith("paused {") and line.endswith("}") for line in self.lines()))
        (line,) = [line for line in self.lines() if line.startswith("paused ")]
        found: dict[str, Any] = json.loads(line.removeprefix("paused "))
        return found

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)
        self.close()

    def end(self, *, seconds: float = 120) -> dict[str, Any]:
        assert self.process.wait(seconds) == 0, self.log.read_text()
        found: dict[str, Any] = json.loads(self.lines()[-1])
        self.close()
        return found

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        if self.process.stdin is not None:
            self.process.stdin.close()
        self._out.close()


@pytest.fixture
def start(state: State) -> Iterator[Callable[..., Host]]:
    hosts: list[Host] = []

    def begin(url: str, *options: str, **kwargs: Any) -> Host:
        hosts.append(Host(state, url, *options, **kwargs))
        return hosts[-1]

    yield begin
    for host in hosts:
        host.close()


def rounds(memory: Memory) -> list[int]:
    """The seconds that were acknowledged, in order, each once for all cards; fails when a round is not whole."""
    seconds: list[int] = []
    samples = memory.samples
    for place in range(0, len(samples), CARDS):
        group = samples[place : place + CARDS]
        assert len({at for _, at in group}) == 1
        assert len({card for card, _ in group}) == CARDS
        seconds.append(int(datetime.fromisoformat(group[0][1]).timestamp()))
    return seconds


@pytest.mark.slow
def test_a_day_offline_fits_in_memory_and_is_delivered_once_and_in_order(
    start: Callable[..., Host], capsys: pytest.CaptureFixture[str]
) -> None:
    """I4: under 60 MB after a day of offline spooling; then every sample arrives exactly once, in order."""
    offline = start(NOBODY, "--rounds", str(DAY))
    told = offline.end()
    taken = offline.taken
    assert taken == list(range(START, START + DAY * 10, 10))
    assert told["pending"] >= DAY
    assert told["dropped"] == 0
    with capsys.disabled():
        share = told["cpu"] / (DAY * 10) * 100
        print(
            f"\nagent, a day offline, {CARDS} cards: {told['pss'] / 2**20:.1f} MiB PSS, "
            f"{told['bytes'] / 2**20:.1f} MiB spooled, {told['cpu']:.1f} CPU-s = {share:.3f} % of a core "
            "without the vendor's library"
        )
    assert told["pss"] < MEMORY_BOUND
    with server() as (url, memory):
        online = start(url, "--rounds", "3", "--start", str(START + DAY * 10), "--drain")
        told = online.end()
        assert told["pending"] == 0
        assert rounds(memory) == [*taken, *online.taken]
        assert told["pss"] < MEMORY_BOUND
        assert memory.requests < DAY / 10


def test_an_agent_killed_at_any_moment_loses_nothing_that_its_spool_took(start: Callable[..., Host]) -> None:
    """I4: kill -9 while reading, writing and delivering; what was taken arrives, repeats only where it was cut."""
    chance = random.Random(4)
    taken: list[int] = []
    with server() as (url, memory):
        for run in range(6):
            begin = str(START + run * 1_000_000)
            host = start(url, "--rounds", "100000", "--start", begin)
            enough = chance.randrange(50, 700)
            host.wait_for(lambda host=host, enough=enough: len(host.taken) >= enough)  # type: ignore[misc]
            host.kill()
            taken += host.taken
        last = start(url, "--rounds", "1", "--start", str(START + 9_000_000), "--drain")
        assert last.end()["pending"] == 0
        taken += last.taken
    found = rounds(memory)
    assert len(taken) >= 300
    assert set(taken) <= set(found)
    once = list(dict.fromkeys(found))
    assert once == sorted(once)
    # what is beyond `taken` was in the spool when the kill came before it could be said: one round a kill
    assert len(set(found) - set(taken)) <= 6


def test_a_server_in_trouble_gets_every_sample_once_it_is_well(start: Callable[..., Host]) -> None:
    """I4: 500, 503, silence, cut lines and resets in the middle of a body cost time and nothing else."""
    memory = Memory()
    troubles = ["500", "silence", "cut before", "reset", "503", "cut before"]

    def judge(kind: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        trouble = troubles.pop() if troubles and memory.requests % 2 == 0 else ""
        if trouble == "silence":
            time.sleep(0.6)
            raise CutLine
        if trouble == "cut before":
            raise CutLine
        if trouble == "reset":
            memory.resets = 2
            raise CutLine
        return (int(trouble), {"code": "trouble"}) if trouble else None

    memory.judge = judge
    with server(memory) as (url, _):
        host = start(url, "--rounds", "300", "--drain", "--timeout", "0.3")
        told = host.end()
    assert troubles == []
    assert memory.resets == 0
    assert (told["pending"], told["dropped"], told["refused"]) == (0, 0, 0)
    assert rounds(memory) == host.taken == list(range(START, START + 3000, 10))


def test_an_answer_that_is_lost_costs_a_repeat_and_no_sample(start: Callable[..., Host]) -> None:
    memory = Memory()
    cuts = [1, 1, 1]

    def cut(kind: str) -> None:
        if kind == "telemetry" and cuts:
            cuts.pop()
            raise CutLine

    memory.before_answer = cut
    with server(memory) as (url, _):
        host = start(url, "--rounds", "200", "--drain")
        assert host.end()["pending"] == 0
    found = rounds(memory)
    assert list(dict.fromkeys(found)) == host.taken
    assert len(found) > len(host.taken)


def _private_tmpfs(folder: Path, size: str) -> list[str]:
    """A command prefix that runs the rest with a small file system at `folder`, seen by nobody else."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    users = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    mount = f'mount -t tmpfs -o size={size} none "$0" && cp "$0.token" "$0/token" && exec "$@"'
    prefix = ["unshare", *users, "--mount", "sh", "-c", mount, str(folder)]
    if subprocess.run([*prefix, "true"], capture_output=True, timeout=20, check=False).returncode != 0:
        pytest.skip("this machine lets nobody mount a file system of their own")
    return prefix


def test_a_full_disk_is_survived_counted_and_left_behind(start: Callable[..., Host], state: State) -> None:
    """I4: with no room left the agent keeps reading, counts what it loses, and delivers all it kept."""
    shutil.copy(state.token_file, f"{state.folder}.token")
    prefix = _private_tmpfs(state.folder, "400k")
    memory = Memory()
    well: list[bool] = []
    memory.judge = lambda kind, body: None if well else (503, {"code": "trouble"})
    with server(memory) as (url, _):
        host = start(url, "--rounds", "1005", "--pause-after", "1000", "--drain", wrap=prefix)
        full = host.paused()
        assert 0 < full["dropped"] < 1000
        assert full["bytes"] <= 400 * 1024
        well.append(True)
        host.go_on()
        told = host.end()
    assert told["pending"] == 0
    found = rounds(memory)
    # what the disk took first, and the last ten minutes from memory
    assert found == sorted(set(found))
    assert len(found) >= 1005 - told["dropped"]
    assert set(host.taken[-20:]) <= set(found)
    assert set(host.taken[:50]) <= set(found)
    assert "can't be written" in host.log.read_text()


def test_a_spool_that_is_full_keeps_the_newest(start: Callable[..., Host]) -> None:
    """I4: bounded on disk, oldest first out, counted."""
    with server() as (url, memory):
        offline = start(NOBODY, "--rounds", "1500", "--spool-bytes", str(1024 * 1024))
        told = offline.end()
        assert told["dropped"] > 0
        assert told["bytes"] <= 1024 * 1024
        online = start(
            url, "--rounds", "1", "--start", str(START + 90_000), "--drain", "--spool-bytes", str(1024 * 1024)
        )
        assert online.end()["pending"] == 0
    found = rounds(memory)
    assert found == [*offline.taken[-len(found) + 1 :], *online.taken]
    assert len(found) > 100
