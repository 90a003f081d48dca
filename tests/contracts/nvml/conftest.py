"""The stand-in NVML library, built once a run, and a process that reads it."""

import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from inventory.observations import CardReading, NodeReading

ROOT = Path(__file__).parents[3]
SOURCE = Path(__file__).with_name("libnvidia-ml.c")


class Probe:
    """The driver in its own process, and the state that its library reads."""

    def __init__(self, process: subprocess.Popen, state: Path) -> None:
        self.process, self._file, self.state = process, state, {}

    def set(self, **lines: object) -> None:
        """Change lines of the state: `set(**{"3.lost": 15})`; None takes a line away."""
        self.state = {key: value for key, value in {**self.state, **lines}.items() if value is not None}
        fresh = self._file.with_suffix(".new")
        fresh.write_text("".join(f"{key} {value}\n" for key, value in self.state.items()))
        fresh.replace(self._file)

    def do(self, **order: object) -> object:
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], 30)
        assert ready, f"no answer to {order}"
        line = self.process.stdout.readline()
        assert line, f"the process ended at {order}"
        return json.loads(line)

    def read(self, deadline: float = 10) -> NodeReading:
        # Decoding checks every bound, as the server does.
        return msgspec.convert(self.do(do="read", deadline=deadline), NodeReading)

    def calls(self, name: str) -> int:
        return self.do(do="calls", name=name)


@pytest.fixture(scope="session")
def library_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        message = "gcc is not installed: the stand-in NVML library can't be built"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    folder = tmp_path_factory.mktemp("nvml")
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    target = folder / "libnvidia-ml.so.1"
    subprocess.run([*command, "-o", target, SOURCE, "-lpthread"], check=True, timeout=120)
    return folder


def _start(tmp_path: Path, environment: dict[str, str], *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-W", "error", Path(__file__).with_name("probe.py"), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


@pytest.fixture
def start_probe(library_folder: Path, tmp_path: Path) -> Iterator[Callable[..., Probe]]:
    started: list[Probe] = []

    def start(*, retry_lost: float = 300, **lines: object) -> Probe:
        state = tmp_path / f"state{len(started)}"
        environment = {"LD_LIBRARY_PATH": str(library_folder), "SENSAKA_NVML_STATE": str(state)}
        probe = Probe(_start(tmp_path, environment, str(retry_lost), "library"), state)
        probe.set(**lines)
        started.append(probe)
        return probe

    yield start
    for probe in started:
        _end(probe.process)


@pytest.fixture
def probe(start_probe: Callable[..., Probe]) -> Probe:
    return start_probe()


@pytest.fixture
def bare_probe(tmp_path: Path) -> Iterator[Probe]:
    """The driver on a node without NVIDIA's library."""
    process = _start(tmp_path, {"LD_LIBRARY_PATH": "", "PATH": "/nonexistent"}, "300", "none")
    yield Probe(process, tmp_path / "unused")
    _end(process)


def _end(process: subprocess.Popen) -> None:
    process.stdin.close()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        pytest.fail("a hanging call kept the process from exiting")
    finally:
        process.stdout.close()


def by_index(reading: NodeReading) -> dict[int, CardReading]:
    return {card.index: card for card in reading.cards}
