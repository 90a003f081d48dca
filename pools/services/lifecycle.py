"""How a request moves from state to state: one conditional update, one event, one signal after commit."""

from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from pools.models import Request, RequestEvent
from pools.rules.lifecycle import ENDED, REQUEST
from pools.signals import requests_changed
from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict


def move(
    request: Request, event: str, *, cause: str, actor: User | None = None, now: datetime | None = None, **changes: Any
) -> None:
    """Lets `event` happen to a request and sets `changes` with it; `cause` is one sentence for its history.

    Raises IllegalTransition when the event can't happen in its state, and Conflict when somebody was
    faster: nothing is written then.
    """
    target = REQUEST.target(request.state, event)
    now = now or timezone.now()
    values = {"state": target, "state_since": now, "updated_at": now, **changes}
    if target in ENDED:
        values["ended_at"] = now
        values |= {"reasons": [], "position": None, "expected_start": None}
    with transaction.atomic():
        if not Request.objects.filter(pk=request.pk, state=request.state).update(**values):
            raise Conflict(f"{request} has changed meanwhile: look again")
        note(request, event, cause=cause, target=target, actor=actor, now=now)
    for name, value in values.items():
        setattr(request, name, value)


def act(
    request: Request, event: str, *, cause: str, actor: User | None, unless: dict[str, Any], **changes: Any
) -> bool:
    """Sets `changes` while the request is still in its state, unless they hold already; whether it did.

    For acts that leave the state as it is. Raises Conflict when the request has moved on meanwhile.
    """
    now = timezone.now()
    with transaction.atomic():
        rows = Request.objects.filter(pk=request.pk, state=request.state)
        if rows.exclude(**unless).update(updated_at=now, **changes):
            note(request, event, cause=cause, target=request.state, actor=actor, now=now)
        elif rows.exists():
            return False
        else:
            raise Conflict(f"{request} has changed meanwhile: look again")
    for name, value in changes.items():
        setattr(request, name, value)
    return True


def note(
    request: Request,
    event: str,
    *,
    cause: str,
    target: str,
    actor: User | None,
    now: datetime,
    source: str | None = None,
) -> None:
    """A line of the request's history, in the caller's transaction, and the signal after commit."""
    RequestEvent.objects.create(
        request=request, at=now, event=event, source=request.state if source is None else source, target=target,
        attempt=request.attempt, actor=actor, cause=cause[:500],
    )  # fmt: skip
    transaction.on_commit(partial(requests_changed.send, sender=Request, requests=[request.pk]))
