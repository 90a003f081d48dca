"""Who holds which card when: the ledger as a list, and as lanes of nodes or cards over time."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from psycopg.types.range import TimestamptzRange

from inventory.models import Card, Node
from pools.models import Allocation, Pool
from pools.selectors.membership import places
from sensaka.identity.models import User

MOST = 5000
"""Rows of the ledger in one picture; the oldest beyond are left out, and the picture says so."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows of the ledger: of a pool, of a tenant, unassigned ones, open ones, those of a card or request."""

    pool: UUID | None = None
    tenant: UUID | None = None
    unassigned: bool = False
    open: bool | None = None
    card: UUID | None = None
    text: str = ""

    def condition(self, now: datetime) -> Q:
        """As a filter on allocations."""
        found = Q()
        if self.pool is not None:
            found &= Q(pool=self.pool)
        if self.tenant is not None:
            found &= Q(tenant=self.tenant)
        if self.unassigned:
            found &= Q(tenant=None)
        if self.open is not None:
            found &= Q(span__contains=now) if self.open else ~Q(span__contains=now)
        if self.card is not None:
            found &= Q(card=self.card)
        for word in self.text.split()[:5]:
            found &= (
                Q(node__name__icontains=word) | Q(project__name__icontains=word) | Q(tenant__name__icontains=word)
                | Q(request__name__icontains=word) | Q(job__job_id__istartswith=word)
            )  # fmt: skip
        return found


def holdings(user: User, wanted: Wanted, *, now: datetime) -> QuerySet[Allocation]:
    """Rows of the ledger that a person sees, newest first."""
    rows = Allocation.objects.visible_to(user).filter(wanted.condition(now))
    return rows.select_related(
        "card__model", "node", "slice", "tenant", "project", "spec", "request__spec", "job", "pool"
    ).order_by("-span", "-id")


@dataclass(frozen=True, slots=True)
class Bar:
    """What somebody held on a lane, cut to the span. `key` names the request, job or single row that it is of."""

    key: str
    row: UUID
    start: datetime
    end: datetime
    over: bool


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds, as whom: told once for all bars of one request or job."""

    row: UUID
    what: str
    tenant: str
    project: str
    cards: int
    assigned: bool
    suspended: bool
    over: bool


@dataclass(frozen=True, slots=True)
class Lane:
    """A node or card with what was held of it, in the order of its start."""

    id: UUID
    name: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """Lanes by name, holders by key. `truncated`: more than MOST rows were found, the oldest are left out."""

    lanes: tuple[Lane, ...]
    holders: dict[str, Holder]
    truncated: bool


_ROW = (
    "id", "card", "node", "span", "request", "request__name", "request__count", "request__spec__name", "job",
    "job__job_id", "job__name", "tenant__name", "project__name", "suspended", "spec__name",
)  # fmt: skip


def picture(wanted: Wanted, *, start: datetime, end: datetime, by: str, now: datetime) -> Picture:
    """What was held from `start` to `end` by node or card, with empty lanes too. A fixed number of queries.

    A request or job that holds several cards of a node is one bar of the node's lane.
    """
    rows: list[dict[str, Any]] = list(
        Allocation.objects.filter(wanted.condition(now), span__overlap=TimestamptzRange(start, end))
        .order_by("-span", "-id")
        .values(*_ROW)[: MOST + 1]
    )
    bars: dict[UUID, dict[tuple[str, datetime, datetime], Bar]] = defaultdict(dict)
    holders: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows[:MOST]:
        key = str(row["request"] or row["job"] or row["id"])
        span = row["span"]
        over = span.upper is not None and span.upper <= now
        bar = Bar(key, row["id"], max(span.lower, start), min(span.upper or now, end, max(now, start)), over)
        bars[row["node"] if by == "node" else row["card"]].setdefault((key, bar.start, bar.end), bar)
        holders[key].append(row)
    lanes = _lanes(by, wanted.pool, bars)
    return Picture(tuple(lanes), {key: _holder(own, now) for key, own in holders.items()}, len(rows) > MOST)


def _holder(rows: list[dict[str, Any]], now: datetime) -> Holder:
    first = rows[0]
    return Holder(
        row=first["id"],
        what=_what(first),
        tenant=first["tenant__name"] or "",
        project=first["project__name"] or "",
        cards=len({row["card"] for row in rows}),
        assigned=first["tenant__name"] is not None,
        suspended=any(row["suspended"] and row["span"].upper is None for row in rows),
        over=all(row["span"].upper is not None and row["span"].upper <= now for row in rows),
    )


def _what(row: dict[str, Any]) -> str:
    if row["request"] is not None:
        return row["request__name"] or f"{row['request__count']} x {row['request__spec__name']}"
    if row["job"] is not None:
        return f"job {row['job__job_id']} {row['job__name']}".strip()
    return row["spec__name"] or "held"


def _lanes(by: str, pool: UUID | None, bars: dict[UUID, dict[Any, Bar]]) -> list[Lane]:
    """Those of the pool, or of all pools, and whatever else was held."""
    own = [card for card, place in places().items() if pool in (None, place.pool)]
    if by == "card":
        cards = Card.objects.filter(Q(pk__in=own) | Q(pk__in=list(bars))).exclude(state="retired")
        named = [
            (key, f"{node or 'no node'} {slot or address}".strip())
            for key, node, slot, address in cards.order_by("node__name", "slot", "pci_address", "id").values_list(
                "id", "node__name", "slot", "pci_address"
            )
        ]
    else:
        nodes = Node.objects.filter(Q(pk__in=Card.objects.filter(pk__in=own).values("node")) | Q(pk__in=list(bars)))
        named = list(nodes.exclude(state="retired").order_by("name").values_list("id", "name"))
    return [
        Lane(key, name, tuple(sorted(bars.get(key, {}).values(), key=lambda bar: bar.start))) for key, name in named
    ]


def pools_with_rows() -> QuerySet[Pool]:
    """Pools, as the filter offers them."""
    return Pool.objects.order_by("rank", "name")
