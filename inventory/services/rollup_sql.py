"""The SQL that makes rollups, put together from the list of columns. The rule it follows is rules/activity.py.

Five minutes come from raw samples, the hour from its twelve five-minute rows. Each field of a bucket comes from the
highest source that has it there: mean weighted by the seconds each sample holds, minimum and maximum over the
samples that hold in the bucket. `held_s` is for how long any sample held; hourly means are weighted by it.
Busy and idle seconds are exact: a lower source counts only in seconds that no higher one covers with activity.
"""

from collections.abc import Collection

from inventory.models.samples import COUNTERS, GAUGES, INT8, OTHERS
from inventory.observations import VALUE_FIELDS
from inventory.rules.activity import HOLD_INTERVALS, MAX_INTERVAL, SOURCES
from inventory.selectors.thresholds import THRESHOLDS

LOOK_BACK = HOLD_INTERVALS * MAX_INTERVAL
"""Seconds before a span in which a sample may lie that still holds in it."""

BUCKET = 300
"""Seconds of the shorter rollup."""

_STATS = ("min", "mean", "max")
_PARTS = ("first", "last", "growth")
_SECONDS = ("busy_s", "idle_s", "unknown_s", "held_s", "samples", "threshold")


def _columns(fields: Collection[str]) -> list[str]:
    """The rollup columns of some fields."""
    return [
        *(f"{field}_{part}" for field in COUNTERS if field in fields for part in _PARTS),
        *(field for field in OTHERS if field in fields),
        *(f"{field}_{part}" for field in GAUGES if field in fields for part in _STATS),
    ]


def _gauge(field: str) -> str:
    wide = f"{field}::float8" if field in INT8 else field  # real * float8 needs no cast
    return (
        f"min({field}) AS {field}_min,"
        f" sum({wide} * secs) / nullif(sum(secs) FILTER (WHERE {field} IS NOT NULL), 0) AS {field}_mean,"
        f" max({field}) AS {field}_max"
    )


def _counter(field: str) -> str:
    return (
        f"max({field}) FILTER (WHERE opens) AS {field}_first, max({field}) FILTER (WHERE closes) AS {field}_last,"
        f" sum(CASE WHEN {field} >= {field}_before THEN {field} - {field}_before ELSE {field} END)"
        f" FILTER (WHERE follows AND {field}_before IS NOT NULL) AS {field}_growth"
    )


def _raw_columns(prefix: str, fields: Collection[str]) -> str:
    names = ["series", "source", *sorted({*fields, "sm_activity", "utilization"})]
    return (
        f"date_part('epoch', {prefix}.ts)::int8 AS at, {HOLD_INTERVALS} * {prefix}.\"interval\" AS hold, "
        + ", ".join(f"{prefix}.{name}" for name in names)
    )


def _upsert(table: str, figures: list[str]) -> str:
    sets = ", ".join(f"{name} = excluded.{name}" for name in figures)
    old = ", ".join(f"{table}.{name}" for name in figures)
    new = ", ".join(f"excluded.{name}" for name in figures)
    return f"ON CONFLICT (series, bucket) DO UPDATE SET {sets} WHERE ({old}) IS DISTINCT FROM ({new})"


_SEEN = ", ".join(f"CASE WHEN bool_or({name} IS NOT NULL) THEN '{name}' END" for name in VALUE_FIELDS)

FIELDS_SEEN = f"""
    SELECT array_remove(ARRAY[{_SEEN}], NULL)
    FROM inventory_sample WHERE ts >= %(since)s AND ts < %(end)s
      AND (%(series)s::int4[] IS NULL OR series = ANY(%(series)s::int4[]))
"""  # noqa: S608 - column names are constants of ours
"""The fields that any sample has that matters for a span. What nobody has is not rolled up: half the work."""


