"""Reading sensor data records from BMCs that answer short, late, or from their own device records."""

import base64
import struct
from datetime import UTC, datetime

import pytest

from inventory.drivers.bmc.ipmi.errors import BadAnswer, CommandRefused, IpmiError
from inventory.drivers.bmc.ipmi.memory import MEMORY, RECORDS, BmcMemory, Records, RecordsCache, RecordsKey, Remembered
from inventory.drivers.bmc.ipmi.repository import DeviceId, Source, read_records, stamp
from inventory.drivers.bmc.ipmi.visit import Visit
from inventory.observations import BmcTarget, FailureKind, PowerState
from tests.contracts.ipmi.records import compact, full
from tests.contracts.ipmi.scripted import Answer, ScriptedSession, device_id

RECORDS_OF_A_BMC = [
    full(b"Inlet Temp", number=1, entity=0x37),
    full(b"Sys Power", number=2, type_code=0x0B, unit=6, m=20),
    full(b"CPU1 Temp", number=3, entity=3),
    compact(b"PSU1 Status", number=4),
]
TARGET = BmcTarget(address="192.0.2.7", port=623, protocol="ipmi", username="u", password="p")


class Repository:
    """Answers like one. `most` bytes a read; `lost` reservations are lost before one holds."""

    def __init__(self, records: list[bytes], *, most: int = 255, lost: int = 0, whole: bool = True) -> None:
        self.records, self.most, self.lost, self.whole = records, most, lost, whole

    def get(self, request: bytes) -> bytes | int:
        _, identifier, offset, count = struct.unpack("<HHBB", request)
        record = self.records[identifier]
        following = identifier + 1 if identifier + 1 < len(self.records) else 0xFFFF
        if count == 0xFF and not self.whole:
            return 0xCA
        if offset and self.lost:
            self.lost -= 1
            return 0xC5
        part = record[offset:] if count == 0xFF else record[offset : offset + count]
        if len(part) > self.most:
            return 0xCA
        return struct.pack("<H", following) + part

    def answers(self, *, device_records: bool = False) -> dict[tuple[int, int], Answer]:
        count = len(self.records)
        if device_records:
            info = bytes((count, 0x81)) + struct.pack("<I", 77)
            return {(4, 0x20): info, (4, 0x22): b"\x01\x00", (4, 0x21): self.get}
        info = struct.pack("<BHHII", 0x51, count, 0xFFFF, 1_700_000_000, 1_600_000_000) + b"\x02"
        return {(0x0A, 0x20): info, (0x0A, 0x22): b"\x01\x00", (0x0A, 0x23): self.get}


DEVICE = DeviceId.read(device_id())

CASES = [
    ("whole records", Repository(RECORDS_OF_A_BMC)),
    ("no whole records", Repository(RECORDS_OF_A_BMC, whole=False)),
    ("sixteen bytes a read", Repository(RECORDS_OF_A_BMC, most=16, whole=False)),
    ("reservations lost now and then", Repository(RECORDS_OF_A_BMC, whole=False, lost=3)),
]


@pytest.mark.parametrize("repository", [case[1] for case in CASES], ids=[case[0] for case in CASES])
async def test_all_records_are_read(repository: Repository) -> None:
    assert await read_records(ScriptedSession(repository.answers()), DEVICE) == RECORDS_OF_A_BMC


async def test_reservations_that_are_always_lost_end_busy() -> None:
    """pyghmi asks for a new one for ever."""
    session = ScriptedSession(Repository(RECORDS_OF_A_BMC, whole=False, lost=10_000).answers())
    with pytest.raises(CommandRefused) as refused:
        await read_records(session, DEVICE)
    assert refused.value.kind is FailureKind.BUSY
    assert len(session.asked) < 60


async def test_records_that_point_back_end() -> None:
    answers = Repository(RECORDS_OF_A_BMC).answers()
    answers[(0x0A, 0x23)] = lambda request: struct.pack("<H", 0) + RECORDS_OF_A_BMC[0]
    assert await read_records(ScriptedSession(answers), DEVICE) == RECORDS_OF_A_BMC[:1]


async def test_device_records_of_a_controller_without_repository() -> None:
    """pyghmi raises NotImplementedError for these."""
    device = DeviceId.read(device_id(device_records=True, repository=False))
    session = ScriptedSession(Repository(RECORDS_OF_A_BMC, whole=False).answers(device_records=True))
    assert await read_records(session, device) == RECORDS_OF_A_BMC
    assert await stamp(session, Source.of(device)) == (4, 77, 0)


async def test_a_controller_without_records_says_so() -> None:
    with pytest.raises(IpmiError) as raised:
        await read_records(ScriptedSession({}), DeviceId.read(device_id(repository=False)))
    assert raised.value.kind is FailureKind.NOT_SUPPORTED


def test_device_id() -> None:
    assert (DEVICE.firmware, DEVICE.manufacturer, DEVICE.product) == ("1.05", 10876, 0x0B37)
    with pytest.raises(BadAnswer):
        DeviceId.read(b"\x20\x01")


