"""Jobs that hold cards of which nobody tells which: they are in no allocation, and must not be forgotten."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from inventory.models import Job
from inventory.rules.jobs import HOLDING
from pools.models import Allocation


@dataclass(frozen=True, slots=True)
class UnknownCards:
    """A job that holds `cards` cards (or shares of them) since a time, and why it is not known which."""

    job: UUID
    job_id: str
    cluster: str
    user: str
    account: str
    cards: int
    shares: int
    since: datetime | None
    why: str


_NOT_TOLD = Q(cards_known=False) | Q(shares__gt=0, cards=0)


def cards_unknown(*, most: int = 200) -> tuple[int, list[UnknownCards]]:
    """How many jobs hold cards that are not known, and the first of them, longest first. Two queries."""
    rows = Job.objects.filter(_NOT_TOLD, open=True, state__in=HOLDING, started_at__isnull=False)
    fields = (
        "id", "job_id", "cluster__name", "user", "account", "cards", "shares", "started_at", "cards_reason",
    )  # fmt: skip
    shown = rows.order_by("started_at", "id").values_list(*fields)[:most]
    told = [UnknownCards(*row) for row in shown]
    return rows.count(), told


def nodes_of_unknown() -> set[UUID]:
    """The nodes on which such a job runs: which of their cards are free nobody knows. One query.

    Jobs that we launched are left out: the ledger has them on as many cards of the node as they were promised.
    """
    entered = Allocation.objects.filter(span__upper_inf=True, job__isnull=False).values("job")
    rows = Job.objects.filter(_NOT_TOLD, open=True, state__in=HOLDING).exclude(pk__in=entered)
    return {node for node in rows.values_list("nodes", flat=True) if node is not None}
