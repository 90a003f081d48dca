"""What ran where and when: lanes of nodes or cards with the runs that held them in a span of time."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from inventory.models import Card, JobCard, JobNode, Node

MOST_RUNS = 5000
"""A picture of more runs than these shows nobody anything; `truncated` says that some are left out."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run on a lane, from its start to its end cut to the span. `over`: its end is known.

    The end of a lost run is when it was last seen.
    """

    job: UUID
    job_id: str
    name: str
    user: str
    account: str
    state: str
    start: datetime
    end: datetime
    over: bool
    lost: bool
    cards: int
    cards_known: bool | None


@dataclass(frozen=True, slots=True)
class Lane:
    """A node or card with its runs in the order of their start; several may overlap."""

    id: UUID
    name: str
    node: UUID
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Lanes in the order of their names. `truncated`: more than MOST_RUNS were found, the oldest are left out."""

    start: datetime
    end: datetime
    lanes: tuple[Lane, ...]
    truncated: bool


_JOB = ("id", "job_id", "name", "user", "account", "state", "started_at", "ended_at", "seen_at", "lost_at", "cards",
        "cards_known")  # fmt: skip


def timeline(
    *, cluster: UUID, start: datetime, end: datetime, by: str = "node", nodes: Iterable[UUID] | None = None
) -> Timeline:
    """The runs of a cluster per node, or per card where cards are known, with empty lanes too. Two queries.

    `by` is node or card, ValueError otherwise; `nodes` keeps to some nodes.
    """
    if by not in ("node", "card"):
        raise ValueError("by is node or card")
    now = timezone.now()
    chosen = None if nodes is None else list(nodes)
    of_nodes = Q() if chosen is None else Q(node__in=chosen)
    held = JobNode.objects.filter(of_nodes) if by == "node" else JobCard.objects.filter(of_nodes, card__isnull=False)
    ran = Q(job__open=True) | Q(job__ended_at__gt=start) | Q(job__ended_at=None, job__seen_at__gt=start)
    rows = (
        held.filter(ran, job__cluster=cluster, job__started_at__lt=end)
        .order_by("-job__started_at", "job_id")
        .values(by, *(f"job__{name}" for name in _JOB))
        .distinct()[: MOST_RUNS + 1]
    )
    found: dict[UUID, list[Run]] = defaultdict(list)
    rows = list(rows)
    for row in rows[:MOST_RUNS]:
        found[row[by]].append(_run(row, start, end, now))
    lanes = _node_lanes(cluster, chosen, found) if by == "node" else _card_lanes(cluster, chosen, found)
    return Timeline(start, end, tuple(lanes), truncated=len(rows) > MOST_RUNS)


def _run(row: dict[str, Any], start: datetime, end: datetime, now: datetime) -> Run:
    lost = row["job__lost_at"] is not None
    over = row["job__ended_at"] or (row["job__seen_at"] if lost else None)
    return Run(
        job=row["job__id"],
        job_id=row["job__job_id"],
        name=row["job__name"],
        user=row["job__user"],
        account=row["job__account"],
        state=row["job__state"],
        start=max(row["job__started_at"], start),
        end=min(over or now, end),
        over=over is not None,
        lost=lost,
        cards=row["job__cards"],
        cards_known=row["job__cards_known"],
    )


def _node_lanes(cluster: UUID, chosen: list[UUID] | None, found: dict[UUID, list[Run]]) -> list[Lane]:
    asked = Q() if chosen is None else Q(pk__in=chosen)
    rows = Node.objects.filter(asked, Q(cluster=cluster) | Q(pk__in=found)).exclude(state="retired").order_by("name")
    return [Lane(row.id, row.name, row.id, tuple(reversed(found.get(row.id, [])))) for row in rows.only("id", "name")]


def _card_lanes(cluster: UUID, chosen: list[UUID] | None, found: dict[UUID, list[Run]]) -> list[Lane]:
    asked = Q() if chosen is None else Q(node__in=chosen)
    rows = (
        Card.objects.filter(asked, Q(node__cluster=cluster) | Q(pk__in=found))
        .exclude(state="retired")
        .exclude(node=None)
        .order_by("node__name", "slot", "pci_address", "id")
        .values_list("id", "node_id", "node__name", "slot", "pci_address")
    )
    return [
        Lane(key, f"{name} {slot or address}".strip(), node, tuple(reversed(found.get(key, []))))
        for key, node, name, slot, address in rows
        if node is not None
    ]
