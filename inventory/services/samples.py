"""The writer of samples for tasks and commands: checks, stores, tells. Web workers use ingest/batcher.py.

A sample is refused by name when it lies in the future or is older than raw samples are kept; one that is
stored already is counted as repeated. The whole call is one short transaction.
"""

import logging
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import psycopg
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from psycopg import errors

from inventory.observations import CardValues
from inventory.rules.activity import MAX_INTERVAL, SOURCE_CODES
from inventory.services import sample_copy
from inventory.services.partitions import add_sample_day
from inventory.services.sample_copy import Plan
from inventory.services.sample_rows import Packed, Rows, pack
from inventory.signals import samples_stored

log = logging.getLogger(__name__)

FUTURE_TOLERANCE = timedelta(seconds=60)
"""How far a node's clock may be ahead before its samples are refused."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of a card or slice (`series`); `interval` is its source's rhythm in seconds."""

    series: int
    sampled_at: datetime
    source: str
    interval: int
    values: CardValues


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why sample number `index` was not stored: future, too_old, interval or values."""

    index: int
    series: int
    sampled_at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What became of a batch: stored + repeated + len(refused) samples."""

    stored: int
    repeated: int
    refused: tuple[Refusal, ...] = ()


def time_window(now: datetime) -> tuple[int, int]:
    """The oldest and the newest epoch second that is accepted at `now`."""
    oldest = now - settings.RAW_RETENTION
    return int(oldest.timestamp()), int((now + FUTURE_TOLERANCE).timestamp())


def write_samples(samples: Sequence[Sample], *, now: datetime | None = None) -> WriteResult:
    """Store samples in one transaction, each once, and send `samples_stored` after the commit.

    Raises ValueError for an unknown source or a time without zone: those are programming errors.
    DatabaseError when PostgreSQL can't be reached; then nothing was stored.
    """
    rows, refused = _sort_out(samples, now or datetime.now(UTC))
    if not rows:
        return WriteResult(0, 0, tuple(refused))
    stored = sum(_store(rows))
    transaction.on_commit(_tell, robust=True)
    return WriteResult(stored, len(rows) - stored, tuple(refused))


def _tell() -> None:
    samples_stored.send_robust(sender=write_samples)


def _sort_out(samples: Sequence[Sample], now: datetime) -> tuple[Rows, list[Refusal]]:
    oldest, newest = time_window(now)
    packed: list[Packed] = []
    refused = []
    for index, sample in enumerate(samples):
        if sample.sampled_at.tzinfo is None:
            raise ValueError(f"sample {index}: sampled_at has no time zone")
        if sample.source not in SOURCE_CODES:
            raise ValueError(f"sample {index}: unknown source {sample.source!r}")
        second = int(sample.sampled_at.timestamp() // 1)
        if reason := _refusal(sample, second, oldest, newest):
            refused.append(Refusal(index, sample.series, sample.sampled_at, reason))
            continue
        values = msgspec.structs.astuple(sample.values)
        packed.append(pack([second], [sample.series], SOURCE_CODES[sample.source], sample.interval, [values]))
    return Rows.of(packed), refused


def _refusal(sample: Sample, second: int, oldest: int, newest: int) -> str:
    if second > newest:
        return "future"
    if second < oldest:
        return "too_old"
    if not 1 <= sample.interval <= MAX_INTERVAL:
        return "interval"
    try:  # a struct checks its bounds only when it is decoded
        msgspec.convert(msgspec.to_builtins(sample.values), CardValues)
    except msgspec.ValidationError:
        return "values"
    return ""


def _store(rows: Rows) -> Sequence[int]:
    """Direct at first, staged after a duplicate; deadlocks and missing partitions are tried again."""
    way = sample_copy.direct
    for attempt in range(sample_copy.ATTEMPTS):
        try:
            with transaction.atomic():
                return _run(way(rows))
        except errors.UniqueViolation:
            way = sample_copy.staged
        except errors.DeadlockDetected:
            way = sample_copy.staged
            time.sleep(random.uniform(0.01, 0.05) * (attempt + 1))  # noqa: S311 - jitter, not a secret
        except errors.CheckViolation:  # no partition for one of the days
            for day in sample_copy.days(rows):
                add_sample_day(day=day.date())
    raise DatabaseError(f"{len(rows)} samples could not be stored in {sample_copy.ATTEMPTS} attempts")


def _run(plan: Plan) -> Sequence[int]:
    """Run a plan on Django's connection, on the bare cursor so that errors are psycopg's own."""
    with connection.cursor() as wrapped:
        cursor: psycopg.Cursor[Any] = wrapped.cursor
        result: list[tuple[Any, ...]] | None = None
        while True:
            try:
                statement = plan.send(result)  # type: ignore[arg-type]
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            if statement.payload is None:
                cursor.execute(statement.sql, statement.parameters or None)
                result = cursor.fetchall() if cursor.description else []
            else:
                with cursor.copy(statement.sql) as copy:
                    copy.write(statement.payload)
                result = []
