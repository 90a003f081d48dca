"""IpmiBmc: what the collectors use."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

from inventory.drivers.bmc.capabilities import PowerAction
from inventory.drivers.bmc.ipmi.errors import NOT_NOW, CommandRefused, IpmiError, NoAnswer
from inventory.drivers.bmc.ipmi.log import LogReader, clock_offset
from inventory.drivers.bmc.ipmi.memory import MEMORY, RECORDS
from inventory.drivers.bmc.ipmi.repository import DeviceId
from inventory.drivers.bmc.ipmi.session import PATIENCE, Session
from inventory.drivers.bmc.ipmi.visit import Visit, read_power_state
from inventory.observations import BmcReading, BmcTarget, FailureKind, LogEntry, PowerState, ReadFailure

_CHASSIS, _APPLICATION = 0x00, 0x06
_REUSE_PATIENCE = (0.6, 0.9)  # s; a session that the BMC forgot gets no answer, then a new one is opened
# Chassis Control (specification 28.3).
_ACTIONS = {
    PowerAction.OFF: 0,
    PowerAction.ON: 1,
    PowerAction.CYCLE: 2,
    PowerAction.RESET: 3,
    PowerAction.SOFT_OFF: 5,
}
_ONCE = frozenset({PowerAction.CYCLE, PowerAction.RESET})
_WANTED = {PowerAction.OFF: PowerState.OFF, PowerAction.SOFT_OFF: PowerState.OFF, PowerAction.ON: PowerState.ON}


class IpmiBmc:
    """A BMC that speaks IPMI 2.0 over LAN (inventory.drivers.bmc.capabilities.BmcDriver).

    Cards are never enumerated: IPMI can't, so `cards_known` is False and sensors such as "GPU1 Temp"
    stay sensors. The session is kept between visits for up to 40 s on the same event loop; call
    `close` before that loop ends. Visits through one instance take turns.
    """

    def __init__(self, target: BmcTarget) -> None:
        self.target = target
        self._session: Session | None = None
        self._lock: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None
        self._sent = 0

    async def discover(self, *, deadline: float) -> BmcReading:
        """Identity, BMC firmware, power, thresholds and every sensor, within `deadline` s."""
        return await self._visit(Visit.discover, deadline)

    async def poll(self, *, deadline: float) -> BmcReading:
        """Power state and the sensors that change, within `deadline` s; what was read by then is kept."""
        return await self._visit(Visit.poll, deadline)

    async def read_log(
        self, *, since: datetime | None, deadline: float
    ) -> tuple[Sequence[LogEntry], Sequence[ReadFailure]]:
        """Entries of the system event log newer than `since`; what was read when it failed is kept."""
        entries: list[LogEntry] = []

        async def read(session: Session, device: DeviceId, visit: Visit) -> None:
            visit.step = "event log"
            offset = await clock_offset(session, visit.memory, visit.observed_at)
            records = await visit.records(session, device)
            sensors = {(record.owner, record.lun, record.number): record for record in records.sensors}
            await LogReader(session, visit.memory, sensors, offset, visit.observed_at, entries).read(since)

        visit = await self._run(read, deadline)
        return entries, visit.failures

    async def set_power(self, action: PowerAction, *, deadline: float) -> ReadFailure | None:
        """Chassis control. A cycle or reset is sent once only: repeating a lost one could do it twice."""

        async def control(session: Session, _device: DeviceId, visit: Visit) -> None:
            visit.step = f"power {action}"
            try:
                await session.command(_CHASSIS, 0x02, bytes((_ACTIONS[action],)), repeat=action not in _ONCE)
            except CommandRefused as refused:
                wanted = _WANTED.get(action)
                if refused.code not in (NOT_NOW, 0xCC) or wanted != await read_power_state(session):
                    raise  # some BMCs refuse what is already so

        visit = await self._run(control, deadline)
        return visit.failures[0] if visit.failures else None

    async def close(self) -> None:
        """End the session on the BMC. Repeatable; waits half a second at most."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _visit(self, steps: Callable[[Visit, Session, DeviceId], Awaitable[None]], deadline: float) -> BmcReading:
        started, sent = time.monotonic(), self._sent
        visit = await self._run(lambda session, device, visit: steps(visit, session, device), deadline)
        return visit.reading(requests=self._sent - sent, elapsed=time.monotonic() - started)

    async def _run(self, work: Callable[[Session, DeviceId, Visit], Awaitable[None]], deadline: float) -> Visit:
        """Log in or reuse the session, work, and turn what goes wrong into a failure of the visit."""
        visit = Visit(self.target, MEMORY.of(self.target), datetime.now(UTC))
        try:
            async with asyncio.timeout(deadline), self._turn():
                session, device = await self._connect(visit)
                visit.reached = True
                await work(session, device, visit)
        except TimeoutError:
            self._drop()
            detail = f"not finished within the deadline of {deadline:g} s; it was at: {visit.step}"
            visit.failures.append(ReadFailure(what=visit.step[:200], kind=FailureKind.TIMEOUT, detail=detail))
        except CommandRefused as refused:
            visit.failures.append(refused.failure(visit.step))
        except IpmiError as error:
            self._drop()
            visit.failures.append(error.failure(visit.step))
        except BaseException:
            self._drop()
            raise
        return visit

    def _turn(self) -> asyncio.Lock:
        """The lock of the running loop: a driver may outlive a loop."""
        loop = asyncio.get_running_loop()
        if self._lock is None or self._lock[0] is not loop:
            self._lock = (loop, asyncio.Lock())
        return self._lock[1]

    async def _connect(self, visit: Visit) -> tuple[Session, DeviceId]:
        if self._session is not None and self._session.usable:
            try:
                return self._session, await self._identify(self._session, visit, _REUSE_PATIENCE)
            except NoAnswer:
                pass  # the BMC restarted or ran out of sessions; a fresh login tells
        self._drop()
        self._session = await Session.open(self.target, sent=self._count, digest=visit.memory.digest)
        visit.memory.digest = self._session.digest
        return self._session, await self._identify(self._session, visit, PATIENCE)

    async def _identify(self, session: Session, visit: Visit, patience: Sequence[float]) -> DeviceId:
        """Get Device ID. Another device than last time (swapped, or new firmware) is remembered afresh."""
        body = await session.command(_APPLICATION, 0x01, patience=patience)
        device = DeviceId.read(body)
        if visit.memory.device != body:
            visit.memory.forget(body)
        return device

    def _count(self) -> None:
        self._sent += 1

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.abandon()


def export_records() -> list[dict[str, object]]:
    """The cached sensor records of every kind of BMC met so far, JSON-able."""
    return RECORDS.export()


def import_records(exported: Sequence[dict[str, object]]) -> int:
    """Fill the cache with what `export_records` gave; returns the number of kinds. Raises ValueError, KeyError."""
    return RECORDS.load(exported)
