"""How a batch of samples gets into the table: one binary COPY, or by way of a staging table.

Pure of any connection: `direct` and `staged` are generators that yield `Statement`s and are sent the rows,
so that the synchronous writer (services/samples.py) and the web worker's asynchronous one (ingest/batcher.py) share
every statement.

COPY is the fast way and fails as a whole when one sample is there already. Then the batch goes through a temporary
table and INSERT ... ON CONFLICT DO NOTHING, in key order so that two writers lock in the same order. Samples are never
deduplicated by a sequence number: two posts of one node may arrive out of order.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inventory.models.samples import FLOAT8, INT8
from inventory.observations import VALUE_FIELDS
from inventory.rules.activity import HOLD_INTERVALS

POSTGRES_EPOCH = 946_684_800
"""2000-01-01 in Unix seconds: PostgreSQL's binary times count microseconds from there."""

KEY = ("series", "ts", "source", "interval")
ATTEMPTS = 6
"""One direct COPY, then staging; more than that only after deadlocks."""

_HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
_TRAILER = b"\xff\xff"
_EXACT = 2**53
_BITS = 1 << np.arange(len(VALUE_FIELDS), dtype=np.int64)
_INT_PLACES = np.array([place for place, name in enumerate(VALUE_FIELDS) if name in INT8], dtype=np.intp)
_HOUR = 3600

_WIDTH = len(VALUE_FIELDS)


@dataclass(slots=True)
class Rows:
    """Samples as parallel lists; times in epoch seconds. `posts` says to which submitter a row belongs.

    `values` is flat, one after the other in the order of VALUE_FIELDS: that is read four times as fast as
    tuples. Absent is NaN, or None, which is slower.
    """

    series: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    intervals: list[int] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)
    posts: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.series)

    def extend(self, other: "Rows", post: int) -> None:
        """Take over the rows of submitter number `post`."""
        self.series += other.series
        self.times += other.times
        self.sources += other.sources
        self.intervals += other.intervals
        self.values += other.values
        self.posts += [post] * len(other.series)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement; with `payload` it is a COPY FROM STDIN and the payload is its data."""

    sql: str
    parameters: Sequence[Any] = ()
    payload: bytes | None = None


Plan = Generator[Statement, list[tuple[Any, ...]], dict[int, int]]
"""Yields statements, is sent their rows, returns how many rows of each submitter were stored."""


@lru_cache(maxsize=512)
def _layout(columns: tuple[str, ...], absent: int, staged: bool) -> tuple[np.dtype[Any], bytes]:
    """The record of one row in COPY's binary format, and one such row with all lengths set.

    `absent` has a bit for each place in VALUE_FIELDS; an absent column is only a length of -1.
    """
    parts: list[tuple[str, str, int | None]] = [("count", ">i2", len(KEY) + len(columns) + staged)]
    keys = [("series", ">i4"), ("ts", ">i8"), ("source", ">i2"), ("interval", ">i2")]
    keys += [("place", ">i4")] if staged else []
    for name, code in keys:
        parts += [(f"{name} length", ">i4", int(code[-1])), (name, code, None)]
    for name in columns:
        gone = bool(absent >> VALUE_FIELDS.index(name) & 1)
        code = ">i8" if name in INT8 else ">f8" if name in FLOAT8 else ">f4"
        parts.append((f"{name} length", ">i4", -1 if gone else int(code[-1])))
        if not gone:
            parts.append((name, code, None))
    layout = np.dtype([(name, code) for name, code, _ in parts])
    row = np.zeros(1, layout)
    for name, _, constant in parts:
        if constant is not None:
            row[name] = constant
    return layout, row.tobytes()


def encode(rows: Rows, *, staged: bool = False) -> tuple[tuple[str, ...], bytes]:
    """The value columns that any row has, and the rows in COPY's binary format. NaN counts as absent."""
    matrix = np.array(rows.values, dtype=np.float64).reshape(len(rows), _WIDTH)
    gone = np.isnan(matrix)
    columns = tuple(VALUE_FIELDS[place] for place in np.flatnonzero(~np.all(gone, axis=0)))
    patterns = gone @ _BITS
    keys: dict[str, NDArray[Any]] = {
        "series": np.array(rows.series, dtype=np.int32),
        "ts": (np.array(rows.times, dtype=np.int64) - POSTGRES_EPOCH) * 1_000_000,
        "source": np.array(rows.sources, dtype=np.int16),
        "interval": np.array(rows.intervals, dtype=np.int16),
    }
    if staged:
        keys["place"] = np.arange(len(rows), dtype=np.int32)
    chunks = [_HEADER]
    for pattern in np.unique(patterns):
        chosen = np.flatnonzero(patterns == pattern)
        layout, row = _layout(columns, int(pattern), staged)
        out = np.frombuffer(bytearray(row * len(chosen)), layout)
        for name, column in keys.items():
            out[name] = column[chosen]
        for place, name in enumerate(VALUE_FIELDS):
            if not pattern >> place & 1:
                column = matrix[chosen, place]
                out[name] = np.minimum(column, _EXACT) if name in INT8 else column
        _restore_large(out, rows, matrix, chosen)
        chunks.append(out.tobytes())
    chunks.append(_TRAILER)
    return columns, b"".join(chunks)


