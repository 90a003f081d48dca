"""What every BMC driver owes, whatever it speaks: a suite that runs against a live emulator.

A test module takes part by a subclass of `BmcContract` with a fixture `live`, which gives the driver
and a `ControlHandle` of the emulator behind it. The emulator starts powered on.
"""

import asyncio
import time
from typing import Protocol

from inventory.drivers.bmc.capabilities import BmcDriver, PowerAction
from inventory.observations import FailureKind, PowerState

GENEROUS = 30.0  # s, for what is expected to take a fraction of it
SHORT = 1.0  # s
SLACK = 2.0  # s that a busy machine may add to a deadline


class ControlHandle(Protocol):
    """The emulator's side of one BMC, and drivers that must fail."""

    def powered(self) -> bool:
        """Chassis power as the emulator has it."""

    def wrong_password(self) -> BmcDriver:
        """A driver for the same BMC whose password is wrong."""

    def dead_port(self) -> BmcDriver:
        """A driver for an address that never answers."""


Live = tuple[BmcDriver, ControlHandle]


class BmcContract:
    """I3: any BMC is discovered, polled and switched by the same few calls."""

    async def test_discovery_reaches_the_bmc_and_knows_its_power_state(self, live: Live) -> None:
        driver, _ = live
        reading = await driver.discover(deadline=GENEROUS)
        assert reading.reached
        assert reading.power_state is PowerState.ON
        assert reading.system_serial
        assert reading.sensors

    async def test_a_reading_tells_what_it_cost(self, live: Live) -> None:
        driver, _ = live
        for reading in (await driver.discover(deadline=GENEROUS), await driver.poll(deadline=GENEROUS)):
            assert reading.requests > 0
            assert reading.peak_concurrency >= 1
            assert 0 < reading.elapsed < GENEROUS
            assert reading.observed_at.tzinfo is not None

    async def test_power_switched_off_and_on_is_visible(self, live: Live) -> None:
        driver, handle = live
        for action, powered in ((PowerAction.OFF, False), (PowerAction.ON, True)):
            assert await driver.set_power(action, deadline=GENEROUS) is None
            await _until(lambda powered=powered: handle.powered() is powered)
            reading = await driver.poll(deadline=GENEROUS)
            assert reading.power_state is (PowerState.ON if powered else PowerState.OFF)

    async def test_a_wrong_password_is_told_from_silence(self, live: Live) -> None:
        driver = live[1].wrong_password()
        try:
            reading = await driver.poll(deadline=GENEROUS)
            assert not reading.reached
            assert reading.failures[0].kind is FailureKind.AUTHENTICATION
            refused = await driver.set_power(PowerAction.OFF, deadline=GENEROUS)
            assert refused is not None
            assert refused.kind is FailureKind.AUTHENTICATION
        finally:
            await driver.close()

    async def test_the_deadline_is_kept_where_nobody_answers(self, live: Live) -> None:
        driver = live[1].dead_port()
        try:
            started = time.monotonic()
            reading = await driver.discover(deadline=SHORT)
            assert time.monotonic() - started < SHORT + SLACK
            assert not reading.reached
            assert reading.failures[0].kind in (FailureKind.TIMEOUT, FailureKind.UNREACHABLE)
            assert not reading.sensors
            started = time.monotonic()
            entries, failures = await driver.read_log(since=None, deadline=SHORT)
            assert time.monotonic() - started < SHORT + SLACK
            assert not entries
            assert failures
        finally:
            await driver.close()

    async def test_close_may_be_called_twice_and_the_driver_used_again(self, live: Live) -> None:
        driver, _ = live
        await driver.close()
        assert (await driver.poll(deadline=GENEROUS)).reached
        await driver.close()
        await driver.close()

    async def test_the_log_is_read_oldest_first(self, live: Live) -> None:
        driver, _ = live
        entries, failures = await driver.read_log(since=None, deadline=GENEROUS)
        assert not failures
        dated = [entry.logged_at for entry in entries if entry.logged_at is not None]
        assert dated == sorted(dated)


async def _until(condition: object, patience: float = 15.0) -> None:
    assert callable(condition)
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "the emulator did not follow"
        await asyncio.sleep(0.05)
