"""The tree: site, cluster, rack, node, card, with counts that agree at each level."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from inventory.models import Cluster, Node, Rack, Site
from inventory.rules.counts import Counts
from sensaka.identity.access import inventory_page
from sensaka.live.fleet import CardRow, fleet
from sensaka.live.fleet_cells import tally
from sensaka.live.snapshots import snapshot
from sensaka.live.topics import Topic

LEVELS = ("site", "cluster", "rack", "node", "card")
_WITHOUT = {"cluster": "Without a cluster", "rack": "Without a rack"}


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of the tree. `path` names it and all above it, for fetching what is below."""

    level: str
    title: str
    path: str
    numbers: Counts
    nodes: int
    url: str = ""
    state: str = ""
    below: str = ""


def _parse(path: str) -> list[UUID | None]:
    parts: list[UUID | None] = []
    for part in filter(None, path.split("/")):
        if part == "none":
            parts.append(None)
            continue
        try:
            parts.append(UUID(part))
        except ValueError:
            raise Http404("No such place in the tree.") from None
    if len(parts) >= len(LEVELS):
        raise Http404("Nothing is below a card.")
    return parts


@dataclass(frozen=True, slots=True)
class _Nodes:
    """All nodes' places, so that a place without cards is in the tree as well."""

    rows: list[tuple[UUID, str, str, UUID, UUID | None, UUID | None]]

    def inside(self, place: list[UUID | None]) -> list[tuple[UUID, str, str, UUID, UUID | None, UUID | None]]:
        """Nodes below a path of site, cluster, rack."""
        return [row for row in self.rows if all(row[3 + depth] == key for depth, key in enumerate(place[:3]))]


def _places(path: list[UUID | None]) -> dict[UUID | None, str]:
    """What is directly below a path by what is set up, with or without nodes."""
    match len(path):
        case 0:
            return dict(Site.objects.values_list("id", "name"))
        case 1:
            return dict(Cluster.objects.filter(site=path[0]).values_list("id", "name"))
        case _:
            return {}


def branches(path_text: str) -> list[Branch]:
    """The lines directly below a path; the empty path is the root."""
    path = _parse(path_text)
    level = LEVELS[len(path)]
    cards = fleet().cards
    nodes = _Nodes(
        list(
            Node.objects.exclude(state="retired")
            .order_by("name")
            .values_list("id", "name", "state", "site_id", "cluster_id", "rack_id")
        )
    ).inside(path)
    inside = {row[0] for row in nodes}
    own = [card for card in cards if card.node_id in inside]
    if level == "node":
        return [
            Branch(
                "node", name, f"{path_text}/{node}", tally(_of(own, "node_id", node)), 1, reverse("node", args=[node]),
                state, "card",
            )
            for node, name, state, *_ in nodes
        ]  # fmt: skip
    depth = len(path)
    titles = _places(path)
    names: dict[str, dict[UUID | None, str]] = {"rack": dict(Rack.objects.values_list("id", "name"))}
    for row in nodes:
        key = cast("UUID | None", row[3 + depth])
        if key not in titles:
            titles[key] = names.get(level, {}).get(key, _WITHOUT.get(level, "")) if key else _WITHOUT[level]
    found = []
    for key, title in sorted(titles.items(), key=lambda pair: (pair[0] is None, pair[1])):
        number = sum(row[3 + depth] == key for row in nodes)
        below = tally(_of(own, f"{level}_id", key))
        found.append(
            Branch(level, title, f"{path_text}/{key or 'none'}".lstrip("/"), below, number, below=LEVELS[depth + 1])
        )
    return found


def _of(cards: Iterable[CardRow], attribute: str, key: UUID | None) -> list[CardRow]:
    return [card for card in cards if getattr(card, attribute) == key]


@inventory_page
def tree(request: HttpRequest) -> HttpResponse:
    """The sites; what is below is fetched when it is opened."""
    return render(
        request, "cockpit/tree.html", {"branches": branches(""), "cells": snapshot(Topic("fleet")), "root": True}
    )


@inventory_page
def part(request: HttpRequest) -> HttpResponse:
    """What is below `?path=`."""
    path = request.GET.get("path", "")
    parsed = _parse(path)
    if len(parsed) == LEVELS.index("card"):
        rows = fleet().where(node=parsed[3])
        topic = Topic("cards", ids=tuple(card.id for card in rows))
        context = {"cards": rows, "cells": snapshot(topic), "topic": topic if rows else "fleet", "node_id": parsed[3]}
        return render(request, "cockpit/tree_cards.html", context)
    return render(request, "cockpit/tree_part.html", {"branches": branches(path)})
