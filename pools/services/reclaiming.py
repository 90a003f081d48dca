"""What people do about idle work: release it, ask for time, decide, take it back, leave it alone."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from inventory.services.clusters.steering import Verb
from inventory.services.clusters.steering import act as act_on_job
from inventory.services.journal import write_entries
from pools.models import OPEN_RECLAIM, IdleCase, IdleState, Reclaim, ReclaimState
from pools.selectors.access import require_operator
from pools.selectors.idle_cases import owns
from pools.services import requests
from pools.services.asking import LONGEST
from pools.services.idle_words import at, case_noted
from pools.services.lifecycle import note
from pools.signals import idle_changed
from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, InvalidInput, NotFound

SHORTEST = 600
"""Seconds of the least extension: a pass looks every minute, and people are asked to read about it."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """An open case, locked, and the reclaim of it that is under way."""

    case: IdleCase
    reclaim: Reclaim | None
    now: datetime

    def tell(self, event: str, text: str, actor: User) -> None:
        """A line in the journal and in the request's history, and the signal after commit."""
        write_entries(notes=[case_noted(self.case, text, self.now)], actor=actor)
        request = self.case.allocation.request
        if request is not None:
            note(request, event, cause=text, target=request.state, actor=actor, now=self.now)
        transaction.on_commit(partial(idle_changed.send, sender=IdleCase, cases=[self.case.pk]))


def _turn(case: IdleCase) -> _Turn:
    """In the caller's transaction. Raises Conflict for a case that is closed."""
    rows = IdleCase.objects.select_for_update(of=("self",)).select_related(
        "allocation__request__project", "allocation__request__spec", "allocation__job", "allocation__tenant",
        "allocation__node", "allocation__pool",
    )  # fmt: skip
    row = rows.get(pk=case.pk)
    if not row.open:
        raise Conflict(f"it is no longer idle: {row.get_state_display().lower()}")
    reclaim = Reclaim.objects.filter(allocation=row.allocation_id, state__in=OPEN_RECLAIM).first()
    return _Turn(row, reclaim, timezone.now())


def _owner(actor: User, case: IdleCase) -> None:
    if not owns(actor, case):
        raise PermissionDenied("Only its owner, admins of the tenant and operators may do this.")


def _said(text: str, field: str) -> str:
    said = " ".join(text.split())
    if not said:
        raise InvalidInput("say why", field=field)
    return said


def ask_time(case: IdleCase, *, seconds: int, justification: str, actor: User) -> IdleCase:
    """The owner asks to keep idle cards for a time; nothing is taken until somebody has decided.

    An operator's own wish is granted at once. Raises PermissionDenied, InvalidInput with the field, and Conflict
    when the case is closed, is being reclaimed, waits for a decision, or was refused before.
    """
    _owner(actor, case)
    said = _said(justification, "justification")
    if not SHORTEST <= seconds <= LONGEST:
        raise InvalidInput(f"ask for {SHORTEST:,} to {LONGEST:,} seconds", field="seconds")
    with transaction.atomic():
        turn = _turn(case)
        row = turn.case
        if turn.reclaim is not None and turn.reclaim.state == ReclaimState.RELEASING:
            raise Conflict("its cards are being taken back already")
        if row.extension_waits:
            raise Conflict("more time is asked already: wait for the decision")
        if row.decided_at is not None and row.extended_until is None:
            raise Conflict("more time was refused: use the cards or release them")
        row.extension_asked_at, row.extension_asked_by = turn.now, actor
        row.extension_seconds, row.justification = seconds, said
        row.decided_at = row.decided_by = None
        row.decision = ""
        row.save()
        turn.tell("idle_extension_asked", f"{actor} asked to keep them for {_words(seconds)}: {said}", actor)
        if actor.operates:
            _decide(turn, granted=True, why="asked by an operator", actor=actor)
    return turn.case


def decide_time(case: IdleCase, *, granted: bool, why: str, actor: User) -> IdleCase:
    """An operator grants or refuses the time that was asked for. A refusal needs a reason and stands for the case.

    Raises PermissionDenied, InvalidInput, and Conflict when nothing waits for a decision.
    """
    require_operator(actor)
    said = why.strip() if granted else _said(why, "why")
    with transaction.atomic():
        turn = _turn(case)
        if not turn.case.extension_waits:
            raise Conflict("no wish for more time waits for a decision")
        _decide(turn, granted=granted, why=said, actor=actor)
    return turn.case


