"""The fleet as a process: it registers once, answers acts at every door, ends clean and goes on where it was."""

import asyncio
import json
import os
import re
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from sensaka.fleet import ipmi
from sensaka.fleet.control import ControlError, ask
from sensaka.fleet.plan import make_plan
from tests.sensaka.fleet.product_stub import ProductStub

pytestmark = pytest.mark.xdist_group("fleet")  # each takes the free ports that it finds

PROJECT = Path(__file__).parents[3]
DEADLINE = 90.0
NODES = 8


@pytest.fixture
async def product() -> AsyncIterator[ProductStub]:
    async with ProductStub() as stub:
        yield stub


async def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"{what} did not come about in time"
        await asyncio.sleep(0.1)


class Running:
    """One fleet process on a state folder whose name has a space."""

    def __init__(self, folder: Path, product: ProductStub) -> None:
        self.folder = folder
        self.state = folder / "state of fleet"
        self.token = folder / "token"
        self.token.write_text(product.token)
        self.product = product
        self.log = folder / "log"
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, *more: str) -> None:
        with self.log.open("ab") as output:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "sensaka.fleet", "--server", self.product.url, "--operator-token-file",
                str(self.token), "--state", str(self.state), "--nodes", str(NODES), *more,
                stdout=output, stderr=output, cwd=PROJECT,
            )  # fmt: skip

    async def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        return await asyncio.to_thread(ask, self.state, method, path, body)

    async def act(self, **arguments: object) -> str:
        return str((await self.ask("POST", "/act", arguments))["done"])

    def said(self) -> str:
        return self.log.read_text()

    async def registered(self) -> None:
        wanted = f"all {NODES} nodes are in the tree"
        await until(lambda: wanted in self.said() or self.ended(), wanted)
        assert not self.ended(), self.said()

    def ended(self) -> bool:
        return self.process is not None and self.process.returncode is not None

    async def stop(self) -> float:
        """Seconds that the clean end took."""
        assert self.process is not None
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(self.process.wait(), 10) == 0, self.said()
        return time.monotonic() - started


@pytest.fixture
async def running(tmp_path: Path, product: ProductStub) -> AsyncIterator[Running]:
    fleet = Running(tmp_path, product)
    yield fleet
    if fleet.process is not None and fleet.process.returncode is None:
        fleet.process.kill()
        await fleet.process.wait()


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def rows(product: ProductStub) -> dict[str, int]:
    return {name: len(table) for name, table in product.tables.items() if name not in ("discoveries", "credentials")}


def add_unseen_nodes(product: ProductStub, fleet_state: dict[str, Any]) -> None:
    """What the product would find out by itself from pages and BMCs: the nodes without agents."""
    known = {row["name"] for row in product.tables["nodes"]}
    for name in fleet_state["nodes"]:
        if name not in known and "agent" not in fleet_state["nodes"][name]["door"]:
            product._create("nodes", {"name": name, "system_serial": "", "labels": {}})


@pytest.mark.timeout(240)
async def test_a_fleet_registers_once_and_goes_on_after_a_restart(running: Running, product: ProductStub) -> None:
    """Nothing is doubled by a second start: places, tokens, agents, BMCs and cards are found again."""
    await running.start()
    await until(lambda: len(product.tables["agents"]) == 5, "all five agents, the real one among them")
    add_unseen_nodes(product, await running.ask("GET", "/state"))
    await running.registered()
    await until(lambda: len(product.reports) == 5, "reports of all five agents")
    await until(lambda: len(product.tables["bmcs"]) == NODES, "all BMCs")
    before, cards = rows(product), {card for card, _ in product.samples}
    assert before["sites"] == 3
    nodes = (await running.ask("GET", "/state"))["nodes"]
    assert before["exporters"] == sum(row["door"] == "exporter" for row in nodes.values()) > 0
    assert all("rack" in node and node["labels"]["simulated"] == "true" for node in product.tables["nodes"])
    assert {bmc["interval"] for bmc in product.tables["bmcs"]} == {10}
    schedulers = {row["id"]: row["scheduler"] for row in product.tables["clusters"]}
    assert {row["cluster"]: row["scheduler"] for row in product.tables["connections"]} == schedulers
    assert set(schedulers.values()) == {"slurm", "kubernetes"}
    assert await running.stop() < 5

    await running.start()
    await until(lambda: running.said().count(f"all {NODES} nodes are in the tree") == 2, "the second registration")
    seen = len(product.samples)
    await until(lambda: len(product.samples) > seen, "more samples")
    assert rows(product) == {**before, "enrolment-tokens": before["enrolment-tokens"]}
    assert {card for card, _ in product.samples} >= cards
    again = (await running.ask("GET", "/state"))["nodes"]
    assert {n: [s["serial"] for s in row["slots"]] for n, row in again.items()} == {
        n: [s["serial"] for s in row["slots"]] for n, row in nodes.items()
    }
    await running.stop()


