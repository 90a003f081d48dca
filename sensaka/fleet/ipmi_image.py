"""The bytes of a simulated BMC: sensor data records and FRU 0.

Layouts: IPMI 2.0 specification chapter 43; Platform Management FRU Information Storage Definition 1.3.
"""

import struct
from dataclasses import dataclass

_LIMIT_NAMES = ("lower_caution", "lower_critical", "lower_fatal", "upper_caution", "upper_critical", "upper_fatal")
# Event bits "going low" of the lower and "going high" of the upper thresholds, in the order above.
_EVENT_BITS = (0, 2, 4, 7, 9, 11)
_FULL, _COMPACT = 0x01, 0x02
THRESHOLD, SENSOR_SPECIFIC = 0x01, 0x6F
TEMPERATURE, FAN, POWER_SUPPLY, OTHER_UNITS = 0x01, 0x04, 0x08, 0x0B
_CELSIUS, _WATTS, _RPM = 1, 6, 18
_AIR_INLET, _SYSTEM, _ADD_IN_CARD, _FAN_DEVICE, _SUPPLY = 0x37, 0x07, 0x0B, 0x1D, 0x0A
PRESENT, FAILED = 0, 1  # offsets of a power supply's states


@dataclass(frozen=True, slots=True)
class Sensor:
    """One sensor. The raw byte times `step` is the value; limits are values, None where there are none."""

    number: int
    name: str
    type: int
    unit: int
    entity: int
    instance: int
    step: int = 1
    start: float = 0
    limits: tuple[float | None, ...] = (None,) * 6

    @property
    def numeric(self) -> bool:
        return self.type != POWER_SUPPLY

    @property
    def event_type(self) -> int:
        return THRESHOLD if self.numeric else SENSOR_SPECIFIC

    @property
    def raw_limits(self) -> tuple[int, ...]:
        """Threshold bytes in the order of the lower, then the upper ones."""
        return tuple(self.raw(limit) if limit is not None else 0 for limit in self.limits)

    @property
    def limit_mask(self) -> int:
        return sum(1 << place for place, limit in enumerate(self.limits) if limit is not None)

    @property
    def event_mask(self) -> int:
        """Which events the sensor can send."""
        if not self.numeric:
            return 1 << PRESENT | 1 << FAILED
        return sum(1 << bit for bit, limit in zip(_EVENT_BITS, self.limits, strict=True) if limit is not None)

    def raw(self, value: float) -> int:
        """The byte nearest to a value, kept within 0-255."""
        return min(255, max(0, round(value / self.step)))


def sensors(*, gpus: int, fans: int, supplies: int) -> tuple[Sensor, ...]:
    """The sensors of a GPU server: inlet, node power, one temperature a GPU, fans, power supplies."""
    hot: tuple[float | None, ...] = (None, None, None, 85, 92, 96)
    built = [
        Sensor(1, "Inlet Temp", TEMPERATURE, _CELSIUS, _AIR_INLET, 1, 1, 22, (None, None, None, 38, 42, 46)),
        Sensor(2, "Node Power", OTHER_UNITS, _WATTS, _SYSTEM, 1, 50, 2400, (None, None, None, 11_000, 12_000, None)),
    ]
    built += [
        Sensor(0x10 + n, f"GPU{n} Temp", TEMPERATURE, _CELSIUS, _ADD_IN_CARD, n, 1, 38, hot) for n in range(1, gpus + 1)
    ]
    slow: tuple[float | None, ...] = (1000, 600, None, None, None, None)
    built += [Sensor(0x40 + n, f"Fan{n}", FAN, _RPM, _FAN_DEVICE, n, 100, 7200, slow) for n in range(1, fans + 1)]
    built += [Sensor(0x80 + n, f"PSU{n} Status", POWER_SUPPLY, 0, _SUPPLY, n) for n in range(1, supplies + 1)]
    return tuple(built)


def record(sensor: Sensor) -> bytes:
    """The sensor data record of one sensor."""
    name = sensor.name.encode("ascii")[:16]
    mask = sensor.event_mask
    common = struct.pack(
        "<9B", 0x20, 0, sensor.number, sensor.entity, sensor.instance, 0x7F, 0x68, sensor.type, sensor.event_type
    )
    if sensor.numeric:
        lnc, lc, lnr, unc, uc, unr = sensor.raw_limits
        body = common + struct.pack("<HH2B", mask, mask, sensor.limit_mask, sensor.limit_mask)
        body += bytes((0, sensor.unit, 0, 0, sensor.step & 0xFF, (sensor.step >> 8) << 6, 0, 0, 0, 0))
        body += bytes((0, 0, 0, 0, 0xFF, 0, unr, uc, unc, lnr, lc, lnc, 1, 1, 0, 0, 0))
        kind = _FULL
    else:
        body = common + struct.pack("<3H", mask, mask, mask) + bytes((0xC0, 0, 0, 0x01)) + bytes(7)
        kind = _COMPACT
    body += bytes((0xC0 | len(name),)) + name
    return bytes((0, 0, 0x51, kind, len(body))) + body


def fru(*, manufacturer: str, product: str, serial: str, asset: str) -> bytes:
    """A FRU image with a board and a product area, as long as it must be."""
    board = _area(bytes((25, 0, 0, 0)) + _texts(manufacturer, f"{product} board", f"{serial}-B", "", ""))
    item = _area(bytes((25,)) + _texts(manufacturer, product, "", "1", serial, asset, ""))
    header = bytes((1, 0, 0, 1, 1 + len(board) // 8, 0, 0))
    return header + _checksum(header) + board + item


def _texts(*texts: str) -> bytes:
    encoded = [text.encode("latin-1")[:63] for text in texts]
    return b"".join(bytes((0xC0 | len(text) if text else 0,)) + text for text in encoded) + b"\xc1"


def _area(content: bytes) -> bytes:
    length = -(-(len(content) + 3) // 8)
    area = bytes((1, length)) + content
    area += bytes(length * 8 - 1 - len(area))
    return area + _checksum(area)


def _checksum(data: bytes) -> bytes:
    return bytes((-sum(data) & 0xFF,))
