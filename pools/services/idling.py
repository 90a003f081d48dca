"""Idle cards by the clock: find them, warn the owner twice, then suggest or take back what stays idle.

What a pass does follows from the samples and from what is stored alone, so that running it again changes nothing.
Passes take turns by a lock; whoever finds it taken leaves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from inventory.services.journal import Note, write_entries
from pools.models import OPEN_IDLE, OPEN_RECLAIM, EndAsked, IdleCase, IdleState, Reclaim, ReclaimState, Request
from pools.rules.lifecycle import HOLDING
from pools.rules.reclaim import Action, Case, Step, decide
from pools.rules.reclaim import IdlePolicy as Policy
from pools.selectors.held import open_at
from pools.selectors.idleness import Evidence, Spared, evidence, moment, spared, watched_pools
from pools.services.idle_words import case_noted, first_warning, idle_facts, noted, second_warning
from pools.services.moving import Move, move_all
from pools.signals import idle_changed, idle_warned

LOCK = 0x5E25A0C2
"""Whoever decides about idle cards by the clock holds this advisory lock."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What a pass did, in works: found idle and warned, warned again, put to an operator, taken back, let go."""

    opened: int = 0
    warned_again: int = 0
    suggested: int = 0
    reclaimed: int = 0
    closed: int = 0
    ended: int = 0

    @property
    def changed(self) -> int:
        """Of how many works anything changed."""
        return self.opened + self.warned_again + self.suggested + self.reclaimed + self.closed + self.ended


@dataclass(slots=True)
class _Due:
    """A work with its case and the step that the rule says."""

    found: Evidence
    case: IdleCase | None
    policy: Policy
    step: Step
    why: str


@dataclass(slots=True)
class _Told:
    """Lines that one transaction writes at its end."""

    notes: list[Note] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)


def look(*, now: datetime | None = None) -> Pass:
    """One pass over all pools that do something about idle cards. A fixed number of queries for any number of works.

    Does nothing while another pass is at it.
    """
    now = now or timezone.now()
    policies = watched_pools()
    if not policies:
        return Pass()
    found = evidence(policies, now=now)
    with transaction.atomic():
        if not _turn():
            return Pass()
        told = _Told()
        cases = list(_open_cases())
        over = _end(cases, now, told)
        goes_on = [case for case in cases if case.pk not in over]
        due = _decided(found, goes_on, policies, spared(now), now)
        done = _carry_out(due, now, told)
        if told.moves:
            move_all(told.moves, now=now)
        if told.notes:
            write_entries(notes=told.notes)
        return Pass(*done, ended=len(over))


def _turn() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        (taken,) = cursor.fetchone()
        return bool(taken)


def _open_cases() -> "QuerySet[IdleCase]":
    """Locked, so that what people do about them meanwhile waits or is seen."""
    rows = IdleCase.objects.filter(state__in=OPEN_IDLE).order_by("id").select_for_update(of=("self",))
    return rows.select_related(
        "allocation__request", "allocation__job", "allocation__tenant", "allocation__node", "allocation__request__spec"
    )


def _end(cases: Sequence[IdleCase], now: datetime, told: _Told) -> set[UUID]:
    """Closes what is no longer held, and the reclaims that wanted it; says which cases."""
    held = set(open_at(now).filter(pk__in=[case.allocation_id for case in cases]).values_list("pk", flat=True))
    over = [case for case in cases if case.allocation_id not in held]
    if over:
        reclaims = Reclaim.objects.filter(allocation__in=[one.allocation_id for one in over], state__in=OPEN_RECLAIM)
        wanted = {row.allocation_id: row for row in reclaims}
        for case in over:
            reclaim = wanted.get(case.allocation_id)
            case.state, case.closed_at, case.updated_at = _how_it_ended(reclaim), now, now
            told.notes.append(case_noted(case, f"{case.get_state_display().lower()}.", now, source=""))
        IdleCase.objects.bulk_update(over, ["state", "closed_at", "updated_at"])
    # of work that is over nothing is left to take, whether its case is open or not
    gone = Reclaim.objects.exclude(allocation__in=open_at(now).values("pk"))
    gone.filter(state=ReclaimState.RELEASING).update(state=ReclaimState.DONE, done_at=now, updated_at=now)
    gone.filter(state=ReclaimState.ASKED).update(
        state=ReclaimState.REFUSED, answer="It ended by itself.", done_at=now, updated_at=now
    )
    _changed(over)
    return {case.pk for case in over}


