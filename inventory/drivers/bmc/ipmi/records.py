"""Sensor data records: what a BMC's sensors are called and how their raw bytes become values.

Formulas and state texts come from pyghmi's SDREntry; what it can't read is mended here: 6-bit names
(it never returns from them), Latin-1 names, unknown units and rates, and shared compact records.
Layouts: IPMI 2.0 specification chapter 43.
"""

import copy
import math
from dataclasses import dataclass, replace
from typing import Any

from pyghmi.ipmi import sdr as pyghmi_sdr
from pyghmi.ipmi.private import constants as events

from inventory.drivers.bmc.ipmi.errors import BadAnswer

FULL, COMPACT = 0x01, 0x02
BMC_ADDRESS = 0x20
_THRESHOLD = 0x01
_LONGEST = 64  # bytes of the longest record; shorter ones are padded so that fields at the end exist
_HEADER = 5
# Bits of the readable-threshold mask and the place of each threshold byte in a full record.
LIMITS = {
    "lower_caution": (0x01, 36),
    "lower_critical": (0x02, 35),
    "lower_fatal": (0x04, 34),
    "upper_caution": (0x08, 33),
    "upper_critical": (0x10, 32),
    "upper_fatal": (0x20, 31),
}
_KINDS = {0x01: "temperature", 0x02: "voltage", 0x03: "current", 0x04: "fan", 0x08: "power_supply", 0x09: "power_unit"}
_UNITS = {"°C": "C", "°F": "F", "": ""}
_UNIT_KINDS = {"W": "power", "J": "energy"}


def text_field(kind_and_length: int, data: bytes) -> str:
    """A type/length text (specification 43.15) without padding: UTF-8, BCD plus, 6-bit ASCII or Latin-1."""
    kind, data = kind_and_length >> 6, data[: kind_and_length & 0x1F]
    if kind == 0:
        text = data.decode("utf-8", "replace")
    elif kind == 1:
        text = data.hex().translate(str.maketrans("abcdef", " -.:,_"))
    elif kind == 2:
        bits = int.from_bytes(data, "little")
        text = "".join(chr(((bits >> shift) & 0x3F) + 0x20) for shift in range(0, len(data) * 8 - 5, 6))
    else:
        text = data.decode("latin-1")
    return text.strip("\x00 ")


class Entry(pyghmi_sdr.SDREntry):  # type: ignore[misc]
    """pyghmi's record with a name decoder that ends."""

    def tlv_decode(self, tlv: int, data: bytes) -> str:
        return text_field(tlv, bytes(data))


@dataclass(frozen=True, slots=True)
class SensorRecord:
    """One readable sensor. `limits` are raw threshold bytes; `entry` holds the formula and is never changed."""

    name: str
    number: int
    lun: int
    owner: int
    entity: int
    instance: int
    kind: str
    unit: str
    numeric: bool
    signed: bool
    readable_limits: bool
    limits: dict[str, int]
    entry: Any

    @property
    def needs_factors(self) -> bool:
        """Whether the formula must be fetched for each raw value (a non-linear sensor)."""
        return bool(self.numeric and self.entry.linearization is not None and self.entry.linearization > 11)

    def value(self, raw: int) -> float | None:
        """The value in `unit`, or None where the formula has none for this byte (log of 0, 1/0)."""
        number = raw
        if self.entry.numeric_format == 1:
            number = pyghmi_sdr.ones_complement(raw, 8)
        elif self.entry.numeric_format == 2:
            number = pyghmi_sdr.twos_complement(raw, 8)
        try:
            value = float(self.entry.decode_value(None, number))
        except (ValueError, ZeroDivisionError, OverflowError, TypeError):
            return None
        if self.entry.unit_suffix == "°F":
            value = (value - 32) * 5 / 9
        elif self.entry.unit_suffix == "K":
            value -= 273.15
        return round(value, 3) if math.isfinite(value) else None

    def with_factors(self, factors: bytes) -> "SensorRecord":
        """The record with the formula that Get Sensor Reading Factors gave for one raw value."""
        if len(factors) < 7:
            raise BadAnswer(f"reading factors of {self.name} are {len(factors)} bytes long")
        entry = copy.copy(self.entry)
        entry.linearization = 0
        entry.decode_formula(factors[1:7])
        return replace(self, entry=entry)


