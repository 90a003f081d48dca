"""The list of runs as a CSV file: the address is the list's own, with the same filters."""

from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from inventory.models import Job
from inventory.selectors.jobs import JobFilter, job_page
from sensaka.cockpit import job_filter
from sensaka.cockpit.csv_files import Column, download
from sensaka.identity.access import inventory_page
from sensaka.live import job_cells

_ROWS = 1000
"""Runs that are read at a time, so that no cursor stays open while a slow reader loads the file."""


def _held(job: Job) -> str:
    return " ".join(
        f"{held.node.name}:{(held.slice.uuid if held.slice else held.card.uuid) or held.card.pci_address}"
        for held in job.cards_held  # type: ignore[attr-defined]
        if held.card is not None
    )


def _seconds(value: float | None) -> int | None:
    return None if value is None else int(value)


def _columns(now: datetime) -> tuple[Column, ...]:
    return (
        ("id", lambda job: job.id),
        ("cluster", lambda job: job.cluster.name),
        ("site", lambda job: job.cluster.site.name),
        ("job_id", lambda job: job.job_id),
        ("run", lambda job: job.key),
        ("name", lambda job: job.name),
        ("workload", lambda job: job.workload),
        ("user", lambda job: job.user),
        ("account", lambda job: job.account),
        ("queue", lambda job: job.queue),
        ("qos", lambda job: job.qos),
        ("state", lambda job: "lost" if job.lost_at else job.state),
        ("reason", lambda job: job.reason),
        ("exit_code", lambda job: job.exit_code),
        ("exit_signal", lambda job: job.exit_signal),
        ("submitted_at", lambda job: job.submitted_at),
        ("started_at", lambda job: job.started_at),
        ("ended_at", lambda job: job.ended_at),
        ("waited_seconds", lambda job: _seconds(job_cells.waited(job, now))),
        ("ran_seconds", lambda job: _seconds(job_cells.ran(job, now))),
        ("suspended_seconds", lambda job: job.suspended),
        ("time_limit_seconds", lambda job: job.time_limit),
        ("nodes", lambda job: " ".join(job.node_names)),
        ("cards", lambda job: job.cards),
        ("cards_known", lambda job: job.cards_known),
        ("cards_held", _held),
        ("gpu_seconds", lambda job: job.gpu_seconds(job_cells.known_at(job, now))),
    )


@inventory_page
def jobs_csv(request: HttpRequest) -> HttpResponseBase:
    """Every run that passes the filters, the newest first."""
    now = timezone.now()
    return download("jobs", _columns(now), _rows(job_filter.read(request.GET, now=now).filter))


def _rows(wanted: JobFilter) -> Iterator[Job]:
    before: tuple[datetime, UUID] | None = None
    while True:
        some = job_page(wanted, before=before, limit=_ROWS)
        yield from some
        if len(some) < _ROWS:
            return
        before = some[-1].submitted_at, some[-1].pk
