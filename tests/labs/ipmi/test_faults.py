"""The faults that pyghmi is known for, each provoked against OpenIPMI's simulator and seen not to happen."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from inventory.drivers.bmc.capabilities import PowerAction
from inventory.drivers.bmc.ipmi.engine import SHA1
from inventory.drivers.bmc.ipmi.errors import CommandRefused, NoAnswer
from inventory.drivers.bmc.ipmi.identity import read_product
from inventory.drivers.bmc.ipmi.session import Session
from inventory.observations import BmcTarget, FailureKind
from sensaka.fleet.ipmi import IpmiSimulator
from sensaka.fleet.ipmi_image import Sensor, record
from tests.labs.ipmi.conftest import PASSWORD, USERNAME, Connect, bmc
from tests.labs.ipmi.relay import Relay

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("fleet")]
DEADLINE = 30.0
INLET, NODE_POWER = b"\x01", b"\x02"
RESPONSE = 0xC0  # payload type byte of an authenticated, encrypted IPMI message


class Counter:
    def __init__(self) -> None:
        self.packets = 0

    def __call__(self) -> None:
        self.packets += 1


def target(address: str, port: int) -> BmcTarget:
    return BmcTarget(address=address, port=port, protocol="ipmi", username=USERNAME, password=PASSWORD)


@pytest_asyncio.fixture
async def relay(fleet: IpmiSimulator) -> AsyncIterator[Relay]:
    relay = await Relay.start((bmc(1).address, fleet.port))
    yield relay
    relay.close()


async def test_no_reply_is_left_to_the_retry_timer(fleet: IpmiSimulator) -> None:
    """pyghmi misses a reply that arrives between two looks at its queue and waits for the retry timer."""
    sent = Counter()
    session = await Session.open(target(bmc(1).address, fleet.port), sent=sent)
    before = sent.packets
    for _ in range(300):
        await session.command(0x04, 0x2D, INLET)
    assert sent.packets - before == 300
    await session.close()


async def test_a_lost_packet_is_sent_again(relay: Relay) -> None:
    sent = Counter()
    session = await Session.open(target(*relay.address), sent=sent)
    before = sent.packets
    answers = iter((False, True))
    relay.reply = lambda _packet: next(answers, True)
    assert (await session.command(0x04, 0x2D, INLET))[0] == 22
    assert sent.packets - before == 2
    relay.reply = lambda _packet: True
    await session.close()


async def test_a_login_survives_losing_any_one_packet(relay: Relay) -> None:
    """Whichever answer of the login is lost, the login is repeated as far as it must be."""
    for lost in range(6):
        seen = 0

        def reply(_packet: bytes, lost: int = lost) -> bool:
            nonlocal seen
            seen += 1
            return seen != lost + 1

        relay.reply = reply
        session = await Session.open(target(*relay.address), sent=Counter())
        relay.reply = lambda _packet: True
        assert (await session.command(0x04, 0x2D, INLET))[0] == 22
        await session.close()


async def test_a_late_answer_is_not_taken_for_the_next_one(relay: Relay) -> None:
    """pyghmi gives an unanswered request's sequence number to the next request of the same command."""
    session = await Session.open(target(*relay.address), sent=Counter())
    relay.reply = lambda _packet: False
    with pytest.raises(NoAnswer):
        await session.command(0x04, 0x2D, INLET, patience=(0.2,), repeat=False)
    held_back = asyncio.create_task(session.command(0x04, 0x2D, NODE_POWER, patience=(3.0,), repeat=False))
    async with asyncio.timeout(10):
        while len(relay.held) < 2:  # noqa: ASYNC110 - the relay is a plain protocol
            await asyncio.sleep(0.01)
    relay.reply = lambda _packet: True
    relay.release()
    assert (await held_back)[0] == 2400 // 50
    await session.close()


async def test_a_reset_whose_answer_is_lost_is_not_repeated(
    fleet: IpmiSimulator, relay: Relay, connect: Connect
) -> None:
    """Chassis control is not idempotent: what may have happened is reported, not done twice."""
    driver = connect(*relay.address)
    assert (await driver.poll(deadline=DEADLINE)).reached
    before = fleet.resets("bmc-1")
    passed = 0

    def reply(_packet: bytes) -> bool:
        nonlocal passed
        passed += 1
        return passed == 1  # the answer to Get Device ID, then nothing

    relay.reply = reply
    failure = await driver.set_power(PowerAction.RESET, deadline=DEADLINE)
    relay.reply = lambda _packet: True
    assert failure is not None
    assert failure.kind is FailureKind.TIMEOUT
    assert fleet.resets("bmc-1") == before + 1


