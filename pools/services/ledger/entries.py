"""Entries of the ledger as they are read, changed and written in bulk: one statement for any number of rows."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import partial
from operator import attrgetter
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q

from pools.models import Allocation
from pools.signals import allocations_changed

LOCK = 0x5E25A0C1
"""Who decides about cards, or writes down who holds them, holds this advisory lock: they take turns."""


@dataclass(slots=True)
class Entry:
    """One row of the ledger: [low, high) thousandths of a card in [start, end)."""

    id: UUID | None
    card: UUID
    node: UUID
    slice: UUID | None
    low: int
    high: int
    start: datetime
    end: datetime | None
    ends_at: datetime | None
    request: UUID | None
    job: UUID | None
    attempt: int
    unit: int
    pool: UUID | None
    spec: UUID | None
    priority: UUID | None
    tenant: UUID | None
    project: UUID | None
    source: str
    suspended: bool
    outcome: str

    @property
    def planned(self) -> bool:
        """Promised by a plan, and not yet seen to run."""
        return self.request is not None and self.job is None and self.end is None


_COLUMNS = (
    "id", "card_id", "node_id", "slice_id", "share", "span", "ends_at", "request_id", "job_id", "attempt", "unit",
    "pool_id", "spec_id", "priority_id", "tenant_id", "project_id", "source", "suspended", "outcome",
)  # fmt: skip
_ARRAYS = (
    "uuid", "uuid", "uuid", "uuid", "int", "int", "timestamptz", "timestamptz", "timestamptz", "uuid", "uuid", "int",
    "int", "uuid", "uuid", "uuid", "uuid", "uuid", "text", "bool", "text",
)  # fmt: skip
_GIVEN = (
    "id", "card", "node", "slice", "low", "high", "start", "stop", "ends_at", "request", "job", "attempt", "unit",
    "pool", "spec", "priority", "tenant", "project", "source", "suspended", "outcome",
)  # fmt: skip
_WRITE = f"""
INSERT INTO pools_allocation ({", ".join(_COLUMNS)}, created_at, updated_at)
SELECT id, card, node, slice, int4range(low, high), tstzrange(start, stop), ends_at, request, job, attempt, unit,
       pool, spec, priority, tenant, project, source, suspended, outcome, now(), now()
  FROM unnest({", ".join(f"%s::{kind}[]" for kind in _ARRAYS)}) AS given({", ".join(_GIVEN)})
ON CONFLICT (id) DO UPDATE SET
       {", ".join(f"{name} = EXCLUDED.{name}" for name in _COLUMNS if name != "id")}, updated_at = now()
"""  # noqa: S608 - constants of this module


def take_turns() -> None:
    """Waits for the lock, which the transaction holds to its end; the constraint is checked at its end too."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        cursor.execute("SET CONSTRAINTS allocation_held_once DEFERRED")


def check_turn() -> None:
    """Checks now what `take_turns` put off. Raises IntegrityError when two rows hold the same part of a card."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS allocation_held_once IMMEDIATE")


def stored(condition: Q) -> list[Entry]:
    """The rows that meet a condition, oldest first. One query."""
    names = (
        "id", "card_id", "node_id", "slice_id", "share", "span", "ends_at", "request_id", "job_id", "attempt", "unit",
        "pool_id", "spec_id", "priority_id", "tenant_id", "project_id", "source", "suspended", "outcome",
    )  # fmt: skip
    rows = Allocation.objects.filter(condition).order_by("span", "id").values_list(*names)
    return [
        Entry(key, card, node, part, share.lower, share.upper, span.lower, span.upper, *rest)
        for key, card, node, part, share, span, *rest in rows
    ]


def write(entries: Sequence[Entry]) -> None:
    """Inserts or updates entries, which have their ids. In the caller's transaction; signals after commit."""
    if not entries:
        return
    columns = zip(*map(_values, entries), strict=True)
    with connection.cursor() as cursor:
        cursor.execute(_WRITE, [list(column) for column in columns])
    tell(entry.card for entry in entries)


def delete(entries: Collection[Entry]) -> None:
    """Takes rows out that never should have been: what was planned and did not come, or was seen wrongly."""
    if not entries:
        return
    Allocation.objects.filter(pk__in=[entry.id for entry in entries]).delete()
    tell(entry.card for entry in entries)


def tell(cards: Iterable[UUID]) -> None:
    """The signal after commit."""
    named = sorted(set(cards))
    transaction.on_commit(partial(allocations_changed.send, sender=Allocation, cards=named))


_NAMES = tuple(column.name for column in fields(Entry))
_values = attrgetter(*_NAMES)
assert len(_NAMES) == len(_ARRAYS) == len(_GIVEN)
