"""An operator's own order of a queue: one request is put before another, and all others keep theirs."""

from functools import partial

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from pools.models import Pool, Request, RequestEvent
from pools.selectors.access import require_operator
from pools.selectors.requests import QUEUE_ORDER
from pools.signals import requests_changed
from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, InvalidInput

HIGHEST = 1000
"""Boosts are -HIGHEST to HIGHEST."""


def boosts_for(order: list[int], place: int) -> tuple[int, dict[int, int]]:
    """The boost that puts a request before the one at `place` of an order, and the new boosts that others need.

    `order` are the boosts of the others, first come first; `place` may be their number: the end. A higher
    boost goes first over everything else, so the request gets one more than the one that it goes before,
    and those ahead are raised as far as they must be to stay ahead, keeping their own order.
    """
    if place >= len(order):
        return (order[-1] - 1 if order else 0), {}
    own = order[place] + 1
    raised: dict[int, int] = {}
    least = own + 1
    previous: int | None = None
    for index in range(place - 1, -1, -1):
        before = order[index]
        if previous is not None and before > previous:
            least += 1  # was above the one behind it, and stays so
        if before >= least:
            break
        raised[index] = least
        previous = before
    return own, raised


def put_before(request: Request, other: Request | None, *, why: str, actor: User) -> int:
    """Puts a waiting request before another of its pool's queue, or at its end; how many others were raised for it.

    Raises PermissionDenied for who is no operator, InvalidInput with the field without a reason or for a
    request of another queue, and Conflict when one of them no longer waits or no higher place is left.
    """
    require_operator(actor)
    if not why.strip():
        raise InvalidInput("say why it moves", field="why")
    if other is not None and other.pool_id != request.pool_id:
        raise InvalidInput("it waits in another pool's queue", field="before")
    with transaction.atomic():
        Pool.objects.select_for_update(no_key=True).get(pk=request.pool_id)  # one change of its order at a time
        waiting = Request.objects.filter(pool=request.pool_id, state="queued")
        moved = waiting.select_for_update().filter(pk=request.pk).first()
        ahead = _ahead_of(other, waiting.exclude(pk=request.pk))
        if moved is None or ahead is None:
            raise Conflict("it no longer waits: look again")
        own, raised = boosts_for([row.boost for row in ahead], len(ahead) - (other is not None))
        if max([own, *raised.values()]) > HIGHEST or own < -HIGHEST:
            raise Conflict("no place is left there: set boosts back to 0 first")
        _write(moved, own, [(ahead[index], boost) for index, boost in raised.items()], why.strip(), actor)
    request.boost = own
    return len(raised)


def _ahead_of(other: Request | None, waiting: QuerySet[Request]) -> list[Request] | None:
    """Those ahead of `other`, and itself, in their order; None when it does not wait. Without it, the last alone.

    The queue is read as far as it is needed: people move work near its head.
    """
    rows = waiting.only("state", "attempt", "boost")
    if other is None:
        return list(rows.order_by("boost")[:1])
    found = []
    for row in rows.order_by(*QUEUE_ORDER).iterator(chunk_size=500):
        found.append(row)
        if row.pk == other.pk:
            return found
    return None


def _write(moved: Request, own: int, raised: list[tuple[Request, int]], why: str, actor: User) -> None:
    """The boosts, a line of each history, and the signal after commit: three statements for any number."""
    now = timezone.now()
    lines = [(moved, own, f"{actor} moved it in the queue (boost {own:+d}): {why}")]
    lines += [(row, boost, f"{actor} raised it to {boost:+d}, so that it stays ahead: {why}") for row, boost in raised]
    events = []
    for row, boost, cause in lines:
        row.boost, row.updated_at = boost, now
        events.append(
            RequestEvent(
                request=row, at=now, event="boost", source=row.state, target=row.state, attempt=row.attempt,
                actor=actor, cause=cause[:500],
            )
        )  # fmt: skip
    Request.objects.bulk_update([row for row, _boost, _cause in lines], ["boost", "updated_at"])
    RequestEvent.objects.bulk_create(events)
    changed = [row.pk for row, _boost, _cause in lines]
    transaction.on_commit(partial(requests_changed.send, sender=Request, requests=changed))