@pytest.mark.timeout(240)
async def test_acts_reach_every_door_of_a_running_fleet(running: Running, product: ProductStub) -> None:
    await running.start()
    await until(lambda: (running.state / "control.json").exists() or running.ended(), "the control address")
    await until(lambda: len(product.reports) >= 4, "reports of all four agents")
    nodes = (await running.ask("GET", "/state"))["nodes"]
    paged = next(name for name, row in nodes.items() if row["door"] == "exporter" and "a100" not in name)
    url = next(row["url"] for row in product.tables["exporters"] if row["site"] == site_id(product, nodes[paged]))
    assert (await asyncio.to_thread(fetch, url)).count("sensaka_simulated 1") == 1

    told = await running.act(do="silence_exporter", node=paged)
    assert paged in told
    with pytest.raises(TimeoutError):
        await asyncio.to_thread(fetch, url)

    bmc = nodes[paged]["bmc"].removeprefix("redfish://")
    port = next(row["port"] for row in product.tables["bmcs"] if row["address"] == bmc)
    _, writer = await asyncio.open_connection(bmc, port)
    writer.close()
    await running.act(do="stop_bmc", node=paged)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(bmc, port)
    await running.act(do="restore", node=paged)
    _, writer = await asyncio.open_connection(bmc, port)
    writer.close()
    with pytest.raises(ControlError, match="no node 'nowhere'"):
        await running.act(do="os_down", node="nowhere")
    await running.stop()


@pytest.mark.timeout(240)
async def test_children_end_with_a_killed_fleet(running: Running, product: ProductStub) -> None:
    """The real agent and the ipmi_sim processes are gone when the fleet is killed, and a new start works."""
    await running.start()
    await until(lambda: "runs as its own process" in running.said() or running.ended(), "the real agent")
    assert running.process is not None
    assert not running.ended(), running.said()
    children = children_of(running.process.pid)
    plan = make_plan(seed=1, nodes=NODES, ipmi=ipmi.available() is None)
    assert len(children) == 1 + sum(node.protocol == "ipmi" for node in plan.nodes), running.said()
    running.process.kill()
    await running.process.wait()

    await until(lambda: not any(alive(pid) for pid in children), "the end of all children")
    await running.start()
    await until(lambda: running.said().count("runs as its own process") == 2 or running.ended(), "the second start")
    assert not running.ended(), running.said()
    await running.stop()


async def test_a_second_fleet_on_one_folder_and_a_wrong_size_are_refused(
    running: Running, product: ProductStub, tmp_path: Path
) -> None:
    await running.start()
    await until(lambda: (running.state / "control.json").exists() or running.ended(), "the control address")
    first = running.process
    await running.start()
    assert running.process is not None
    assert await asyncio.wait_for(running.process.wait(), 30) == 1
    assert "another fleet runs on" in running.said()
    running.process = first
    await running.stop()
    await running.start("--seed", "9")
    assert await asyncio.wait_for(running.process.wait(), 30) == 1
    assert re.search(r"fleet of 8 nodes with seed 1, not 8 with seed 9", running.said())


async def test_the_control_address_needs_its_token(running: Running, product: ProductStub) -> None:
    await running.start()
    await until(lambda: (running.state / "control.json").exists() or running.ended(), "the control address")
    control = json.loads((running.state / "control.json").read_text())
    assert os.stat(running.state / "control.json").st_mode & 0o077 == 0

    with pytest.raises(urllib.error.HTTPError, match="401") as refused:
        await asyncio.to_thread(fetch, control["url"] + "/state")
    refused.value.close()
    with pytest.raises(urllib.error.HTTPError, match="404") as hidden:
        await asyncio.to_thread(fetch, control["url"] + "/source/fra-h100-01?token=wrong")
    hidden.value.close()
    await running.stop()


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=2) as answer:
        return str(answer.read().decode())


def site_id(product: ProductStub, node: dict[str, Any]) -> str:
    return str(next(row["id"] for row in product.tables["sites"] if row["name"] == node["site"]))