def five_minutes(fields: Collection[str]) -> str:
    """Rolls up %(start)s..%(end)s, both on 5-minute bounds, for the series in %(series)s (NULL: all).

    %(low)s and %(high)s are the same bounds in epoch seconds: inside, all times are, because that is read and compared
    faster than times and intervals.
    """
    columns = _columns(fields)
    figures = [*columns, *_SECONDS]
    return f"""
    INSERT INTO inventory_rollup_5m (series, bucket, {", ".join(figures)})
    WITH {_held(fields)}, {_pieces()}, figures AS MATERIALIZED (
        SELECT series, source, bucket, max(threshold) AS threshold,
               coalesce(sum(secs - covered) FILTER (WHERE activity >= threshold), 0) AS busy,
               coalesce(sum(secs - covered) FILTER (WHERE activity < threshold), 0) AS idle,
               sum(secs) AS held_s, count(*) FILTER (WHERE at >= bucket) AS samples
               {"".join(f", {aggregate}" for aggregate in _aggregates(fields))}
        FROM weighed GROUP BY series, source, bucket
    ), {_merged(columns)}
    SELECT series, to_timestamp(bucket), {", ".join(figures)} FROM merged ORDER BY bucket, series
    {_upsert("inventory_rollup_5m", figures)}
    """  # noqa: S608 - column names are constants of ours


def _aggregates(fields: Collection[str]) -> list[str]:
    others = {
        "throttle_reasons": "bit_or(throttle_reasons) AS throttle_reasons",
        "xid": "coalesce(max(xid) FILTER (WHERE closes), max(xid)) AS xid",
    }
    return [
        *(others[name] for name in OTHERS if name in fields),
        *(_counter(name) for name in COUNTERS if name in fields),
        *(_gauge(name) for name in GAUGES if name in fields),
    ]


def _held(fields: Collection[str]) -> str:
    """`held`: each sample with its threshold and the span, cut to the bounds, in which it holds."""
    before = "".join(f", lag({field}) OVER track AS {field}_before" for field in COUNTERS if field in fields)
    sources = ", ".join(f"({code}::int2)" for code in range(1, len(SOURCES) + 1))
    return f"""due AS MATERIALIZED (
        SELECT * FROM ({THRESHOLDS}) AS every WHERE %(series)s::int4[] IS NULL OR series = ANY(%(series)s::int4[])
    ), seen AS (
        SELECT {_raw_columns("sample", fields)} FROM inventory_sample AS sample
        WHERE ts >= %(start)s AND ts < %(end)s
          AND (%(series)s::int4[] IS NULL OR series = ANY(%(series)s::int4[]))
        UNION ALL
        SELECT {_raw_columns("earlier", fields)}
        FROM due CROSS JOIN (VALUES {sources}) AS origin(source) CROSS JOIN LATERAL (
            SELECT * FROM inventory_sample AS sample
            WHERE sample.series = due.series AND sample.source = origin.source
              AND ts < %(start)s AND ts >= %(start)s::timestamptz - interval '{LOOK_BACK} seconds'
            ORDER BY ts DESC LIMIT 1
        ) AS earlier
    ), tracked AS (
        SELECT seen.*, coalesce(sm_activity, utilization) AS activity, lead(at) OVER track AS next_at,
               lag(at) OVER track AS previous_at, lag(at + hold) OVER track AS previous_until{before}
        FROM seen WINDOW track AS (PARTITION BY series, source ORDER BY at)
    ), held AS MATERIALIZED (
        SELECT tracked.*, due.threshold, greatest(at, %(low)s) AS low, least(next_at, at + hold, %(high)s) AS high
        FROM tracked JOIN due USING (series)
        WHERE least(next_at, at + hold) > %(low)s
    )"""  # noqa: S608 - column names are constants of ours


