"""The list of runs, and one run."""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from inventory.models import Cluster, Job, JobCard
from inventory.rules.job_words import exit_words, reason_words
from inventory.selectors.jobs import JobDetail, job_detail, job_page
from sensaka.cockpit import job_acts, job_filter
from sensaka.cockpit.job_history import job_history
from sensaka.identity.access import inventory_page, person
from sensaka.live import reach
from sensaka.live.snapshots import snapshot
from sensaka.live.topics import Topic

PAGE = 50


@inventory_page
def jobs(request: HttpRequest) -> HttpResponse:
    """Runs of all clusters, the newest first; filtered by the address, page by page without counting."""
    wanted = job_filter.read(request.GET, now=timezone.now())
    rows = job_page(wanted.filter, before=job_filter.cursor(request.GET.get("before", "")), limit=PAGE + 1)
    shown = rows[:PAGE]
    topic = Topic("jobs", ids=tuple(job.pk for job in shown)) if shown else Topic("clusters")
    last = shown[-1] if len(rows) > PAGE else None
    context = {
        "jobs": shown,
        "cells": snapshot(topic),
        "topic": topic,
        "wanted": wanted,
        "chips": [(chip, _without(request, chip.names)) for chip in wanted.chips],
        "older": f"{last.submitted_at.isoformat()}_{last.pk}" if last else "",
        "clusters": Cluster.objects.select_related("site"),
        "groups": job_filter.GROUPS,
        "endings": job_filter.ENDINGS,
        "spans": [(key, title) for key, (title, _length) in job_filter.SPANS.items()],
        "cards_choices": job_filter.CARDS,
        "more_set": any(request.GET.get(name) for name in job_filter.MORE),
        "kept": {name: request.GET[name] for name in ("card", "since", "until") if request.GET.get(name)},
    }
    template = "cockpit/jobs_table.html" if request.headers.get("HX-Request") else "cockpit/jobs.html"
    return render(request, template, context)


def _without(request: HttpRequest, names: str) -> str:
    """The address without some of its filters, on the first page."""
    query = request.GET.copy()
    for name in ("before", *names.split(",")):
        query.pop(name, None)
    return f"{request.path}?{query.urlencode()}"


def _known(job_id: UUID) -> JobDetail:
    try:
        return job_detail(job_id)
    except Job.DoesNotExist:
        raise Http404("No such job.") from None


def _context(request: HttpRequest, found: JobDetail) -> dict[str, Any]:
    job = found.job
    return {
        "job": job,
        "cells": snapshot(Topic("job", job.pk)),
        "facts_of": reach.facts_of(job.cluster_id) if job.open else None,
        "reason": reason_words(job.cluster.scheduler, job.reason),
        "exit": exit_words(job.exit_code, job.exit_signal),
        "places": _places(job),
        "others": found.others,
        "acts_done": found.acts,
        "acts": job_acts.possible(job) if person(request).operates else [],
    }


def _places(job: Job) -> list[tuple[Any, list[JobCard]]]:
    """Its nodes by name, each with what it holds there."""
    held: dict[UUID, list[JobCard]] = {}
    for card in job.cards_held:  # type: ignore[attr-defined]
        held.setdefault(card.node_id, []).append(card)
    nodes = {node.pk: node for node in job.nodes.all()}
    nodes |= {card.node_id: card.node for card in job.cards_held}  # type: ignore[attr-defined]
    return sorted(((node, held.get(key, [])) for key, node in nodes.items()), key=lambda pair: pair[0].name)


_PARTS = frozenset({"facts", "runs", "acts"})


@inventory_page
def job(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """One run: what it is, why it waits or how it ended, where it runs, what its cards did, its other runs."""
    return render(request, "cockpit/job.html", _context(request, _known(job_id)))


@inventory_page
def job_part(request: HttpRequest, job_id: UUID, part: str) -> HttpResponse:
    """One part of the page of a run: facts, runs or acts."""
    if part not in _PARTS:
        raise Http404(f"A job has no part {part!r}.")
    return render(request, f"cockpit/job_{part}.html", _context(request, _known(job_id)))


@inventory_page
def history(request: HttpRequest, job_id: UUID) -> JsonResponse:
    """What one card of the run did while it ran: `?held=<id>` of what it holds."""
    key = job_filter.identifier(request.GET.get("held", ""))
    rows = JobCard.objects.select_related("job", "card", "slice").filter(job=job_id, card__isnull=False)
    return JsonResponse(job_history(get_object_or_404(rows, pk=key)))
