"""Jobs: filtered and page by page, of a node, of a card, and one with everything that its page shows."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Prefetch, Q, QuerySet

from inventory.models import Job, JobCard, JobNode, JournalEntry, JournalKind
from inventory.rules.jobs import HOLDING

_HEAVY = ("steps", "comment", "live_digest", "run_digest")  # what no list shows


@dataclass(frozen=True, slots=True)
class JobFilter:
    """What a list of jobs shows; what is not set passes all.

    `open`: neither ended nor lost. A run is in the time from `since` to `until` when it waited or ran
    at any moment of it. `cards`: known, unknown. `text` is found in name, id and workload.
    """

    cluster: UUID | None = None
    states: tuple[str, ...] = ()
    open: bool | None = None
    user: str = ""
    account: str = ""
    queue: str = ""
    node: UUID | None = None
    card: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    cards: str = ""
    text: str = ""


def filtered_jobs(wanted: JobFilter) -> QuerySet[Job]:
    """The runs that pass every filter, newest first. No duplicates, whatever is joined."""
    rows = Job.objects.order_by("-submitted_at", "-id")
    exact = {"cluster": wanted.cluster, "user": wanted.user, "account": wanted.account, "queue": wanted.queue}
    rows = rows.filter(**{name: value for name, value in exact.items() if value})
    if wanted.open is not None:
        rows = rows.filter(open=wanted.open)
    if wanted.states:
        rows = rows.filter(state__in=wanted.states)
    if wanted.node is not None:
        rows = rows.filter(Exists(JobNode.objects.filter(job=OuterRef("pk"), node=wanted.node)))
    if wanted.card is not None:
        rows = rows.filter(Exists(JobCard.objects.filter(job=OuterRef("pk"), card=wanted.card)))
    if wanted.since is not None:
        rows = rows.filter(_not_over_before(wanted.since))
    if wanted.until is not None:
        rows = rows.filter(submitted_at__lt=wanted.until)
    if wanted.cards:
        rows = rows.filter(cards_known=wanted.cards == "known")
    for word in wanted.text.split():
        rows = rows.filter(Q(name__icontains=word) | Q(job_id__icontains=word) | Q(workload__icontains=word))
    return rows


def _not_over_before(moment: datetime) -> Q:
    """Not surely over at that time; a lost run may have gone on until it was missed."""
    return Q(open=True) | Q(ended_at__gte=moment) | Q(ended_at=None, lost_at__gte=moment)


def with_places(rows: QuerySet[Job]) -> QuerySet[Job]:
    """The rows with cluster, nodes and cards, in three queries more for any number; without what no list shows.

    `cards_held` is the list of their `JobCard`s, each with node, card and slice; `nodes.all()` costs nothing.
    """
    cards = JobCard.objects.select_related("node", "card", "slice")
    return (
        rows.select_related("cluster__site")
        .prefetch_related("nodes", Prefetch("held_cards", queryset=cards, to_attr="cards_held"))
        .defer(*_HEAVY)
    )


def job_page(wanted: JobFilter, *, before: tuple[datetime, UUID] | None = None, limit: int = 50) -> list[Job]:
    """At most `limit` runs older than `before` (submission and id of the last one shown), with their places."""
    rows = filtered_jobs(wanted)
    if before is not None:
        at, key = before
        rows = rows.filter(submitted_at__lte=at).exclude(submitted_at=at, id__gte=key)
    return list(with_places(rows)[:limit])


def jobs_of_node(node: UUID, *, limit: int = 50) -> list[Job]:
    """What runs on a node, then what ran there last."""
    rows = filtered_jobs(JobFilter(node=node)).order_by("-open", "-submitted_at", "-id")
    return list(with_places(rows)[:limit])


def jobs_of_card(card: UUID, *, limit: int = 50) -> list[Job]:
    """What holds a card or a part of it, then what held it last."""
    rows = filtered_jobs(JobFilter(card=card)).order_by("-open", "-submitted_at", "-id")
    return list(with_places(rows)[:limit])


def running_on(nodes: Iterable[UUID]) -> list[Job]:
    """What occupies these nodes now, the largest first: what a drain would wait for or move."""
    rows = Job.objects.filter(open=True, state__in=list(HOLDING))
    rows = rows.filter(Exists(JobNode.objects.filter(job=OuterRef("pk"), node__in=list(nodes))))
    return list(with_places(rows.order_by("-cards", "started_at", "id")))


@dataclass(frozen=True, slots=True)
class JobDetail:
    """One run with the other runs of its job or workload, newest first, and the acts on it."""

    job: Job
    others: list[Job]
    acts: list[JournalEntry]


def job_detail(job_id: UUID, *, others: int = 50) -> JobDetail:
    """A run in a fixed number of queries; it carries `cards_held`. Raises Job.DoesNotExist."""
    cards = JobCard.objects.select_related("node", "card__model", "slice")
    job = (
        Job.objects.select_related("cluster__site", "cluster__connection")
        .prefetch_related("nodes", Prefetch("held_cards", queryset=cards, to_attr="cards_held"))
        .get(pk=job_id)
    )
    same = Q(job_id=job.job_id)
    if job.workload:
        same |= Q(workload=job.workload, account=job.account)
    rows = Job.objects.filter(same, cluster=job.cluster).exclude(pk=job.pk).order_by("-submitted_at", "-id")
    acts = JournalEntry.objects.filter(kind=JournalKind.JOB_ACT, cluster=job.cluster, detail__job_id=job.job_id)
    return JobDetail(
        job=job,
        others=list(rows.defer(*_HEAVY)[:others]),
        acts=list(acts.select_related("actor").order_by("-at", "-id")[:50]),
    )


def open_counts(cluster: UUID | None = None) -> dict[str, int]:
    """How many runs are in each state now, of one cluster or of all."""
    rows = Job.objects.filter(open=True)
    if cluster is not None:
        rows = rows.filter(cluster=cluster)
    return dict(rows.order_by().values_list("state").annotate(number=Count("id")))