def _pieces() -> str:
    """`weighed`: the spans cut at bucket bounds, with the seconds that a higher source covers with activity."""
    return f"""cover AS (
        SELECT series, range_agg(int8range(low, high)) FILTER (WHERE source = 1) AS below_1,
               range_agg(int8range(low, high)) AS below_2
        FROM held
        WHERE activity IS NOT NULL AND source < 3 AND series IN (SELECT series FROM held WHERE source > 1)
        GROUP BY series
    ), pieces AS (
        SELECT held.*, low - low %% {BUCKET} AS bucket,
               low AS piece_low, least(high, low - low %% {BUCKET} + {BUCKET}) AS piece_high
        FROM held
        UNION ALL
        SELECT held.*, bucket, bucket, least(high, bucket + {BUCKET})
        FROM held CROSS JOIN LATERAL generate_series(low - low %% {BUCKET} + {BUCKET}, high - 1, {BUCKET}) AS bucket
        WHERE high > low - low %% {BUCKET} + {BUCKET}
    ), weighed AS (
        SELECT pieces.*, (piece_high - piece_low)::float8 AS secs,
               at >= bucket AND (previous_at IS NULL OR previous_at < bucket) AS opens,
               at >= bucket AND (next_at IS NULL OR next_at >= bucket + {BUCKET}) AS closes,
               at >= bucket AND at <= previous_until AS follows,
               CASE WHEN source = 1 OR activity IS NULL THEN 0 ELSE coalesce((
                   SELECT sum(upper(part) - lower(part))
                   FROM unnest(CASE source WHEN 2 THEN cover.below_1 ELSE cover.below_2 END
                               * int8multirange(int8range(piece_low, piece_high))) AS part
               ), 0)::float8 END AS covered
        FROM pieces LEFT JOIN cover ON cover.series = pieces.series AND source > 1
    )"""  # noqa: S608 - a constant of ours


def _merged(columns: list[str]) -> str:
    """`merged`: one row a bucket, each column from the highest source that has it."""
    merged = "".join(
        f", coalesce({', '.join(f'by_{source}.{name}' for source in SOURCES)}) AS {name}" for name in columns
    )
    joins = "\n".join(
        f"LEFT JOIN figures AS by_{source} ON by_{source}.source = {code}"
        f" AND by_{source}.series = total.series AND by_{source}.bucket = total.bucket"
        for code, source in enumerate(SOURCES, start=1)
    )
    return f"""total AS (
        SELECT series, bucket, sum(busy) AS busy_s, sum(idle) AS idle_s,
               greatest(0, {BUCKET} - sum(busy) - sum(idle)) AS unknown_s,
               max(held_s) AS held_s, sum(samples) AS samples, max(threshold) AS threshold
        FROM figures GROUP BY series, bucket
    ), merged AS (
        SELECT total.*{merged} FROM total
        {joins}
    )"""  # noqa: S608 - column names are constants of ours


def hours() -> str:
    """Makes the hours of %(start)s..%(end)s, on hour bounds, from their 5-minute rows; series as above."""
    gauges = ", ".join(
        f"min({name}_min) AS {name}_min,"
        f" sum({name}_mean::float8 * held_s) / nullif(sum(held_s) FILTER (WHERE {name}_mean IS NOT NULL), 0)"
        f" AS {name}_mean, max({name}_max) AS {name}_max"
        for name in GAUGES
    )
    counters = ", ".join(
        f"(array_agg({name}_first ORDER BY bucket) FILTER (WHERE {name}_first IS NOT NULL))[1] AS {name}_first,"
        f" (array_agg({name}_last ORDER BY bucket DESC) FILTER (WHERE {name}_last IS NOT NULL))[1] AS {name}_last,"
        f" sum({name}_growth) AS {name}_growth"
        for name in COUNTERS
    )
    figures = [*_columns(VALUE_FIELDS), *_SECONDS]
    return f"""
    INSERT INTO inventory_rollup_1h (series, bucket, {", ".join(figures)})
    WITH totals AS (
        SELECT series, date_bin('1 hour', bucket, 'epoch') AS hour, {gauges}, {counters},
               bit_or(throttle_reasons) AS throttle_reasons,
               (array_agg(xid ORDER BY bucket DESC) FILTER (WHERE xid IS NOT NULL))[1] AS xid,
               sum(busy_s) AS busy_s, sum(idle_s) AS idle_s, 3600 - sum(busy_s) - sum(idle_s) AS unknown_s,
               sum(held_s) AS held_s, sum(samples) AS samples,
               (array_agg(threshold ORDER BY bucket DESC))[1] AS threshold
        FROM inventory_rollup_5m
        WHERE bucket >= %(start)s AND bucket < %(end)s
          AND (%(series)s::int4[] IS NULL OR series = ANY(%(series)s::int4[]))
        GROUP BY series, hour
    )
    SELECT series, hour, {", ".join(figures)} FROM totals ORDER BY hour, series
    {_upsert("inventory_rollup_1h", figures)}
    """  # noqa: S608 - column names are constants of ours