def _restore_large(out: NDArray[Any], rows: Rows, matrix: NDArray[np.float64], chosen: NDArray[np.intp]) -> None:
    """Whole numbers above 2^53 lost their last digits in the matrix of floats: put the exact ones in."""
    large = matrix[np.ix_(chosen, _INT_PLACES)] >= _EXACT
    for row, column in np.argwhere(large):
        place = int(_INT_PLACES[column])
        out[VALUE_FIELDS[place]][row] = rows.values[chosen[row] * _WIDTH + place]


def _quoted(columns: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)


def direct(rows: Rows) -> Plan:
    """One COPY into the table. UniqueViolation when any sample is there already."""
    ((claimed,),) = yield Statement("SELECT inventory_begin_write()")
    columns, payload = encode(rows)
    yield Statement(f"COPY inventory_sample ({_quoted(KEY + columns)}) FROM STDIN (FORMAT binary)", payload=payload)
    yield from _mark_late(rows, claimed)
    return _count(rows.posts)


def staged(rows: Rows) -> Plan:
    """By way of a temporary table: what is there already, or twice in the batch, is stored once."""
    ((claimed,),) = yield Statement("SELECT inventory_begin_write()")
    yield Statement(
        "CREATE TEMPORARY TABLE IF NOT EXISTS staging_sample (LIKE inventory_sample, place int4) ON COMMIT DELETE ROWS"
    )
    yield Statement("TRUNCATE staging_sample")
    columns, payload = encode(rows, staged=True)
    names = _quoted(KEY + columns)
    copied = _quoted((*KEY, "place", *columns))
    yield Statement(f"COPY staging_sample ({copied}) FROM STDIN (FORMAT binary)", payload=payload)
    places = yield Statement(
        f"""
        WITH once AS (
            SELECT DISTINCT ON (series, source, ts) * FROM staging_sample ORDER BY series, source, ts, place
        ), stored AS (
            INSERT INTO inventory_sample ({names}) SELECT {names} FROM once ORDER BY series, source, ts
            ON CONFLICT DO NOTHING RETURNING series, source, ts
        )
        SELECT place FROM stored JOIN once USING (series, source, ts)
        """  # noqa: S608 - column names are constants of ours
    )
    yield from _mark_late(rows, claimed)
    return _count(rows.posts[place] for (place,) in places)


def _count(posts: Iterable[int]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for post in posts:
        counts[post] = counts.get(post, 0) + 1
    return counts


def _mark_late(rows: Rows, claimed: int) -> Generator[Statement, list[tuple[Any, ...]], None]:
    """Name the hours that must be rolled up again: those that a late sample's hold touches."""
    if not rows.times or min(rows.times) >= claimed:
        return
    marks = set()
    for series, time, interval in zip(rows.series, rows.times, rows.intervals, strict=True):
        if time < claimed:
            for moment in (time, time + HOLD_INTERVALS * interval):
                if (hour := moment - moment % _HOUR) < claimed:
                    marks.add((series, hour))
    ordered = sorted(marks)
    yield Statement(
        "INSERT INTO inventory_late (series, hour)"
        " SELECT series, to_timestamp(hour) FROM unnest(%s::int4[], %s::int8[]) AS late(series, hour)",
        ([series for series, _ in ordered], [hour for _, hour in ordered]),
    )


def days(rows: Rows) -> list[datetime]:
    """The UTC days that the rows fall on, for making missing partitions."""
    return [datetime.fromtimestamp(day * 86_400, UTC) for day in sorted({time // 86_400 for time in rows.times})]
