"""Partitions of the sample tables: made ahead, dropped when their time is over and nobody needs them."""

import logging
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from django.conf import settings
from django.db import OperationalError, connection, transaction

log = logging.getLogger(__name__)

DAYS_AHEAD = 3
_NAME = "inventory_sample_"
_ROLLUPS = (("inventory_rollup_5m", "%Y%m", 32), ("inventory_rollup_1h", "%Y", 366))
"""Tables of rollups, how their partitions are named after their first day, and days that are one of them at most."""

_needs: list[Callable[[], datetime | None]] = []


def register_raw_need(need: Callable[[], datetime | None]) -> None:
    """Keep raw samples from the moment on that `need` answers (None: it needs none) whatever their age.

    Metering registers its watermark here: an hour that is not accounted for keeps its samples.
    """
    if need not in _needs:
        _needs.append(need)


def raw_needed_since() -> datetime | None:
    """The oldest moment whose raw samples somebody still needs; None when nobody does."""
    return min((moment for need in _needs if (moment := need()) is not None), default=None)


def add_sample_day(*, day: date) -> bool:
    """Make the partition of one UTC day; False when it was there."""
    return _call("SELECT inventory_add_sample_day(%s)", day)


def add_rollup_month(*, day: date) -> bool:
    """Make the partition of the 5-minute rollup for the month of `day`; False when it was there."""
    return _call("SELECT inventory_add_rollup_month(%s)", day)


def add_rollup_year(*, day: date) -> bool:
    """Make the partition of the hourly rollup for the year of `day`; False when it was there."""
    return _call("SELECT inventory_add_rollup_year(%s)", day)


def _call(sql: str, day: date) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql, [day])
        (made,) = cursor.fetchone() or (False,)
        return bool(made)


def make_partitions(*, now: datetime | None = None) -> int:
    """Make every partition from the retention's start to some days ahead; returns how many were missing."""
    today = (now or datetime.now(UTC)).astimezone(UTC).date()
    first = today - settings.RAW_RETENTION
    made = sum(
        add_sample_day(day=first + timedelta(days=step)) for step in range((today - first).days + 1 + DAYS_AHEAD)
    )
    ahead = today + timedelta(days=DAYS_AHEAD)
    made += sum(add_rollup_month(day=day) for day in (first, today, ahead))
    made += sum(add_rollup_year(day=day) for day in (first, today, ahead))
    return made


def drop_old_partitions(*, now: datetime | None = None) -> list[date]:
    """Drop the raw days that are past their retention, rolled up, and needed by nobody; returns them.

    Dropping locks the table for a moment. Where that takes over two seconds the day stays until the next run.
    """
    moment = now or datetime.now(UTC)
    keep_from = min(moment - settings.RAW_RETENTION, _rolled_up_to(), raw_needed_since() or moment)
    dropped = []
    for day in sample_days():
        if datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1) > keep_from:
            break
        if not _drop(f"{_NAME}{day:%Y%m%d}"):
            break
        dropped.append(day)
    return dropped


def drop_old_rollups(*, now: datetime | None = None) -> list[str]:
    """Drop the months of 5-minute rollups and the years of hourly ones that are past their retention, by name."""
    moment = now or datetime.now(UTC)
    dropped = []
    keep = (moment - settings.ROLLUP_RETENTION, moment - settings.HOURLY_RETENTION)
    for (table, form, longest), keep_from in zip(_ROLLUPS, keep, strict=True):
        for name in _leaves(table):
            first = datetime.strptime(name.removeprefix(f"{table}_"), form).replace(tzinfo=UTC)
            if first + timedelta(days=longest) <= keep_from and _drop(name):
                dropped.append(name)
    return dropped


def _drop(name: str) -> bool:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '2s'")
            cursor.execute(f"DROP TABLE {name}")
    except OperationalError as error:
        log.warning("%s stays until the next run: %s", name, error)
        return False
    return True


def sample_days() -> list[date]:
    """The UTC days that have a partition of raw samples, oldest first."""
    return [datetime.strptime(name.removeprefix(_NAME), "%Y%m%d").date() for name in _leaves("inventory_sample")]  # noqa: DTZ007


def _leaves(table: str) -> list[str]:
    """The partitions of a table by name, which is also the order of time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT relid::regclass::text FROM pg_partition_tree(%s) WHERE isleaf ORDER BY 1", [table])
        return [name for (name,) in cursor]


def _rolled_up_to() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT done FROM inventory_rollup_state")
        (done,) = cursor.fetchone() or (datetime.min.replace(tzinfo=UTC),)
        return done
