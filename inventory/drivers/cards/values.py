"""From raw numbers to bounded values: what every source of card readings does last.

A number outside the bounds that `CardValues` states would make the whole batch of a node unreadable
for the server, and a number outside physics (a temperature of 4278190080, as exporters have printed)
would poison averages. Both become None here, with an IMPLAUSIBLE failure that quotes them.
"""

import math
import re
from collections.abc import Mapping

from msgspec import inspect

from inventory.observations import CardValues, FailureKind, ReadFailure

# Exporters printed 345, 82505 and 4278190080 degrees; nothing that still computes is outside this range.
COLDEST, HOTTEST = -20.0, 150.0
_TEMPERATURES = ("temperature", "memory_temperature")
# A ratio of two counters that are latched a moment apart comes out a little over one.
_ROUNDING = 1.0
_PCI = re.compile(r"^(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})(?:\.([0-7]))?$")

Number = int | float


def _bounds() -> dict[str, tuple[float, float, bool]]:
    """Lower bound, upper bound and "is a whole number" of each field, read from the struct itself."""
    info = inspect.type_info(CardValues)
    assert isinstance(info, inspect.StructType)
    found = {}
    for field in info.fields:
        assert isinstance(field.type, inspect.UnionType)
        kind = field.type.types[0]
        assert isinstance(kind, (inspect.IntType, inspect.FloatType))
        low, high = float(kind.ge or 0), float(kind.le or 0)
        found[field.name] = (low, high, isinstance(kind, inspect.IntType))
    for name in _TEMPERATURES:
        found[name] = (COLDEST, HOTTEST, False)
    return found


BOUNDS = _bounds()


def bounded(name: str, value: Number) -> Number | None:
    """`value` as the field `name` stores it, or None when the field can't hold it.

    Percentages up to one point over 100 are rounding and become 100.
    """
    low, high, whole = BOUNDS[name]
    if not math.isfinite(value):
        return None
    if high == 100 and high < value <= high + _ROUNDING:
        value = high
    if not low <= value <= high:
        return None
    if whole:
        # float(2**63 - 1) is 2**63, one more than the column holds.
        return min(round(value), 2**63 - 1)
    return float(value)


def card_values(raw: Mapping[str, Number | None], *, what: str) -> tuple[CardValues | None, tuple[ReadFailure, ...]]:
    """Values and what was refused among them. None when nothing at all was read.

    NaN counts as absent, without a failure: it is how Prometheus says "no value".
    """
    kept: dict[str, Number] = {}
    refused = []
    for name, value in raw.items():
        if value is None or math.isnan(value):
            continue
        held = bounded(name, value)
        if held is None:
            detail = f"{name} read as {value}"
            refused.append(ReadFailure(what=short(what), kind=FailureKind.IMPLAUSIBLE, detail=detail[:2000]))
        else:
            kept[name] = held
    values = CardValues(**kept) if kept else None  # type: ignore[arg-type]  # `bounded` keeps whole fields whole
    return values, tuple(refused)


def short(text: str) -> str:
    """Text cut to what a `Name` holds."""
    return text.strip("\x00 \t\r\n")[:200]


def pci_address(text: str) -> str:
    """`domain:bus:device.function` as sysfs spells it; empty when `text` is no PCI address.

    NVML prints an 8-digit domain, kernel messages leave the function out, exporters use upper case.
    """
    match = _PCI.match(text.strip())
    if not match:
        return ""
    domain, bus, device, function = match.groups()
    return f"{int(domain or '0', 16):04x}:{int(bus, 16):02x}:{int(device, 16):02x}.{function or '0'}"
