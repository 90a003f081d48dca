"""The collectors page: who was read when, what came of it, what failed and why."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from inventory.models import Agent, Bmc, Discovery, Exporter
from sensaka.cockpit.tables import sorted_page
from sensaka.identity.access import inventory_page
from sensaka.live.collector_cells import RESULTS, Source, all_sources, result
from sensaka.live.snapshots import snapshot
from sensaka.live.topics import Topic

KINDS = {"bmc": "BMCs", "exporter": "Exporters", "agent": "Agents"}
RESULT_TITLES = {
    "ok": "Read", "partial": "Read in part", "failing": "Failing", "late": "Late", "off": "Switched off", "new": "New",
}  # fmt: skip


def kind_of(source: Source) -> str:
    """bmc, exporter or agent: the part of an address that names the table."""
    return {Bmc: "bmc", Exporter: "exporter", Agent: "agent"}[type(source)]


def title_of(source: Source) -> str:
    """How people name a source."""
    return source.node.name if isinstance(source, Agent) else str(source)


class Line:
    """A collector in the list."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.kind = kind_of(source)
        self.title = title_of(source)
        self.result = result(source, timezone.now())
        self.node = source.node


_BAD_FIRST = {name: rank for rank, name in enumerate(("failing", "late", "partial", "new", "ok", "off"))}
SORTS: dict[str, Any] = {
    "title": lambda line: line.title,
    "kind": lambda line: (line.kind, line.title),
    "node": lambda line: line.node.name if line.node else None,
    "result": lambda line: (_BAD_FIRST[line.result], line.kind, line.title),
    "read": lambda line: line.source.succeeded_at,
    "elapsed": lambda line: line.source.elapsed,
    "cards": lambda line: line.source.cards_seen,
    "interval": lambda line: line.source.interval,
}


def _lines(request: HttpRequest) -> list[Line]:
    kind, wanted = request.GET.get("kind", ""), request.GET.get("result", "")
    words = request.GET.get("q", "").lower().split()
    lines = []
    for source in all_sources():
        line = Line(source)
        text = f"{line.title} {line.node or ''} {source.error_detail}".lower()
        if kind in KINDS and line.kind != kind:
            continue
        if wanted == "failing" and line.result not in {"failing", "late"}:
            continue
        if wanted in RESULTS and wanted != "failing" and line.result != wanted:
            continue
        if all(word in text for word in words):
            lines.append(line)
    return lines


@inventory_page
def collectors(request: HttpRequest) -> HttpResponse:
    """Every BMC, exporter and agent; failing ones first."""
    page, sort = sorted_page(request, _lines(request), SORTS, "result")
    context = {
        "page": page,
        "sort": sort,
        "cells": snapshot(Topic("collectors")),
        "kinds": KINDS.items(),
        "kind": request.GET.get("kind", ""),
        "results": RESULT_TITLES.items(),
        "result": request.GET.get("result", ""),
        "discoveries": Discovery.objects.select_related("site")[:5],
    }
    template = "cockpit/collectors_table.html" if request.headers.get("HX-Request") else "cockpit/collectors.html"
    return render(request, template, context)
