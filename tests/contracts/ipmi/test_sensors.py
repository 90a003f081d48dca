"""Which sensors tell the node's power and its air inlet, by names and entities met in the field."""

import pytest

from inventory.drivers.bmc.ipmi.errors import BadAnswer
from inventory.drivers.bmc.ipmi.records import sensors_of
from inventory.drivers.bmc.ipmi.sensors import dcmi_power, inlet_temperature, node_power
from inventory.observations import SensorReading
from tests.contracts.ipmi.records import full


def watts(name: str, value: float | None) -> SensorReading:
    return SensorReading(name=name, kind="power", unit="W", value=value)


POWER = [
    ("Dell", [watts("Pwr Consumption", 812), watts("PS1 Power", 400)], 812),
    ("HPE", [watts("Power Meter", 950)], 950),
    ("AMI", [watts("Total_Power", 5200), watts("GPU_Power", 3000)], 5200),
    ("system sensor", [watts("Sys Power", 700)], 700),
    ("supplies add up", [watts("PSU1 Input Power", 1200), watts("PSU2 Input Power", 1300)], 2500),
    ("outputs are not added to inputs",
     [watts("PSU1 Power In", 1200), watts("PSU1 Power Out", 1100), watts("PSU2 Power In", 1300)], 2500),
    ("a silent supply makes the sum unknown", [watts("PSU1 Input Power", 1200), watts("PSU2 Input Power", None)], None),
    ("a silent system sensor falls back", [watts("Sys Power", None), watts("PSU1 Power", 900)], 900),
    ("parts are not the node", [watts("CPU1 Power", 200), watts("GPU1 Power", 600), watts("Fan Power", 90)], None),
    ("nothing", [], None),
    ("more than a node can draw", [watts("Sys Power", 2_000_000)], None),
]  # fmt: skip


@pytest.mark.parametrize(("readings", "expected"), [case[1:] for case in POWER], ids=[case[0] for case in POWER])
def test_node_power(readings: list[SensorReading], expected: float | None) -> None:
    assert node_power(readings) == expected


INLET = [
    ("by name", [("Inlet Temp", 7, 23), ("Exhaust Temp", 7, 41)], 23),
    ("by entity", [("Temp 1", 0x37, 22), ("Temp 2", 7, 50)], 22),
    ("DCMI's entity", [("TEMP_A", 0x40, 24)], 24),
    ("ambient", [("Ambient Temp", 7, 21)], 21),
    ("a GPU's inlet is not the node's", [("GPU1 Inlet Temp", 7, 55)], None),
    ("a coolant inlet is no air inlet", [("Coolant Inlet", 7, 30)], None),
    ("the warmest of several", [("Inlet Temp 1", 7, 23), ("Inlet Temp 2", 7, 26)], 26),
    ("none", [("CPU1 Temp", 3, 60)], None),
]


@pytest.mark.parametrize(("named", "expected"), [case[1:] for case in INLET], ids=[case[0] for case in INLET])
def test_inlet(named: list[tuple[str, int, float]], expected: float | None) -> None:
    pairs = []
    for name, entity, value in named:
        (record,) = sensors_of(full(name.encode(), entity=entity), manufacturer=1, product=1)
        pairs.append((record, SensorReading(name=name, kind=record.kind, unit="C", value=value)))
    assert inlet_temperature(pairs) == expected


def answer(watts_now: int, state: int) -> bytes:
    return b"\xdc" + watts_now.to_bytes(2, "little") + bytes(14) + bytes((state,))


def test_dcmi_power_counts_only_while_measuring() -> None:
    """pyghmi ignores the state bit; a BMC that does not measure says 0 W."""
    assert dcmi_power(answer(5321, 0x40)) == 5321
    assert dcmi_power(answer(5321, 0x00)) is None
    assert dcmi_power(answer(0, 0x40)) is None
    with pytest.raises(BadAnswer):
        dcmi_power(b"\xdc\x01")
