"""The collectors page: who was read when, what came of it, what failed and why."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from inventory.models import Agent, ClusterConnection, Discovery
from inventory.selectors.collectors import ORDER as CONDITIONS
from inventory.selectors.collectors import Collectors, Source, sources
from sensaka.cockpit.tables import sorted_page
from sensaka.identity.access import inventory_page
from sensaka.live.snapshots import snapshot
from sensaka.live.topics import Topic

KINDS = {"bmc": "BMCs", "exporter": "Exporters", "agent": "Agents", "scheduler": "Schedulers"}
RESULTS = {
    "failing": "Failing or late", "partly": "Read in part", "well": "Read", "new": "New", "off": "Switched off",
}  # fmt: skip


class Line:
    """A collector in the list."""

    def __init__(self, source: Source) -> None:
        row = source.collector
        self.source = row
        self.kind = source.kind
        self.cluster = row.cluster if isinstance(row, ClusterConnection) else None
        self.node = None if isinstance(row, ClusterConnection) else row.node
        self.title = _title(row)
        self.result = source.condition


def _title(row: Collectors) -> str:
    if isinstance(row, Agent):
        return row.node.name
    return f"{row.get_scheduler_display()} of {row.cluster.name}" if isinstance(row, ClusterConnection) else str(row)


SORTS: dict[str, Any] = {
    "title": lambda line: line.title,
    "kind": lambda line: (line.kind, line.title),
    "node": lambda line: line.node.name if line.node else None,
    "result": lambda line: (CONDITIONS.index(line.result), line.kind, line.title),
    "read": lambda line: line.source.succeeded_at,
    "elapsed": lambda line: line.source.elapsed,
    "cards": lambda line: line.source.cards_seen,
    "interval": lambda line: line.source.interval,
}


ORDER = "result"


def lines(request: HttpRequest) -> list[Line]:
    """The collectors that pass the filters of the address."""
    kind, wanted = request.GET.get("kind", ""), request.GET.get("result", "")
    words = request.GET.get("q", "").lower().split()
    found = []
    for source in sources():
        line = Line(source)
        text = f"{line.title} {line.node or line.cluster or ''} {line.source.error_detail}".lower()
        if kind in KINDS and line.kind != kind:
            continue
        if wanted == "failing" and line.result not in {"failing", "late"}:
            continue
        if wanted in RESULTS and wanted != "failing" and line.result != wanted:
            continue
        if all(word in text for word in words):
            found.append(line)
    return found


@inventory_page
def collectors(request: HttpRequest) -> HttpResponse:
    """Every BMC, exporter, agent and scheduler; failing ones first."""
    page, sort = sorted_page(request, lines(request), SORTS, ORDER)
    context = {
        "page": page,
        "sort": sort,
        "cells": snapshot(Topic("collectors")),
        "kinds": KINDS.items(),
        "kind": request.GET.get("kind", ""),
        "results": RESULTS.items(),
        "result": request.GET.get("result", ""),
        "discoveries": Discovery.objects.select_related("site")[:5],
    }
    template = "cockpit/collectors_table.html" if request.headers.get("HX-Request") else "cockpit/collectors.html"
    return render(request, template, context)
