"""What a scheduler's nodes say of cordons, against those on record: set, lifted by hand, somebody else's.

Ours carry a mark in the scheduler's reason. Somebody else's are put on record and never lifted by us.
A reading that began before an act of ours was done says nothing of that act.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID


@dataclass(frozen=True, slots=True)
class SeenCordon:
    """A node of ours as its scheduler lists it; `mark` is the id in a reason that is Sensaka's."""

    node: UUID
    name: str
    cordoned: bool
    reason: str = ""
    by: str = ""
    at: datetime | None = None
    mark: str = ""


@dataclass(frozen=True, slots=True)
class KnownCordon:
    """An open cordon on record, whoever's."""

    id: UUID
    node: UUID
    ours: bool
    mark: str = ""
    reason: str = ""
    by: str = ""
    applied_at: datetime | None = None
    lift_requested_at: datetime | None = None


class Event(StrEnum):
    """What happened to a cordon."""

    APPLIED = "applied"  # ours is set; the answer to the act was lost
    LIFTED_BY_US = "lifted_by_us"  # the answer to the act was lost
    LIFTED_BY_HAND = "lifted_by_hand"
    REPLACED = "replaced"  # another reason stands where ours was
    FOREIGN_SET = "foreign_set"
    FOREIGN_CHANGED = "foreign_changed"
    FOREIGN_LIFTED = "foreign_lifted"
    GONE = "gone"  # the scheduler no longer has the node


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the record: of a known cordon, or of what was seen, or both."""

    event: Event
    cordon: KnownCordon | None = None
    seen: SeenCordon | None = None


def reconcile_cordons(
    seen: Iterable[SeenCordon],
    known: Sequence[KnownCordon],
    *,
    at: datetime,
    gone: frozenset[UUID] = frozenset(),
    lifted: frozenset[str] = frozenset(),
) -> list[Change]:  # fmt: skip
    """The changes that bring the record in line with a reading that began at `at`.

    `gone` are nodes that a complete reading no longer lists; what it does not list is otherwise left alone.
    `lifted` are the marks of ours that were lifted since `at`.
    """
    ours = {row.node: row for row in known if row.ours}
    foreign = {row.node: row for row in known if not row.ours}
    changes = [Change(Event.GONE, cordon) for rows in (ours, foreign) for key, cordon in rows.items() if key in gone]
    for one in seen:
        if one.mark and one.mark in lifted:
            continue
        own, other = ours.get(one.node), foreign.get(one.node)
        is_own = own is not None and one.cordoned and one.mark == own.mark
        if own is not None:
            changes += _of_ours(one, own, is_own=is_own, at=at)
        if is_own or not one.cordoned:
            if other is not None:
                changes.append(Change(Event.FOREIGN_LIFTED, other, one))
        elif other is None:
            changes.append(Change(Event.FOREIGN_SET, None, one))
        elif (other.reason, other.by) != (one.reason, one.by):
            changes.append(Change(Event.FOREIGN_CHANGED, other, one))
    return changes


def _of_ours(seen: SeenCordon, own: KnownCordon, *, is_own: bool, at: datetime) -> list[Change]:
    if is_own:
        return [Change(Event.APPLIED, own, seen)] if own.applied_at is None else []
    if own.applied_at is None or own.applied_at >= at:
        return []  # not set yet, or set while this was being read
    if own.lift_requested_at is not None:
        return [Change(Event.LIFTED_BY_US, own, seen)]
    return [Change(Event.REPLACED if seen.cordoned else Event.LIFTED_BY_HAND, own, seen)]
