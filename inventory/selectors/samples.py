"""The current value of each card, straight from the raw samples: one index probe a card and source."""

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils import timezone

from inventory.observations import VALUE_FIELDS, CardValues
from inventory.rules.activity import HOLD_INTERVALS, MAX_INTERVAL, SOURCE_NAMES, activity
from inventory.selectors.history import History, history

__all__ = ["CurrentSample", "History", "current_samples", "history"]

CACHED_FOR = 1.0
"""Seconds that the whole fleet's samples are kept in memory, so that many pages cost one read."""

_RECENT = timedelta(seconds=HOLD_INTERVALS * MAX_INTERVAL)
"""No sample is fresh for longer, so a card with one in this time needs no look further back."""

_OLD_CACHED_FOR = 60.0


@dataclass(frozen=True, slots=True)
class CurrentSample:
    """The newest sample of the best source that is fresh; where none is, the newest of all."""

    series: int
    sampled_at: datetime
    source: str
    interval: int
    values: CardValues

    @property
    def activity(self) -> float | None:
        """Percent; None is unknown, never zero."""
        return activity(sm_activity=self.values.sm_activity, utilization=self.values.utilization)[0]

    @property
    def activity_source(self) -> str | None:
        """The field that `activity` comes from: sm_activity or utilization."""
        return activity(sm_activity=self.values.sm_activity, utilization=self.values.utilization)[1]

    def fresh(self, now: datetime) -> bool:
        """Whether it still holds at `now`: for three intervals of its source."""
        return now - self.sampled_at <= timedelta(seconds=HOLD_INTERVALS * self.interval)


_Found = dict[int, CurrentSample]

_lock = Lock()
_fleet: tuple[float, _Found] = (float("-inf"), {})
_old: tuple[float, dict[int, CurrentSample | None]] = (float("-inf"), {})

_PROBE = f"""
    SELECT newest.series, extract(epoch FROM newest.ts)::float8, newest.source, newest."interval",
        {", ".join(f"newest.{name}" for name in VALUE_FIELDS)}
    FROM unnest(%(series)s::int4[]) AS wanted(series)
    CROSS JOIN (VALUES {", ".join(f"({code}::int2)" for code in SOURCE_NAMES)}) AS origin(source)
    CROSS JOIN LATERAL (
        SELECT series, ts, source, "interval", {", ".join(VALUE_FIELDS)} FROM inventory_sample AS sample
        WHERE sample.series = wanted.series AND sample.source = origin.source
          AND ts > %(since)s AND ts <= %(until)s
        ORDER BY ts DESC LIMIT 1
    ) AS newest
"""  # noqa: S608 - column names are constants of ours
# The time comes as a number: parsing 10,000 texts of times takes longer than the probes themselves.


def current_samples(series: Collection[int] | None = None) -> dict[int, CurrentSample]:
    """The current sample of each series that has one within the raw retention; None asks for the whole fleet.

    The whole fleet's answer is up to CACHED_FOR old, except inside a transaction, which sees its own writes.
    """
    global _fleet
    if series is not None:
        return _read(list(series), remember=False)
    if connection.in_atomic_block:
        return _read(_every_series(), remember=False)
    with _lock:  # one thread reads, the others wait for it
        read_at, found = _fleet
        if time.monotonic() - read_at > CACHED_FOR:
            found = _read(_every_series(), remember=True)
            _fleet = (time.monotonic(), found)
        return found


def _every_series() -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT series FROM inventory_card UNION ALL SELECT series FROM inventory_slice WHERE closed_at IS NULL"
        )
        return [series for (series,) in cursor]


def _read(series: list[int], *, remember: bool) -> _Found:
    now = timezone.now()
    found = _choose(_probe(series, since=now - _RECENT, now=now), now)
    silent = [one for one in series if one not in found]
    if silent:
        found |= _silent(silent, now, remember=remember)
    return found


def _silent(series: list[int], now: datetime, *, remember: bool) -> _Found:
    """The last samples of cards that were silent for an hour; looked up once a minute for the whole fleet."""
    global _old
    read_at, known = _old if remember else (float("-inf"), {})
    if time.monotonic() - read_at > _OLD_CACHED_FOR:
        read_at, known = time.monotonic(), {}
    missing = [one for one in series if one not in known]
    if missing:
        fetched = _choose(_probe(missing, since=now - settings.RAW_RETENTION, now=now), now)
        known = known | {one: fetched.get(one) for one in missing}
        if remember:
            _old = (read_at, known)
    return {one: sample for one in series if (sample := known[one]) is not None}


def _probe(series: list[int], *, since: datetime, now: datetime) -> list[CurrentSample]:
    if not series:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_PROBE, {"series": series, "since": since, "until": now + timedelta(minutes=1)})
        return [_sample(row) for row in cursor]


def _sample(row: tuple[Any, ...]) -> CurrentSample:
    number, epoch, source, interval, *values = row
    at = datetime.fromtimestamp(epoch, UTC)
    return CurrentSample(number, at, SOURCE_NAMES[source], interval, CardValues(**_named(values)))


def _named(values: list[Any]) -> dict[str, Any]:
    return dict(zip(VALUE_FIELDS, values, strict=True))


def _choose(samples: Iterable[CurrentSample], now: datetime) -> _Found:
    """Of the newest sample of each source: the first that is fresh in order of the sources, else the newest."""
    best: _Found = {}
    ranks: dict[int, tuple[bool, float]] = {}
    order = {name: -code for code, name in SOURCE_NAMES.items()}
    for sample in samples:
        fresh = sample.fresh(now)
        rank = (fresh, float(order[sample.source]) if fresh else sample.sampled_at.timestamp())
        if sample.series not in best or rank > ranks[sample.series]:
            best[sample.series], ranks[sample.series] = sample, rank
    return best
