"""A card's signals over time, from one hour to two years: raw samples, 5-minute or hourly rollups, joined at the end.

What the rollups don't have yet (the last minutes) is put together from raw samples by the same rule, so that a chart
reaches up to now. A bucket in which nothing held is None and its seconds are unknown. The last bucket counts up to
now only.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils import timezone

from inventory.models.samples import COUNTERS, GAUGES
from inventory.observations import VALUE_FIELDS
from inventory.rules.activity import (
    DEFAULT_THRESHOLD,
    HOLD_INTERVALS,
    MAX_INTERVAL,
    Reading,
    counted,
    holds,
    sum_pieces,
)
from sensaka.kernel.errors import InvalidInput

RAW_SPAN = timedelta(hours=6)
FIVE_MINUTES_SPAN = timedelta(days=10)
"""Up to these spans a chart is drawn from raw samples and from 5-minute rollups; beyond from hours."""

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_STEPS = (
    10, 15, 20, 30, _MINUTE, 2 * _MINUTE, 5 * _MINUTE, 10 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE, _HOUR, 2 * _HOUR,
    3 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 2 * _DAY, 7 * _DAY,
)  # fmt: skip

Number = float | None


@dataclass(frozen=True, slots=True)
class History:
    """Parallel lists, one entry a bucket. `times` are the buckets' starts in epoch seconds.

    `fields` has {"min", "mean", "max"} for each field; for a counter they are the first, last and last value
    and "growth" is what it grew by; for throttle_reasons (all that were seen) and xid (the last) all are the same.
    """

    resolution_seconds: int
    source_table: str
    times: list[int]
    fields: dict[str, dict[str, list[Number]]]
    busy: list[int]
    idle: list[int]
    unknown: list[int]


@dataclass(slots=True)
class _Figure:
    """One field in one bucket."""

    low: Number = None
    high: Number = None
    weighted: float = 0.0
    weight: float = 0.0
    first: Number = None
    last: Number = None
    growth: Number = None

    def add(self, other: "_Figure") -> None:
        """Join what a later part of the bucket says."""
        if other.low is not None:
            self.low = other.low if self.low is None else min(self.low, other.low)
        if other.high is not None:
            self.high = other.high if self.high is None else max(self.high, other.high)
        self.weighted += other.weighted
        self.weight += other.weight
        self.first = other.first if self.first is None else self.first
        self.last = self.last if other.last is None else other.last
        if other.growth is not None:
            self.growth = (self.growth or 0) + other.growth


@dataclass(slots=True)
class _Part:
    """What one rollup row, or one raw bucket, says."""

    start: int
    busy: int = 0
    idle: int = 0
    figures: dict[str, _Figure] = field(default_factory=dict)


def history(series: int, *, start: datetime, end: datetime, fields: Sequence[str], points: int = 600) -> History:
    """The fields of one card or slice between two moments in at most about `points` buckets.

    InvalidInput names a field that does not exist, or a span that is empty.
    """
    unknown = sorted(set(fields) - set(VALUE_FIELDS))
    if unknown or start >= end or points < 1:
        raise InvalidInput(f"unknown fields: {', '.join(unknown)}" if unknown else "`start` must lie before `end`")
    now = timezone.now()
    table, step = _resolution(start, end, points, now)
    first, last = int(start.timestamp()) // step * step, int(min(end, now).timestamp())
    parts = _parts(table, series, first, last, step, list(fields))
    return _joined(table, step, first, last, parts, fields)


def _resolution(start: datetime, end: datetime, points: int, now: datetime) -> tuple[str, int]:
    span = end - start
    if span <= RAW_SPAN and start >= now - settings.RAW_RETENTION:
        table, least = "raw", _STEPS[0]
    elif span <= FIVE_MINUTES_SPAN and start >= now - settings.ROLLUP_RETENTION:
        table, least = "5m", 5 * _MINUTE
    else:
        table, least = "1h", _HOUR
    wanted = max(least, span.total_seconds() / points)
    return table, next((step for step in _STEPS if step >= wanted), _STEPS[-1])


def _parts(table: str, series: int, first: int, last: int, step: int, fields: list[str]) -> list[_Part]:
    """The newest part of a span comes from raw samples, what is older from rollups, in order of time."""
    if table == "raw":
        return _from_raw(series, first, last, step, fields)
    done = min(max(_rolled_up_to(), first), last)
    if table == "5m":
        parts = _from_rollup("inventory_rollup_5m", series, first, done, fields)
    else:
        hour = max(first, done // _HOUR * _HOUR)
        parts = _from_rollup("inventory_rollup_1h", series, first, hour, fields)
        parts += _from_rollup("inventory_rollup_5m", series, hour, done, fields)
    oldest = int((timezone.now() - settings.RAW_RETENTION).timestamp())
    return parts + _from_raw(series, max(done, oldest // _HOUR * _HOUR), last, 5 * _MINUTE, fields)


def _joined(table: str, step: int, first: int, last: int, parts: list[_Part], fields: Sequence[str]) -> History:
    times = list(range(first, last, step))
    busy, idle = [0] * len(times), [0] * len(times)
    figures = {name: [_Figure() for _ in times] for name in fields}
    for part in parts:
        place = (part.start - first) // step
        if 0 <= place < len(times):
            busy[place] += part.busy
            idle[place] += part.idle
            for name, figure in part.figures.items():
                figures[name][place].add(figure)
    lengths = [min(time + step, last) - time for time in times]
    unknown = [max(0, length - b - i) for length, b, i in zip(lengths, busy, idle, strict=True)]
    shown = {name: _lists(name, found) for name, found in figures.items()}
    return History(step, table, times, shown, busy, idle, unknown)


def _lists(name: str, figures: list[_Figure]) -> dict[str, list[Number]]:
    if name in GAUGES:
        return {
            "min": [one.low for one in figures],
            "mean": [one.weighted / one.weight if one.weight else None for one in figures],
            "max": [one.high for one in figures],
        }
    lists = {"min": [one.first for one in figures], "mean": [one.last for one in figures]}
    lists["max"] = lists["mean"]
    if name in COUNTERS:
        lists["growth"] = [one.growth for one in figures]
    else:
        lists["min"] = lists["mean"]
    return lists


def _rolled_up_to() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM done)::int8 FROM inventory_rollup_state")
        (done,) = cursor.fetchone() or (0,)
        return int(done)


def _moment(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def _from_rollup(table: str, series: int, first: int, last: int, fields: list[str]) -> list[_Part]:
    columns: list[str] = []
    for name in fields:
        ends = ("min", "mean", "max") if name in GAUGES else ("first", "last", "growth") if name in COUNTERS else ()
        columns += [f"{name}_{end}" for end in ends] or [name]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(['bucket', 'busy_s', 'idle_s', 'held_s', *columns])} FROM {table}"  # noqa: S608
            " WHERE series = %s AND bucket >= %s AND bucket < %s ORDER BY bucket",
            [series, _moment(first), _moment(last)],
        )
        return [_rollup_part(row, columns, fields) for row in cursor]


def _rollup_part(row: tuple[Any, ...], columns: list[str], fields: list[str]) -> _Part:
    bucket, busy, idle, held, *values = row
    found = dict(zip(columns, values, strict=True))
    part = _Part(int(bucket.timestamp()), busy, idle)
    for name in fields:
        if name in GAUGES:
            mean = found[f"{name}_mean"]
            if mean is not None:
                weight = max(held, 1)
                part.figures[name] = _Figure(found[f"{name}_min"], found[f"{name}_max"], mean * weight, weight)
        elif name in COUNTERS:
            first, last, growth = (found[f"{name}_{end}"] for end in ("first", "last", "growth"))
            part.figures[name] = _Figure(first=first, last=last, growth=growth)
        else:
            part.figures[name] = _Figure(last=found[name])
    return part


def _from_raw(series: int, first: int, last: int, step: int, fields: list[str]) -> list[_Part]:
    """Raw samples as if they had been rolled up in buckets of `step` seconds."""
    if first >= last:
        return []
    readings, values = _raw(series, first - HOLD_INTERVALS * MAX_INTERVAL, last, fields)
    parts = {start: _Part(start) for start in range(first // step * step, last, step)}
    pieces = counted(readings)
    starts, ends = [piece.start for piece in pieces], [piece.end for piece in pieces]
    threshold = _threshold(series)
    for part in parts.values():
        # pieces are disjoint and in order, so those that meet the bucket lie side by side
        inside = pieces[bisect_right(ends, part.start) : bisect_left(starts, part.start + step)]
        low, high = max(part.start, first), min(part.start + step, last)
        seconds = sum_pieces(inside, start=low, end=high, threshold=threshold)
        part.busy, part.idle = seconds.busy, seconds.idle
    for source in sorted({reading.source for reading in readings}):
        own = _source_figures([one for one in readings if one.source == source], values, first, last, step, fields)
        for (start, name), figure in own.items():  # the highest source that has the field in the bucket
            parts[start].figures.setdefault(name, figure)
    return [part for part in parts.values() if part.figures or part.busy or part.idle]


_Key = tuple[int, int]


def _raw(series: int, first: int, last: int, fields: list[str]) -> tuple[list[Reading], dict[_Key, dict[str, float]]]:
    columns = sorted({*fields, "sm_activity", "utilization"})
    with connection.cursor() as cursor:
        cursor.execute(
            f'SELECT ts, source, "interval", {", ".join(columns)} FROM inventory_sample'  # noqa: S608
            " WHERE series = %s AND source IN (1, 2, 3) AND ts >= %s AND ts < %s ORDER BY source, ts",
            [series, _moment(first), _moment(last)],
        )
        rows = cursor.fetchall()
    readings, values = [], {}
    for ts, source, interval, *found in rows:
        named = {name: value for name, value in zip(columns, found, strict=True) if value is not None}
        second = int(ts.timestamp())
        readings.append(Reading(second, source, interval, named.get("sm_activity", named.get("utilization"))))
        values[source, second] = named
    return readings, values


def _source_figures(
    readings: list[Reading], values: dict[_Key, dict[str, float]], first: int, last: int, step: int, fields: list[str]
) -> dict[tuple[int, str], _Figure]:
    figures: dict[tuple[int, str], _Figure] = {}
    before: Reading | None = None
    for hold in holds(readings):
        now = hold.reading
        found = values[now.source, now.at]
        near = before is not None and now.at <= before.at + HOLD_INTERVALS * before.interval
        older = values[before.source, before.at] if near and before is not None else {}
        low, high = max(hold.start, first), min(hold.end, last)
        for start in range(low // step * step, high, step):
            seconds = min(high, start + step) - max(low, start)
            for name in fields:
                if (value := found.get(name)) is not None:
                    opens = start <= now.at < start + step
                    figure = _one(name, value, older.get(name), seconds, opens)
                    figures.setdefault((start, name), _Figure()).add(figure)
        before = now
    return figures


def _one(name: str, value: float, older: Number, seconds: int, opens: bool) -> _Figure:
    """What one sample says in one bucket; `opens` when it was taken there and not only holds into it."""
    if name in GAUGES:
        return _Figure(value, value, value * seconds, seconds)
    if name in COUNTERS:
        if not opens:
            return _Figure()
        growth = None if older is None else value - older if value >= older else value
        return _Figure(first=value, last=value, growth=growth)
    return _Figure(last=value)


def _threshold(series: int) -> float:
    """The busy threshold that holds for this series now; the rollup rows keep the one they were made with."""
    with connection.cursor() as cursor:
        cursor.execute(_THRESHOLD, {"series": series})
        row = cursor.fetchone()
        return DEFAULT_THRESHOLD if row is None else float(row[0])


_THRESHOLD = """
    SELECT chosen.activity FROM inventory_busythreshold chosen,
        (SELECT model_id, node_id FROM inventory_card WHERE series = %(series)s
         UNION ALL
         SELECT card.model_id, card.node_id FROM inventory_slice slice
         JOIN inventory_card card ON card.id = slice.card_id WHERE slice.series = %(series)s) AS card
    LEFT JOIN inventory_node node ON node.id = card.node_id
    WHERE (chosen.model_id = card.model_id OR chosen.model_id IS NULL)
      AND (chosen.cluster_id = node.cluster_id OR chosen.cluster_id IS NULL)
    ORDER BY chosen.model_id IS NULL, chosen.cluster_id IS NULL LIMIT 1
"""
