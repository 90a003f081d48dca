"""The tree that people open: site, cluster, rack, node. One grouping for the page and for its live counts.

Counting is inventory.rules.counts'; where a card stands is its node's business, as in inventory.selectors.cards.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast
from uuid import UUID

from inventory.models import Cluster, Node, Rack, Site
from inventory.rules.counts import Counts
from inventory.selectors.cordons import cordoned_nodes
from sensaka.live.cells import Cell, Cells, count
from sensaka.live.fleet import CardRow, fleet
from sensaka.live.fleet_cells import tally
from sensaka.live.held_cells import cordon_cell
from sensaka.live.paths import LEVELS, Path, written
from sensaka.live.words import NODE_TAGS, state_words

_WITHOUT = {"cluster": "Without a cluster", "rack": "Without a rack"}
_Row = tuple[UUID, str, str, UUID, UUID | None, UUID | None]


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of the tree. `path` names it and all above it; `state` and `cards` are a node's."""

    level: str
    title: str
    path: str
    numbers: Counts
    nodes: int
    node: UUID | None = None
    state: str = ""
    cordoned: bool = False
    cards: tuple[CardRow, ...] = ()

    @property
    def key(self) -> str:
        """What its live cells are called."""
        return f"branch.{self.path}"


def branches(path: Path) -> list[Branch]:
    """The lines directly below a path of at most three parts; the empty path is the root."""
    level = LEVELS[len(path)]
    rows: list[_Row] = list(
        Node.objects.exclude(state="retired")
        .order_by("name")
        .values_list("id", "name", "state", "site_id", "cluster_id", "rack_id")
    )
    nodes = [row for row in rows if row[3 : 3 + len(path)] == path]
    cards = _cards_by_node()
    if level == "node":
        out = cordoned_nodes()
        return [
            Branch("node", name, written((*path, node)), tally(own), 1, node, state, node in out, own)
            for node, name, state, *_ in nodes
            for own in [tuple(cards.get(node, ()))]
        ]
    groups: dict[UUID | None, list[_Row]] = defaultdict(list)
    for row in nodes:
        groups[cast("UUID | None", row[3 + len(path)])].append(row)
    found = []
    for key, title in sorted(_titles(level, path, groups).items(), key=lambda pair: (pair[0] is None, pair[1])):
        own = groups.get(key, [])
        numbers = tally(card for row in own for card in cards.get(row[0], ()))
        found.append(Branch(level, title, written((*path, key)), numbers, len(own)))
    return found


def _cards_by_node() -> dict[UUID | None, list[CardRow]]:
    found: dict[UUID | None, list[CardRow]] = defaultdict(list)
    for card in fleet().cards:
        found[card.node_id].append(card)
    return found


def _titles(level: str, path: Path, groups: dict[UUID | None, list[_Row]]) -> dict[UUID | None, str]:
    """Sites and clusters that are set up, with nodes or without; racks that hold nodes here."""
    if level == "site":
        return dict(Site.objects.values_list("id", "name"))
    if level == "cluster":
        titles: dict[UUID | None, str] = dict(Cluster.objects.filter(site=path[0]).values_list("id", "name"))
    else:
        keys = [key for key in groups if key is not None]
        titles = dict(Rack.objects.filter(pk__in=keys).values_list("id", "name"))
    if None in groups:
        titles[None] = _WITHOUT[level]
    return titles


def below(lines: Iterable[Branch]) -> str:
    """Changes when a line comes, goes or is renamed; an open branch is then completed."""
    return _digest((line.path, line.title) for line in lines)


def below_node(cards: Iterable[CardRow]) -> str:
    """Changes when a card or slice of an open node comes, goes or is named anew."""
    return _digest((card.id, card.label, card.model, *(piece.id for piece in card.slices)) for card in cards)


def _digest(parts: Iterable[tuple[object, ...]]) -> str:
    return hashlib.sha256(repr([[str(part) for part in line] for line in parts]).encode()).hexdigest()[:12]


def cells(path: Path) -> Cells:
    """The counts of the lines below a path, and versions of what is below it and below its nodes."""
    lines = branches(path)
    found: Cells = {f"below.{written(path)}": Cell(below(lines))}
    for branch in lines:
        numbers = branch.numbers
        bad = numbers.failed + numbers.missing
        for name, value in (
            ("nodes", branch.nodes), ("installed", numbers.installed), ("busy", numbers.busy), ("idle", numbers.idle),
            ("unknown", numbers.unknown), ("out", numbers.out),
        ):  # fmt: skip
            found[f"{branch.key}.{name}"] = Cell(count(value))
        found[f"{branch.key}.bad"] = Cell(count(bad), "bad" if bad else "")
        if branch.node is not None:
            found[f"{branch.key}.state"] = Cell(state_words(branch.state), NODE_TAGS.get(branch.state, "free"))
            found[f"{branch.key}.cordon"] = cordon_cell(branch.cordoned)
            found[f"below.{branch.path}"] = Cell(below_node(branch.cards))
    return found
