"""The tree: site, cluster, rack, node, card, with counts that agree at each level."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from sensaka.identity.access import inventory_page
from sensaka.live.branches import below, below_node, branches
from sensaka.live.fleet import fleet
from sensaka.live.paths import LEVELS, Path, parse, written
from sensaka.live.snapshots import snapshot
from sensaka.live.topics import Topic


def _below(path: Path) -> dict[str, Any]:
    topic = Topic("branches", path=path)
    lines = branches(path)
    return {
        "branches": lines,
        "cells": snapshot(topic),
        "topic": topic,
        "path": written(path),
        "version": below(lines),
    }


@inventory_page
def tree(request: HttpRequest) -> HttpResponse:
    """The sites; what is below is fetched when it is opened, and again when it is open and lines come or go."""
    return render(request, "cockpit/tree.html", _below(()))


@inventory_page
def part(request: HttpRequest) -> HttpResponse:
    """What is below `?path=`."""
    path = parse(request.GET.get("path", ""))
    if path is None:
        raise Http404("No such place in the tree.")
    if len(path) < LEVELS.index("card"):
        return render(request, "cockpit/tree_part.html", _below(path))
    rows = fleet().where(node=path[3])
    topic = Topic("cards", ids=tuple(card.id for card in rows))
    context = {
        "cards": rows,
        "cells": snapshot(topic),
        "topic": topic if rows else "",
        "node_id": path[3],
        "path": written(path),
        "version": below_node(rows),
    }
    return render(request, "cockpit/tree_cards.html", context)
