"""Rollups from a watermark: closed 5-minute buckets, then the hours they complete, and late hours again.

`claimed` says up to when buckets are taken for rolling up: from then on a writer marks older samples as late, in the
transaction that stores them. `done` says up to when they are made. A run that is killed between leaves
claimed > done and the next one goes on. Making a bucket twice gives the same rows. A bucket in progress has no row.
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import OperationalError, connection, transaction

from inventory.services import rollup_sql
from inventory.services.partitions import add_rollup_month, add_rollup_year

SETTLE = timedelta(seconds=30)
"""How long a closed bucket waits for its last samples; what comes later is rolled up again as late."""

BUCKET = timedelta(seconds=rollup_sql.BUCKET)
HOUR = timedelta(hours=1)
STRETCH = timedelta(minutes=15)
"""How much is made by one statement: of 5,000 cards that sorts in memory, a whole hour would not."""

_STATE = "SELECT claimed, done FROM inventory_rollup_state"
_STATE_LOCKED = f"{_STATE} FOR NO KEY UPDATE"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RollUp:
    """What a run did: up to when rollups are made, how many 5-minute rows changed, how many late hours it mended."""

    done: datetime
    rows: int
    late_hours: int


def floor(moment: datetime, step: timedelta) -> datetime:
    """The last bound of `step` at or before `moment`."""
    return moment - (moment - _EPOCH) % step


def roll_up(*, now: datetime | None = None, budget: float = 45.0) -> RollUp:
    """Roll up all that is due, in slices of one hour each in its own transaction, for `budget` seconds at most.

    Several workers may call it: they take turns. What the budget leaves is done by the next call.
    """
    deadline = time.monotonic() + budget
    target = floor((now or datetime.now(UTC)) - SETTLE, BUCKET)
    rows = 0
    _claim(target)
    while True:
        made, finished = _next_slice(now or datetime.now(UTC))
        rows += made
        if finished or time.monotonic() > deadline:
            break
    late = 0
    while time.monotonic() < deadline:
        mended = _mend_hour()
        if mended is None:
            break
        late += 1
        rows += mended
    return RollUp(done=_state()[1], rows=rows, late_hours=late)


def roll_up_span(*, start: datetime, end: datetime, series: list[int] | None = None) -> int:
    """Make the 5-minute rows of [start, end) again, and the hours that lie in it; returns changed 5-minute rows."""
    with transaction.atomic():
        changed = _five_minutes(start, end, series)
        first, last = floor(start + HOUR - timedelta(microseconds=1), HOUR), floor(end, HOUR)
        if first < last:
            _hours(first, last, series)
        return changed


def _claim(target: datetime) -> None:
    """Announce `target` to writers. Waits for those that are storing now, at most 2 s; else the next run claims."""
    if _state()[0] >= target:
        return
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '2s'")
            cursor.execute("SELECT inventory_claim_rollup(%s)", [target])
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != "55P03":  # lock_not_available
            raise


def _state(*, lock: bool = False) -> tuple[datetime, datetime]:
    with connection.cursor() as cursor:
        cursor.execute(_STATE_LOCKED if lock else _STATE)
        claimed, done = cursor.fetchone()
        return claimed, done


def _next_slice(now: datetime) -> tuple[int, bool]:
    """Roll up from `done` to the end of its hour, or to `claimed`; the rows made and whether nothing is left."""
    with transaction.atomic():
        claimed, done = _state(lock=True)
        done = max(done, floor(now - settings.RAW_RETENTION, HOUR))  # nothing older can have samples
        if done >= claimed:
            return 0, True
        end = min(claimed, floor(done, HOUR) + HOUR)
        rows = _five_minutes(done, end, None)
        if end == floor(end, HOUR):
            _hours(end - HOUR, end, None)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE inventory_rollup_state SET done = %s", [end])
        return rows, end >= claimed


def _mend_hour() -> int | None:
    """Roll up the oldest late hour again for the series concerned; None when there is none.

    A mark is committed together with its samples, and they are read after it: none is missed. Marks that
    are written meanwhile stay for the next turn.
    """
    with transaction.atomic():
        _, done = _state(lock=True)
        with connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM inventory_late WHERE hour = (SELECT min(hour) FROM inventory_late) RETURNING hour, series"
            )
            marks = cursor.fetchall()
        if not marks:
            return None
        hour = marks[0][0]
        series = sorted({series for _, series in marks})
        end = min(hour + HOUR, done)
        if end <= hour:  # its buckets are still to be made and will see the sample
            return 0
        rows = _five_minutes(hour, end, series)
        if end == hour + HOUR:
            _hours(hour, end, series)
        return rows


def _five_minutes(start: datetime, end: datetime, series: list[int] | None) -> int:
    add_rollup_month(day=start.astimezone(UTC).date())
    add_rollup_month(day=(end - BUCKET).astimezone(UTC).date())
    rows = 0
    while start < end:
        until = min(end, floor(start, STRETCH) + STRETCH)
        with connection.cursor() as cursor:
            cursor.execute(rollup_sql.FIELDS_SEEN, _parameters(start, until, series))
            (seen,) = cursor.fetchone()
        rows += _make(rollup_sql.five_minutes(frozenset(seen)), start, until, series)
        start = until
    return rows


def _hours(start: datetime, end: datetime, series: list[int] | None) -> int:
    add_rollup_year(day=start.astimezone(UTC).date())
    add_rollup_year(day=(end - HOUR).astimezone(UTC).date())
    return _make(rollup_sql.hours(), start, end, series)


def _parameters(start: datetime, end: datetime, series: list[int] | None) -> dict[str, Any]:
    look_back = timedelta(seconds=rollup_sql.LOOK_BACK)
    return {
        "start": start, "end": end, "series": series, "since": start - look_back,
        "low": int(start.timestamp()), "high": int(end.timestamp()),
    }  # fmt: skip


def _make(sql: str, start: datetime, end: datetime, series: list[int] | None) -> int:
    with connection.cursor() as cursor:
        # A whole fleet's hour is sorted once; with the default of 4 MB that goes to disk in many runs.
        # The planner can't know the size of what the query builds up itself and would loop over it.
        cursor.execute("SET LOCAL work_mem = '192MB'; SET LOCAL enable_nestloop = off")
        cursor.execute(sql, _parameters(start, end, series))
        return int(cursor.rowcount)
