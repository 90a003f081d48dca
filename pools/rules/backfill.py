"""When a blocked request can start at the latest, and the promise that keeps later ones from delaying it.

The first request of a kind that does not fit gets a reservation: the earliest time at which enough
cards have come free by the time limits of what holds them, and cards to go with it. Work behind it may
use other cards, or these if it ends before. Reserved are the cards that come free last, so that what
is free now serves the others meanwhile.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pools.rules.demand import Near, Request
from pools.rules.dividing import Parts
from pools.rules.fleet import Mode
from pools.rules.placement import closest, units_by_node
from pools.rules.sharing import ranges
from pools.rules.snapshot import NEVER
from pools.rules.space import Space, Wish

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Reservation:
    """A promise: the request can start at `at` on these cards (node, column), whatever is backfilled."""

    request: Request
    wish: Wish
    at: int
    cards: tuple[tuple[int, int], ...]

    @property
    def name(self) -> str:
        """How people know the request."""
        return self.request.name or str(self.request.id)


def unit_times(space: Space, wish: Wish) -> Ints:
    """By node, ascending: from when on its first, second ... unit of the spec has a place."""
    free_at = np.where(space.usable(wish) & (space.promised_at == NEVER), space.free_at, NEVER)
    if wish.spec.mode is Mode.WHOLE:
        return np.asarray(np.sort(free_at, axis=1)[:, wish.spec.cards - 1 :: wish.spec.cards])
    return _share_times(space, wish, free_at)


def _share_times(space: Space, wish: Wish, free_at: Ints) -> Ints:
    demand = {wish.spec.profile: wish.count} if wish.spec.profile else {}
    parts = Parts.of(space, wish, free_at < NEVER, demand)
    profiles = space.snapshot.profiles.get(wish.model, {})
    rows: list[list[int]] = [[] for _ in free_at]
    if parts is not None:
        may_divide = wish.spec.mode in space.snapshot.pools[wish.pool].sharing
        for node, column in zip(*np.nonzero(free_at < NEVER), strict=True):
            card = (int(node), int(column))
            divided = space.divisions.get(card)
            own = ranges(wish.spec, divided, profiles) if divided is not None else []
            if own:
                # each part by itself, from when on nobody holds any of it
                held = space.held.get(card, ())
                for start, stop in own:
                    ends = [until for (low, high), until in held if low < stop and start < high]
                    rows[node].append(max(ends, default=space.snapshot.now))
            elif may_divide:
                rows[node] += [int(free_at[card])] * parts.each
    width = max(map(len, rows), default=0)
    return np.array([sorted(row) + [NEVER] * (width - len(row)) for row in rows], np.int64).reshape(len(rows), width)


def earliest(space: Space, wish: Wish, time_limit: int) -> tuple[int, Ints] | None:
    """When all units can start together, and how many fit on each node then; None when nobody can tell."""
    times = unit_times(space, wish)
    moments = np.unique(times[times < NEVER])
    low, high = 0, len(moments)
    # more comes free as time goes on: search for the first moment with enough cards, then look closely
    while low < high:
        middle = (low + high) // 2
        if closest(space, wish, (times <= moments[middle]).sum(axis=1)) is None:
            low = middle + 1
        else:
            high = middle
    ends = {window.end for window in space.snapshot.maintenance}
    later = {int(moment) for moment in moments[low:]}
    first = int(moments[low]) if low < len(moments) else NEVER
    later |= {end for end in ends if end >= first}
    for moment in sorted(later):
        fits = _fits_at(space, wish, times, moment, time_limit)
        if closest(space, wish, fits) is not None:
            return moment, fits
    return None


def _fits_at(space: Space, wish: Wish, times: Ints, moment: int, time_limit: int) -> Ints:
    fits = (times <= moment).sum(axis=1)
    if wish.near is Near.ISLAND:
        free = space.usable(wish) & (space.promised_at == NEVER) & (space.free_at <= moment)
        fits = units_by_node(space, wish, free, fits)
    if wish.spec.cpu or wish.spec.memory:
        fits = np.minimum(fits, space.units_on(wish.spec, *space.hosts_at(moment)))
    for window in space.snapshot.maintenance:
        if window.start < moment + time_limit and window.end > moment:
            for node in window.nodes:
                if (place := space.snapshot.fleet.node_places.get(node)) is not None:
                    fits[place] = 0
    return np.asarray(fits)


def reserve(space: Space, request: Request, options: Iterable[Wish]) -> Reservation | None:
    """Promise the request the earliest start there is; None when no end of what holds its cards is known."""
    found = [(start, wish) for wish in options if (start := earliest(space, wish, request.time_limit)) is not None]
    if not found:
        return None
    (at, fits), wish = min(found, key=lambda entry: entry[0][0])
    place = closest(space, wish, fits)
    assert place is not None, "the moment was found because it fits then"
    cards = _cards(space, wish, np.where(place[1], fits, 0), at)
    _promise(space, wish, at, cards)
    return Reservation(request, wish, at, tuple(cards))


def _cards(space: Space, wish: Wish, fits: Ints, at: int) -> list[tuple[int, int]]:
    """The cards to reserve: few nodes, and of their cards those that come free last."""
    free_at = np.where(space.usable(wish) & (space.promised_at == NEVER), space.free_at, NEVER)
    if wish.near in (Near.NODE, Near.ISLAND):
        # the whole gang on one node: the one that frees up last
        holding = np.flatnonzero(fits >= wish.count)
        last = np.where(free_at <= at, free_at, 0).max(axis=1)
        order = [int(holding[last[holding].argmax()])]
    else:
        order = np.argsort(-fits, kind="stable").tolist()
    chosen: list[tuple[int, int]] = []
    units = 0
    for node in order:
        here = min(int(fits[node]), wish.count - units)
        if here <= 0:
            break
        units += here
        if wish.spec.mode is not Mode.WHOLE:
            # parts are not reserved one by one: all cards of the node that could give one
            chosen += [(node, int(column)) for column in np.flatnonzero(space.usable(wish)[node])]
            continue
        columns = [int(column) for column in np.flatnonzero(free_at[node] <= at)]
        if wish.near is Near.ISLAND:
            columns = _one_island(space, node, columns, here * wish.spec.cards)
        columns.sort(key=lambda column: (-int(free_at[node, column]), column))
        chosen += [(node, column) for column in columns[: here * wish.spec.cards]]
    return chosen


def _one_island(space: Space, node: int, columns: list[int], enough: int) -> list[int]:
    islands: dict[int, list[int]] = {}
    for column in columns:
        islands.setdefault(int(space.island[node, column]), []).append(column)
    return next(own for _, own in sorted(islands.items()) if len(own) >= enough)


def _promise(space: Space, wish: Wish, at: int, cards: Iterable[tuple[int, int]]) -> None:
    by_node: dict[int, int] = {}
    for node, column in cards:
        space.promised_at[node, column] = min(at, space.promised_at[node, column])
        by_node[node] = by_node.get(node, 0) + 1
    cpu, memory = space.hosts_at(at)
    for node, count in by_node.items():
        units = -(-count // wish.spec.cards) if wish.spec.mode is Mode.WHOLE else wish.count
        # of the host, later work may use what the promised units will not need
        space.node_promised_at[node] = min(at, int(space.node_promised_at[node]))
        space.spare_cpu[node] = min(space.spare_cpu[node], cpu[node] - units * wish.spec.cpu)
        space.spare_memory[node] = min(space.spare_memory[node], memory[node] - units * wish.spec.memory)
