"""Event log records in words, with UTC times set right by the BMC's clock."""

import struct
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.drivers.bmc.ipmi.log import LogReader, clock_offset
from inventory.drivers.bmc.ipmi.memory import Remembered
from inventory.drivers.bmc.ipmi.records import sensors_of
from inventory.observations import LogEntry
from tests.contracts.ipmi.records import compact, full
from tests.contracts.ipmi.scripted import ScriptedSession

NOW = datetime(2026, 3, 4, 12, 0, 0, tzinfo=UTC)
STAMP = int(NOW.timestamp())
SENSORS = {
    (0x20, 0, 0x11): sensors_of(full(b"GPU1 Temp", number=0x11), manufacturer=1, product=1)[0],
    (0x20, 0, 0x81): sensors_of(compact(b"PSU1 Status", number=0x81), manufacturer=1, product=1)[0],
}


def raw(number: int, stamp: int, sensor: int, kind: int, event: int, data: bytes, owner: int = 0x20) -> bytes:
    return struct.pack("<HBI", number, 0x02, stamp) + bytes((owner, 0, 4, kind, sensor, event)) + data


def reader(session: ScriptedSession | None = None, memory: Remembered | None = None, offset: float = 0) -> LogReader:
    return LogReader(session or ScriptedSession({}), memory or Remembered(), SENSORS, offset, NOW, [])


CASES = [
    ("threshold with value and limit", raw(1, STAMP - 60, 0x11, 1, 0x01, b"\x59\x5d\x5c"),
     "critical", "GPU1 Temp: Upper critical, 93 C, limit 92 C"),
    ("threshold without values", raw(1, STAMP - 60, 0x11, 1, 0x01, b"\x07\xff\xff"),
     "warning", "GPU1 Temp: Upper non-critical"),
    ("deasserted", raw(1, STAMP - 60, 0x11, 1, 0x81, b"\x59\x50\x5c"),
     "ok", "GPU1 Temp: Upper critical deasserted, 80 C, limit 92 C"),
    ("power supply failed", raw(1, STAMP - 60, 0x81, 8, 0x6F, b"\x01\xff\xff"), "critical", "PSU1 Status: Failure"),
    ("unknown sensor", raw(1, STAMP - 60, 0x77, 1, 0x01, b"\x59\x5d\x5c"),
     "critical", "Sensor 77h: Upper critical"),
    ("unknown event type", raw(1, STAMP - 60, 0x77, 0xC5, 0x70, b"\xa1\x02\x03"),
     "ok", "Sensor 77h: event type 70h, data a1 02 03"),
]  # fmt: skip


