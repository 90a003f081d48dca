"""The search behind Ctrl-K: pages, nodes and cards by name, identity or address."""

from dataclasses import dataclass

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from inventory.models import Bmc, Card, Node
from sensaka.cockpit.context import navigation
from sensaka.identity.access import inventory_page

_EACH = 8


@dataclass(frozen=True, slots=True)
class Result:
    """A line of the answer."""

    title: str
    detail: str
    url: str
    icon: str


def _nodes(query: str) -> list[Result]:
    rows = Node.objects.filter(
        Q(name__icontains=query) | Q(system_serial__icontains=query) | Q(system_uuid__iexact=query)
    )
    return [
        Result(node.name, f"{node.site.name}, {node.product or 'node'}", reverse("node", args=[node.pk]), "server")
        for node in rows.select_related("site")[:_EACH]
    ]


def _cards(query: str) -> list[Result]:
    rows = Card.objects.filter(Q(uuid__icontains=query) | Q(serial__icontains=query) | Q(pci_address__icontains=query))
    return [
        Result(
            f"{card.slot or card.pci_address or 'Card'} on {card.node.name if card.node else 'no node'}",
            f"{card.model or card.model_name}, {card.uuid or card.serial}",
            reverse("card", args=[card.pk]),
            "cpu",
        )
        for card in rows.select_related("node", "model")[:_EACH]
    ]


def _bmcs(query: str) -> list[Result]:
    rows = Bmc.objects.filter(address__startswith=query) if query[0].isdigit() else Bmc.objects.none()
    return [
        Result(str(bmc), f"BMC of {bmc.node or 'no node yet'}", reverse("node", args=[bmc.node_id]), "plug")
        for bmc in rows.select_related("node")[:_EACH]
        if bmc.node_id is not None
    ]


@inventory_page
def search(request: HttpRequest) -> HttpResponse:
    """Results for `?q=`: a fragment for the palette, a page without script."""
    query = request.GET.get("q", "").replace("\x00", "").strip()[:100]
    pages = [
        Result(entry.title, "page", entry.url, entry.icon)
        for entry in navigation(request)
        if entry.url and query.lower() in entry.title.lower()
    ]
    results = pages if not query else [*_nodes(query), *_cards(query), *_bmcs(query), *pages]
    template = "parts/palette_results.html" if request.headers.get("HX-Request") else "cockpit/search.html"
    return render(request, template, {"results": results, "query": query})