def scripted_bmc(sensor: Answer) -> ScriptedSession:
    answers = Repository(RECORDS_OF_A_BMC).answers()
    power = b"\xdc" + (4321).to_bytes(2, "little") + bytes(14) + b"\x40"
    answers |= {(0, 1): b"\x01\x00\x00", (4, 0x2D): sensor, (0x2C, 0x02): power, (0x0A, 0x10): 0xCB}
    return ScriptedSession(answers)


async def visit_of(session: ScriptedSession, *, discover: bool = False) -> Visit:
    RECORDS.clear()
    visit = Visit(TARGET, Remembered(), datetime.now(UTC), reached=True)
    await (visit.discover if discover else visit.poll)(session, DEVICE)
    return visit


REFUSALS = [
    ("absent (CBh) is left out", 0xCB, ["Inlet Temp", "Sys Power", "PSU1 Status"], []),
    ("out of range (C9h) is a failure", 0xC9, ["Inlet Temp", "Sys Power", "PSU1 Status"], ["CPU1 Temp"]),
    ("not in this state (D5h) is unavailable", 0xD5, ["Inlet Temp", "Sys Power", "CPU1 Temp", "PSU1 Status"], []),
]


@pytest.mark.parametrize(("code", "names", "failed"), [c[1:] for c in REFUSALS], ids=[c[0] for c in REFUSALS])
async def test_one_refused_sensor_hides_no_other(code: int, names: list[str], failed: list[str]) -> None:
    """pyghmi's generator ends at the first refusal other than CBh."""
    visit = await visit_of(scripted_bmc(lambda request: code if request[0] == 3 else bytes((24, 0xC0, 1))))
    reading = visit.reading(requests=1, elapsed=0.1)
    assert [sensor.name for sensor in reading.sensors] == names
    assert [failure.what for failure in reading.failures] == failed
    assert all(sensor.value is None for sensor in reading.sensors if sensor.state == "unavailable")
    assert (reading.power_state, reading.inlet_temperature) == (PowerState.ON, 24)


async def test_dcmi_power_comes_before_sensors() -> None:
    visit = await visit_of(scripted_bmc(bytes((24, 0xC0, 0))))
    assert visit.reading(requests=1, elapsed=0.1).power == 4321


async def test_a_cut_answer_is_a_failure_of_its_sensor() -> None:
    visit = await visit_of(scripted_bmc(lambda request: b"" if request[0] == 1 else bytes((24, 0xC0, 0))))
    assert [(failure.what, failure.kind) for failure in visit.failures] == [("Inlet Temp", FailureKind.PROTOCOL)]


async def test_a_privilege_too_low_is_told() -> None:
    session = scripted_bmc(bytes((24, 0xC0, 0)))
    session.answers[(0, 1)] = 0xD4
    visit = await visit_of(session, discover=True)
    assert ("chassis status", FailureKind.PERMISSION) in [(failure.what, failure.kind) for failure in visit.failures]
    assert len(visit.pairs) == 4


def key(number: int) -> RecordsKey:
    return RecordsKey(10876, number, 0x20, "1.05", "", 4, 1, 0)


def test_the_cache_is_bounded_and_drops_the_least_recently_used() -> None:
    cache = RecordsCache(most=2)
    for number in (1, 2):
        cache.put(key(number), Records((), ()))
    assert cache.get(key(1)) is not None
    cache.put(key(3), Records((), ()))
    assert [cache.get(key(number)) is not None for number in (1, 2, 3)] == [True, False, True]


def test_an_export_brings_the_sensors_back() -> None:
    cache, other = RecordsCache(), RecordsCache()
    cache.put(key(1), Records.decode(RECORDS_OF_A_BMC, manufacturer=10876, product=1))
    assert other.load(cache.export()) == 1
    found = other.get(key(1))
    assert found is not None
    assert [sensor.name for sensor in found.sensors] == ["Inlet Temp", "Sys Power", "CPU1 Temp", "PSU1 Status"]
    with pytest.raises(ValueError, match="base64"):
        other.load([{"records": "x"}])
    with pytest.raises(KeyError):
        other.load([{"records": [base64.b64encode(b"x").decode()]}])


def test_bmcs_without_a_clock_share_no_records() -> None:
    """Nothing but the address tells two sets of records apart where both times are unset."""
    assert RecordsKey.owner(0, 0xFFFFFFFF, TARGET) == "192.0.2.7:623"
    assert RecordsKey.owner(5, 0xFFFFFFFF, TARGET) == ""


def test_what_is_remembered_of_single_bmcs_is_bounded() -> None:
    memory = BmcMemory(most=1)
    first = memory.of(TARGET)
    assert memory.of(TARGET) is first
    memory.of(BmcTarget(address="192.0.2.8", port=623, protocol="ipmi", username="u", password="p"))
    assert memory.of(TARGET) is not first
    MEMORY.clear()