@pytest.mark.parametrize(("record", "severity", "message"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_records_in_words(record: bytes, severity: str, message: str) -> None:
    entry = reader().decode(record)
    assert (entry.entry_id, entry.severity, entry.message) == ("0001", severity, message)
    assert entry.logged_at == NOW - timedelta(seconds=60)


def test_oem_records_keep_their_bytes() -> None:
    dated = struct.pack("<HBI", 2, 0xC0, STAMP - 5) + (10876).to_bytes(3, "little") + b"\x01\x02\x03\x04\x05\x06"
    entry = reader().decode(dated)
    assert entry.message == "OEM record C0h of maker 10876: 01 02 03 04 05 06"
    assert entry.logged_at == NOW - timedelta(seconds=5)
    undated = reader().decode(struct.pack("<HB", 3, 0xE5) + bytes(range(13)))
    assert undated.logged_at is None
    assert undated.message.startswith("OEM record E5h")


@given(st.binary(min_size=16, max_size=16))
def test_any_record_has_words_and_an_aware_time_or_none(record: bytes) -> None:
    entry = reader().decode(record)
    assert isinstance(entry, LogEntry)
    assert entry.message
    assert entry.logged_at is None or (entry.logged_at.tzinfo is not None and entry.logged_at.year >= 1970)


def test_times_do_not_depend_on_the_local_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyghmi prints local time without an offset, which nobody can read back at the end of summer time."""
    monkeypatch.setenv("TZ", "America/Denver")
    time.tzset()
    try:
        assert reader().decode(CASES[0][1]).logged_at == NOW - timedelta(seconds=60)
    finally:
        monkeypatch.undo()
        time.tzset()


TIMES = [
    ("right clock", STAMP - 10, 0, NOW - timedelta(seconds=10)),
    ("clock an hour behind", STAMP - 3610, 3600, NOW - timedelta(seconds=10)),
    ("clock never set, this run", 90, STAMP - 100, NOW - timedelta(seconds=10)),
    ("clock never set, an earlier run", 4000, STAMP - 100, None),
    ("uptime of before the clock was set", 90, 0, None),
    ("no time", 0xFFFFFFFF, 0, None),
    ("from the future", STAMP + 86_400, 0, None),
]


@pytest.mark.parametrize(("stamp", "offset", "expected"), [c[1:] for c in TIMES], ids=[c[0] for c in TIMES])
def test_times(stamp: int, offset: float, expected: datetime | None) -> None:
    """A time that can't be known is None, not 1970."""
    assert reader(offset=offset).time_of(stamp) == expected


async def test_the_clock_is_the_same_visit_after_visit() -> None:
    """Measured again a second later, an offset must not move old entries."""
    memory = Remembered()

    async def measured(bmc: int, at: datetime) -> float:
        return await clock_offset(ScriptedSession({(0x0A, 0x48): struct.pack("<I", bmc)}), memory, at)

    assert await measured(STAMP - 2, NOW) == 0
    assert await measured(100, NOW) == STAMP - 100
    assert await measured(109, NOW + timedelta(seconds=10)) == STAMP - 100
    assert await measured(5, NOW + timedelta(seconds=10)) == STAMP + 5


class Log:
    def __init__(self, records: list[bytes]) -> None:
        self.records = records

    def get(self, request: bytes) -> bytes | int:
        wanted = int.from_bytes(request[2:4], "little")
        numbers = [int.from_bytes(record[:2], "little") for record in self.records]
        if not numbers or (wanted and wanted not in numbers):
            return 0xCB
        place = numbers.index(wanted) if wanted else 0
        following = numbers[place + 1] if place + 1 < len(numbers) else 0xFFFF
        return struct.pack("<H", following) + self.records[place]

    def session(self) -> ScriptedSession:
        info = bytes((0x51,)) + struct.pack("<HHII", len(self.records), 1000, 0, 0) + b"\x02"
        return ScriptedSession({(0x0A, 0x40): info, (0x0A, 0x43): self.get})


def logged(number: int, age: int) -> bytes:
    return raw(number, STAMP - age, 0x11, 1, 0x01, b"\x59\x5d\x5c")


async def ids(log: Log, memory: Remembered, since: datetime | None) -> tuple[list[str], int]:
    session = log.session()
    work = reader(session, memory)
    await work.read(since)
    return [entry.entry_id for entry in work.entries], len(session.asked)


async def test_only_what_is_new_is_read() -> None:
    log, memory = Log([logged(number, 1000 - number) for number in range(1, 101)]), Remembered()
    everything, cost = await ids(log, memory, None)
    assert (len(everything), cost) == (100, 101)
    last = NOW - timedelta(seconds=900)
    assert await ids(log, memory, last) == ([], 3)
    log.records.append(logged(101, 5))
    assert await ids(log, memory, last) == (["0065"], 4)


async def test_two_events_in_one_second_are_both_read() -> None:
    """The second may be written after the first was read."""
    log, memory = Log([logged(1, 100), logged(2, 50)]), Remembered()
    await ids(log, memory, None)
    log.records.append(logged(3, 50))
    assert (await ids(log, memory, NOW - timedelta(seconds=50)))[0] == ["0003"]


async def test_a_cleared_log_is_read_from_its_beginning() -> None:
    """Record ids start again after a clear: the same id is not the same entry."""
    log, memory = Log([logged(1, 100), logged(2, 90)]), Remembered()
    await ids(log, memory, None)
    log.records = [logged(1, 30), logged(2, 20), logged(3, 10)]
    assert (await ids(log, memory, NOW - timedelta(seconds=90)))[0] == ["0001", "0002", "0003"]
    log.records = []
    assert (await ids(log, memory, NOW - timedelta(seconds=10)))[0] == []


async def test_records_that_point_at_themselves_end() -> None:
    session = Log([logged(1, 5)]).session()
    session.answers[(0x0A, 0x43)] = lambda _request: struct.pack("<H", 1) + logged(1, 5)
    work = reader(session)
    await work.read(None)
    assert len(work.entries) == 1
