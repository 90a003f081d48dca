"""From an answer to Get Sensor Reading to a SensorReading; and which sensors tell node power and inlet.

Pure functions. Byte layouts: IPMI 2.0 specification 35.9 (thresholds) and 35.14 (reading).
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from inventory.drivers.bmc.ipmi.errors import BadAnswer
from inventory.drivers.bmc.ipmi.records import LIMITS, SensorRecord
from inventory.observations import SensorReading

_SCANNING, _UNAVAILABLE = 0x40, 0x20
# Threshold comparison bits, the gravest first; lower and upper bit of each grade.
_GRADES = (("failed", 0x24), ("critical", 0x12), ("warning", 0x09))
_NAMES_OF_NODE_POWER = re.compile(
    r"^(sys(tem)?|node|total|chassis|server|pwr|pw|host)[ _.-]?(input[ _.-]?)?(power|pwr|consumption|watts?|wattage)\b"
    r"|^power[ _.-]?(meter|consumption|usage)|^pwr[ _.-]?meter",
    re.IGNORECASE,
)
_NAMES_OF_SUPPLY_POWER = re.compile(r"^(psu?|power supply)[ _.-]?\d+.*(power|pwr|p[ _]?in|watt)", re.IGNORECASE)
_OUTPUT = re.compile(r"out", re.IGNORECASE)
_NAMES_OF_INLET = re.compile(r"inlet|intake|ambient|front (panel )?temp", re.IGNORECASE)
_NOT_INLET = re.compile(r"exhaust|outlet|gpu|psu|liquid|coolant|water", re.IGNORECASE)
_AIR_INLET = (0x37, 0x40)  # entity ids, specification table 43-13 and DCMI 1.5 table 6-1
_PLAUSIBLE_POWER = 100_000.0  # W, the bound of a reading (observations.Watts)


def reading_of(record: SensorRecord, body: bytes, limits: Mapping[str, int] | None = None) -> SensorReading:
    """Build the reading; `limits` are raw threshold bytes of this very BMC, else those of the record.

    A sensor whose scanning is off or whose reading is marked unavailable has value None and the state
    "unavailable". Numeric states are ok, warning, critical, failed (non-recoverable); discrete
    sensors give the texts of their asserted states. Raises BadAnswer on a cut answer.
    """
    if len(body) < 2:
        raise BadAnswer(f"a sensor reading of {len(body)} bytes")
    bounds = thresholds(record, record.limits if limits is None else limits)
    value, state = None, "unavailable"
    if body[1] & _SCANNING and not body[1] & _UNAVAILABLE:
        value = record.value(body[0]) if record.numeric else None
        state = _numeric_state(body) if record.numeric else _discrete_state(record, body)
        if record.numeric and value is None:
            state = "unavailable"
    return SensorReading(name=record.name[:200], kind=record.kind, unit=record.unit, value=value, state=state, **bounds)


def _numeric_state(body: bytes) -> str:
    flags = body[2] if len(body) > 2 else 0
    return next((grade for grade, bits in _GRADES if flags & bits), "ok")


def _discrete_state(record: SensorRecord, body: bytes) -> str:
    flags = int.from_bytes(body[2:4], "little") & 0x7FFF
    texts = [record.entry._decode_state(offset)[0] for offset in range(15) if flags & (1 << offset)]
    return ", ".join(texts)[:200]


def unavailable(record: SensorRecord) -> SensorReading:
    """The reading of a sensor that can't be read in the present state, such as one of a node that is off."""
    return SensorReading(name=record.name[:200], kind=record.kind, unit=record.unit, state="unavailable")


def thresholds(record: SensorRecord, raw: Mapping[str, int]) -> dict[str, float | None]:
    """Decode raw threshold bytes; None where the BMC has none.

    Besides those it does not list, BMCs fill unused ones with 00h or FFh: an upper limit at the bottom
    of the range would always be crossed, one at the top never, and -1 is the filler of signed sensors.
    Where only the non-recoverable limit exists it stands in for the critical one.
    """
    known: dict[str, float] = {}
    for name, byte in raw.items():
        value = None if _filler(name, byte, record.signed) else record.value(byte)
        if value is not None:
            known[name] = value
    lower, upper = ("upper", "lower") if record.numeric and record.entry.linearization == 7 else ("lower", "upper")
    return {
        "lower_caution": known.get(f"{lower}_caution"),
        "lower_critical": known.get(f"{lower}_critical", known.get(f"{lower}_fatal")),
        "upper_caution": known.get(f"{upper}_caution"),
        "upper_critical": known.get(f"{upper}_critical", known.get(f"{upper}_fatal")),
    }


def _filler(name: str, byte: int, signed: bool) -> bool:
    if byte == 0xFF:
        return True
    return byte == 0 and (name.startswith("upper") or not signed)


def raw_limits(body: bytes) -> dict[str, int]:
    """Raw bytes by name out of an answer to Get Sensor Thresholds; raises BadAnswer on a cut one."""
    if len(body) < 7:
        raise BadAnswer(f"sensor thresholds of {len(body)} bytes")
    return {name: body[1 + place] for place, (name, (bit, _)) in enumerate(LIMITS.items()) if body[0] & bit}


def dcmi_power(body: bytes) -> float | None:
    """Watts out of an answer to DCMI Get Power Reading (DCMI 1.5 section 6.6.1), None while not measuring.

    pyghmi ignores the state bit. 0 W is what a BMC says that does not measure, so it counts as missing.
    """
    if len(body) < 18 or body[0] != 0xDC:
        raise BadAnswer("not a DCMI power reading")
    watts = int.from_bytes(body[1:3], "little")
    return float(watts) if body[17] & 0x40 and watts else None


def node_power(readings: Iterable[SensorReading]) -> float | None:
    """The node's power (W) by its own sensor, else the sum of its supplies' inputs; None when not known.

    A supply that is there but gives no value makes the sum unknown.
    """
    power = [reading for reading in readings if reading.kind == "power"]
    for reading in power:
        if _NAMES_OF_NODE_POWER.search(reading.name) and reading.value is not None:
            return plausible_power(reading.value)
    supplies = [reading for reading in power if _NAMES_OF_SUPPLY_POWER.search(reading.name)]
    inputs = [reading for reading in supplies if not _OUTPUT.search(reading.name)]
    values = [reading.value for reading in inputs]
    if not values or any(value is None for value in values):
        return None
    return plausible_power(sum(value for value in values if value is not None))


def plausible_power(watts: float) -> float | None:
    """None outside what a node can draw."""
    return watts if 0 <= watts <= _PLAUSIBLE_POWER else None


def inlet_temperature(pairs: Sequence[tuple[SensorRecord, SensorReading]]) -> float | None:
    """The air inlet (degrees C): by name, else by the entity of the record; the warmest where there are several."""
    temperatures = [
        (record, reading.value)
        for record, reading in pairs
        if reading.kind == "temperature" and reading.value is not None and -60 <= reading.value <= 250
    ]
    named = [
        value
        for record, value in temperatures
        if _NAMES_OF_INLET.search(record.name) and not _NOT_INLET.search(record.name)
    ]
    by_entity = [value for record, value in temperatures if record.entity in _AIR_INLET]
    return max(named or by_entity, default=None)
