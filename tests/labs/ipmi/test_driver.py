"""IpmiBmc against OpenIPMI's simulator: what is read, what it costs, and who waits for whom."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from inventory.drivers.bmc.capabilities import PowerAction
from inventory.drivers.bmc.ipmi import IpmiBmc, export_records, import_records
from inventory.drivers.bmc.ipmi.memory import RECORDS
from inventory.observations import BmcReading, BmcTarget, FailureKind, PowerState, SensorReading
from sensaka.fleet.ipmi import IpmiSimulator, SimulatedBmc
from tests.labs.ipmi.conftest import PASSWORD, USERNAME, Connect, bmc, free_port, require_simulator

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("fleet")]
DEADLINE = 30.0


def sensor(reading: BmcReading, name: str) -> SensorReading:
    return next(found for found in reading.sensors if found.name == name)


async def until(condition: Callable[[], bool], patience: float = 15.0) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


async def test_discovery_tells_identity_sensors_and_limits(fleet: IpmiSimulator, connect: Connect) -> None:
    """I3, I4: serial and product from the FRU, UUID, BMC firmware, inlet, node power, fans, supplies."""
    reading = await connect(bmc(1).address, fleet.port).discover(deadline=DEADLINE)
    assert not reading.failures
    assert (reading.manufacturer, reading.system_model, reading.system_serial) == (
        "Supermicro", "GPU server 8x", "SIM00001",
    )  # fmt: skip
    assert reading.system_uuid == bmc(1).system_uuid
    assert (reading.vendor, reading.bmc_firmware) == ("Supermicro", "1.05")
    assert [(part.component, part.version) for part in reading.firmware] == [("BMC", "1.05")]
    assert (reading.power, reading.inlet_temperature, reading.simulated) == (2400, 22, True)
    gpu = sensor(reading, "GPU8 Temp")
    assert (gpu.kind, gpu.unit, gpu.value, gpu.state) == ("temperature", "C", 38, "ok")
    assert (gpu.upper_caution, gpu.upper_critical, gpu.lower_caution) == (85, 92, None)
    assert sensor(reading, "Fan1").lower_critical == 600
    assert sensor(reading, "PSU6 Status").state == "Present"


async def test_gpu_sensors_make_no_cards(fleet: IpmiSimulator, connect: Connect) -> None:
    """I3: IPMI can't enumerate accelerators, so an absent card is never concluded from it."""
    reading = await connect(bmc(1).address, fleet.port).discover(deadline=DEADLINE)
    assert sum(found.name.startswith("GPU") for found in reading.sensors) == 8
    assert reading.cards == ()
    assert reading.cards_known is False


async def test_values_follow_the_sensors(fleet: IpmiSimulator, connect: Connect) -> None:
    """I4: a poll shows what is now, and what passed a limit."""
    driver = connect(bmc(2).address, fleet.port)
    await driver.poll(deadline=DEADLINE)
    fleet.set_value("bmc-2", "Node Power", 8100)
    fleet.set_value("bmc-2", "GPU3 Temp", 93)
    fleet.set_value("bmc-2", "Fan2", 500)
    fleet.set_supply("bmc-2", 4, failed=True)
    reading = await driver.poll(deadline=DEADLINE)
    assert reading.power == 8100
    assert sensor(reading, "GPU3 Temp").state == "critical"
    assert sensor(reading, "Fan2").state == "critical"
    assert sensor(reading, "PSU4 Status").state == "Present, Failure"
    fleet.set_value("bmc-2", "GPU3 Temp", 38)
    assert sensor(await driver.poll(deadline=DEADLINE), "GPU3 Temp").state == "ok"


async def test_a_crossing_is_an_event_with_value_limit_and_time(fleet: IpmiSimulator, connect: Connect) -> None:
    """I3: the event log in words; a later visit reads only what is new."""
    driver = connect(bmc(3).address, fleet.port)
    reading = await driver.poll(deadline=DEADLINE)
    fleet.set_value("bmc-3", "GPU5 Temp", 93)
    await driver.poll(deadline=DEADLINE)
    entries, failures = await driver.read_log(since=None, deadline=DEADLINE)
    assert not failures
    assert [(entry.severity, entry.message) for entry in entries] == [
        ("warning", "GPU5 Temp: Upper non-critical, 93 C, limit 85 C"),
        ("critical", "GPU5 Temp: Upper critical, 93 C, limit 92 C"),
    ]
    last = entries[-1].logged_at
    assert last is not None
    assert abs(last - reading.observed_at) < timedelta(seconds=30)
    assert await driver.read_log(since=last, deadline=DEADLINE) == ([], [])
    fleet.set_value("bmc-3", "GPU5 Temp", 40)
    await driver.poll(deadline=DEADLINE)
    newer, _ = await driver.read_log(since=last - timedelta(hours=1), deadline=DEADLINE)
    assert [entry.entry_id for entry in newer] == ["0001", "0002", "0003", "0004"]
    assert [entry.logged_at for entry in newer[:2]] == [entry.logged_at for entry in entries]


