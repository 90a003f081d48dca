"""Clusters: how their scheduler is reached, what it last said and when, and what runs there."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, Prefetch, Q
from django.utils import timezone

from inventory.models import (
    Cluster,
    ClusterConnection,
    Cordon,
    Job,
    JournalEntry,
    Reservation,
    SchedulerNode,
    SchedulerQueue,
)
from inventory.selectors.cordons import open_cordons

_LATE_INTERVALS = 3
_SLACK = timedelta(seconds=15)
_SECRETS = ("token", "jwt_key", "kubeconfig", "tls_authority")


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """A cluster with its scheduler's condition and numbers.

    `condition`: none (no connection), off, new (never reached), lost (out of reach, `reason` says why;
    the facts are of `facts_at`), late, partly (some of it could not be read), well.
    """

    cluster: Cluster
    connection: ClusterConnection | None
    condition: str
    reason: str
    facts_at: datetime | None
    nodes: int
    running: int
    waiting: int
    cordoned: int


def condition_of(connection: ClusterConnection | None, *, now: datetime) -> tuple[str, str]:
    """A connection's condition and its reason in words."""
    if connection is None:
        return "none", ""
    if not connection.enabled:
        return "off", "switched off"
    if connection.error_kind:
        return "lost", connection.error_detail or connection.error_kind.replace("_", " ")
    if connection.succeeded_at is None:
        return "new", "not reached yet"
    if now - connection.succeeded_at > timedelta(seconds=_LATE_INTERVALS * connection.interval) + _SLACK:
        return "late", "not read for three turns"
    if connection.failures:
        return "partly", connection.failures[0].get("detail", "") or connection.reason
    return "well", connection.reason


def _facts_at(connection: ClusterConnection | None) -> datetime | None:
    """How old the oldest of the facts is: of nodes or jobs, whichever was read completely the longer ago."""
    if connection is None or connection.nodes_read_at is None or connection.jobs_read_at is None:
        return None
    return min(connection.nodes_read_at, connection.jobs_read_at)


def cluster_rows(*, now: datetime | None = None) -> list[ClusterRow]:
    """Every cluster, in four queries for any number of clusters."""
    now = now or timezone.now()
    connections = ClusterConnection.objects.defer(*_SECRETS)
    clusters = (
        Cluster.objects.select_related("site")
        .prefetch_related(Prefetch("connection", queryset=connections))
        .annotate(node_count=Count("nodes", filter=~Q(nodes__state="retired")))
        .order_by("site__name", "name")
    )
    jobs = {
        key: (running, waiting)
        for key, running, waiting in Job.objects.filter(open=True)
        .order_by()
        .values_list("cluster")
        .annotate(running=Count("id", filter=~Q(state="pending")), waiting=Count("id", filter=Q(state="pending")))
    }
    out = dict(
        Cordon.objects.filter(lifted_at=None)
        .exclude(cluster=None)
        .order_by()
        .values_list("cluster")
        .annotate(number=Count("node", distinct=True))
    )
    return [_row(cluster, jobs.get(cluster.id, (0, 0)), out.get(cluster.id, 0), now) for cluster in clusters]


def _row(cluster: Cluster, jobs: tuple[int, int], cordoned: int, now: datetime) -> ClusterRow:
    connection: ClusterConnection | None = getattr(cluster, "connection", None)
    condition, reason = condition_of(connection, now=now)
    nodes: int = cluster.node_count  # type: ignore[attr-defined]
    return ClusterRow(cluster, connection, condition, reason, _facts_at(connection), nodes, *jobs, cordoned)


@dataclass(frozen=True, slots=True)
class ClusterDetail:
    """One cluster with everything that its page shows. `nodes` are the scheduler's, with ours; gone ones last."""

    cluster: Cluster
    connection: ClusterConnection | None
    condition: str
    reason: str
    facts_at: datetime | None
    nodes: list[SchedulerNode]
    queues: list[SchedulerQueue]
    reservations: list[Reservation]
    cordons: list[Cordon]
    jobs: dict[str, int]
    journal: list[JournalEntry]
    now: datetime


def cluster_detail(cluster_id: UUID, *, journal: int = 50, with_nodes: bool = False) -> ClusterDetail:
    """A cluster in a fixed number of queries, without secrets. Raises Cluster.DoesNotExist.

    Its journal is what happened to the cluster itself, its cordons and jobs; `with_nodes` also what happened to
    its nodes and their cards, which is most of it.
    """
    now = timezone.now()
    connections = ClusterConnection.objects.defer(*_SECRETS)
    cluster = (
        Cluster.objects.select_related("site")
        .prefetch_related(Prefetch("connection", queryset=connections))
        .get(pk=cluster_id)
    )
    connection: ClusterConnection | None = getattr(cluster, "connection", None)
    condition, reason = condition_of(connection, now=now)
    of_it = Q(connection__cluster=cluster)
    nodes = SchedulerNode.objects.filter(of_it).select_related("node").order_by("name")
    about = Q(cluster=cluster) | Q(node__cluster=cluster) if with_nodes else Q(cluster=cluster)
    entries = JournalEntry.objects.filter(about)
    jobs = Job.objects.filter(open=True, cluster=cluster).order_by()
    return ClusterDetail(
        cluster=cluster,
        connection=connection,
        condition=condition,
        reason=reason,
        facts_at=_facts_at(connection),
        nodes=sorted(nodes, key=lambda row: row.gone_at is not None),
        queues=list(SchedulerQueue.objects.filter(of_it).order_by("name")),
        reservations=list(Reservation.objects.filter(of_it).order_by("starts_at", "name")),
        cordons=open_cordons(cluster=cluster_id),
        jobs=dict(jobs.values_list("state").annotate(number=Count("id"))),
        journal=list(entries.select_related("node", "card", "actor").order_by("-at", "-id")[:journal]),
        now=now,
    )
