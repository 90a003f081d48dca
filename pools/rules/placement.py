"""Where the units of a request go: all of them at once or none, each choice with its reason.

The closest places first (one node, one rack, one leaf, one cluster, never further apart
than asked), of those of one level the tightest that holds the gang, and in it the node whose value
falls least. Sleeping nodes only when nothing awake will do. Shares of cards are placed in `dividing`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pools.rules.demand import Near
from pools.rules.fleet import CARD
from pools.rules.pricing import Shape
from pools.rules.reasons import counted
from pools.rules.sharing import WHOLE, Division
from pools.rules.space import Space, Taken, Wish

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

CACHED = 0.25
"""Cards that a node with the model on its disk may cost more than another and still be taken."""

RISK = 0.5
"""Cards of extra cost for work that can't be preempted, on a node whose cards have a risk of 1."""

_LEVELS = (Near.NODE, Near.RACK, Near.LEAF, Near.CLUSTER)


@dataclass(frozen=True, slots=True)
class Placement:
    """The units of a request and where they go; `divided` are the empty cards that change for it."""

    wish: Wish
    units: tuple[tuple[Taken, ...], ...]
    divided: Mapping[tuple[int, int], Division]
    asleep: frozenset[int]
    why: str


@dataclass(slots=True)
class Draft:
    units: list[tuple[Taken, ...]] = field(default_factory=list)
    divided: dict[tuple[int, int], Division] = field(default_factory=dict)


def place_whole(space: Space, wish: Wish, until: int) -> Placement | None:
    """Find a place for all units of whole cards and spend it; None, and nothing is spent, when they don't fit together.

    `until` is when the work ends at the latest.
    """
    asleep = space.snapshot.fleet.asleep
    for awake in (~asleep, np.ones(len(asleep), bool)) if asleep.any() else (~asleep,):
        open_ = space.open_until(wish, until) & awake[:, None]
        found = _place(space, wish, until, open_)
        if found is not None:
            return found
    return None


