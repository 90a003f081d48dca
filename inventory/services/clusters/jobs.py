"""Runs on record, brought in line with what the scheduler remembers and what its accounting wrote.

Most runs of a visit are as they were: their digests tell, so only changed ones are loaded, merged (a
pure rule) and written, all in one statement.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from inventory.drivers.clusters.readings import RunsReading
from inventory.models import ClusterConnection, Job, Scheduler
from inventory.rules.jobs import HOLDING, JobState, gpu_seconds
from inventory.rules.runs import Absence, absence, is_over, merged
from inventory.services.clusters.facts import FACTS, live_digest, live_facts, run_digest, run_facts
from inventory.services.clusters.holdings import Holdings
from inventory.services.clusters.nodes import NodeBook
from inventory.services.clusters.reading import SeenJobs
from sensaka.platform.bulk import write_rows
from sensaka.platform.fields import new_ids

_WRITTEN = (
    *FACTS, "cards_known", "cards_reason", "final_gpu_seconds", "open", "seen_at", "missing_since", "accounted_at",
    "lost_at", "live_digest", "run_digest",
)  # fmt: skip
_STAND_INS = ("NoPods", "Suspended")  # raw states of a Kubernetes Job without pods


@dataclass(frozen=True, slots=True)
class _Known:
    """What deciding needs of a stored run."""

    id: UUID
    open: bool
    lost: bool
    live_digest: str
    run_digest: str
    cards_known: bool | None
    missing_since: datetime | None


@dataclass(slots=True)
class Visit:
    """One visit's readings beside what is stored."""

    connection: ClusterConnection
    seen: SeenJobs
    runs: RunsReading | None
    book: NodeBook
    known: dict[str, _Known] = field(default_factory=dict)
    live_digests: dict[str, str] = field(default_factory=dict)
    run_digests: dict[str, str] = field(default_factory=dict)

    @property
    def at(self) -> datetime:
        """When the jobs were read."""
        return self.seen.observed_at

    @property
    def lists_all(self) -> bool:
        """Whether what the visit does not list is gone."""
        return self.seen.whole and self.seen.complete


def record_jobs(connection: ClusterConnection, seen: SeenJobs, runs: RunsReading | None, book: NodeBook) -> bool:
    """Writes what changed since the last visit. True when something did."""
    visit = Visit(connection, seen, runs, book)
    told = {run.key: run for run in runs.runs} if runs is not None else {}
    visit.live_digests = {key: live_digest(job) for key, job in (seen.jobs | seen.gone).items()}
    visit.run_digests = {key: run_digest(run) for key, run in told.items()}
    visit.known = _known(connection, visit.live_digests.keys() | visit.run_digests.keys())
    changed = _changed(visit)
    unbound = _unbound(visit)
    if not changed and not unbound:
        return False
    before = {job.key: job for job in _stored(connection, changed | unbound)}
    told_anew = [_row(visit, key, before.get(key), told.get(key)) for key in sorted(changed)]
    rows = {row.key: row for row in told_anew if row is not None}
    loose = [before[key] for key in sorted(unbound - rows.keys())]
    holdings = Holdings(seen.jobs, book)
    holdings.decide([*rows.values(), *loose])
    written = [*rows.values(), *(job for job in loose if job.key in holdings.judged)]
    _write(written)
    moved = holdings.write()
    _drop_stand_ins(visit, written)
    return moved or bool(written)


def _known(connection: ClusterConnection, keys: Iterable[str]) -> dict[str, _Known]:
    names = ("id", "open", "lost_at", "live_digest", "run_digest", "cards_known", "missing_since")
    stored = Job.objects.filter(Q(open=True) | Q(key__in=list(keys)), cluster=connection.cluster_id).order_by()
    return {
        key: _Known(ident, is_open, lost is not None, live, run, known, missing)
        for key, ident, is_open, lost, live, run, known, missing in stored.values_list("key", *names)
    }


def _changed(visit: Visit) -> set[str]:
    """The keys of runs that a reading tells something new of."""
    known = visit.known
    keys = {key for key, digest in visit.live_digests.items() if key not in known or known[key].live_digest != digest}
    keys |= {key for key, digest in visit.run_digests.items() if key not in known or known[key].run_digest != digest}
    keys |= visit.seen.gone.keys()
    for key, row in known.items():
        if key in visit.seen.jobs:
            back = row.missing_since is not None or row.lost
            keys |= {key} if back else set()
        elif row.open and visit.lists_all and (row.missing_since is None or _is_lost(visit, row)):
            keys.add(key)
    return keys


def _is_lost(visit: Visit, row: _Known | Job) -> bool:
    read = visit.runs is not None and visit.runs.complete
    means = absence(
        missing_since=row.missing_since, at=visit.at, accounting=visit.runs is not None, accounting_read=read
    )
    return means is Absence.LOST


