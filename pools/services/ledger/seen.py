"""Jobs that changed, as the ledger reads them: when they ran, on which cards, and whose they are."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F, Q

from inventory.models import Card, Job, JobCard, Slice
from pools.models import Allocation, MappingRule
from pools.rules.layouts import Instance, parts_of
from pools.rules.mapping import MappingRule as Rule
from pools.rules.mapping import Owner, OwnerBook
from pools.rules.marks import PREFIX
from pools.rules.sharing import Range, geometry
from pools.rules.spans import Run

KUBERNETES = "kubernetes"
WHOLE: Range = (0, 1000)


@dataclass(frozen=True, slots=True)
class Thing:
    """What a job holds: a card or a slice, and the thousandths of the card that this is."""

    card: UUID
    slice: UUID | None
    node: UUID
    share: Range = WHOLE


@dataclass(slots=True)
class SeenJob:
    """A job of the inventory. `unknown` says why its cards are not known; "" when they are."""

    id: UUID
    cluster: UUID
    cluster_name: str
    kubernetes: bool
    job_id: str
    name: str
    account: str
    comment: str
    time_limit: int | None
    cards: int
    updated_at: datetime
    run: Run
    unknown: str
    things: list[Thing] = field(default_factory=list)

    def owner(self, book: OwnerBook) -> Owner | None:
        """Whose it is by the rules."""
        named = {"namespace" if self.kubernetes else "account": self.account}
        return book.owner(self.cluster, **named)  # type: ignore[arg-type]


_FIELDS = (
    "id", "cluster", "cluster__name", "cluster__scheduler", "job_id", "name", "account", "comment", "time_limit",
    "cards", "shares", "updated_at", "state", "started_at", "ended_at", "open", "seen_at", "suspended", "exit_code",
    "exit_signal", "cancelled_by", "cards_known", "cards_reason",
)  # fmt: skip
_SHARES = "what a share of a card is worth the scheduler does not say"

HOLDS_CARDS = Q(started_at__isnull=False, cards_known__isnull=False)
"""Jobs that the ledger is about: those that held cards at some time."""
MARKED = Q(comment__startswith=PREFIX)
"""Jobs that carry a mark of ours. Asked for along with a mark it lets the index of marks be used."""


def owner_book() -> OwnerBook:
    """All mapping rules. One query."""
    rows = MappingRule.objects.order_by().values_list("cluster", "kind", "key", "value", "tenant", "project")
    return OwnerBook(Rule(*row) for row in rows)


def changed_jobs(since: datetime | None, after: tuple[datetime, UUID] | None, most: int) -> list[SeenJob]:
    """At most `most` jobs that changed since a time, in the order of their changes, beyond `after`. One query."""
    rows = Job.objects.filter(HOLDS_CARDS | MARKED).order_by("updated_at", "id")
    if after is not None:
        rows = rows.filter(Q(updated_at__gt=after[0]) | Q(updated_at=after[0], id__gt=after[1]))
    elif since is not None:
        rows = rows.filter(updated_at__gte=since)
    return _jobs(rows.values(*_FIELDS)[:most])


def jobs_where(condition: Q) -> list[SeenJob]:
    """Jobs that meet a condition. One query."""
    return _jobs(Job.objects.filter(condition).order_by("id").values(*_FIELDS))


def _jobs(rows: Iterable[dict[str, Any]]) -> list[SeenJob]:
    return [_job(row) for row in rows]


def _job(row: dict[str, Any]) -> SeenJob:
    run = Run(
        row["state"], row["started_at"], row["ended_at"], row["open"], row["seen_at"], row["suspended"],
        row["exit_code"], row["exit_signal"], row["cancelled_by"],
    )  # fmt: skip
    return SeenJob(
        id=row["id"],
        cluster=row["cluster"],
        cluster_name=row["cluster__name"],
        kubernetes=row["cluster__scheduler"] == KUBERNETES,
        job_id=row["job_id"],
        name=row["name"],
        account=row["account"],
        comment=row["comment"],
        time_limit=row["time_limit"],
        cards=row["cards"] or row["shares"],
        updated_at=row["updated_at"],
        run=run,
        unknown="" if row["cards_known"] else row["cards_reason"] or "its cards are not known",
    )


def add_things(jobs: Sequence[SeenJob]) -> None:
    """Sets what each job holds. Four queries at most for any number of jobs."""
    by_id = {job.id: job for job in jobs}
    parts: dict[UUID, list[tuple[UUID, UUID, UUID]]] = defaultdict(list)
    held = JobCard.objects.filter(job__in=by_id).order_by("node__name", "kind", "index", "id")
    rows: list[tuple[Any, ...]] = list(held.values_list("job", "kind", "card", "slice", "node"))
    for job, kind, card, part, node in rows:
        if card is None or (kind == "mig" and part is None):
            by_id[job].unknown = by_id[job].unknown or "its cards are not known"
        elif kind in ("shard", "mps"):
            by_id[job].unknown = by_id[job].unknown or _SHARES
        elif part is None:
            by_id[job].things.append(Thing(card, None, node))
        else:
            parts[job].append((card, part, node))
    if parts:
        named = [one for own in parts.values() for one in own]
        shares = _shares({card for card, _, _ in named}, {part for _, part, _ in named})
        for job, own in parts.items():
            by_id[job].things += [Thing(card, part, node, shares[part]) for card, part, node in own]


def _shares(cards: set[UUID], asked: set[UUID]) -> dict[UUID, Range]:
    """The thousandths of each asked slice; what is in the ledger already keeps its place."""
    counts = dict(Card.objects.filter(pk__in=cards).values_list("pk", "model__mig_profiles"))
    fixed: dict[Any, Range] = {
        part: (share.lower, share.upper)
        for part, share in Allocation.objects.filter(slice__in=Slice.objects.filter(card__in=cards))
        .order_by("id")
        .values_list("slice", "share")
    }
    instances: dict[Any, list[Instance]] = defaultdict(list)
    here = Slice.objects.filter(Q(closed_at=None) | Q(pk__in=asked), card__in=cards)
    for part, card, profile in here.order_by(F("closed_at").desc(nulls_first=True), "instance_id", "id").values_list(
        "pk", "card", "profile"
    ):
        instances[card].append(Instance(part, profile))
    found: dict[Any, Range] = {}
    for card, own in instances.items():
        profiles = {one["name"]: one["count"] for one in counts.get(card) or ()}
        kept = {one.id: fixed[one.id] for one in own if one.id in fixed}
        found |= parts_of(geometry(profiles), own, kept)
    return found
