"""The heat map of the whole fleet or of one site, rack or node."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.gzip import gzip_page

from sensaka.cockpit import filters, heat
from sensaka.identity.access import inventory_page
from sensaka.live.fleet import fleet
from sensaka.live.fleet_cells import by, tally
from sensaka.live.snapshots import snapshot
from sensaka.live.topics import Topic

_TABLE_LIMIT = 200


@inventory_page
def heatmap(request: HttpRequest) -> HttpResponse:
    """The map and, for whoever can't use it, the same as a table by node."""
    state = fleet()
    rows = filters.filtered(state.cards, request.GET)
    nodes = list(by(rows, "node_id").values())
    context = {
        "cells": snapshot(Topic("fleet")),
        "sites": filters.choices(state.cards, request.GET, "site", lambda card: card.site),
        "measures": heat.HEAT.items(),
        "measure": request.GET.get("measure", heat.DEFAULT),
        "scope": scope(request),
        "lines": [(cards[0], tally(cards)) for cards in nodes[:_TABLE_LIMIT]],
        "hidden": max(0, len(nodes) - _TABLE_LIMIT),
        "number": len(rows),
    }
    return render(request, "cockpit/map.html", context)


def scope(request: HttpRequest) -> str:
    """The part of the address that says which cards are on the map."""
    query = request.GET.copy()
    for name in list(query):
        if name not in {"site", "cluster", "rack", "node", "model"}:
            del query[name]
    return query.urlencode()


@gzip_page
@inventory_page
def data(request: HttpRequest) -> JsonResponse:
    """`?measure=` gives the numbers; with `?layout=1` also where the cards stand."""
    rows = filters.filtered(fleet().cards, request.GET)
    body = heat.values(rows, request.GET.get("measure", heat.DEFAULT))
    if request.GET.get("layout"):
        body["layout"] = heat.layout(rows)
    return JsonResponse(body)
