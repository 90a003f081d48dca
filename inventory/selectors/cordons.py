"""Cordons: which nodes are out of scheduling, by whom and why, and what runs there."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from inventory.models import Cordon, Job, Node, SchedulerNode
from inventory.selectors.jobs import running_on


def cordoned_nodes() -> set[UUID]:
    """The nodes with an open cordon, whoever's: their cards are not available."""
    return set(Cordon.objects.filter(lifted_at=None).values_list("node", flat=True))


def _with_things(rows: QuerySet[Cordon]) -> QuerySet[Cordon]:
    return rows.select_related("node__site", "cluster", "requested_by", "lift_requested_by")


def open_cordons(
    *, cluster: UUID | None = None, node: UUID | None = None, ours: bool | None = None
) -> list[Cordon]:  # fmt: skip
    """The open ones, newest first."""
    rows = Cordon.objects.filter(lifted_at=None).order_by("-requested_at", "-id")
    asked = {"cluster": cluster, "node": node, "ours": ours}
    return list(_with_things(rows.filter(**{name: value for name, value in asked.items() if value is not None})))


def cordons_of_node(node: UUID, *, limit: int = 50) -> list[Cordon]:
    """The open ones first, then the last ones that were lifted."""
    rows = list(_with_things(Cordon.objects.filter(node=node).order_by("-requested_at", "-id"))[:limit])
    return sorted(rows, key=lambda row: row.lifted_at is not None)


def cordon_page(
    *, cluster: UUID | None = None, before: tuple[datetime, UUID] | None = None, limit: int = 50
) -> list[Cordon]:  # fmt: skip
    """At most `limit` cordons older than `before` (request and id of the last one shown), lifted ones too."""
    rows = Cordon.objects.order_by("-requested_at", "-id")
    if cluster is not None:
        rows = rows.filter(cluster=cluster)
    if before is not None:
        at, key = before
        rows = rows.filter(requested_at__lte=at).exclude(requested_at=at, id__gte=key)
    return list(_with_things(rows)[:limit])


@dataclass(frozen=True, slots=True)
class BeforeCordon:
    """What a person has to know before taking a node out or returning it.

    `scheduled_as` are its present names in schedulers, `facts_at` how old the facts are.
    """

    node: Node
    scheduled_as: list[SchedulerNode]
    cordons: list[Cordon]
    running: list[Job]
    facts_at: datetime | None

    @property
    def ours(self) -> Cordon | None:
        """Our open cordon."""
        return next((row for row in self.cordons if row.ours), None)

    @property
    def foreign(self) -> Cordon | None:
        """Somebody else's open cordon, which stays until they lift it."""
        return next((row for row in self.cordons if not row.ours), None)


def before_cordon(node_id: UUID) -> BeforeCordon:
    """One node for its cordon and drain dialogs, in a fixed number of queries. Raises Node.DoesNotExist."""
    node = Node.objects.select_related("site", "cluster").get(pk=node_id)
    names = list(
        SchedulerNode.objects.filter(node=node, gone_at=None).select_related("connection__cluster").order_by("name")
    )
    dates = [row.connection.jobs_read_at for row in names]
    known = [moment for moment in dates if moment is not None]
    return BeforeCordon(
        node=node,
        scheduled_as=names,
        cordons=open_cordons(node=node_id),
        running=running_on([node_id]),
        facts_at=min(known) if known and len(known) == len(dates) else None,
    )


def running_by_node(nodes: Iterable[UUID]) -> dict[UUID, list[Job]]:
    """What occupies each of these nodes now."""
    wanted = set(nodes)
    found: dict[UUID, list[Job]] = {key: [] for key in wanted}
    for job in running_on(wanted):
        for node in job.nodes.all():
            if node.id in wanted:
                found[node.id].append(job)
    return found
