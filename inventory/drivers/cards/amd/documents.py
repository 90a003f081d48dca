"""What `amd-smi ... --json` prints, across ROCm 5, 6 and 7.

The top level is a list, or an object with `gpu_data`; a number is plain (5.x) or {"value", "unit"}
(6.0 on); a missing one is the text "N/A", and so may be a whole group; watch mode prints a banner
first. Nothing here raises on any of that, or on anything else.
"""

import json
from typing import Any

from inventory.drivers.texts import storable
from sensaka.kernel.units import GIB, KIB, MIB

# What the layers below print when a register holds no value: all ones of its width.
_ALL_ONES = frozenset({0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})
_UNITS = {
    "B": 1.0, "KB": float(KIB), "KIB": float(KIB), "MB": float(MIB), "MIB": float(MIB), "GB": float(GIB),
    "GIB": float(GIB), "MW": 1e-3, "UW": 1e-6, "MJ": 1e-3, "UJ": 1e-6, "KHZ": 1e-3, "HZ": 1e-6,
}  # fmt: skip
_STARTS = 50


def load(text: str) -> Any:
    """The first JSON document of an output, behind any banner; None when there is none."""
    decoder = json.JSONDecoder()
    starts = 0
    position = 0
    for line in text.splitlines(keepends=True):
        if line.lstrip()[:1] in ("[", "{"):
            starts += 1
            try:
                return storable(decoder.raw_decode(text, position + len(line) - len(line.lstrip()))[0], text)
            except (ValueError, RecursionError):
                if starts >= _STARTS:
                    break
        position += len(line)
    return None


def entries(document: Any) -> dict[int, dict[str, Any]]:
    """One object a GPU, by its number, whatever the top level looks like."""
    if isinstance(document, dict):
        document = document.get("gpu_data", [document])
    found: dict[int, dict[str, Any]] = {}
    for one in document if isinstance(document, list) else ():
        index = one.get("gpu") if isinstance(one, dict) else None
        if isinstance(index, int) and not isinstance(index, bool) and 0 <= index < 4096:
            found.setdefault(index, {}).update(one)
    return found


def group(entry: Any, *names: str) -> dict[str, Any]:
    """A nested object under one of its names; empty when it is absent or the text "N/A"."""
    for name in names:
        inner = entry.get(name) if isinstance(entry, dict) else None
        if isinstance(inner, dict):
            return inner
    return {}


def number(value: Any, *, unit: str = "") -> float | None:
    """A number in W, J, MHz, bytes, degrees or percent, None for anything else.

    `unit` is what a plain number counts in (as ROCm 5 printed them). Booleans are no numbers.
    """
    if isinstance(value, dict):
        unit = str(value.get("unit") or unit)
        value = value.get("value")
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value in _ALL_ONES:
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found * _UNITS.get(unit.upper(), 1.0) if abs(found) < 1e300 else None


def first(entry: dict[str, Any], *names: str, unit: str = "") -> float | None:
    """The first of `names` that holds a number."""
    for name in names:
        found = number(entry.get(name), unit=unit)
        if found is not None:
            return found
    return None


def highest(entry: dict[str, Any], prefix: str, member: str) -> float | None:
    """The largest of several engines' figures: gfx_0 ... gfx_7, each with `member`."""
    values = [
        number(inner.get(member)) if isinstance(inner, dict) else number(inner)
        for name, inner in entry.items()
        if name == prefix or name.startswith(f"{prefix}_")
    ]
    known = [value for value in values if value is not None]
    return max(known) if known else None


def text(entry: dict[str, Any], *names: str) -> str:
    """The first of `names` that holds a text (or whole number), with "N/A" and the like as none."""
    for name in names:
        value = entry.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value.strip() not in ("", "N/A", "NA", "None", "Unsupported"):
            return value.strip()[:200]
    return ""
