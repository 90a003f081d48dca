"""How a batch of samples gets into the table: one binary COPY, or by way of a staging table.

Pure of any connection: `direct` and `staged` are generators that yield `Statement`s and are sent the rows,
so that the synchronous writer (services/samples.py) and the web worker's asynchronous one (ingest/batcher.py) share
every statement.

COPY is the fast way and fails as a whole when one sample is there already. Then the batch goes through a temporary
table and INSERT ... ON CONFLICT DO NOTHING, in key order so that two writers lock in the same order. Samples are never
deduplicated by a sequence number: two posts of one node may arrive out of order.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inventory.models.samples import FLOAT8, INT8
from inventory.observations import VALUE_FIELDS
from inventory.rules.activity import HOLD_INTERVALS
from inventory.services.sample_rows import Rows

POSTGRES_EPOCH = 946_684_800
"""2000-01-01 in Unix seconds: PostgreSQL's binary times count microseconds from there."""

KEY = ("series", "ts", "source", "interval")
ATTEMPTS = 6
"""One direct COPY, then staging; more than that only after deadlocks."""

_HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
_TRAILER = b"\xff\xff"
_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement; with `payload` it is a COPY FROM STDIN and the payload is its data."""

    sql: str
    parameters: Sequence[Any] = ()
    payload: bytearray | None = None


Plan = Generator[Statement, list[tuple[Any, ...]], Sequence[int]]
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


def encode(rows: Rows, *, staged: bool = False) -> tuple[tuple[str, ...], bytearray]:
    """The value columns that any row has, and the rows in COPY's binary format."""
    records = rows.records
    gone = np.empty((len(rows), len(VALUE_FIELDS)), dtype=bool)
    for place, name in enumerate(VALUE_FIELDS):
        values = records[name]
        gone[:, place] = values < 0 if name in INT8 else np.isnan(values)
    columns = tuple(VALUE_FIELDS[place] for place in np.flatnonzero(~gone.all(axis=0)))
    payload = bytearray(_HEADER)
    for pattern, chosen in _patterns(gone):
        part = records[chosen]
        layout, row = _layout(columns, pattern, staged)
        begin = len(payload)
        payload.extend(row * len(part))
        out = np.frombuffer(payload, layout, count=len(part), offset=begin)
        for name in ("series", "source", "interval"):
            out[name] = part[name]
        out["ts"] = (part["ts"] - POSTGRES_EPOCH) * 1_000_000
        if staged:
            out["place"] = np.arange(len(rows), dtype=np.int32)[chosen]
        for place, name in enumerate(VALUE_FIELDS):
            if not pattern >> place & 1:
                out[name] = part[name]
        del out  # while somebody looks into it, a bytearray can't grow
    payload.extend(_TRAILER)
    return columns, payload


def _patterns(gone: NDArray[np.bool_]) -> list[tuple[int, Any]]:
    """Each set of absent columns that occurs, as bits, and which rows have it. Most often all cards say the same."""
    if (gone == gone[:1]).all():
        return [(_bits(gone[0]), slice(None))] if len(gone) else []
    sets, which = np.unique(gone, axis=0, return_inverse=True)
    return [(_bits(absent), np.flatnonzero(which == number)) for number, absent in enumerate(sets)]


def _bits(absent: NDArray[np.bool_]) -> int:
    return sum(1 << int(place) for place in np.flatnonzero(absent))


def _quoted(columns: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)


def direct(rows: Rows) -> Plan:
    """One COPY into the table. UniqueViolation when any sample is there already."""
    ((claimed,),) = yield Statement("SELECT inventory_begin_write()")
    columns, payload = encode(rows)
    yield Statement(f"COPY inventory_sample ({_quoted(KEY + columns)}) FROM STDIN (FORMAT binary)", payload=payload)
    yield from _mark_late(rows, claimed)
    return rows.sizes


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
    return rows.counts(np.array(places, dtype=np.intp).reshape(-1))


def _mark_late(rows: Rows, claimed: int) -> Generator[Statement, list[tuple[Any, ...]], None]:
    """Name the hours that must be rolled up again: those that a late sample's hold touches."""
    late = rows.records[rows.records["ts"] < claimed]
    if not len(late):
        return
    marks = set()
    for series, time, interval in zip(*(late[name].tolist() for name in ("series", "ts", "interval")), strict=True):
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
    return [datetime.fromtimestamp(day * 86_400, UTC) for day in np.unique(rows.records["ts"] // 86_400).tolist()]