def _sane(raw: bytes) -> bytearray:
    """Replace codes that pyghmi has no word for, which would lose the whole record."""
    record = bytearray(raw.ljust(_LONGEST, b"\x00"))
    body = _HEADER
    for place in (16, 17):
        if record[3] in (FULL, COMPACT) and record[body + place] not in pyghmi_sdr.unit_types:
            record[body + place] = 0
    if record[3] in (FULL, COMPACT) and (record[body + 15] >> 3) & 0x07 == 7:
        record[body + 15] &= 0b11000111
    return record


def sensors_of(raw: bytes, *, manufacturer: int, product: int) -> list[SensorRecord]:
    """The readable sensors of one record: none for other kinds, several for a shared compact record.

    Raises BadAnswer when the record is damaged.
    """
    if len(raw) < _HEADER + 1 or raw[3] not in (FULL, COMPACT):
        return []
    record = _sane(raw)
    try:
        entry = Entry(record, events, False, manufacturer, product)
    except (NotImplementedError, IndexError, KeyError, ValueError) as error:
        raise BadAnswer(f"record {int.from_bytes(raw[:2], 'little'):04X}h can't be decoded: {error!r}") from error
    body = record[_HEADER:]
    kind, unit = _kind_and_unit(entry)
    numeric = entry.numeric_format in (0, 1, 2) and entry.reading_type == _THRESHOLD and raw[3] == FULL
    base = SensorRecord(
        name=entry.sensor_name or f"Sensor {entry.sensor_number:02X}h", number=entry.sensor_number,
        lun=entry.sensor_lun, owner=entry.sensor_owner, entity=body[3], instance=body[4] & 0x7F, kind=kind,
        unit=unit if numeric else "", numeric=numeric, signed=entry.numeric_format in (1, 2),
        readable_limits=numeric and (body[6] >> 2) & 0x03 in (1, 2),
        limits={name: body[place] for name, (bit, place) in LIMITS.items() if numeric and body[13] & bit}, entry=entry,
    )  # fmt: skip
    return _shared(base, body) if raw[3] == COMPACT else [base]


def _kind_and_unit(entry: Any) -> tuple[str, str]:
    unit = "%" if entry.percent else _UNITS.get(entry.unit_suffix, entry.unit_suffix)
    if entry.baseunit in ("°F", "K"):
        unit = "C"
    kind = _KINDS.get(entry.sensor_type_number) or str(entry.sensor_type).lower().replace(" ", "_")
    return _UNIT_KINDS.get(unit, kind), unit


def _shared(base: SensorRecord, body: bytearray) -> list[SensorRecord]:
    """A compact record may stand for up to 15 sensors with consecutive numbers (specification 43.2)."""
    count, letters = body[18] & 0x0F, (body[18] >> 4) & 0x03 == 1
    if count < 2:
        return [base]
    offset, by_entity = body[19] & 0x7F, bool(body[19] & 0x80)
    records = []
    for place in range(count):
        suffix = chr(ord("A") + (offset + place) % 26) if letters else str(offset + place)
        entry = copy.copy(base.entry)
        entry.sensor_number, entry.sensor_name = base.number + place, base.name + suffix
        instance = base.instance + place if by_entity else base.instance
        records.append(
            replace(base, name=entry.sensor_name, number=entry.sensor_number, instance=instance, entry=entry)
        )
    return records


def unique_names(records: list[SensorRecord]) -> list[SensorRecord]:
    """Names made unique: some BMCs call every processor's sensor "Temp". Adds entity, then the number."""
    seen: dict[str, int] = {}
    for record in records:
        seen[record.name] = seen.get(record.name, 0) + 1
    taken: set[str] = set()
    named = []
    for record in records:
        name = record.name if seen[record.name] == 1 else f"{record.name} ({record.entity}.{record.instance})"
        if name in taken:
            name = f"{name} {record.number:02X}h"
        taken.add(name)
        named.append(replace(record, name=name))
    return named
