"""Places inside a server: what number a slot's name means, and how two numberings fit together.

In-band gives a module number (`3`), a BMC a name (`GPU_SXM_3`, `GPU.Slot.3-1`); platforms count from
0 or from 1 (TELEMETRY 1.2, 6.1), so numbers of two sources may be shifted by one against each other.
"""

import re
from collections.abc import Hashable, Mapping
from typing import TypeVar

_NAMED = re.compile(r"(?:slot|sxm|oam|gpu|module|accelerator|bay)[ _.#:-]*(\d{1,3})", re.IGNORECASE)
_LAST = re.compile(r"(\d{1,3})\D*$")
_SHIFTS = (0, 1, -1)

Known = TypeVar("Known", bound=Hashable)
Observed = TypeVar("Observed", bound=Hashable)


def position(slot: str) -> int | None:
    """The number in a slot's name; None when it has none."""
    if slot.isdecimal():
        return int(slot)
    named = _NAMED.findall(slot)
    if named:
        return int(named[-1])
    last = _LAST.search(slot)
    return int(last.group(1)) if last else None


def join_positions(known: Mapping[Known, str], observed: Mapping[Observed, str]) -> dict[Observed, Known]:
    """Pairs of observed and known things by their slot names, when exactly one numbering fits.

    The smaller side must fit wholly into the larger with one shift out of 0, +1, -1; when none or
    several do, or a number stands twice, nothing is joined.
    """
    left = {position(slot): key for key, slot in known.items()}
    right = {position(slot): key for key, slot in observed.items()}
    if None in left or None in right or len(left) != len(known) or len(right) != len(observed):
        return {}
    if not left or not right:
        return {}
    fits: list[dict[Observed, Known]] = []
    for shift in _SHIFTS:
        pairs = {
            right[number]: left[number + shift] for number in right if number is not None and number + shift in left
        }
        if len(pairs) == min(len(left), len(right)):
            fits.append(pairs)
    return fits[0] if len(fits) == 1 else {}