def _unbound(visit: Visit) -> set[str]:
    """Runs that hold cards of which some are not known yet: their reading may be as it was, our cards may not.

    A visit that tells changes only says nothing of most of them; agents may.
    """
    return {
        key
        for key, row in visit.known.items()
        if row.open
        and row.cards_known is False
        and (job.state in HOLDING if (job := visit.seen.jobs.get(key)) else not visit.lists_all)
    }


def _stored(connection: ClusterConnection, keys: set[str]) -> list[Job]:
    return list(Job.objects.filter(cluster=connection.cluster_id, key__in=keys)) if keys else []


def _row(visit: Visit, key: str, job: Job | None, run: Any) -> Job | None:
    """The run as it is now; None when nothing differs from what is stored."""
    reading = visit.seen.jobs.get(key) or visit.seen.gone.get(key)
    live = live_facts(reading) if reading is not None else None
    account = run_facts(run) if run is not None else None
    before = _facts_of(job) if job is not None else None
    if job is None:
        job = Job(cluster_id=visit.connection.cluster_id, key=key, seen_at=visit.at)
        job.simulated = visit.connection.cluster.site.simulated
    stamp = _state_of(job)
    facts = merged(before, live, account)
    facts["submitted_at"] = facts.get("submitted_at") or visit.at
    for name, value in facts.items():
        setattr(job, name, value)
    job.live_digest = visit.live_digests.get(key, job.live_digest)
    job.run_digest = visit.run_digests.get(key, job.run_digest)
    if is_over(account) and job.accounted_at is None:
        assert visit.runs is not None
        job.accounted_at = visit.runs.observed_at
    _settle(visit, job, listed=key in visit.seen.jobs)
    if before is not None and _state_of(job) == stamp and all(before[name] == facts[name] for name in before):
        return None
    if reading is not None and job.lost_at is None:
        job.seen_at = visit.at
    return job


def _state_of(job: Job) -> tuple[Any, ...]:
    return (
        job.open, job.lost_at, job.missing_since, job.accounted_at, job.live_digest, job.run_digest,
        job.final_gpu_seconds,
    )  # fmt: skip


def _facts_of(job: Job) -> dict[str, Any]:
    return {name: getattr(job, name) for name in FACTS}


def _settle(visit: Visit, job: Job, *, listed: bool) -> None:
    """Whether the run is open, missing, lost or over, and what it held in all."""
    if is_over({"state": job.state}):
        job.open, job.missing_since, job.lost_at = False, None, None
    elif listed:
        job.open, job.missing_since, job.lost_at = True, None, None
    elif job.key in visit.seen.gone:
        _lose(visit, job)
    elif job.lost_at is not None:
        job.state = JobState.UNKNOWN  # the accounting may go on to say that it runs
    elif visit.lists_all:
        if _is_lost(visit, job):
            _lose(visit, job)
        elif job.missing_since is None:
            job.missing_since, job.seen_at = visit.at, _last_seen(visit, job)
    if job.open:
        job.final_gpu_seconds = None
        return
    if job.shares and not job.cards:
        job.final_gpu_seconds = None  # what a share is worth the scheduler doesn't say
        return
    until = job.ended_at or (job.seen_at if job.lost_at is not None else None)
    job.final_gpu_seconds = gpu_seconds(
        cards=job.cards, started_at=job.started_at, until=until, suspended=job.suspended
    )  # fmt: skip


def _lose(visit: Visit, job: Job) -> None:
    """It ended between the last reading that has it and this one; how, nobody tells."""
    if job.missing_since is None and job.lost_at is None:
        job.seen_at = _last_seen(visit, job)
    job.open, job.lost_at = False, job.lost_at or visit.at
    job.state, job.missing_since = JobState.UNKNOWN, None


def _drop_stand_ins(visit: Visit, written: list[Job]) -> None:
    """A Kubernetes Job is told in its pods' place until they come. It never ran, so it leaves no lost run behind."""
    if not written or visit.connection.scheduler != Scheduler.KUBERNETES:
        return
    cluster = visit.connection.cluster_id
    pods = Job.objects.filter(cluster=cluster, job_id=OuterRef("job_id")).exclude(raw_state__in=_STAND_INS)
    lost = Job.objects.filter(cluster=cluster, raw_state__in=_STAND_INS, lost_at__isnull=False)
    lost.filter(Exists(pods), job_id__in={job.job_id for job in written}).delete()


def _last_seen(visit: Visit, job: Job) -> datetime:
    """The last complete reading before this one still listed the run."""
    return min(max(job.seen_at, visit.connection.jobs_read_at or job.seen_at), visit.at)


def _write(rows: list[Job]) -> None:
    new = [row for row in rows if row._state.adding]
    for row, ident in zip(new, new_ids(len(new)), strict=True):
        row.pk = ident
    write_rows(rows, unique=["cluster", "key"], update=[*_WRITTEN, "updated_at"])
