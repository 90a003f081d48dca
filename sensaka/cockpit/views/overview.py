"""The overview: one look tells whether the fleet is well."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from inventory.models import CardModel, Site
from inventory.selectors.collectors import any_source
from sensaka.identity.access import inventory_page
from sensaka.live import attention
from sensaka.live.fleet import fleet
from sensaka.live.fleet_cells import by
from sensaka.live.snapshots import snapshot
from sensaka.live.topics import Topic

_MOST_LINES = 20


def _context() -> dict[str, object]:
    state = fleet()
    sites = {site.pk: site for site in Site.objects.all()}
    models = by(state.cards, "model_id")
    named = CardModel.objects.in_bulk([key for key in models if key is not None])
    return {
        "cells": snapshot(Topic("fleet")),
        "sites": list(sites.values()),
        "has_cards": bool(state.cards),
        "models": sorted(
            ((str(key), named[key].name if key in named else "Not in the catalogue") for key in models),
            key=lambda pair: pair[1],
        ),
    }


@inventory_page
def overview(request: HttpRequest) -> HttpResponse:
    """The counts, the power, where it is, and what needs a look."""
    context = _context()
    if not context["sites"]:
        return render(request, "cockpit/first_run.html")
    return render(request, "cockpit/overview.html", {**context, **_attention()})


@inventory_page
def groups(request: HttpRequest) -> HttpResponse:
    """The tables by site and by model, again: a site or model came or went."""
    return render(request, "cockpit/overview_groups.html", _context())


def _attention() -> dict[str, object]:
    items = attention.items()
    return {"items": items[:_MOST_LINES], "more": max(0, len(items) - _MOST_LINES), **_read(items)}


def _read(items: list[attention.Item]) -> dict[str, object]:
    """Without a line: whether that is because all is well or because nothing is read."""
    return {"read": bool(items) or any_source()}


@inventory_page
def attention_list(request: HttpRequest) -> HttpResponse:
    """What needs a look; `?all=1` gives every line."""
    if request.GET.get("all"):
        items = attention.items()
        return render(request, "cockpit/attention.html", {"items": items, "more": 0, **_read(items)})
    return render(request, "cockpit/attention_list.html", _attention())
