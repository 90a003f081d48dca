"""What became of errands, as changes of the requests that they were about."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from inventory.models import Job
from inventory.services.clusters.launching import Answer, Errand, Outcome, Verb
from pools.models import EndAsked, Hold, Request
from pools.services.ledger import entries
from pools.services.ledger.following import afresh
from pools.services.ledger.seen import MARKED
from pools.services.moving import Move, move_all

Told = tuple[Request, Errand, Answer]

ATTEMPTS = 3
"""Launches of one request that clusters refuse before it fails."""

AGAIN = timedelta(seconds=15)
"""How long after a failure the next try comes, and after which an errand that was sent is looked at again."""
PAUSE = timedelta(minutes=1)
"""How long a refused request waits before its first next try; each further refusal adds as much."""

_NO = frozenset({Outcome.REFUSED, Outcome.NOT_SUPPORTED})


@dataclass(slots=True)
class _Changes:
    moves: list[Move] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    over: list[UUID] = field(default_factory=list)
    lease: dict[datetime | None, list[UUID]] = field(default_factory=dict)


def store(told: Sequence[Told], *, now: datetime) -> None:
    """Writes what became of errands, in one transaction that holds the ledger's lock."""
    changes = _Changes()
    runs = set(Job.objects.filter(MARKED, comment__in=[row.mark for row, _, _ in told if row.mark], open=True)
               .values_list("comment", flat=True))  # fmt: skip
    for row, errand, answer in told:
        match errand.verb:
            case Verb.SUBMIT:
                _submitted(changes, row, answer, now)
            case Verb.SIGNAL:
                _signalled(changes, row, answer, now, seen=row.mark in runs)
            case Verb.END:
                _ended(changes, row, answer, now, seen=row.mark in runs)
            case Verb.EXTEND:
                _lease(changes, row, now + (AGAIN if answer.ok else 20 * AGAIN))
    with transaction.atomic():
        entries.take_turns()
        moved = move_all(changes.moves, now=now)
        entries.delete(entries.stored(Q(request__in=moved & set(changes.over), job=None)))
        Hold.objects.bulk_create(hold for hold in changes.holds if hold.request_id in moved)
        for until, keys in changes.lease.items():
            Request.objects.filter(pk__in=keys).update(leased_until=until)


def _lease(changes: _Changes, row: Request, until: datetime | None) -> None:
    changes.lease.setdefault(until, []).append(row.pk)


def _submitted(changes: _Changes, row: Request, answer: Answer, now: datetime) -> None:
    if answer.ok:
        cause = f"Submitted to {row.cluster} as job {answer.reference}."
        given = {"job_reference": answer.reference[:400], "leased_until": None}
        changes.moves.append(Move(row.pk, row.state, "submitted", cause, row.attempt, given))
    elif answer.outcome in _NO:
        _refused(changes, row, answer, now)
    else:
        # it did not happen, or nobody knows: the next try looks for the mark first
        _lease(changes, row, now + AGAIN)


def _refused(changes: _Changes, row: Request, answer: Answer, now: datetime) -> None:
    """It waits again, for longer each time, and in the end fails with the cluster's own words."""
    why = f"{row.cluster or 'its cluster'} refused it: {answer.detail or answer.outcome}"[:500]
    changes.over.append(row.pk)
    if row.attempt >= ATTEMPTS:
        changes.moves.append(Move(row.pk, row.state, "fail", why, row.attempt, {"outcome": why}))
        return
    changes.moves.append(Move(row.pk, row.state, "return", why, row.attempt, afresh(row.waited_since)))
    changes.holds.append(Hold(request_id=row.pk, reason=why, source="cluster", until=now + row.attempt * PAUSE))


def _signalled(changes: _Changes, row: Request, answer: Answer, now: datetime, *, seen: bool) -> None:
    if answer.outcome is Outcome.NOT_FOUND and not seen:
        _gone(changes, row, now)
    elif answer.ok or answer.outcome in _NO:
        # where a scheduler sends no signals, its own end of work does
        cause = "It was told to leave." if answer.ok else f"It could not be told to leave: {answer.detail}"
        given = {"told_at": now, "leased_until": None}
        changes.moves.append(Move(row.pk, row.state, "told", cause[:500], row.attempt, given))
    else:
        _lease(changes, row, now + AGAIN)


def _ended(changes: _Changes, row: Request, answer: Answer, now: datetime, *, seen: bool) -> None:
    """The job's own end decides; where there is no job, nothing is left to wait for."""
    if answer.outcome is Outcome.NOT_FOUND and not seen:
        _gone(changes, row, now)
        return
    if row.leaves_at is None and not row.end_asked and answer.ok:
        cause = "Its job waited too long in the scheduler: it was withdrawn, and waits for cards again."
        given: dict[str, Any] = {"leaves_at": now, "told_at": now, "leased_until": now + AGAIN}
        changes.moves.append(Move(row.pk, row.state, "withdraw", cause, row.attempt, given))
        return
    _lease(changes, row, now + AGAIN)


def _gone(changes: _Changes, row: Request, now: datetime) -> None:
    """There is no job of this attempt, and none was seen to run."""
    changes.over.append(row.pk)
    if row.end_asked:
        event = "complete" if row.end_asked == EndAsked.COMPLETE else "cancel"
        cause = "Nothing of it was running any more."
        changes.moves.append(Move(row.pk, row.state, event, cause, row.attempt, {"outcome": "ended before it ran"}))
    elif row.signalled_at is not None:
        changes.moves += displaced(row, now)
    else:
        event = "return" if row.state == "starting" else "requeue"
        cause = "Its cluster has no job of it: it waits for cards again."
        changes.moves.append(Move(row.pk, row.state, event, cause, row.attempt, afresh(now)))


def displaced(row: Request, now: datetime) -> Iterable[Move]:
    """It had not begun when its cards were needed."""
    cause = "Its cards were needed by work of a higher class before it began."
    yield Move(row.pk, row.state, "preempt", cause, row.attempt, {"preempted": row.preempted + 1})
    yield Move(row.pk, "preempted", "requeue", "It waits for cards again.", row.attempt, afresh(now))
