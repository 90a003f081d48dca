"""What is held now: the open rows of the ledger, by card."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, ExpressionWrapper, F, Func, IntegerField, Q, QuerySet, Sum

from pools.models import Allocation
from sensaka.identity.models import User

_WIDTH = Func(F("share"), function="upper") - Func(F("share"), function="lower")


def open_at(now: datetime) -> "QuerySet[Allocation]":
    """Allocations that hold their card at `now`."""
    return Allocation.objects.filter(span__contains=now)


@dataclass(frozen=True, slots=True)
class Held:
    """One open row: how much of which card (thousandths), through which spec, for whom."""

    card: UUID
    thousandths: int
    spec: UUID | None
    tenant: UUID | None
    project: UUID | None
    source: str


def held_by_card(now: datetime, within: Q | None = None) -> dict[UUID, list[Held]]:
    """The open rows of each held card, those alone that meet `within`. One query."""
    # the width comes as a number: reading thousands of ranges would take longer than everything else
    rows = (
        open_at(now)
        .filter(within or Q())
        .annotate(width=ExpressionWrapper(_WIDTH, output_field=IntegerField()))
        .values_list("card", "width", "spec", "tenant", "project", "source")
    )
    found: dict[UUID, list[Held]] = {}
    for card, width, spec, tenant, project, source in rows:
        found.setdefault(card, []).append(Held(card, width, spec, tenant, project, source))
    return found


def thousandths(rows: Iterable[Held]) -> int:
    """How much of a card some rows hold."""
    return sum(row.thousandths for row in rows)


def held_of(user: User, now: datetime) -> list[dict[str, Any]]:
    """What a person's tenants hold now, by tenant, project and card model: cards, and thousandths of them."""
    rows = (
        Allocation.objects.visible_to(user)
        .filter(span__contains=now, tenant__isnull=False)
        .values("tenant__name", "project__name", "card__model__name")
        .annotate(cards=Count("card", distinct=True), thousandths=Sum(_WIDTH, output_field=IntegerField()))
        .order_by("tenant__name", "project__name", "card__model__name")
    )
    return [dict(row) for row in rows]
