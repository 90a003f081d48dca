"""The list of cards, and one card."""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from inventory.models import Card, FirmwareComponent, JournalEntry, ProcessBinding, Sighting, Slice
from inventory.selectors.cordons import open_cordons
from inventory.selectors.jobs import jobs_of_card
from sensaka.cockpit import filters
from sensaka.cockpit.history import SPAN_TITLES, card_history
from sensaka.cockpit.tables import sorted_page
from sensaka.identity.access import inventory_page
from sensaka.live.card_cells import PROCESS_KEEP
from sensaka.live.fleet import CardRow, fleet
from sensaka.live.measures import GROUPS, MEASURES
from sensaka.live.snapshots import snapshot
from sensaka.live.topics import Topic
from sensaka.live.words import KIND_WORDS, SOURCES

_JOURNAL_LINES = 100
_JOBS = 10


def _value(field: str) -> Any:
    def read(card: CardRow) -> float | None:
        return MEASURES[field].of(card.sample.values) if card.sample is not None and card.fresh else None

    return read


SORTS = {
    "place": lambda card: (card.site, card.rack, card.node, card.label),
    "node": lambda card: card.node,
    "model": lambda card: card.model,
    "kind": lambda card: card.kind,
    "activity": lambda card: card.activity,
    "memory": _value("memory_used"),
    "temperature": _value("temperature"),
    "power": _value("power"),
    "read": lambda card: card.sample.sampled_at if card.sample else None,
}


ORDER = "place"


def rows(request: HttpRequest) -> list[CardRow]:
    """The cards that pass the filters of the address."""
    return filters.filtered(fleet().cards, request.GET)


@inventory_page
def cards(request: HttpRequest) -> HttpResponse:
    """All cards, filtered and sorted by the address."""
    state = fleet()
    page, sort = sorted_page(request, rows(request), SORTS, ORDER)
    ids = tuple(card.id for card in page.object_list)
    topic = Topic("cards", ids=ids)
    kinds = [
        filters.Choice(kind, KIND_WORDS.get(kind, kind.capitalize()), request.GET.get("kind") == kind)
        for kind in filters.KIND_CHOICES
    ]
    context = {
        "page": page,
        "sort": sort,
        "cells": snapshot(topic) if ids else {},
        "topic": str(topic) if ids else "fleet",
        "kinds": kinds,
        "selects": [
            ("site", "Site", filters.choices(state.cards, request.GET, "site", lambda card: card.site)),
            ("model", "Model", filters.choices(state.cards, request.GET, "model", lambda card: card.model)),
            ("rack", "Rack", filters.choices(state.cards, request.GET, "rack", lambda card: card.rack)),
        ],
        "kept": {name: request.GET[name] for name in ("node", "cluster", "sort") if request.GET.get(name)},
        "all": len(state.cards),
    }
    template = "cockpit/cards_table.html" if request.headers.get("HX-Request") else "cockpit/cards.html"
    return render(request, template, context)


def _known(card_id: UUID) -> Card:
    return get_object_or_404(
        Card.objects.select_related("node__site", "node__rack", "node__cluster", "model"), pk=card_id
    )


def _part_context(card: Card, part: str) -> dict[str, Any]:
    """What one part of the page shows, read anew whenever its version changes."""
    if part == "journal":
        return {
            "journal": JournalEntry.objects.filter(card=card).select_related("node", "actor")[:_JOURNAL_LINES],
            "placements": card.placements.select_related("node")[:50],
        }
    if part == "jobs":
        return {"jobs": jobs_of_card(card.pk, limit=_JOBS), "cordons": open_cordons(node=card.node_id)}
    if part == "processes":
        seen = timezone.now() - PROCESS_KEEP
        return {"processes": ProcessBinding.objects.filter(card=card, seen_at__gte=seen).select_related("slice")}
    if part == "slices":
        return {
            "slices": card.slices.filter(closed_at=None),
            "closed_slices": card.slices.exclude(closed_at=None).order_by("-closed_at")[:20],
        }
    raise Http404(f"A card has no part {part!r}.")


@inventory_page
def card(request: HttpRequest, card_id: UUID) -> HttpResponse:
    """One card: who it is, where it is, what it does, what it did."""
    found = _known(card_id)
    sightings = Sighting.objects.filter(card=found).select_related("node").order_by("source")
    context: dict[str, Any] = {
        "card": found,
        "row": fleet().by_id.get(card_id),
        "cells": snapshot(Topic("card", card_id)),
        "groups": [(group, [m for m in MEASURES.values() if m.group == group]) for group in GROUPS],
        "spans": SPAN_TITLES,
        "sightings": [(sighting, SOURCES.get(sighting.source, sighting.source)) for sighting in sightings],
        "firmware": FirmwareComponent.objects.filter(card=found),
    }
    for part in ("slices", "jobs", "processes", "journal"):
        context.update(_part_context(found, part))
    return render(request, "cockpit/card.html", context)


@inventory_page
def card_part(request: HttpRequest, card_id: UUID, part: str) -> HttpResponse:
    """One part of the card page."""
    found = _known(card_id)
    context = {"card": found, "cells": snapshot(Topic("card", card_id)), **_part_context(found, part)}
    return render(request, f"cockpit/card_{part}.html", context)


@inventory_page
def history(request: HttpRequest, card_id: UUID) -> JsonResponse:
    """The charts' data of a card or of one of its slices: `?span=1h&slice=<id>`."""
    found = get_object_or_404(Card, pk=card_id)
    series = found.series
    if text := request.GET.get("slice"):
        try:
            series = found.slices.get(pk=UUID(text)).series
        except (ValueError, Slice.DoesNotExist):
            raise Http404("No such slice.") from None
    return JsonResponse(card_history(found, series, request.GET.get("span", "1h")))
