"""How a BMC's sensors are written: the same units as everywhere, a margin as what is left to its limit."""

from collections.abc import Mapping
from typing import Any

from sensaka.live import cells

_UNITS = {"C": "°C", "Cel": "°C", "L/min": "l/min", "cft_i/min": "CFM"}
_FINE = {"V": 2, "A": 1, "kWh": 1, "°C": 0, "K": 0}


def _written(value: float | None, unit: str) -> str:
    if value is None:
        return cells.UNKNOWN
    if unit == "W":
        return cells.watts(value)
    if unit == "J":
        return cells.energy(value)
    digits = _FINE.get(unit, 0 if abs(value) >= 100 or value == int(value) else 1)
    if unit == "°C" and value != int(value):
        digits = 1
    return cells.decimal(value, unit, digits).rstrip("\u202f")


def _unit(sensor: Mapping[str, Any]) -> str:
    unit = str(sensor.get("unit", ""))
    return "K" if sensor.get("kind") == "margin" else _UNITS.get(unit, unit)


def reading(sensor: Mapping[str, Any]) -> str:
    """`49 °C`; of a temperature margin `38 K to the limit`, or how far it is beyond it."""
    value = sensor.get("value")
    if sensor.get("kind") != "margin" or value is None:
        return _written(value, _unit(sensor))
    return f"{_written(abs(value), 'K')} {'to' if value >= 0 else 'beyond'} the limit"


def limit(sensor: Mapping[str, Any]) -> str:
    """From where it is critical: a margin when it is no longer above something, everything else from something on."""
    margin = sensor.get("kind") == "margin"
    value = sensor.get("lower_critical" if margin else "upper_critical")
    if value is None:
        return cells.UNKNOWN
    return f"{'below ' if margin else ''}{_written(value, _unit(sensor))}"
