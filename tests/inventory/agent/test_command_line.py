"""The commands of sensaka-agent, run as programs (I4)."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from inventory.agent.config import BadConfig, Config, State, load_config, save_config
from inventory.agent.identity import Identity, read_identity
from tests.inventory.agent.doubles import Memory, card, node, server

ROOT = Path(__file__).resolve().parents[3]


class Node:
    """A folder with all that one agent has: configuration, state, the page of its simulated cards."""

    def __init__(self, folder: Path) -> None:
        self.config, self.state = folder / "agent.toml", State(folder / "state")
        self.page, self.token = folder / "node.json", folder / "enrolment"
        self.page.write_bytes(msgspec.json.encode(node(card(1), card(2), machine_id="m1", system_serial="S1")))
        self.token.write_text("ske_once\n")
        self.started: list[subprocess.Popen[bytes]] = []

    def command(self, name: str, *options: str) -> list[str]:
        places = ["--config", str(self.config), "--state", str(self.state.folder)]
        return [sys.executable, "-m", "inventory.agent", name, *places, *options]

    def call(self, name: str, *options: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(name, *options), cwd=ROOT, capture_output=True, text=True, timeout=60, check=False, **kwargs
        )

    def enrol(self, url: str, *options: str) -> subprocess.CompletedProcess[str]:
        source = ["--source", f"simulated:{self.page}"]
        return self.call("enrol", "--server", url, "--token-file", str(self.token), *source, *options)

    def run(self) -> "subprocess.Popen[bytes]":
        log = (self.state.folder.parent / "log").open("ab")
        self.started.append(subprocess.Popen(self.command("run"), cwd=ROOT, stderr=log, stdout=log))
        log.close()
        return self.started[-1]


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Node]:
    found = Node(tmp_path)
    yield found
    for process in found.started:
        if process.poll() is None:
            process.kill()
        process.wait(10)


def until(enough: Callable[[], object], *, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not enough():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def welcoming() -> Memory:
    memory = Memory()

    def judge(kind: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if kind == "enrol":
            memory.taken.append((kind, body))
            return 201, {"agent": "a", "node": "n", "name": "gpu-01", "token": "ska_given", "interval": 1}
        return None

    memory.judge = judge
    return memory


def test_enrol_then_run_then_stop(here: Node) -> None:
    """I4: enrolment with a one-time token, reading and delivering, status, and a clean end."""
    with server(welcoming()) as (url, memory):
        done = here.enrol(url)
        assert done.returncode == 0, done.stderr
        assert "gpu-01" in done.stdout
        (enrolled,) = memory.taken
        assert enrolled[1]["token"] == "ske_once"
        assert (enrolled[1]["machine_id"], enrolled[1]["system_serial"]) == ("m1", "S1")
        assert enrolled[1]["simulated"] is True
        assert here.state.token() == "ska_given"
        assert here.state.token_file.stat().st_mode & 0o777 == 0o600
        assert load_config(here.config).interval == 1
        process = here.run()
        until(lambda: len(memory.samples) >= 6)
        until(here.state.status_file.exists)
        status = here.call("status")
        assert f"running (pid {process.pid})" in status.stdout
        assert "2 cards" in status.stdout
        assert status.returncode == 0
        second = here.call("run")
        assert (second.returncode, "another sensaka-agent" in second.stderr) == (1, True)
        asked = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert time.monotonic() - asked < 5
        assert memory.tokens == {"", "Token ska_given"}
        assert [kind for kind, _ in memory.taken[:3]] == ["enrol", "report", "telemetry"]
        assert memory.taken[1][1]["simulated"] is True
    stopped = here.call("status")
    assert "not running" in stopped.stdout
    assert stopped.returncode == 1


def test_a_request_that_hangs_does_not_hold_the_end(here: Node) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        save_config(here.config, Config(server=url, interval=1, source=f"simulated:{here.page}"))
        here.state.save_token("ska_x")
        process = here.run()
        peer, _ = silent.accept()
        with peer:
            peer.recv(10)
            asked = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
            assert time.monotonic() - asked < 5


REFUSALS = {
    "a used token": ((410, {"detail": "this enrolment token has been used"}), "has been used"),
    "an unknown token": ((401, {"detail": "never issued"}), "never issued"),
    "a page of something else": ((200, {"hello": "world"}), "200"),
}


@pytest.mark.parametrize(("reply", "says"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refused_enrolment_leaves_nothing_behind(here: Node, reply: Any, says: str) -> None:
    memory = Memory()
    memory.judge = lambda kind, body: reply
    with server(memory) as (url, _):
        done = here.enrol(url)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not here.config.exists()
    assert not here.state.token_file.exists()


MISTAKES: dict[str, tuple[list[str], str]] = {
    "run before enrol": (["run"], "enrol this node first"),
    "status before run": (["status"], "has not run yet"),
    "a token file that is not there": (
        ["enrol", "--server", "http://127.0.0.1:9", "--token-file", "none"],
        "No such file",
    ),
    "an address that is none": (["enrol", "--server", "gpu", "--token-file", "-"], "address of a server"),
    "nobody there": (["enrol", "--server", "http://127.0.0.1:9", "--token-file", "-"], "can't be reached"),
    "an unknown source": (["check", "--source", "nvml"], "no source of readings"),
}


@pytest.mark.parametrize(("arguments", "says"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_one_clear_line(here: Node, arguments: list[str], says: str) -> None:
    done = here.call(*arguments, input="ske_x")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("sensaka-agent: ")
    assert says in line


CONFIGS = {
    "no TOML": "server = ",
    "an unknown field": 'serverr = "http://x"',
    "a wrong type": "interval = 'ten'",
    "no interval": "interval = 0",
}


@pytest.mark.parametrize("text", CONFIGS.values(), ids=CONFIGS.keys())
def test_a_configuration_that_makes_no_sense_names_its_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "agent.toml"
    path.write_text(text)
    with pytest.raises(BadConfig, match=r"agent\.toml"):
        load_config(path)


def test_a_configuration_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    config = Config(server="https://sensaka.example/x", ca_file='/tmp/a "b" \\ é.pem', interval=7, spool_bytes=1 << 20)
    save_config(tmp_path / "etc" / "agent.toml", config)
    assert load_config(tmp_path / "etc" / "agent.toml") == config


def test_check_tells_what_is_wrong(here: Node) -> None:
    """I4: `check` prints what can and cannot be read and why."""
    done = here.call("check")
    assert done.returncode == 1
    assert "FAILED   server" in done.stdout
    assert "no server is configured" in done.stdout
    save_config(here.config, Config(server="http://127.0.0.1:9", source=f"simulated:{here.page}"))
    here.state.save_token("ska_x")
    done = here.call("check")
    assert "2 cards" in done.stdout
    assert "unreachable" in done.stdout
    assert done.returncode == 1


def dmi(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def test_an_identity_is_read_and_defaults_of_boards_are_not_taken_for_one(tmp_path: Path) -> None:
    real = dmi(
        tmp_path / "real",
        sys__class__dmi__id__product_serial="S391234X0A01",
        sys__class__dmi__id__product_uuid="30393137-3436-584D-5132-323830304B4D",
        proc__sys__kernel__random__boot_id="64e8403b-485c-47a3-bb81-84a099c9719e",
    )
    (real / "etc").mkdir()
    (real / "etc/machine-id").write_text("8f3c2b1a0d9e4c7fb6a5948372615040\n")
    assert read_identity(real) == Identity(
        hostname=socket.gethostname(),
        machine_id="8f3c2b1a0d9e4c7fb6a5948372615040",
        system_serial="S391234X0A01",
        system_uuid="30393137-3436-584d-5132-323830304b4d",
        boot_id="64e8403b-485c-47a3-bb81-84a099c9719e",
    )
    blank = dmi(
        tmp_path / "blank",
        sys__class__dmi__id__product_serial="To Be Filled By O.E.M.",
        sys__class__dmi__id__product_uuid="03000200-0400-0500-0006-000700080009",
    )
    assert read_identity(blank) == Identity(hostname=socket.gethostname())


def test_what_enrol_read_as_root_completes_what_is_read_later() -> None:
    config = Config(system_serial="S1", system_uuid="u")
    assert config.known(Identity(hostname="h")) == Identity(hostname="h", system_serial="S1", system_uuid="u")
    assert config.known(Identity(system_serial="S2")).system_serial == "S2"


def test_the_agent_needs_no_django() -> None:
    """I4: the agent installs from its own small requirements."""
    code = "import sys, inventory.agent.cli; print(sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(json.loads(done.stdout.replace("'", '"')))
    assert "msgspec" in loaded
    assert not loaded & {"django", "rest_framework", "celery", "channels", "httpx", "numpy", "redis", "psycopg"}


def test_the_launcher_finds_its_folder(tmp_path: Path) -> None:
    bin_folder = tmp_path / "opt with space" / "venv" / "bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "python").symlink_to(sys.executable)
    for name in ("inventory", "sensaka"):
        (tmp_path / "opt with space" / name).symlink_to(ROOT / name)
    done = subprocess.run(
        [ROOT / "deploy/agent/sensaka-agent", "--version"],
        env={**os.environ, "SENSAKA_AGENT_HOME": str(tmp_path / "opt with space"),
             "PYTHONPATH": str(Path(msgspec.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )  # fmt: skip
    assert done.stdout.startswith("sensaka-agent ")
