"""What people do with requests: ask, change, hold, resume, cancel, release, move up."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.utils import timezone

from pools.models import EndAsked, Pool, PriorityClass, Project, Request, Spec
from pools.selectors.access import requestable_projects, require_operator, require_owner
from pools.services.asking import Work, check_size, check_work, chosen_pool, chosen_priority
from pools.services.lifecycle import act, move, note
from sensaka.identity.models import User
from sensaka.kernel.errors import IllegalTransition, InvalidInput

CHANGEABLE = frozenset({"name", "count", "near", "time_limit", "not_before"})
_HOLDING = frozenset({"starting", "running"})


def submit(
    *, project: Project, spec: Spec, work: Work, time_limit: int, actor: User, count: int = 1, pool: Pool | None = None,
    priority: PriorityClass | None = None, near: str = "", not_before: datetime | None = None, held: bool = False,
    name: str = "", idempotency_key: str = "",
) -> Request:  # fmt: skip
    """Stores a request, queued; admission decides when it starts. `time_limit` is seconds.

    The same key of the same person gives the request that was stored for it. Raises PermissionDenied for
    a project that the person may not ask for, InvalidInput with the field, and Conflict when the spec is
    not offered at present.
    """
    if not requestable_projects(actor).filter(pk=project.pk).exists():
        raise PermissionDenied(f"You may not request for {project}: it is closed, or you are no member.")
    if idempotency_key and (known := _known(actor, idempotency_key)) is not None:
        return known
    now = timezone.now()
    pool = chosen_pool(spec, project, pool)
    priority = chosen_priority(project, priority)
    check_work(work)
    check_size(count=count, near=near, time_limit=time_limit, not_before=not_before, pool=pool, now=now)
    row = Request(
        project=project, spec=spec, pool=pool, priority=priority, submitter=actor, name=name,
        count=count, near=near, launch=work.launch, script=work.script, image=work.image, command=list(work.command),
        environment=dict(work.environment), model=work.model, time_limit=time_limit, not_before=not_before, held=held,
        state="queued", state_since=now, submitted_at=now, waited_since=now, idempotency_key=idempotency_key,
    )  # fmt: skip
    try:
        with transaction.atomic():
            row.save()
            asked = f"{actor} asked for {count} x {spec} in {pool}."
            note(row, "submit", cause=asked, source="", target="submitted", actor=actor, now=now)
            note(
                row,
                "accept",
                cause="Accepted into the queue.",
                source="submitted",
                target="queued",
                actor=None,
                now=now,
            )
    except IntegrityError:
        known = _known(actor, idempotency_key) if idempotency_key else None
        if known is None:
            raise
        return known
    return row


def _known(actor: User, key: str) -> Request | None:
    return Request.objects.filter(submitter=actor, idempotency_key=key).first()


def change(request: Request, *, values: Mapping[str, Any], actor: User | None) -> Request:
    """Changes what a waiting request asks for (`CHANGEABLE`). Its place in the queue stays.

    Raises InvalidInput with the field, and Conflict when it no longer waits.
    """
    require_owner(actor, request)
    unknown = values.keys() - CHANGEABLE
    if unknown:
        raise InvalidInput(f"can't be changed: {', '.join(sorted(unknown))}", field=min(unknown))
    if request.state != "queued":
        raise IllegalTransition(f"{request} is {request.get_state_display()}: only a waiting request can be changed")
    changed = {name: value for name, value in values.items() if getattr(request, name) != value}
    if not changed:
        return request
    wanted = {name: values.get(name, getattr(request, name)) for name in ("count", "near", "time_limit", "not_before")}
    check_size(**wanted, pool=request.pool, now=timezone.now())
    cause = f"{actor or 'Sensaka'} changed {', '.join(sorted(changed)).replace('_', ' ')}."
    act(request, "change", cause=cause, actor=actor, unless=changed, **changed)
    return request


def _because(why: str) -> str:
    return f": {why.strip()}" if why.strip() else ""


def hold(request: Request, *, actor: User | None, why: str = "") -> Request:
    """Keeps a waiting request from starting until it is resumed. Doing it again changes nothing."""
    require_owner(actor, request)
    if request.state not in ("submitted", "queued", "preempted"):
        raise IllegalTransition(f"{request} is {request.get_state_display()}: only what waits can be held")
    cause = f"{actor or 'Sensaka'} put it on hold{_because(why)}."
    act(request, "hold", cause=cause, actor=actor, unless={"held": True}, held=True)
    return request


def resume(request: Request, *, actor: User | None, why: str = "") -> Request:
    """Lets a held request start again. Doing it again changes nothing."""
    require_owner(actor, request)
    cause = f"{actor or 'Sensaka'} resumed it{_because(why)}."
    act(request, "resume", cause=cause, actor=actor, unless={"held": False}, held=False)
    return request


def cancel(request: Request, *, actor: User | None, why: str = "") -> Request:
    """Ends a request. What waits ends at once; of what holds cards the work is ended first, by the cluster.

    Raises IllegalTransition when it has ended already.
    """
    require_owner(actor, request)
    cause = f"{actor or 'Sensaka'} cancelled it{_because(why)}."
    if request.state in _HOLDING:
        return _ask_end(request, EndAsked.CANCEL, cause=cause, actor=actor)
    move(request, "cancel", cause=cause, actor=actor, outcome=cause[:500])
    return request


def release(request: Request, *, actor: User | None, why: str = "") -> Request:
    """Gives cards back before the time limit; the request counts as completed.

    Raises IllegalTransition for a request that holds none.
    """
    require_owner(actor, request)
    if request.state not in _HOLDING:
        raise IllegalTransition(f"{request} is {request.get_state_display()} and holds no cards")
    cause = f"{actor or 'Sensaka'} gave its cards back{_because(why)}."
    return _ask_end(request, EndAsked.COMPLETE, cause=cause, actor=actor)


def _ask_end(request: Request, end: EndAsked, *, cause: str, actor: User | None) -> Request:
    """The wish is stored; whoever talks to the cluster ends the work, and the event follows when it is over."""
    unless = {"end_asked__in": EndAsked.values}  # the first wish counts
    act(request, f"{end}_asked", cause=cause, actor=actor, unless=unless, end_asked=end, end_asked_at=timezone.now())
    return request


def set_boost(request: Request, *, boost: int, actor: User | None) -> Request:
    """An operator's own order: higher goes first, over everything. Doing it again changes nothing."""
    require_operator(actor)
    if not -1000 <= boost <= 1000:
        raise InvalidInput("boost is -1000 to 1000", field="boost")
    if request.ended:
        raise IllegalTransition(f"{request} is {request.get_state_display()}: only what waits has an order")
    act(request, "boost", cause=f"{actor or 'Sensaka'} set its boost to {boost}.", actor=actor, unless={"boost": boost},
        boost=boost)  # fmt: skip
    return request
