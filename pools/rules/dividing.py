"""Where shares of cards go: parts that are already there first, then an empty card is divided for them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pools.rules.demand import Near
from pools.rules.fleet import Mode
from pools.rules.placement import Draft, Mask, Placement, closest, extra_cost, made, place_whole, together
from pools.rules.pricing import Shape
from pools.rules.room import NEAR_TIE
from pools.rules.sharing import Division, Range, division_for, free_ranges, ranges, share_of
from pools.rules.space import Space, Taken, Wish

_FULL = np.iinfo(np.int64).max


def place(space: Space, wish: Wish, until: int, demand: Mapping[str, int]) -> Placement | None:
    """Find a place for all units, whole cards or shares, and spend it; None, and nothing is spent, when there is none.

    `until` is when the work ends at the latest; `demand` are the waiting units of MIG profiles, so that a
    card that is divided serves as many of them as it can.
    """
    if wish.spec.mode is Mode.WHOLE:
        return place_whole(space, wish, until)
    asleep = space.snapshot.fleet.asleep
    offer = Parts.of(space, wish, space.open_until(wish, until), demand)
    if offer is None:
        return None
    found = _place(space, wish, until, offer, ~asleep)
    if found is None and asleep.any():
        found = _place(space, wish, until, offer, np.ones(len(asleep), bool))
    return found


@dataclass(slots=True)
class Parts:
    """What there is for a spec of shares: free parts of divided cards, and empty cards that may be divided."""

    openings: dict[tuple[int, int], list[Range]]
    empty: Mask
    division: Division
    share: int
    each: int
    """Units of the spec on a card divided so."""

    @classmethod
    def of(cls, space: Space, wish: Wish, open_: Mask, demand: Mapping[str, int]) -> "Parts | None":
        """On the cards of `open_`; None when the model can't be divided so."""
        profiles = space.snapshot.profiles.get(wish.model, {})
        share = share_of(wish.spec, profiles)
        division = division_for(wish.spec, profiles, demand)
        if share is None or division is None:
            return None
        openings = {}
        for card, divided in space.divisions.items():
            if divided.mode is wish.spec.mode and open_[card]:
                free = free_ranges(ranges(wish.spec, divided, profiles), space.held_of(card))
                if free:
                    openings[card] = free
        empty = open_ & space.whole_free()
        if wish.spec.mode not in space.snapshot.pools[wish.pool].sharing:
            empty &= False
        for card in openings:
            empty[card] = False
        return cls(openings, empty, division, share, len(ranges(wish.spec, division, profiles)))

    def units_by_node(self) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """How many units fit on each node."""
        found = self.each * self.empty.sum(axis=1)
        for (node, _), free in self.openings.items():
            found[node] += len(free)
        return np.asarray(found)


def _place(space: Space, wish: Wish, until: int, parts: Parts, awake: Mask) -> Placement | None:
    left = np.where(awake, np.minimum(parts.units_by_node(), space.hosts_for(wish.spec, until)), 0)
    found = closest(space, wish, left)
    if found is None:
        return None
    level, nodes = found
    if level is Near.NODE and wish.count > 1:
        nodes = np.arange(len(nodes)) == int(np.where(nodes, left, _FULL).argmin())
    draft = Draft()
    begun = False
    for _ in range(wish.count):
        open_nodes = nodes & (left > 0)
        taken = _opening(space, parts, open_nodes)
        begun = begun or taken is not None
        if taken is None:
            taken = _divide(space, wish, parts, open_nodes, draft)
        space.spend([taken], wish.spec, until)
        draft.units.append((taken,))
        left[taken.node] -= 1
    why = "the fullest card with a free part" if begun else "an empty card where dividing it costs least"
    return made(space, wish, draft, [*together(wish, level), why])


def _opening(space: Space, parts: Parts, nodes: Mask) -> Taken | None:
    """The first free part of the fullest card."""
    cards = [card for card, free in parts.openings.items() if free and nodes[card[0]]]
    if not cards:
        return None
    card = min(cards, key=lambda card: (int(space.room.free[card]), int(space.room.total[card[0]]), card))
    return Taken(*card, *parts.openings[card].pop(0))


def _divide(space: Space, wish: Wish, parts: Parts, nodes: Mask, draft: Draft) -> Taken:
    """Divide the empty card that costs least, and take its first part."""
    allowed = nodes & parts.empty.any(axis=1)
    cost = space.room.costs(Shape(0.0, 1, parts.share), allowed=allowed) + extra_cost(space, wish)
    node = int(np.where(cost <= cost.min() + NEAR_TIE, space.room.total, _FULL).argmin())
    column = int(np.flatnonzero(parts.empty[node])[0])
    parts.empty[node, column] = False
    draft.divided[node, column] = parts.division
    space.divide(node, column, parts.division)
    first, *rest = ranges(wish.spec, parts.division, space.snapshot.profiles.get(wish.model, {}))
    parts.openings[node, column] = rest
    return Taken(node, column, *first)
