"""The topics `jobs:<ids>` and `job:<id>`: what of a run moves on a page."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from inventory.models import Job, JournalEntry, JournalKind
from inventory.rules.job_words import clock, reason_words
from sensaka.live import reach
from sensaka.live.cells import Cell, Cells, decimal, unknown, version
from sensaka.live.words import JOB_TAGS, JOB_WORDS

_LIST = (
    "id", "state", "raw_state", "reason", "held", "open", "lost_at", "missing_since", "submitted_at", "eligible_at",
    "started_at", "ended_at", "suspended", "seen_at", "cards", "shares", "cards_known", "final_gpu_seconds",
    "node_names", "cluster", "cluster__scheduler",
)  # fmt: skip


def state_cell(job: Job) -> Cell:
    """What a run does, or how it ended."""
    hint = f"The scheduler says {job.raw_state}." if job.raw_state else ""
    if job.lost_at is not None:
        return Cell("Lost", "unknown", hint="It is no longer listed, and no record of its end was found.")
    word = "Held" if job.state == "pending" and job.held else JOB_WORDS.get(job.state, job.state)
    if job.open and (at := reach.facts_of(job.cluster_id)) is not None:
        hint = f"Its cluster is not being read at present. This is what was so at {at:%Y-%m-%d %H:%M} UTC."
        return Cell(f"{word} when last read", "unknown", hint=hint)
    if word == "Held":
        return Cell(word, "off", hint=hint)
    if job.missing_since is not None and job.open:
        hint = "The scheduler no longer lists it; its end is being looked up."
        return Cell(f"{word}, not listed", "unknown", hint=hint)
    return Cell(word, JOB_TAGS.get(job.state, "unknown"), hint=hint)


def known_at(job: Job, now: datetime) -> datetime:
    """Up to when a run that is not over is known: now, or when its cluster was last read."""
    return (reach.facts_of(job.cluster_id) or now) if job.open else now


def waited(job: Job, now: datetime) -> float | None:
    """Seconds in the queue from when it could start, so far or in all; None for one that never started and is over."""
    begin = max(job.eligible_at, job.submitted_at) if job.eligible_at else job.submitted_at
    until = job.started_at or (known_at(job, now) if job.open else None)
    return None if until is None else max((until - begin).total_seconds(), 0)


def ran(job: Job, now: datetime) -> float | None:
    """Seconds from start to end, so far or in all, with the time in which it was suspended; None before a start."""
    if job.started_at is None:
        return None
    until = job.ended_at or (known_at(job, now) if job.open else job.seen_at)
    return max((until - job.started_at).total_seconds(), 0)


def _length(seconds: float | None, hint: str) -> Cell:
    return unknown(hint) if seconds is None else Cell(clock(seconds), hint=hint)


def gpu_time(job: Job, now: datetime) -> Cell:
    """Seconds of cards as hours; unknown where a run has shares only."""
    hint = "Cards held times the time from start to end, without the time in which it was suspended."
    if job.lost_at is not None:
        hint += " It was lost: counted up to when it was last seen."
    seconds = job.gpu_seconds(known_at(job, now))
    if seconds is None:
        return unknown("No cards held, or shares only, whose worth the scheduler does not say.")
    return Cell(decimal(seconds / 3600, "h", 1 if seconds < 360_000 else 0), hint=f"{hint} {seconds:,} s.")


def row_cells(prefix: str, job: Job, now: datetime) -> Cells:
    """The cells of a run in a list. The cluster's scheduler has to be at hand."""
    said = reason_words(job.cluster.scheduler, job.reason)
    return {
        f"{prefix}.state": state_cell(job),
        f"{prefix}.reason": Cell(said, hint=job.reason if said != job.reason else ""),
        f"{prefix}.waited": _length(waited(job, now), "In the queue, from when it could start."),
        f"{prefix}.ran": _length(ran(job, now), "From start to end, or until now."),
        f"{prefix}.gpu": gpu_time(job, now),
    }


def newest() -> tuple[object, ...]:
    """The run that was submitted last, wherever."""
    return tuple(Job.objects.order_by("-submitted_at", "-id").values_list("id", flat=True)[:1])


def list_cells(ids: Iterable[UUID]) -> Cells:
    """The rows of a list of runs, and a version that changes when one moves or a newer one comes."""
    now = timezone.now()
    wanted = list(ids)
    found: Cells = {}
    places = []
    rows = Job.objects.filter(pk__in=wanted).select_related("cluster").only(*_LIST).order_by("id")
    for job in rows:
        found.update(row_cells(f"job.{job.pk}", job, now))
        places.append((str(job.pk), job.started_at, job.cards, job.cards_known, tuple(job.node_names)))
    found["jobs.version"] = version(places, newest())
    return found


def cells(job_id: UUID) -> Cells:
    """Everything on the page of a run that moves; none of one that is gone."""
    job = Job.objects.filter(pk=job_id).select_related("cluster").first()
    if job is None:
        return {}
    found = row_cells("job", job, timezone.now())
    acts = JournalEntry.objects.filter(
        kind=JournalKind.JOB_ACT, cluster=job.cluster_id, detail__job_id=job.job_id
    ).order_by("-at", "-id")
    same = Job.objects.filter(cluster=job.cluster_id, job_id=job.job_id)
    found["facts.version"] = version(job.state, job.held, job.open, job.updated_at, tuple(job.node_names))
    found["runs.version"] = version(list(same.order_by("id").values_list("id", "state")))
    found["acts.version"] = version(list(acts.values_list("id", flat=True)[:1]))
    return found