def _how_it_ended(reclaim: Reclaim | None) -> IdleState:
    if reclaim is None or reclaim.state != ReclaimState.RELEASING:
        return IdleState.ENDED
    return IdleState.RELEASED if reclaim.source == "owner" else IdleState.RECLAIMED


def _decided(
    found: Sequence[Evidence], cases: Sequence[IdleCase], policies: Mapping[UUID, Policy], left: Spared, now: datetime
) -> list[_Due]:
    """The step for each work that is not ending anyway."""
    by_allocation = {case.allocation_id: case for case in cases}
    asked = dict(
        Reclaim.objects.filter(state__in=OPEN_RECLAIM).order_by().values_list("allocation", "created_at")
    )  # fmt: skip
    due = []
    for one in found:
        own = (by_allocation.get(unit.allocation) for unit in one.work.units)
        case = next((row for row in own if row is not None), None)
        if one.work.ending:
            continue
        policy = policies[one.work.pool]
        known = None if case is None else _as_rule(case, asked.get(case.allocation_id))
        decision = decide(policy, one.verdict, known, now=int(now.timestamp()), exempt=left.spares(one.work))
        due.append(_Due(one, case, policy, decision.step, decision.why))
    return due


def _as_rule(case: IdleCase, asked_at: datetime | None) -> Case:
    def second(time: datetime | None) -> int | None:
        return None if time is None else int(time.timestamp())

    return Case(
        int(case.since.timestamp()), second(case.first_warned_at), second(case.second_warned_at),
        case.extension_waits, second(case.extended_until), second(asked_at),
    )  # fmt: skip


def _carry_out(due: Sequence[_Due], now: datetime, told: _Told) -> tuple[int, int, int, int, int]:
    """Opened, warned again, suggested, taken back and closed works."""
    by_step = {step: [one for one in due if one.step is step] for step in Step}
    _measure([one for one in due if one.case is not None and one.found.since is not None], now)
    states = _states([one for one in due if one.step is not Step.NOTHING])
    opened = _open(by_step[Step.OPEN], now)
    again = [one.case for one in by_step[Step.WARN_AGAIN] if one.case is not None]
    IdleCase.objects.filter(pk__in=[case.pk for case in again]).update(second_warned_at=now, updated_at=now)
    for one in by_step[Step.OPEN]:
        _tell(told, one, "idle_warned", first_warning(one.found, one.policy), states, now)
    for one in by_step[Step.WARN_AGAIN]:
        _tell(told, one, "idle_warned", second_warning(one.found, one.policy), states, now)
    ready = [*by_step[Step.ASK_OPERATOR], *by_step[Step.RECLAIM]]
    taken = _reclaim(ready, states, now, told)
    closed = _close(by_step[Step.CLOSE], states, now, told)
    for warning, cases in ((1, opened), (2, again)):
        if cases:
            keys = [case.pk for case in cases]
            transaction.on_commit(partial(idle_warned.send, sender=IdleCase, cases=keys, warning=warning))
    _changed([*opened, *again, *closed, *(one.case for one in ready if one.case is not None)])
    return len(opened), len(again), len(ready) - taken, taken, len(closed)


def _measure(due: Sequence[_Due], now: datetime) -> None:
    """What was measured last; cases whose numbers are the same stay as they are."""
    changed = []
    for one in due:
        case, found = one.case, one.found
        assert case is not None
        new = (found.highest, found.verdict.coverage, found.verdict.memory_held, found.processes, len(found.work.units))
        over = case.state == IdleState.EXTENDED and case.extended_until is not None and case.extended_until <= now
        if over or new != (case.highest_activity, case.coverage, case.memory_held, case.processes, case.cards):
            case.highest_activity, case.coverage, case.memory_held, case.processes, case.cards = new
            case.state = IdleState.OPEN if over else case.state
            case.updated_at = now
            changed.append(case)
    fields = ["highest_activity", "coverage", "memory_held", "processes", "cards", "state", "updated_at"]
    IdleCase.objects.bulk_update(changed, fields)