def _decide(turn: _Turn, *, granted: bool, why: str, actor: User) -> None:
    row = turn.case
    row.decided_at, row.decided_by, row.decision = turn.now, actor, why[:500]
    because = f": {why}" if why else ""
    if granted:
        row.extended_until = turn.now + timedelta(seconds=row.extension_seconds or 0)
        row.state = IdleState.EXTENDED
        _lapse(turn, f"{actor} left them to their owner{because}")
        text = f"{actor} left them to their owner until {at(row.extended_until)}{because}."
    else:
        row.extended_until, row.state = None, IdleState.OPEN
        text = f"{actor} refused more time{because}."
    row.save()
    turn.tell("idle_extension_granted" if granted else "idle_extension_refused", text, actor)


def _lapse(turn: _Turn, answer: str) -> None:
    """A suggestion that waits is answered by what was decided."""
    if turn.reclaim is not None:
        Reclaim.objects.filter(pk=turn.reclaim.pk, state=ReclaimState.ASKED).update(
            state=ReclaimState.REFUSED, answer=answer[:500], done_at=turn.now, updated_at=turn.now
        )


def leave(case: IdleCase, *, seconds: int, why: str, actor: User) -> IdleCase:
    """An operator leaves idle cards where they are for a time; a suggestion to take them back is refused by it.

    Raises PermissionDenied, InvalidInput with the field, and Conflict when they are being taken back already.
    """
    require_operator(actor)
    said = _said(why, "why")
    if not SHORTEST <= seconds <= LONGEST:
        raise InvalidInput(f"leave them for {SHORTEST:,} to {LONGEST:,} seconds", field="seconds")
    with transaction.atomic():
        turn = _turn(case)
        if turn.reclaim is not None and turn.reclaim.state == ReclaimState.RELEASING:
            raise Conflict("its cards are being taken back already")
        turn.case.extension_seconds = seconds
        _decide(turn, granted=True, why=said, actor=actor)
    return turn.case


def release(case: IdleCase, *, why: str = "", actor: User) -> IdleCase:
    """The owner gives idle cards back. Of a job that Sensaka did not start an operator is asked to end it.

    Doing it again changes nothing. Raises PermissionDenied and Conflict.
    """
    _owner(actor, case)
    with transaction.atomic():
        turn = _turn(case)
        request = turn.case.allocation.request
        reason = " ".join(why.split()) or "released by its owner"
        if request is not None:
            _wanted(turn, ReclaimState.RELEASING, "owner", reason, actor)
            requests.release(request, actor=actor, why=why)
        elif turn.reclaim is None:
            _wanted(turn, ReclaimState.ASKED, "owner", reason, actor)
        turn.tell("idle_released", f"{actor} gave them back{_because(why)}.", actor)
    return turn.case


def reclaim(case: IdleCase, *, why: str, actor: User) -> IdleCase:
    """An operator takes idle cards back: ends the request, or cancels the job in its cluster.

    May be repeated while the work goes on. Raises PermissionDenied, InvalidInput without a reason, and Conflict
    when the case is closed, or the cluster refuses or is out of reach: it then waits to be asked again.
    """
    require_operator(actor)
    said = _said(why, "why")
    with transaction.atomic():
        turn = _turn(case)
        held = turn.case.allocation
        if held.request is None and held.job is None:
            raise Conflict("which job holds it is not known: end it in its cluster")
        wanted = _wanted(turn, ReclaimState.RELEASING, "operator", said, actor)
        turn.tell("idle_reclaimed", f"{actor} takes them back: {said}", actor)
        if held.request is not None:
            requests.cancel(held.request, actor=actor, why=f"its idle cards are taken back, {said}")
    if held.request is None and held.job is not None:
        _end_job(turn, wanted, said, actor)
    return turn.case


def _end_job(turn: _Turn, wanted: Reclaim, why: str, actor: User) -> None:
    """Talks to the cluster, outside of any transaction; what it refuses is kept with its reason."""
    job = turn.case.allocation.job
    assert job is not None
    try:
        act_on_job(job=job, verb=Verb.CANCEL, reason=f"its idle cards are taken back, {why}", actor=actor)
    except (Conflict, NotFound) as error:
        Reclaim.objects.filter(pk=wanted.pk, state=ReclaimState.RELEASING).update(
            state=ReclaimState.ASKED, answer=error.message[:500], updated_at=timezone.now()
        )
        raise


def _wanted(turn: _Turn, state: ReclaimState, source: str, reason: str, actor: User) -> Reclaim:
    """The reclaim of the case in this state: the one that is under way, or a new one."""
    row = turn.reclaim or Reclaim(allocation=turn.case.allocation, case=turn.case)
    if row._state.adding or row.state != state:
        row.state, row.source, row.reason, row.asked_by, row.answer = state, source, reason[:500], actor, ""
        row.save()
    return row


def _because(why: str) -> str:
    said = " ".join(why.split())
    return f": {said}" if said else ""


def _words(seconds: int) -> str:
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours} h" if not minutes else f"{hours} h {minutes} min" if hours else f"{minutes} min"
