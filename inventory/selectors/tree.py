"""The tree: sites, their racks (and nodes without one), their nodes, each with counts that add up."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from inventory.models import Node, Rack, Site
from inventory.rules.counts import Counts, count
from inventory.selectors.cards import CardRow, card_rows


@dataclass(frozen=True, slots=True)
class NodeBranch:
    """A node with its cards."""

    node: Node
    cards: tuple[CardRow, ...]
    counts: Counts


@dataclass(frozen=True, slots=True)
class RackBranch:
    """A rack with its nodes; `rack` is None for the nodes of a site that stand in none."""

    rack: Rack | None
    nodes: tuple[NodeBranch, ...]
    counts: Counts


@dataclass(frozen=True, slots=True)
class SiteBranch:
    """A site with its racks."""

    site: Site
    racks: tuple[RackBranch, ...]
    counts: Counts


@dataclass(frozen=True, slots=True)
class Tree:
    """Everything that is not retired. A branch's counts are the sum of those below it."""

    sites: tuple[SiteBranch, ...]
    counts: Counts


def site_tree(*, now: datetime | None = None) -> Tree:
    """The whole tree in a fixed number of queries."""
    cards: dict[UUID | None, list[CardRow]] = defaultdict(list)
    for row in card_rows(now=now):
        cards[row.node].append(row)
    racks = {rack.id: rack for rack in Rack.objects.order_by("name")}
    by_place: dict[tuple[UUID, UUID | None], list[NodeBranch]] = defaultdict(list)
    for node in Node.objects.exclude(state="retired").select_related("cluster").order_by("name"):
        own = tuple(cards.get(node.id, ()))
        by_place[node.site_id, node.rack_id].append(NodeBranch(node, own, count(row.facts for row in own)))
    sites = tuple(_site(site, racks, by_place) for site in Site.objects.order_by("name"))
    return Tree(sites, sum((branch.counts for branch in sites), Counts()))


def _site(
    site: Site, racks: dict[UUID, Rack], by_place: dict[tuple[UUID, UUID | None], list[NodeBranch]]
) -> SiteBranch:
    own: list[Rack | None] = [rack for rack in racks.values() if rack.site_id == site.id]
    branches = []
    for rack in [*own, None]:
        nodes = by_place.get((site.id, rack.id if rack else None), [])
        if rack is not None or nodes:
            total = sum((branch.counts for branch in nodes), Counts())
            branches.append(RackBranch(rack, tuple(nodes), total))
    return SiteBranch(site, tuple(branches), sum((branch.counts for branch in branches), Counts()))
