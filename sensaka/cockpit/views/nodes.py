"""The list of nodes, and one node."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from inventory.models import JournalEntry, Node, ProcessBinding, Site
from inventory.rules.counts import Counts
from inventory.rules.lifecycle import NODE
from inventory.selectors.cordons import cordons_of_node
from inventory.selectors.jobs import jobs_of_node
from sensaka.cockpit import cordon_acts
from sensaka.cockpit.tables import sorted_page
from sensaka.identity.access import inventory_page
from sensaka.live.card_cells import PROCESS_KEEP
from sensaka.live.fleet import fleet
from sensaka.live.fleet_cells import by, tally
from sensaka.live.power import node_power
from sensaka.live.snapshots import snapshot
from sensaka.live.topics import Topic
from sensaka.live.words import state_words

_JOURNAL_LINES = 100
_JOBS = 10
_CORDONS = 5


@dataclass(frozen=True, slots=True)
class NodeLine:
    """A node in the list. `power` is None when no BMC reported it lately."""

    node: Node
    numbers: Counts
    power: float | None
    read_at: datetime | None


SORTS = {
    "name": lambda line: line.node.name.lower(),
    "site": lambda line: (line.node.site.name, line.node.rack.name if line.node.rack else "", line.node.name),
    "state": lambda line: line.node.state,
    "product": lambda line: line.node.product or None,
    "installed": lambda line: line.numbers.installed,
    "busy": lambda line: line.numbers.busy,
    "unknown": lambda line: line.numbers.unknown,
    "power": lambda line: line.power,
    "read": lambda line: line.read_at,
}


ORDER = "site"


def lines(request: HttpRequest) -> list[NodeLine]:
    """The nodes that pass the filters of the address."""
    state = fleet()
    cards = by(state.cards, "node_id")
    power = node_power(state.at)
    nodes = Node.objects.select_related("site", "rack", "cluster")
    wanted = request.GET.get("state", "")
    nodes = nodes.filter(state=wanted) if wanted in NODE.states else nodes.exclude(state="retired")
    for name in ("site", "rack", "cluster"):
        if text := request.GET.get(name):
            try:
                nodes = nodes.filter(**{name: UUID(text)})
            except ValueError:
                nodes = nodes.filter(**{name: None})
    words = request.GET.get("q", "").lower().split()
    found = []
    for node in nodes:
        text = f"{node.name} {node.system_serial} {node.product} {node.manufacturer} {node.site} {node.rack}".lower()
        if all(word in text for word in words):
            found.append(NodeLine(node, tally(cards.get(node.pk, ())), power.get(node.pk), node.read_at))
    return found


@inventory_page
def nodes(request: HttpRequest) -> HttpResponse:
    """All nodes, filtered and sorted by the address."""
    page, sort = sorted_page(request, lines(request), SORTS, ORDER)
    ids = tuple(line.node.pk for line in page.object_list)
    topic = Topic("nodes", ids=ids)
    context = {
        "page": page,
        "sort": sort,
        "cells": snapshot(topic) if ids else {},
        "topic": str(topic) if ids else "fleet",
        "sites": Site.objects.all(),
        "states": [(name, state_words(name)) for name in NODE.states],
        "kept": {name: request.GET[name] for name in ("rack", "cluster", "sort") if request.GET.get(name)},
    }
    template = "cockpit/nodes_table.html" if request.headers.get("HX-Request") else "cockpit/nodes.html"
    return render(request, template, context)


def _known(node_id: UUID) -> Node:
    return get_object_or_404(Node.objects.select_related("site", "rack", "cluster"), pk=node_id)


def _part_context(node: Node, part: str) -> dict[str, Any]:
    match part:
        case "cards":
            return {"cards": fleet().where(node=node.pk)}
        case "processes":
            seen = timezone.now() - PROCESS_KEEP
            rows = ProcessBinding.objects.filter(node=node, seen_at__gte=seen).select_related("card", "slice")
            return {"processes": rows.order_by("card__slot", "pid"), "of_node": True}
        case "sensors":
            bmcs = list(node.bmcs.all())
            return {"bmcs": bmcs, "sensors": [(bmc, bmc.sensors) for bmc in bmcs if bmc.sensors]}
        case "collectors":
            sources: list[tuple[str, Any]] = [("bmc", bmc) for bmc in node.bmcs.all()]
            sources += [("exporter", exporter) for exporter in node.exporters.all()]
            if (agent := getattr(node, "agent", None)) is not None:
                sources.append(("agent", agent))
            return {"sources": sources}
        case "jobs":
            return {"jobs": jobs_of_node(node.pk, limit=_JOBS)}
        case "cordon":
            cordons = cordons_of_node(node.pk, limit=_CORDONS)
            return {"cordons": cordons, "cordon_acts": cordon_acts.possible(cordons)}
        case "journal":
            entries = JournalEntry.objects.filter(node=node).select_related("card", "actor")
            return {"journal": entries[:_JOURNAL_LINES]}
    raise Http404(f"A node has no part {part!r}.")


@inventory_page
def node(request: HttpRequest, node_id: UUID) -> HttpResponse:
    """One node: its cards, what runs on them, what its BMC says, who reads it, and its life."""
    found = _known(node_id)
    cells = dict(snapshot(Topic("node", node_id)))
    context: dict[str, Any] = {
        "node": found,
        "cells": cells,
        "firmware": found.firmware.filter(card=None),
        "state_text": NODE.states[found.state],
    }
    for part in ("cards", "jobs", "cordon", "processes", "sensors", "collectors", "journal"):
        context.update(_part_context(found, part))
    return render(request, "cockpit/node.html", context)


@inventory_page
def node_part(request: HttpRequest, node_id: UUID, part: str) -> HttpResponse:
    """One part of the node page."""
    found = _known(node_id)
    context = {"node": found, "cells": snapshot(Topic("node", node_id)), **_part_context(found, part)}
    return render(request, f"cockpit/node_{part}.html", context)