async def test_a_fru_read_that_is_too_long_is_made_shorter(fleet: IpmiSimulator) -> None:
    """ipmi_sim answers C8h to a long read; pyghmi backs off on C9h and CAh only and finds no inventory."""
    session = await Session.open(target(bmc(1).address, fleet.port), sent=Counter())
    with pytest.raises(CommandRefused) as refused:
        await session.command(0x0A, 0x11, bytes((0, 0, 0, 224)))
    assert refused.value.code == 0xC8
    assert (await read_product(session)).serial == "SIM00001"
    await session.close()


async def test_sha1_is_agreed_where_sha256_is_refused(fleet: IpmiSimulator, connect: Connect) -> None:
    """Cipher suite 3 is all that ipmi_sim has; the next login starts with it."""
    driver = connect(bmc(1).address, fleet.port)
    first = await driver.poll(deadline=DEADLINE)
    assert first.reached
    session = await Session.open(target(bmc(1).address, fleet.port), sent=Counter())
    assert session.digest == SHA1
    await session.close()
    cheaper = Counter()
    again = await Session.open(target(bmc(1).address, fleet.port), sent=cheaper, digest=SHA1)
    await again.close()
    dearer = Counter()
    other = await Session.open(target(bmc(1).address, fleet.port), sent=dearer)
    await other.close()
    assert cheaper.packets < dearer.packets


async def test_a_refused_sensor_hides_no_other(fleet: IpmiSimulator, connect: Connect) -> None:
    """pyghmi ends at a refusal and loses all later sensors. New records are noticed by their stamp."""
    driver = connect(bmc(3).address, fleet.port)
    before = await driver.discover(deadline=DEADLINE)
    for number in (0xE1, 0xE2):
        ghost = Sensor(number, f"Ghost{number:X} Temp", 0x01, 1, 0x07, 1)
        fleet.console("bmc-3", "main_sdr_add 0x20 " + " ".join(f"0x{byte:02x}" for byte in record(ghost)))
    fleet.console("bmc-3", "sensor_add 0x20 0 0xe2 0x01 0x01")
    fleet.console("bmc-3", "sensor_set_value 0x20 0 0xe2 33 0")
    mask = "0" * 15
    fleet.console("bmc-3", f"sensor_set_event_support 0x20 0 0xe2 enable scanning none {mask} {mask} {mask} {mask}")
    for _ in range(50):
        reading = await driver.discover(deadline=DEADLINE)
        if len(reading.sensors) > len(before.sensors):
            break
        await asyncio.sleep(0.1)
    assert [found.name for found in reading.sensors] == [*(found.name for found in before.sensors), "GhostE2 Temp"]
    assert reading.sensors[-1].value == 33
    assert [failure.what for failure in reading.failures] == ["GhostE1 Temp"]


async def test_commands_that_a_bmc_lacks_are_asked_once(fleet: IpmiSimulator, connect: Connect) -> None:
    """ipmi_sim has no DCMI: neither power nor name is a failure, and power is not asked again."""
    driver = connect(bmc(1).address, fleet.port)
    first = await driver.discover(deadline=DEADLINE)
    assert not first.failures
    assert (first.power, first.hostname) == (2400, "")
    readings = [await driver.poll(deadline=DEADLINE) for _ in range(2)]
    # Device id, chassis status, the records' stamp, and one request a sensor.
    assert [reading.requests for reading in readings] == [3 + len(first.sensors)] * 2


async def test_sessions_are_freed_on_the_bmc(fleet: IpmiSimulator, connect: Connect) -> None:
    """The simulated account has 10 slots: 25 visits that end in time and 15 that are cut leave none taken."""
    for _ in range(25):
        driver = connect(bmc(2).address, fleet.port)
        assert (await driver.poll(deadline=DEADLINE)).reached
        await driver.close()
    for _ in range(15):
        driver = connect(bmc(2).address, fleet.port)
        assert (await driver.poll(deadline=DEADLINE)).reached
        task = asyncio.create_task(driver.discover(deadline=DEADLINE))
        await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    driver = connect(bmc(2).address, fleet.port)
    assert (await driver.poll(deadline=DEADLINE)).reached