async def test_a_hand_made_event_of_an_unknown_sensor_is_kept(fleet: IpmiSimulator, connect: Connect) -> None:
    fleet.add_event("bmc-1", (0, 0, 0, 0, 0x20, 0, 4, 0x13, 0x99, 0x6F, 0xA5, 0x01, 0x02))
    entries, _ = await connect(bmc(1).address, fleet.port).read_log(since=None, deadline=DEADLINE)
    assert entries[-1].sensor == "Sensor 99h"
    assert entries[-1].message.startswith("Sensor 99h: ")
    assert entries[-1].logged_at is None or entries[-1].logged_at.tzinfo is not None


async def test_records_are_read_once_and_survive_a_restart(fleet: IpmiSimulator, connect: Connect) -> None:
    """The second read takes the sensor records from the cache; so does a new process with an export."""
    first = await connect(bmc(1).address, fleet.port).poll(deadline=DEADLINE)
    second = await connect(bmc(1).address, fleet.port).poll(deadline=DEADLINE)
    assert second.sensors == first.sensors
    assert second.requests < first.requests - len(first.sensors)
    exported = json.loads(json.dumps(export_records()))
    RECORDS.clear()
    assert import_records(exported) == len(exported) == 1
    third = await connect(bmc(1).address, fleet.port).poll(deadline=DEADLINE)
    assert third.requests <= second.requests
    assert third.sensors == first.sensors


async def test_the_session_is_kept_between_visits(fleet: IpmiSimulator, connect: Connect) -> None:
    driver = connect(bmc(1).address, fleet.port)
    await driver.poll(deadline=DEADLINE)
    logged_in = await driver.poll(deadline=DEADLINE)
    await driver.close()
    assert (await driver.poll(deadline=DEADLINE)).requests > logged_in.requests


async def test_a_bmc_that_restarted_is_reached_within_the_same_visit(fleet: IpmiSimulator, connect: Connect) -> None:
    driver = connect(bmc(2).address, fleet.port)
    assert (await driver.poll(deadline=DEADLINE)).reached
    fleet.stop_bmc("bmc-2")
    closed = await driver.poll(deadline=DEADLINE)
    assert (closed.reached, closed.failures[0].kind) == (False, FailureKind.UNREACHABLE)
    fleet.start_bmc("bmc-2")
    assert (await driver.poll(deadline=DEADLINE)).reached
    fleet.stop_bmc("bmc-2")
    fleet.start_bmc("bmc-2")
    reading = await driver.poll(deadline=DEADLINE)
    assert reading.reached
    assert not reading.failures


async def test_a_bmc_that_hangs_keeps_what_was_known_out_of_the_reading(fleet: IpmiSimulator, connect: Connect) -> None:
    """A silent BMC is a timeout, not old values: nothing but the failure counts."""
    driver = connect(bmc(2).address, fleet.port)
    await driver.discover(deadline=DEADLINE)
    fleet.freeze_bmc("bmc-2")
    try:
        reading = await driver.poll(deadline=1.0)
    finally:
        fleet.thaw_bmc("bmc-2")
    assert not reading.reached
    assert (reading.failures[0].kind, reading.sensors, reading.system_serial) == (FailureKind.TIMEOUT, (), "")
    assert (await driver.poll(deadline=DEADLINE)).reached


@pytest.mark.parametrize(
    ("username", "password"), [("admin", "guess"), ("stranger", PASSWORD), ("admin", "x" * 21), ("u" * 17, PASSWORD)]
)
async def test_what_the_bmc_does_not_know_is_an_authentication_failure(
    fleet: IpmiSimulator, connect: Connect, username: str, password: str
) -> None:
    driver = connect(bmc(1).address, fleet.port, username=username, password=password)
    reading = await driver.discover(deadline=DEADLINE)
    assert (reading.reached, reading.failures[0].kind) == (False, FailureKind.AUTHENTICATION)
    assert password not in reading.failures[0].detail


async def test_every_power_action(fleet: IpmiSimulator, connect: Connect) -> None:
    """Off, on, cycle, reset and soft off reach the chassis (pyghmi has no cycle and reads before it acts)."""
    driver = connect(bmc(3).address, fleet.port)
    assert await driver.set_power(PowerAction.ON, deadline=DEADLINE) is None
    assert await driver.set_power(PowerAction.CYCLE, deadline=DEADLINE) is None
    await until(lambda: fleet.powered("bmc-3"))
    assert await driver.set_power(PowerAction.RESET, deadline=DEADLINE) is None
    assert fleet.resets("bmc-3") == 1
    assert await driver.set_power(PowerAction.SOFT_OFF, deadline=DEADLINE) is None
    await until(lambda: not fleet.powered("bmc-3"))
    assert (await driver.poll(deadline=DEADLINE)).power_state is PowerState.OFF
    assert await driver.set_power(PowerAction.ON, deadline=DEADLINE) is None
    await until(lambda: fleet.powered("bmc-3"))


