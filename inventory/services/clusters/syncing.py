"""Clusters that are due are read, and what they gave is stored. Rounds: see `services/rounds.py`.

A visit is stored in one transaction that holds the connection's row, so two never store one cluster at
once. A scheduler out of reach changes its connection's state only: its last facts stay, with their dates.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from inventory.drivers.clusters.capabilities import Capability, ClusterDescription
from inventory.models import ClusterConnection, Job, Scheduler
from inventory.services.clusters.cordons import record_cordons
from inventory.services.clusters.jobs import record_jobs
from inventory.services.clusters.nodes import NodeBook, node_book, record_nodes
from inventory.services.clusters.opening import access_of
from inventory.services.clusters.places import record_queues, record_reservations
from inventory.services.clusters.reading import DEADLINE, ClusterReading, SyncJob, read_cluster
from inventory.services.journal import Note, write_entries
from inventory.services.outcomes import Outcome, finish
from inventory.services.rounds import CLAIM_SECONDS, Round, Tally, run_round, unusable
from inventory.signals import collector_read, jobs_changed, tree_changed

REDESCRIBE = timedelta(minutes=15)
FIRST_LOOK_BACK = timedelta(days=1)
"""How far back the accounting is read when a cluster is new."""

_LOCK = 0x5E25A0B4
_LEASE_MARGIN = timedelta(seconds=30)


def sync_due_clusters(*, seconds: float = CLAIM_SECONDS) -> Tally:
    """Reads every cluster that is due; claims new ones for at most `seconds`."""
    work = Round(_LOCK, _claim, read_cluster, lambda _: DEADLINE, store)
    return run_round(work, seconds=seconds)


def _claim(most: int) -> Sequence[SyncJob]:
    now = timezone.now()
    due = Q(enabled=True, due_at__lte=now) & (Q(leased_until=None) | Q(leased_until__lt=now))
    with transaction.atomic():
        rows = list(
            ClusterConnection.objects.select_for_update(skip_locked=True, no_key=True)
            .filter(due)
            .order_by("due_at")[:most]
        )
        if rows:
            until = now + timedelta(seconds=DEADLINE) + _LEASE_MARGIN
            ClusterConnection.objects.filter(pk__in=[row.pk for row in rows]).update(leased_until=until)
    return sync_jobs(rows, now=now)


def sync_jobs(rows: Sequence[ClusterConnection], *, now: datetime) -> list[SyncJob]:
    """What to read of each connection."""
    open_runs: dict[UUID, dict[str, str]] = {row.cluster_id: {} for row in rows}
    if rows:
        unfinished = Job.objects.filter(open=True, cluster__in=open_runs).order_by()
        for cluster, key, job_id in unfinished.values_list("cluster", "key", "job_id"):
            open_runs[cluster][key] = job_id
    return [_sync_job(row, open_runs[row.cluster_id], now) for row in rows]


def _sync_job(row: ClusterConnection, open_runs: dict[str, str], now: datetime) -> SyncJob:
    can = {state["capability"] for state in row.capabilities if state.get("available")}
    return SyncJob(
        id=row.id,
        access=access_of(row),
        describe=row.described_at is None or row.described_at <= now - REDESCRIBE or bool(row.error_kind),
        watches=row.scheduler == Scheduler.KUBERNETES,
        follows=Capability.FOLLOW in can,
        accounting=Capability.RUNS in can,
        cursor=row.follow_cursor,
        since=row.runs_watermark or now - FIRST_LOOK_BACK,
        open_runs=open_runs,
    )


def store(job: SyncJob, answer: ClusterReading | None) -> None:
    """Stores a visit. `None`: there is nothing to store, through a fault of ours or the driver's."""
    with transaction.atomic():
        locked = ClusterConnection.objects.select_for_update(no_key=True, of=("self",))
        row = locked.select_related("cluster__site").filter(pk=job.id).first()
        if row is None:
            return  # it was removed while it was read
        changed = _record(row, answer) if answer is not None and answer.lost is None else set()
        lost_before = bool(row.error_kind)
        finish(row, _outcome(row, answer), source="cluster")
        told = bool(changed) or lost_before != bool(row.error_kind)
    cluster = row.cluster_id
    nodes = sorted(key for key in changed if key != cluster)
    if nodes:
        tree_changed.send(sender=None, nodes=nodes)
    if told:
        jobs_changed.send(sender=None, cluster=cluster)
    collector_read.send(sender=None, collector=job.id)


def _record(row: ClusterConnection, answer: ClusterReading) -> set[UUID]:
    """Writes all parts that were read. Returns the ids of changed nodes, and the cluster's when jobs changed."""
    notes: list[Note] = []
    changed: set[UUID] = set()
    if answer.description is not None and answer.description.reached:
        _describe(row, answer.description)
    book: NodeBook
    if answer.nodes is not None and (answer.nodes.complete or answer.nodes.nodes):
        book = record_nodes(row, answer.nodes, notes)
        changed |= book.changed | record_cordons(row, answer.nodes, book, notes)
        if answer.nodes.complete:
            row.nodes_read_at = answer.nodes.observed_at
    else:
        book = node_book(row)
    if answer.queues is not None and answer.queues.complete:
        record_queues(row, answer.queues)
    if answer.reservations is not None and answer.reservations.complete:
        record_reservations(row, answer.reservations)
    if answer.jobs is not None and record_jobs(row, answer.jobs, answer.runs, book):
        changed.add(row.cluster_id)
    write_entries(notes=notes)
    return changed


def _describe(row: ClusterConnection, description: ClusterDescription) -> None:
    row.version, row.interface = description.version, description.interface
    row.tested, row.reason = description.tested, description.reason
    row.scheduler_name = description.cluster
    row.capabilities = msgspec.to_builtins(list(description.capabilities))
    row.enforces = list(description.enforces)
    row.token_expires_at = description.token_expires_at
    row.described_at = description.observed_at


def _outcome(row: ClusterConnection, answer: ClusterReading | None) -> Outcome:
    now = timezone.now()
    if answer is None:
        return Outcome(now, 0.0, unusable())
    changes: dict[str, Any] = {}
    if answer.jobs is not None:
        changes["follow_cursor"] = answer.jobs.cursor
        if answer.jobs.complete:
            changes["jobs_read_at"] = answer.jobs.observed_at
    if answer.runs is not None and answer.runs.complete:
        changes |= {"runs_watermark": answer.runs.watermark, "runs_read_at": answer.runs.observed_at}
    return Outcome(now, answer.elapsed, answer.lost, answer.failures, changes=changes)
