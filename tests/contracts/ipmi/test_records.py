"""Sensor data records become sensors: names, units, formulas, thresholds; damage hides nothing else."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.drivers.bmc.ipmi.errors import BadAnswer
from inventory.drivers.bmc.ipmi.memory import Records
from inventory.drivers.bmc.ipmi.records import SensorRecord, sensors_of, text_field, unique_names
from inventory.drivers.bmc.ipmi.sensors import raw_limits, reading_of, thresholds
from tests.contracts.ipmi.records import compact, full

OK = bytes((0, 0x40, 0))
ALL = 0x3F


def one(raw: bytes) -> SensorRecord:
    (record,) = sensors_of(raw, manufacturer=10876, product=1)
    return record


NAMES = [
    ("plain", 0xC0, b"CPU1 Temp", "CPU1 Temp"),
    ("padded with zeros", 0xC0, b"Fan1\x00\x00", "Fan1"),
    ("latin-1, which pyghmi takes for UTF-8", 0xC0, b"K\xfchler", "Kühler"),
    ("six-bit, where pyghmi never returns", 0x80, b"\x29\xdc\xa6", "IPMI"),
    ("BCD plus", 0x40, b"\x12\x3a", "123"),
    ("UTF-8", 0x00, "Größe".encode(), "Größe"),
    ("broken UTF-8", 0x00, b"\xff", "\ufffd"),
]


@pytest.mark.parametrize(("code", "data", "text"), [case[1:] for case in NAMES], ids=[case[0] for case in NAMES])
def test_names(code: int, data: bytes, text: str) -> None:
    assert text_field(code | len(data), data) == text


@given(st.integers(0, 255), st.binary(max_size=40))
def test_any_name_ends(code: int, data: bytes) -> None:
    assert len(text_field(code, data)) <= 64


VALUES = [
    ("plain", full(b"T"), 42, 42),
    ("times M", full(b"P", type_code=0x0B, unit=6, m=20), 60, 1200),
    ("ten-bit M", full(b"P", type_code=0x0B, unit=6, m=300), 10, 3000),
    ("offset B", full(b"T", b=-128 & 0x3FF), 150, 22),
    ("negative exponent", full(b"V", type_code=2, unit=4, m=6, exponents=0xD0), 200, 1.2),
    ("two's complement", full(b"T", signed=True), 0xEC, -20),
    ("Fahrenheit", full(b"T", unit=2), 212, 100),
    ("Kelvin", full(b"T", unit=3, m=2), 150, 26.85),
    ("square", full(b"F", type_code=4, unit=18, linearization=8), 9, 81),
    ("square root of zero", full(b"F", type_code=4, unit=18, linearization=10), 0, 0),
    ("logarithm of zero has no value", full(b"L", linearization=1), 0, None),
    ("one over zero has no value", full(b"R", type_code=4, unit=18, linearization=7), 0, None),
]


@pytest.mark.parametrize(("raw", "byte", "value"), [case[1:] for case in VALUES], ids=[case[0] for case in VALUES])
def test_formulas(raw: bytes, byte: int, value: float | None) -> None:
    assert one(raw).value(byte) == (None if value is None else pytest.approx(value, abs=0.001))


KINDS = [
    ("temperature", full(b"T"), "temperature", "C"),
    ("fan", full(b"F", type_code=4, unit=18), "fan", "RPM"),
    ("fan in percent (iLO)", full(b"F", type_code=4, unit=0, modifier=1), "fan", "%"),
    ("voltage", full(b"V", type_code=2, unit=4), "voltage", "V"),
    ("watts as other units", full(b"P", type_code=0x0B, unit=6), "power", "W"),
    ("watts of type current (Dell)", full(b"P", type_code=3, unit=6), "power", "W"),
    ("watts of a supply", full(b"P", type_code=8, unit=6), "power", "W"),
    ("joules", full(b"E", type_code=0x0B, unit=7), "energy", "J"),
    ("unit that pyghmi has no word for", full(b"T", unit=200), "temperature", ""),
    ("reserved rate", full(b"T", modifier=0x38), "temperature", "C"),
    ("discrete", compact(b"PSU"), "power_supply", ""),
    ("OEM type", compact(b"X", type_code=0xC9), "unknown_type_201", ""),
]


@pytest.mark.parametrize(("raw", "kind", "unit"), [case[1:] for case in KINDS], ids=[case[0] for case in KINDS])
def test_kinds_and_units(raw: bytes, kind: str, unit: str) -> None:
    assert (one(raw).kind, one(raw).unit) == (kind, unit)


def limits(**named: int) -> bytes:
    order = ("unr", "uc", "unc", "lnr", "lc", "lnc")
    return bytes(named.get(name, 0) for name in order)


THRESHOLDS = [
    ("all listed", full(b"T", readable=ALL, limits=limits(unr=110, uc=100, unc=90, lnr=2, lc=5, lnc=10)),
     (10, 5, 90, 100)),
    ("none readable", full(b"T", readable=0, limits=limits(uc=100)), (None,) * 4),
    ("filled with 00h", full(b"T", readable=ALL), (None,) * 4),
    ("filled with FFh", full(b"T", readable=ALL, limits=b"\xff" * 6), (None,) * 4),
    ("-1 of a signed sensor", full(b"T", readable=ALL, signed=True, limits=b"\xff" * 6), (None,) * 4),
    ("freezing point of a signed sensor", full(b"T", readable=ALL, signed=True, limits=limits(lc=0xFB, uc=50)),
     (0, -5, None, 50)),
    ("non-recoverable only", full(b"T", readable=0x24, limits=limits(unr=110, lnr=2)), (None, 2, None, 110)),
    ("one over x turns round", full(b"R", readable=ALL, linearization=7, limits=limits(unc=4, uc=2, lnc=8, lc=16)),
     (0.25, 0.5, 0.125, 0.062)),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "expected"), [c[1:] for c in THRESHOLDS], ids=[c[0] for c in THRESHOLDS])
def test_thresholds(raw: bytes, expected: tuple[float | None, ...]) -> None:
    """A threshold that is absent, 0 or -1 by way of filling is no threshold."""
    found = thresholds(one(raw), one(raw).limits)
    assert (
        found["lower_caution"], found["lower_critical"], found["upper_caution"], found["upper_critical"],
    ) == expected  # fmt: skip


def test_thresholds_of_the_bmc_itself_take_precedence() -> None:
    record = one(full(b"T", readable=ALL, limits=limits(uc=100)))
    own = raw_limits(bytes((0x18, 0, 0, 0, 70, 80, 0)))
    assert own == {"upper_caution": 70, "upper_critical": 80}
    assert reading_of(record, OK, own).upper_critical == 80
    assert reading_of(record, OK).upper_critical == 100
    with pytest.raises(BadAnswer):
        raw_limits(b"\x18\x00")


STATES = [
    ("in range", bytes((30, 0xC0, 0xC0)), 30, "ok"),
    ("without a state byte", bytes((30, 0xC0)), 30, "ok"),
    ("upper non-critical", bytes((30, 0xC0, 0x08)), 30, "warning"),
    ("both grades", bytes((30, 0xC0, 0x18)), 30, "critical"),
    ("lower non-recoverable", bytes((30, 0xC0, 0x07)), 30, "failed"),
    ("marked unavailable", bytes((30, 0xE0, 0)), None, "unavailable"),
    ("not scanned", bytes((0, 0x80, 0)), None, "unavailable"),
]


@pytest.mark.parametrize(("body", "value", "state"), [c[1:] for c in STATES], ids=[c[0] for c in STATES])
def test_states(body: bytes, value: float | None, state: str) -> None:
    """Unavailable is None, never zero."""
    reading = reading_of(one(full(b"T")), body)
    assert (reading.value, reading.state) == (value, state)


def test_a_value_without_a_formula_result_is_unavailable() -> None:
    reading = reading_of(one(full(b"L", linearization=1)), bytes((0, 0xC0, 0)))
    assert (reading.value, reading.state) == (None, "unavailable")


def test_discrete_states_in_words() -> None:
    record = one(compact(b"PSU1 Status"))
    assert reading_of(record, bytes((0, 0xC0, 0x0B, 0x00))).state == "Present, Failure, Power input lost"
    assert reading_of(record, bytes((0, 0xC0))).state == ""
    assert reading_of(record, bytes((0, 0xC0, 0x0B, 0x00))).value is None
    with pytest.raises(BadAnswer):
        reading_of(record, b"\x00")


def test_a_shared_record_stands_for_several_sensors() -> None:
    """pyghmi sees the first one only."""
    records = sensors_of(compact(b"PSU", number=0x30, share=3, offset=1), manufacturer=1, product=1)
    assert [(record.name, record.number) for record in records] == [("PSU1", 0x30), ("PSU2", 0x31), ("PSU3", 0x32)]


def test_equal_names_are_told_apart() -> None:
    """Dell calls the sensor of each processor "Temp"."""
    records = [one(full(b"Temp", number=n, entity=3, instance=n)) for n in (1, 2)]
    records += [one(full(b"Temp", number=9, entity=3, instance=2)), one(full(b"Inlet", number=4))]
    names = [record.name for record in unique_names(records)]
    assert names == ["Temp (3.1)", "Temp (3.2)", "Temp (3.2) 09h", "Inlet"]


def test_one_damaged_record_hides_no_other() -> None:
    damaged = bytes((1, 0, 0x02, 1, 3)) + bytes(3)
    records = Records.decode((full(b"A"), damaged, b"\x01", full(b"B", number=2)), manufacturer=1, product=1)
    assert [record.name for record in records.sensors] == ["A", "B"]
    assert len(records.damaged) == 1


@given(st.binary(min_size=0, max_size=80))
def test_any_bytes_are_a_sensor_or_a_bad_answer(raw: bytes) -> None:
    for kind in (1, 2):
        data = raw[:2] + bytes((0x51, kind)) + raw[4:] if len(raw) > 4 else raw
        try:
            records = sensors_of(data, manufacturer=674, product=0x100)
        except BadAnswer:
            continue
        for record in records:
            for answer in (bytes((0xFF, 0xC0, 0xFF, 0xFF)), bytes((0, 0xC0))):
                value = reading_of(record, answer).value
                assert value is None or math.isfinite(value)
