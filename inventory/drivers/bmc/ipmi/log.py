"""The system event log: read forward from where the last visit ended, each entry in words.

pyghmi gives local times without an offset and leaves the values that an event carries as raw bytes; here
times are UTC, set right by the BMC's own clock, and values have their unit. Layouts: IPMI 2.0
specification chapters 31 and 32.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from pyghmi.constants import Health
from pyghmi.ipmi import events as pyghmi_events
from pyghmi.ipmi.oem.generic import OEMHandler
from pyghmi.ipmi.private import constants

from inventory.drivers.bmc.ipmi.errors import ABSENT, BadAnswer, CommandRefused
from inventory.drivers.bmc.ipmi.memory import Remembered
from inventory.drivers.bmc.ipmi.records import SensorRecord
from inventory.drivers.bmc.ipmi.session import Session
from inventory.observations import LogEntry

_STORAGE = 0x0A
_LAST = 0xFFFF
_MOST_ENTRIES = 16_384
_UPTIME = 0x20000000  # times below are seconds since the BMC started (specification 37.1)
_CLOCK_SLACK = 60.0  # s; a clock this near is taken as right, so that an entry keeps its time
_SAME_CLOCK = 5.0  # s; two offsets this near are the same one, measured twice
_SEVERITIES = ((Health.Failed, "critical"), (Health.Critical, "critical"), (Health.Warning, "warning"))


async def clock_offset(session: Session, memory: Remembered, now: datetime) -> float:
    """Seconds to add to the BMC's times. The same number visit after visit, or entries would move."""
    body = await session.command(_STORAGE, 0x48)
    if len(body) < 4:
        raise BadAnswer("the log has no time")
    offset = now.timestamp() - struct.unpack_from("<I", body)[0]
    if abs(offset) <= _CLOCK_SLACK:
        offset = 0.0
    elif memory.clock_offset is not None and abs(offset - memory.clock_offset) <= _SAME_CLOCK:
        offset = memory.clock_offset
    memory.clock_offset = float(round(offset))
    return memory.clock_offset


@dataclass(slots=True)
class LogReader:
    """Reads entries into `entries`, so that what was read is kept when the deadline comes."""

    session: Session
    memory: Remembered
    sensors: Mapping[tuple[int, int, int], SensorRecord]
    offset: float
    now: datetime
    entries: list[LogEntry]

    async def read(self, since: datetime | None) -> None:
        """Read entries newer than `since`, oldest first; those without a time always count as new.

        Times have whole seconds. Entries that follow the last one known are new even in its second.
        """
        info = await self.session.command(_STORAGE, 0x40)
        if len(info) < 3 or not int.from_bytes(info[1:3], "little"):
            return
        identifier, mark = await self._start(since)
        continued, seen = mark is not None, set[bytes]()
        while identifier != _LAST and len(seen) < _MOST_ENTRIES:
            following, raw = await self._entry(identifier)
            if raw is None or raw[:2] in seen:
                return  # emptied meanwhile, or a chain that turns back on itself
            seen.add(raw[:2])
            if mark is None or raw != mark:
                entry = self.decode(raw)
                at = entry.logged_at
                if since is None or at is None or at > since or (continued and at == since):
                    self.entries.append(entry)
            self.memory.log_mark = (identifier, raw)
            identifier, mark = following, None

    async def _start(self, since: datetime | None) -> tuple[int, bytes | None]:
        """Where to begin: at the last entry read before, if it still stands and is not newer than `since`."""
        mark = self.memory.log_mark
        if since is None or mark is None:
            return 0, None
        marked = self.decode(mark[1]).logged_at
        if marked is None or marked > since:
            return 0, None
        _, raw = await self._entry(mark[0])
        return (mark[0], raw) if raw == mark[1] else (0, None)

    async def _entry(self, identifier: int) -> tuple[int, bytes | None]:
        try:
            body = await self.session.command(_STORAGE, 0x43, struct.pack("<HHBB", 0, identifier, 0, 0xFF))
        except CommandRefused as refused:
            if refused.code == ABSENT:  # cleared, or emptied while we read
                return _LAST, None
            raise
        if len(body) < 18:
            raise BadAnswer(f"log entry {identifier:04X}h has {len(body)} bytes")
        return int.from_bytes(body[:2], "little"), body[2:18]

    def decode(self, raw: bytes) -> LogEntry:
        """One 16-byte record in words."""
        number, kind, stamp = struct.unpack_from("<HBI", raw)
        event = _event(raw, self.sensors)
        entry_id = f"{number:04x}"
        if kind >= 0xE0:
            text = str(event.get("event") or f"OEM record {kind:02X}h: {raw[3:].hex(' ')}")
            return LogEntry(entry_id=entry_id, severity=_severity(event), message=text)
        logged_at = self.time_of(stamp)
        if kind >= 0xC0:
            text = f"OEM record {kind:02X}h of maker {int.from_bytes(raw[7:10], 'little')}: {raw[10:].hex(' ')}"
            return LogEntry(entry_id=entry_id, logged_at=logged_at, severity="ok", message=text)
        record = self.sensors.get((raw[7], raw[8] & 0x03, raw[11]))
        sensor = record.name if record else f"Sensor {raw[11]:02X}h"
        return LogEntry(
            entry_id=entry_id, logged_at=logged_at, severity=_severity(event),
            message=_message(event, raw, record, sensor)[:2000], sensor=sensor[:200],
        )  # fmt: skip

    def time_of(self, stamp: int) -> datetime | None:
        """UTC of a BMC time; None where it can't be known: unset, or an uptime of an earlier run."""
        if stamp == 0xFFFFFFFF:
            return None
        moment = stamp + self.offset
        plausible = 0 < moment <= self.now.timestamp() + _CLOCK_SLACK
        counts_uptime = self.offset > self.now.timestamp() - _UPTIME
        if not plausible or (stamp < _UPTIME and not counts_uptime):
            return None
        return datetime.fromtimestamp(0, UTC) + timedelta(seconds=moment)


def _event(raw: bytes, sensors: Mapping[tuple[int, int, int], SensorRecord]) -> dict[str, object]:
    """pyghmi's decoding, which wants a command object: it asks that for its tables only."""
    named = {f"{owner}.{number}.{lun}": record.entry for (owner, lun, number), record in sensors.items()}
    command = SimpleNamespace(get_event_constants=lambda: constants, _oem=OEMHandler(None, None))
    event: dict[str, object] = pyghmi_events.EventHandler(SimpleNamespace(sensors=named), command)._sel_decode(raw)
    return event


def _severity(event: Mapping[str, object]) -> str:
    health = event.get("severity", Health.Ok)
    if event.get("deassertion") or not isinstance(health, int):
        return "ok"
    return next((name for bit, name in _SEVERITIES if health & bit), "ok")


def _message(event: Mapping[str, object], raw: bytes, record: SensorRecord | None, sensor: str) -> str:
    text = str(event.get("event") or f"event type {raw[12] & 0x7F:02X}h, data {raw[13:16].hex(' ')}")
    message = f"{sensor}: {text}"
    if event.get("event_data"):
        message += f" ({event['event_data']})"
    if record is not None and record.numeric and raw[12] & 0x7F == 1:
        measured = record.value(raw[14]) if raw[13] >> 6 == 1 else None
        limit = record.value(raw[15]) if (raw[13] >> 4) & 0x03 == 1 else None
        if measured is not None:
            message += f", {measured:g} {record.unit}".rstrip()
        if limit is not None:
            message += f", limit {limit:g} {record.unit}".rstrip()
    return message + (" (no longer)" if event.get("deassertion") and "deasserted" not in text else "")
