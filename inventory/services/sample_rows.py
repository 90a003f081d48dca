"""Samples on their way into the table: packed rows of one fixed layout, small and quick to read as a matrix.

A post is packed as soon as it is checked, so that what waits for its batch is one string of bytes and not some
hundred objects. Absent is NaN, or -1 in a column of whole numbers, which no device can report there.
"""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NewType

import numpy as np
from numpy.typing import NDArray

from inventory.models.samples import INT8
from inventory.observations import VALUE_FIELDS

Packed = NewType("Packed", bytes)
"""Any number of rows, one after the other."""

ABSENT: tuple[float, ...] = tuple(-1 if name in INT8 else math.nan for name in VALUE_FIELDS)
"""What stands for no value, for each place in VALUE_FIELDS; None is as good and slower."""

RECORD = np.dtype(
    [("ts", "i8"), ("series", "i4"), ("source", "i2"), ("interval", "i2")]
    + [(name, "i8" if name in INT8 else "f8") for name in VALUE_FIELDS]
)
"""One row; `ts` in epoch seconds, `interval` in seconds, values in the units of `observations`."""

_pack = struct.Struct("=qihh" + "".join("q" if name in INT8 else "d" for name in VALUE_FIELDS)).pack


def pack(
    times: Sequence[int], series: Sequence[int], source: int, interval: int, values: Sequence[Sequence[float | None]]
) -> Packed:
    """Rows of one source and interval, their values in the order of VALUE_FIELDS.

    Raises struct.error for rows of another width, a fraction in a column of whole numbers, or more than 64 bits.
    """
    try:
        rows = zip(times, series, values, strict=True)
        return Packed(b"".join([_pack(time, card, source, interval, *row) for time, card, row in rows]))
    except struct.error:
        if not any(None in row for row in values):
            raise
        return pack(times, series, source, interval, [_filled(row) for row in values])


def _filled(row: Sequence[float | None]) -> list[float]:
    return [absent if value is None else value for value, absent in zip(row, ABSENT, strict=True)]


def count(rows: Packed) -> int:
    """How many rows these are."""
    return len(rows) // RECORD.itemsize


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of several submitters in one array of RECORD; `sizes` says how many each has, in their order."""

    records: NDArray[Any]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, posts: Sequence[Packed]) -> "Rows":
        """The rows of all posts; ValueError when one is no whole number of rows."""
        return cls(np.frombuffer(b"".join(posts), RECORD), tuple(map(count, posts)))

    def __len__(self) -> int:
        return len(self.records)

    def counts(self, places: NDArray[np.intp]) -> list[int]:
        """How many of the rows at `places` each submitter has."""
        owners = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return np.bincount(owners[places], minlength=len(self.sizes)).tolist()  # type: ignore[no-any-return]