async def test_one_driver_used_by_several_tasks_takes_turns(fleet: IpmiSimulator, connect: Connect) -> None:
    driver = connect(bmc(1).address, fleet.port)
    readings = await asyncio.gather(*(driver.poll(deadline=DEADLINE) for _ in range(4)))
    assert all(reading.reached and not reading.failures for reading in readings)
    assert len({reading.sensors for reading in readings}) == 1


def test_a_driver_outlives_an_event_loop(fleet: IpmiSimulator) -> None:
    """A task that runs a loop of its own for each visit."""
    target = BmcTarget(address=bmc(1).address, port=fleet.port, protocol="ipmi", username=USERNAME, password=PASSWORD)
    driver = IpmiBmc(target)

    async def visit() -> bool:
        reading = await driver.poll(deadline=DEADLINE)
        await driver.close()
        return reading.reached

    assert asyncio.run(visit())
    assert asyncio.run(visit())


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory):
    require_simulator()
    bmcs = [
        SimulatedBmc(f"n{number}", f"127.78.210.{number + 1}", f"SIM{number}", bmc(number).system_uuid)
        for number in range(32)
    ]
    simulator = IpmiSimulator(
        tmp_path_factory.mktemp("many"), bmcs, port=free_port(), username=USERNAME, password=PASSWORD
    )
    simulator.start()
    yield [(item.address, simulator.port) for item in bmcs]
    simulator.stop()


async def test_32_bmcs_and_a_dead_one_at_once(
    many: list[tuple[str, int]], connect: Connect, silence: tuple[str, int]
) -> None:
    """One dead BMC delays nobody: the others are all done before its deadline comes."""
    finished: list[str] = []
    deadline = 5.0

    async def poll(address: tuple[str, int]) -> BmcReading:
        reading = await connect(*address).poll(deadline=DEADLINE if address != silence else deadline)
        finished.append(address[0])
        return reading

    started = time.monotonic()
    readings = await asyncio.gather(*(poll(address) for address in (silence, *many)))
    dead, living = readings[0], readings[1:]
    assert finished[-1] == silence[0]
    assert len(finished) == 33
    assert all(reading.reached and not reading.failures and reading.elapsed < dead.elapsed for reading in living)
    assert not dead.reached
    assert deadline <= dead.elapsed <= time.monotonic() - started < deadline + 5


def test_two_threads_poll_at_the_same_time(many: list[tuple[str, int]]) -> None:
    """pyghmi's sessions share state between threads; these don't."""
    results: list[bool] = []

    def work(addresses: list[tuple[str, int]]) -> None:
        async def poll(address: tuple[str, int]) -> bool:
            target = BmcTarget(
                address=address[0], port=address[1], protocol="ipmi", username=USERNAME, password=PASSWORD
            )
            driver = IpmiBmc(target)
            readings = [await driver.poll(deadline=DEADLINE) for _ in range(3)]
            await driver.close()
            return all(reading.reached and not reading.failures for reading in readings)

        async def everything() -> list[bool]:
            return await asyncio.gather(*(poll(address) for address in addresses))

        results.extend(asyncio.run(everything()))

    threads = [threading.Thread(target=work, args=(half,)) for half in (many[:16], many[16:])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [True] * 32


_KILLED = """
import os, signal, sys
from pathlib import Path
from sensaka.fleet.ipmi import IpmiSimulator, SimulatedBmc
bmc = SimulatedBmc("orphan", sys.argv[2], "S", "00112233-4455-6677-8899-aabbccddeeff")
IpmiSimulator(Path(sys.argv[1]), [bmc], port=int(sys.argv[3]), username="u", password="p").start()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_kernel_ends_the_simulator_with_its_parent(tmp_path: Path) -> None:
    """kill -9 of the fleet leaves no process: the port can be bound again."""
    require_simulator()
    address, port = "127.78.202.1", free_port()
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path / "run"), address, str(port)], check=False, timeout=60
    )
    assert killed.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 15
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind((address, port))
            except OSError:
                assert time.monotonic() < deadline, "the simulator outlives its parent"
                time.sleep(0.05)
            else:
                return


def test_the_simulator_leaves_nothing_behind(tmp_path: Path) -> None:
    require_simulator()
    simulator = IpmiSimulator(tmp_path / "with blank", [bmc(9)], port=free_port(), username=USERNAME, password=PASSWORD)
    simulator.start()
    process, folder = simulator._running["bmc-9"].process, simulator._folder
    assert process is not None
    assert folder is not None
    assert " " not in str(folder)
    simulator.stop()
    assert process.poll() is not None
    assert not folder.exists()
    simulator.stop()
