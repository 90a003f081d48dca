"""Busy, idle and unknown seconds of many cards or slices, each over a span of its own, in three queries.

Closed 5-minute buckets and hours come from the rollups, the rest from raw samples by the same rule
(inventory/rules/activity.py), so that a span is exact to the second and reaches up to now.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from inventory.rules.activity import HOLD_INTERVALS, MAX_INTERVAL, SOURCES
from inventory.selectors.thresholds import THRESHOLDS

_BUCKET, _HOUR, _DAY = 300, 3600, 86_400
_LOOK_BACK = HOLD_INTERVALS * MAX_INTERVAL


@dataclass(frozen=True, slots=True)
class Span:
    """A series and the epoch seconds [start, end) to look at."""

    series: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Use:
    """What samples say of a span: seconds by what was done in them, and the highest activity seen (percent).

    `highest` is of SM activity where a bucket has any, else of utilization: where sources differ, it is a hint only.
    """

    busy: int = 0
    idle: int = 0
    unknown: int = 0
    highest: float | None = None

    @property
    def coverage(self) -> float | None:
        """Percent of the span that is known; None for an empty span."""
        total = self.busy + self.idle + self.unknown
        return 100 * (self.busy + self.idle) / total if total else None


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the span at `place`; `low` and `high` lie on bounds of the table that it is read from."""

    place: int
    series: int
    low: int
    high: int


def use_over(spans: Sequence[Span], *, until_busy: bool = False) -> list[Use]:
    """The use of each span, in their order. Four queries for any number of spans; nothing may lie in the future.

    With `until_busy`, spans that closed buckets show busy are looked at no further, which saves the dear raw
    samples of most: what was not looked at counts as unknown there.
    """
    done = _rolled_up_to()
    parts: dict[str, list[_Piece]] = {"1h": [], "5m": [], "raw": []}
    for place, span in enumerate(spans):
        _divide(parts, place, span, done)
    found = [Use(unknown=max(0, span.end - span.start)) for span in spans]
    for table, pieces in parts.items():
        if until_busy:
            pieces = [piece for piece in pieces if not found[piece.place].busy]
        for place, busy, idle, highest in _read(table, pieces):
            old = found[place]
            high = max((one for one in (old.highest, highest) if one is not None), default=None)
            found[place] = replace(
                old, busy=old.busy + busy, idle=old.idle + idle, unknown=max(0, old.unknown - busy - idle), highest=high
            )
    return found