def _states(due: Sequence[_Due]) -> dict[UUID, tuple[str, int]]:
    """State and attempt of the requests that still hold cards and that nobody has ended; locked."""
    keys = [key for one in due if (key := one.found.work.of("request")) is not None]
    rows = Request.objects.select_for_update().filter(pk__in=keys, state__in=HOLDING, end_asked_at=None).order_by("id")
    return {row.pk: (row.state, row.attempt) for row in rows.only("state", "attempt")}


def _open(due: Sequence[_Due], now: datetime) -> list[IdleCase]:
    rows = [
        IdleCase(
            allocation_id=one.found.work.lead.allocation, cards=len(one.found.work.units),
            since=moment(one.found.since or 0), highest_activity=one.found.highest,
            coverage=one.found.verdict.coverage, memory_held=one.found.verdict.memory_held,
            processes=one.found.processes, first_warned_at=now,
        )
        for one in due
    ]  # fmt: skip
    return IdleCase.objects.bulk_create(rows)


def _tell(
    told: _Told, one: _Due, event: str, text: str, states: Mapping[UUID, tuple[str, int]], now: datetime,
    **changes: object,
) -> None:  # fmt: skip
    told.notes.append(noted(one.found.work, text, now))
    request = one.found.work.of("request")
    if request is not None and request in states:
        state, attempt = states[request]
        told.moves.append(Move(request, state, event, text, attempt, changes))


def _reclaim(due: Sequence[_Due], states: Mapping[UUID, tuple[str, int]], now: datetime, told: _Told) -> int:
    """Ends work of ours where the pool says so, and puts the rest to an operator; how many were ended."""
    rows, taken = [], 0
    for one in due:
        ends = one.policy.action is Action.RECLAIM and one.found.work.of("request") in states
        text = f"warned twice and still {idle_facts(one.found)}"
        state = ReclaimState.RELEASING if ends else ReclaimState.ASKED
        assert one.case is not None
        held = one.case.allocation_id
        rows.append(Reclaim(allocation_id=held, case=one.case, state=state, source="policy", reason=text[:500]))
        if ends:
            taken += 1
            end = {"end_asked": str(EndAsked.CANCEL), "end_asked_at": now}
            _tell(told, one, "cancel_asked", f"Reclaimed by the pool's rule: {text}.", states, now, **end)
        else:
            _tell(told, one, "reclaim_suggested", f"An operator is asked to take it back: {text}.", states, now)
    Reclaim.objects.bulk_create(rows)
    return taken


def _close(
    due: Sequence[_Due], states: Mapping[UUID, tuple[str, int]], now: datetime, told: _Told
) -> list[IdleCase]:  # fmt: skip
    """In use again, or spared by now; a suggestion about it lapses."""
    cases = []
    for one in due:
        assert one.case is not None
        busy = one.found.verdict.state == "busy"
        one.case.state = IdleState.BUSY if busy else IdleState.SPARED
        one.case.closed_at = one.case.updated_at = now
        cases.append(one.case)
        _tell(told, one, "idle_over", f"No longer counted as idle: {one.why}.", states, now)
    IdleCase.objects.bulk_update(cases, ["state", "closed_at", "updated_at"])
    Reclaim.objects.filter(case__in=[case.pk for case in cases], state=ReclaimState.ASKED).update(
        state=ReclaimState.REFUSED, answer="It is no longer counted as idle.", done_at=now, updated_at=now
    )
    return cases


def _changed(cases: Sequence[IdleCase]) -> None:
    if cases:
        transaction.on_commit(partial(idle_changed.send, sender=IdleCase, cases=[case.pk for case in cases]))