def units_by_node(space: Space, wish: Wish, free: Mask, hosts: Ints) -> Ints:
    """How many units of whole cards fit on each node."""
    if wish.near is Near.ISLAND:
        return np.asarray(np.minimum(_largest_islands(space, free) // wish.spec.cards, hosts))
    return np.asarray(np.minimum(free.sum(axis=1) // wish.spec.cards, hosts))


def _largest_islands(space: Space, free: Mask) -> Ints:
    """The most free cards of one island, by node."""
    counts = np.zeros(len(free), np.int64)
    rows, columns = np.nonzero(free)
    if len(rows):
        islands, sizes = np.unique(space.island[rows, columns], return_counts=True)
        by_card = sizes[np.searchsorted(islands, space.island[rows, columns])]
        np.maximum.at(counts, rows, by_card)
    return counts


def _place(space: Space, wish: Wish, until: int, open_: Mask) -> Placement | None:
    free = open_ & space.whole_free()
    fits = units_by_node(space, wish, free, space.hosts_for(wish.spec, until))
    found = closest(space, wish, fits)
    if found is None:
        return None
    level, nodes = found
    shape = Shape(wish.spec.cpu, wish.spec.cards, CARD)
    extra = extra_cost(space, wish)
    draft = Draft()
    reasons: list[str] = []
    left = fits.copy()
    if level is Near.NODE and wish.count > 1:
        # one node for the whole gang: the one where all of it together costs least
        gang = Shape(shape.cpu * wish.count, wish.cards, CARD)
        cost = space.room.costs(gang, allowed=nodes) + extra
        if (offer := space.room.pick(gang, cost)) is not None:
            nodes = np.arange(len(nodes)) == offer.node
            if wish.near is Near.ISLAND:
                free[offer.node] &= _tightest_island(space, free[offer.node], offer.node, wish.cards)
    for number in range(wish.count):
        cost = space.room.costs(shape, allowed=nodes & (left > 0)) + extra
        offer = space.room.pick(shape, cost)
        assert offer is not None, "the level was found to hold all units"
        if not number:
            reasons = reasons_for(space, wish, level, offer.node, float(cost[offer.node]), int((cost < np.inf).sum()))
        columns = _cards_on(space, wish, free, offer.node)
        unit = tuple(Taken(offer.node, column) for column in columns)
        for column in columns:
            free[offer.node, column] = False
            if not space.undivided[offer.node, column]:
                draft.divided[offer.node, column] = WHOLE
                space.divide(offer.node, column, WHOLE)
        space.spend(unit, wish.spec, until)
        draft.units.append(unit)
        left[offer.node] -= 1
    return made(space, wish, draft, reasons)


def closest(space: Space, wish: Wish, fits: Ints) -> tuple[Near, Mask] | None:
    """The closest level at which one place holds all units, and the nodes of the tightest such place.

    At the level of nodes all nodes that hold the gang are kept; their value decides.
    """
    furthest = Near.NODE if wish.near is Near.ISLAND else wish.near
    for level in _LEVELS:
        groups = space.groups(level)
        room = np.bincount(groups, fits)
        holding = np.flatnonzero(room >= wish.count)
        if len(holding):
            if level is Near.NODE:
                return level, fits >= wish.count
            return level, groups == holding[room[holding].argmin()]
        if level is furthest:
            return None
    return None


def _tightest_island(space: Space, free: Mask, node: int, cards: int) -> Mask:
    """The cards of the island of a node with the fewest free ones that are enough."""
    islands, sizes = np.unique(space.island[node][free], return_counts=True)
    enough = np.where(sizes >= cards, sizes, np.iinfo(np.int64).max)
    return np.asarray(space.island[node] == islands[enough.argmin()])


def extra_cost(space: Space, wish: Wish) -> Floats | float:
    """What a node costs beside its value: risk for work that can't be preempted, less for a cached model."""
    extra: Floats | float = 0.0
    if not wish.preemptible and space.risk.any():
        extra = RISK * space.risk.max(axis=1)
    if wish.cached:
        nodes = space.snapshot.fleet.nodes
        extra = extra - CACHED * np.array([wish.cached in node.cached for node in nodes], float)
    return extra


def _cards_on(space: Space, wish: Wish, free: Mask, node: int) -> list[int]:
    """The cards for one unit: of one island where that is possible, the tightest; undivided before divided ones."""
    columns = np.flatnonzero(free[node]).tolist()
    islands: dict[int, list[int]] = {}
    for column in columns:
        islands.setdefault(int(space.island[node, column]), []).append(column)
    holding = [own for own in islands.values() if len(own) >= wish.spec.cards]
    if holding:
        columns = min(holding, key=lambda own: (len(own), own))
    else:
        # no island holds the unit: few islands are better than many
        columns = [column for own in sorted(islands.values(), key=lambda own: (-len(own), own)) for column in own]
    if len(columns) > wish.spec.cards:
        risky = space.risk[node]
        columns = sorted(columns, key=lambda column: (not space.undivided[node, column], risky[column]))
    return sorted(columns[: wish.spec.cards])


def made(space: Space, wish: Wish, draft: Draft, reasons: Sequence[str]) -> Placement:
    nodes = {part.node for unit in draft.units for part in unit}
    fleet = space.snapshot.fleet
    asleep = frozenset(node for node in nodes if fleet.asleep[node])
    names = _names(fleet.nodes[node].name or str(fleet.nodes[node].id) for node in sorted(nodes))
    changed = f"; {len(draft.divided)} empty card{'s' * (len(draft.divided) > 1)} divided anew" if draft.divided else ""
    woken = f"; {len(asleep)} to be woken" if asleep else ""
    return Placement(
        wish, tuple(draft.units), dict(draft.divided), asleep, f"{names}: {', '.join(reasons)}{changed}{woken}"
    )


def _names(names: Iterable[str], most: int = 4) -> str:
    shown = list(names)
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")


def reasons_for(space: Space, wish: Wish, level: Near, node: int, cost: float, of: int) -> list[str]:
    """Why there, in the order of importance. `cost` is the first unit's, in cards, `of` how many nodes would do."""
    found = together(wish, level)
    found.append(f"its free part loses the least value ({cost:.2f} cards; {counted(of, 'node')} would do)")
    if price := space.room.price_of_cores(node):
        found.append(f"a core there is worth {price:.3f} cards")
    if wish.cached and wish.cached in space.snapshot.fleet.nodes[node].cached:
        found.append(f"{wish.cached} is on its disk")
    return found


def together(wish: Wish, level: Near) -> list[str]:
    """How close the units of a gang stand."""
    if wish.count == 1:
        return []
    return ["all on one node" if level is Near.NODE else f"all in one {level}"]