def _divide(parts: dict[str, list[_Piece]], place: int, span: Span, done: int) -> None:
    """Closed buckets to the rollups, of more than a day whole hours to the hourly ones, the ends to raw samples."""
    low, high = -(-span.start // _BUCKET) * _BUCKET, min(span.end, done) // _BUCKET * _BUCKET
    if low >= high:
        parts["raw"].append(_Piece(place, span.series, span.start, span.end))
        return
    first, last = -(-low // _HOUR) * _HOUR, high // _HOUR * _HOUR
    if high - low <= _DAY or first >= last:
        first = last = high
    for table, start, end in (
        ("raw", span.start, low), ("5m", low, first), ("1h", first, last), ("5m", last, high), ("raw", high, span.end),
    ):  # fmt: skip
        if start < end:
            parts[table].append(_Piece(place, span.series, start, end))


def _rolled_up_to() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM done)::int8 FROM inventory_rollup_state")
        (done,) = cursor.fetchone() or (0,)
        return int(done)


def _read(table: str, pieces: Sequence[_Piece]) -> list[tuple[int, int, int, float | None]]:
    """(place, busy, idle, highest activity) of the pieces of which anything is known."""
    first = min((piece.low for piece in pieces), default=0)
    last = max((piece.high for piece in pieces), default=0)
    values: dict[str, Any] = {
        "place": [piece.place for piece in pieces], "series": [piece.series for piece in pieces],
        "low": [piece.low for piece in pieces], "high": [piece.high for piece in pieces],
        # the bounds of all of them, so that partitions outside are not touched
        "first": datetime.fromtimestamp(first, UTC), "last": datetime.fromtimestamp(last, UTC),
        "since": datetime.fromtimestamp(max(0, first - _LOOK_BACK), UTC),
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_RAW if table == "raw" else _ROLLUP[table], values)
        return [(place, int(busy), int(idle), highest) for place, busy, idle, highest in cursor]


_WANTED = """wanted AS (
        SELECT * FROM unnest(%(place)s::int4[], %(series)s::int4[], %(low)s::int8[], %(high)s::int8[])
            AS piece(place, series, low, high)
    )"""

_ROLLUP = {
    table: f"""
    WITH {_WANTED}
    SELECT place, sum(busy_s), sum(idle_s), max(coalesce(sm_activity_max, utilization_max))
    FROM wanted JOIN inventory_rollup_{table} AS made ON made.series = wanted.series
        AND made.bucket >= to_timestamp(wanted.low) AND made.bucket < to_timestamp(wanted.high)
    WHERE made.bucket >= %(first)s AND made.bucket < %(last)s
    GROUP BY place
    """  # noqa: S608 - a constant of ours
    for table in ("5m", "1h")
}

_COLUMNS = (
    f"date_part('epoch', sample.ts)::int8 AS at, sample.source, {HOLD_INTERVALS} * sample.\"interval\" AS hold,"
    " coalesce(sample.sm_activity, sample.utilization) AS activity"
)
_SOURCES = ", ".join(f"({code}::int2)" for code in range(1, len(SOURCES) + 1))

_RAW = f"""
    WITH {_WANTED}, due AS MATERIALIZED (
        SELECT * FROM ({THRESHOLDS}) AS every WHERE series = ANY(%(series)s::int4[])
    ), seen AS (
        SELECT wanted.*, {_COLUMNS}
        FROM wanted JOIN inventory_sample AS sample ON sample.series = wanted.series
            AND sample.ts >= to_timestamp(wanted.low) AND sample.ts < to_timestamp(wanted.high)
        WHERE sample.ts >= %(first)s AND sample.ts < %(last)s
        UNION ALL
        SELECT wanted.*, {_COLUMNS}
        FROM wanted CROSS JOIN (VALUES {_SOURCES}) AS origin(source) CROSS JOIN LATERAL (
            SELECT * FROM inventory_sample AS earlier
            WHERE earlier.series = wanted.series AND earlier.source = origin.source
              AND earlier.ts < to_timestamp(wanted.low) AND earlier.ts >= to_timestamp(wanted.low - {_LOOK_BACK})
              AND earlier.ts >= %(since)s AND earlier.ts < %(last)s
            ORDER BY earlier.ts DESC LIMIT 1
        ) AS sample
    ), held AS (
        SELECT place, series, source, activity, low AS edge, greatest(at, low) AS low,
               least(lead(at) OVER (PARTITION BY place, low, source ORDER BY at), at + hold, high) AS high
        FROM seen
    ), known AS (
        SELECT * FROM held WHERE activity IS NOT NULL AND high > low
    ), cover AS (
        SELECT place, edge, range_agg(int8range(low, high)) FILTER (WHERE source = 1) AS below_1,
               range_agg(int8range(low, high)) FILTER (WHERE source < 3) AS below_2
        FROM known WHERE series IN (SELECT series FROM known WHERE source > 1)
        GROUP BY place, edge
    ), weighed AS (
        SELECT known.*, high - low - CASE WHEN source = 1 THEN 0 ELSE coalesce((
                   SELECT sum(upper(part) - lower(part))
                   FROM unnest(CASE source WHEN 2 THEN cover.below_1 ELSE cover.below_2 END
                               * int8multirange(int8range(low, high))) AS part
               ), 0) END AS seconds
        FROM known LEFT JOIN cover USING (place, edge)
    )
    SELECT place, coalesce(sum(seconds) FILTER (WHERE activity >= threshold), 0),
           coalesce(sum(seconds) FILTER (WHERE activity < threshold), 0),
           max(activity) FILTER (WHERE seconds > 0)
    FROM weighed JOIN due USING (series) GROUP BY place
"""  # noqa: S608 - constants of ours
# A span has up to two raw pieces, its ends: `edge` keeps them apart, so that none holds into the other.


def last_busy(spans: Sequence[Span]) -> list[int | None]:
    """Until when each series was last seen busy within its span, to the 5-minute bucket; None: in none. One query."""
    first = min((span.start for span in spans), default=0)
    values: dict[str, Any] = {
        "place": list(range(len(spans))), "series": [span.series for span in spans],
        "low": [span.start // _BUCKET * _BUCKET for span in spans], "high": [span.end for span in spans],
        "first": datetime.fromtimestamp(first // _BUCKET * _BUCKET, UTC),
    }  # fmt: skip
    found: list[int | None] = [None] * len(spans)
    with connection.cursor() as cursor:
        cursor.execute(_LAST_BUSY, values)
        for place, bucket in cursor:
            found[place] = min(int(bucket) + _BUCKET, spans[place].end)
    return found


_LAST_BUSY = f"""
    WITH {_WANTED}
    SELECT place, date_part('epoch', newest.bucket)
    FROM wanted CROSS JOIN LATERAL (
        SELECT bucket FROM inventory_rollup_5m AS made
        WHERE made.series = wanted.series AND made.bucket >= to_timestamp(wanted.low)
          AND made.bucket < to_timestamp(wanted.high) AND made.bucket >= %(first)s AND made.busy_s > 0
        ORDER BY made.bucket DESC LIMIT 1
    ) AS newest
"""  # noqa: S608 - a constant of ours
