"""Agents inside the fleet's process: they enrol, report, push, spool over a cut line, and log what was acknowledged."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from sensaka.fleet.acts import perform
from sensaka.fleet.doors.agents import SimulatedAgent
from sensaka.fleet.plan import make_plan
from sensaka.fleet.registration import address_ranges
from sensaka.fleet.world import World
from tests.sensaka.fleet.product_stub import ProductStub

DEADLINE = 20.0


@pytest.fixture
async def product() -> AsyncIterator[ProductStub]:
    async with ProductStub() as stub:
        stub.enrolment["ske_test"] = {"uses": 10}
        yield stub


async def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "it did not come about in time"
        await asyncio.sleep(0.02)


class Driver:
    """Turns one agent by hand: each round one second further."""

    def __init__(self, folder: Path, product: ProductStub, world: World | None = None) -> None:
        self.world = world or World.fresh(make_plan(seed=1, nodes=64, ipmi=True), time.time())
        self.node = self.world.plan.by_name["sin-a100-05"]
        self.agent = SimulatedAgent(self.world, self.node, folder, product.url)
        self.pool = ThreadPoolExecutor(2)
        self.stop = Event()
        self.second = int(time.time()) - 3600
        self.agent._clock.wall = lambda: float(self.second)  # type: ignore[method-assign]

    def round(self) -> None:
        self.second += 10
        self.agent._not_before = 0.0
        self.agent.round(self.pool, self.stop)

    async def settle(self) -> None:
        await until(lambda: self.agent._under_way is None or self.agent._under_way.done())

    def end(self) -> None:
        self.stop.set()
        self.agent.client.close()
        self.pool.shutdown(wait=True)
        self.agent.close()


@pytest.fixture
def driver(tmp_path: Path, product: ProductStub) -> Driver:
    return Driver(tmp_path / "agent of node", product)


async def test_an_agent_enrols_reports_first_and_pushes_cards_and_slices(product: ProductStub, driver: Driver) -> None:
    await asyncio.to_thread(driver.agent.enrol, "ske_test")
    for _ in range(3):
        driver.round()
        await driver.settle()
    driver.end()

    reports = product.reports[driver.node.name]
    assert len(reports) >= 1
    assert reports[0]["simulated"] is True
    assert len(reports[0]["cards"]) == 8
    assert all("values" not in card for card in reports[0]["cards"])
    slices = sum(len(card.get("slices", [])) for card in reports[0]["cards"])
    assert slices > 8
    assert len(product.samples) == 3 * (8 + slices)
    assert product.posts["POST agents/report"] < 3, "an unchanged reading is reported once"


async def test_what_was_acknowledged_is_what_the_product_stored(product: ProductStub, driver: Driver) -> None:
    """Counted over failures: the agent's own log and the product agree sample by sample."""
    await asyncio.to_thread(driver.agent.enrol, "ske_test")
    for turn in range(6):
        product.fail_telemetry = 1 if turn % 2 else 0
        driver.round()
        await driver.settle()
    driver.round()
    await driver.settle()
    driver.end()

    lines = [json.loads(line) for line in (driver.agent.state.folder / "acknowledged.jsonl").read_text().splitlines()]
    totals = json.loads((driver.agent.state.folder / "acknowledged-total.json").read_text())
    assert sum(line["samples"] for line in lines) == len(product.samples) == totals["samples"]
    assert all(line["stored"] == line["samples"] for line in lines)
    assert max(line["last"] for line in lines) == max(second for _, second in product.samples)


async def test_a_cut_line_loses_nothing(product: ProductStub, driver: Driver) -> None:
    await asyncio.to_thread(driver.agent.enrol, "ske_test")
    perform(driver.world, {"do": "cut_agent_line", "node": driver.node.name})
    for _ in range(20):
        driver.round()
        await driver.settle()
    assert product.samples == {}
    assert driver.agent.spool.pending == 21  # twenty rounds and a report

    perform(driver.world, {"do": "restore", "node": driver.node.name})
    driver.round()
    await driver.settle()
    driver.end()

    assert len({second for _, second in product.samples}) == 21
    assert driver.agent.spool.pending == 0


async def test_the_spool_outlives_the_process(product: ProductStub, driver: Driver, tmp_path: Path) -> None:
    await asyncio.to_thread(driver.agent.enrol, "ske_test")
    driver.world.nodes[driver.node.number].line_up = False
    for _ in range(5):
        driver.round()
        await driver.settle()
    driver.end()
    driver.world.nodes[driver.node.number].line_up = True

    again = Driver(driver.agent.state.folder, product, driver.world)
    again.second = driver.second
    assert again.agent.enrolled
    again.round()
    await again.settle()
    again.end()

    assert len({second for _, second in product.samples}) == 6


@pytest.mark.parametrize("act", ["stop_agent", "os_down", "power_off"])
async def test_an_agent_whose_machine_is_down_is_silent(product: ProductStub, driver: Driver, act: str) -> None:
    await asyncio.to_thread(driver.agent.enrol, "ske_test")
    perform(driver.world, {"do": act, "node": driver.node.name})
    for _ in range(3):
        driver.round()
        await driver.settle()
    driver.end()

    assert product.samples == {}
    assert driver.agent.spool.pending == 0


async def test_a_swapped_card_is_reported_at_once(product: ProductStub, driver: Driver) -> None:
    await asyncio.to_thread(driver.agent.enrol, "ske_test")
    driver.round()
    await driver.settle()
    new = driver.world.card_at(driver.world.plan.by_name["sin-a100-06"], 4)
    assert new is not None

    perform(driver.world, {"do": "swap_cards", "a": f"{driver.node.name}:2", "b": "sin-a100-06:4"})
    driver.round()
    await driver.settle()
    driver.end()

    assert len(product.reports[driver.node.name]) == 2
    assert new.uuid in {card["uuid"] for card in product.reports[driver.node.name][-1]["cards"]}
    assert any(card == new.uuid for card, _ in product.samples)


async def test_a_refused_enrolment_says_why(product: ProductStub, driver: Driver) -> None:
    with pytest.raises(RuntimeError, match="unknown or used up"):
        await asyncio.to_thread(driver.agent.enrol, "ske_wrong")
    driver.end()
    assert not driver.agent.enrolled


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (["127.77.1.1"], "127.77.1.1"),
        (["127.77.1.2", "127.77.1.1", "127.77.1.3"], "127.77.1.1-127.77.1.3"),
        (["127.77.1.9", "127.77.1.10"], "127.77.1.9-127.77.1.10"),
        (["127.77.1.1", "127.77.2.2", "127.77.1.3"], "127.77.1.1, 127.77.1.3, 127.77.2.2"),
    ],
)
def test_addresses_are_written_as_few_ranges(addresses: list[str], expected: str) -> None:
    assert address_ranges(addresses) == expected
