"""Requests as pages list them: a person's own, the queue of a pool, and what each of them holds."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from pools.models import Allocation, Extension, ExtensionState, Request, RequestEvent
from pools.rules.lifecycle import ENDED
from pools.selectors.access import managed_tenants
from pools.selectors.reasons import ids_among
from sensaka.identity.models import User

Cursor = tuple[datetime, UUID]
_SHOWN = ("project__tenant", "spec", "pool", "priority", "submitter")
QUEUE_ORDER = (
    F("boost").desc(), F("position").asc(nulls_last=True), F("priority__value").desc(), F("waited_since").asc(),
    F("id").asc(),
)  # fmt: skip
"""An operator's own order, then that of the last pass of admission; what it has not seen yet by class and age."""


def requests_seen(user: User) -> QuerySet[Request]:
    """What a person may see, with everything that a line of a list says of it. Long texts are left out."""
    return Request.objects.visible_to(user).select_related(*_SHOWN).defer("script", "environment", "command")


def work_page(user: User, *, mine: bool, ended: bool, before: Cursor | None, limit: int) -> list[Request]:
    """A person's requests, or those of all of their teams, newest first; those that go on, or those that are over."""
    over = Q(state__in=sorted(ENDED))
    rows = requests_seen(user).filter(over if ended else ~over)
    if mine:
        rows = rows.filter(submitter=user)
    if before is not None:
        at, key = before
        rows = rows.filter(Q(submitted_at__lt=at) | Q(submitted_at=at, pk__lt=key))
    return list(rows.order_by("-submitted_at", "-id")[:limit])


def queue_of(pool: UUID) -> QuerySet[Request]:
    """The waiting requests of a pool in their order."""
    rows = Request.objects.filter(pool=pool, state="queued").select_related(*_SHOWN)
    return rows.defer("script", "environment", "command").order_by(*QUEUE_ORDER)


def first_of_queues(pools: Iterable[UUID], *, each: int) -> dict[UUID, list[Request]]:
    """The first waiting requests of each of these pools, in their order. One query."""
    place = Window(RowNumber(), partition_by=F("pool"), order_by=list(QUEUE_ORDER))
    rows = Request.objects.filter(pool__in=list(pools), state="queued").select_related(*_SHOWN)
    rows = rows.defer("script", "environment", "command").annotate(place=place)
    found: dict[UUID, list[Request]] = defaultdict(list)
    for row in rows.filter(place__lte=each).order_by("place"):
        found[row.pool_id].append(row)
    return found


def waiting_by_pool() -> dict[UUID, int]:
    """How many requests wait in each pool where any does."""
    rows = Request.objects.filter(state="queued").order_by().values_list("pool").annotate(number=Count("pk"))
    return dict(rows)


def cards_of(requests: Iterable[UUID], *, now: datetime) -> dict[UUID, int]:
    """How many cards, whole or in part, each of these requests holds at `now`. One query."""
    rows = Allocation.objects.filter(request__in=list(requests), span__contains=now).order_by()
    return dict(rows.values_list("request").annotate(cards=Count("card", distinct=True)))


def asked_extensions(user: User) -> QuerySet[Extension]:
    """Wishes for more time that wait for a decision, as far as a person sees them, oldest first."""
    return _with_request(user).filter(state=ExtensionState.ASKED).order_by("created_at", "id")


def decided_extensions(user: User, *, limit: int) -> list[Extension]:
    """The wishes that were decided last."""
    rows = _with_request(user).exclude(state=ExtensionState.ASKED)
    return list(rows.order_by(F("decided_at").desc(nulls_last=True), "-id")[:limit])


def _with_request(user: User) -> QuerySet[Extension]:
    rows = Extension.objects.visible_to(user)
    return rows.select_related("request__project__tenant", "request__spec", "request__pool", "asked_by", "decided_by")


def decidable(user: User, extensions: Collection[Extension]) -> set[UUID]:
    """Which of these a person may decide: operators all, admins those within the pool's longest run. One query."""
    if user.operates:
        return {one.pk for one in extensions}
    own = set(managed_tenants(user).values_list("pk", flat=True))
    return {
        one.pk
        for one in extensions
        if one.request.project.tenant_id in own
        and one.request.pool.longest_run is not None
        and one.request.time_limit + one.seconds <= one.request.pool.longest_run
    }


def changeable(user: User, requests: Collection[Request]) -> set[UUID]:
    """Which of these a person may hold, cancel, release or extend. They have to be visible to them. One query."""
    if user.operates:
        return {one.pk for one in requests}
    own = set(managed_tenants(user).values_list("pk", flat=True))
    return {
        one.pk
        for one in requests
        if one.project.tenant_id in own or (one.submitter_id == user.pk and not user.sees_all_tenants)
    }


@dataclass(frozen=True, slots=True)
class Happened:
    """A line of a request's history as somebody may read it."""

    event: RequestEvent
    text: str


def history(user: User, request: Request) -> list[Happened]:
    """Everything that happened to a request, newest first. Whose work displaced it stays with those who may see it."""
    events = list(request.events.select_related("actor").order_by("-at", "-id"))
    others = {str(one.detail["by"]) for one in events if one.detail.get("by")}
    seen: dict[str, str] = {}
    if others:
        rows = Request.objects.visible_to(user).filter(pk__in=ids_among(others)).select_related("spec")
        seen = {str(row.pk): str(row) for row in rows.only("name", "count", "spec__name")}
    return [Happened(one, _told(one, seen)) for one in events]


def _told(event: RequestEvent, seen: Mapping[str, str]) -> str:
    """The sentence, with the name of the work that displaced it where the reader sees that."""
    name = seen.get(str(event.detail.get("by", "")))
    return f"{event.cause} ({name})" if name else event.cause
