"""Which work leaves for a request of a higher class: whole gangs, those that lose least, and only if it helps.

A request may displace preemptible work of a strictly lower class that has run its minimum time. As the
class falls along every displacement, none can come back on itself: there are no cycles. Who is told to
leave gets a signal and its class's grace. Only whole cards are freed: shares are small and come free soon.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pools.rules.demand import Near, Request, Running
from pools.rules.fleet import CARD, Mode
from pools.rules.placement import closest, units_by_node
from pools.rules.snapshot import Snapshot
from pools.rules.space import Space, Wish

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_NOBODY = np.iinfo(np.int64).max
"""The class of work that may not be displaced."""


_PER_CLASS = 1e12
"""Card-seconds for which work of one class higher counts more: more than anything that can be lost."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """Work that is to leave for `by`: its grace ends at `leaves_at`, `lost` are card-seconds of work."""

    running: Running
    by: Request
    leaves_at: int
    lost: float

    @property
    def name(self) -> str:
        """How people know the work."""
        return self.running.name or str(self.running.id)


def harm(running: Running, now: int) -> float:
    """Card-seconds of work that are lost when it leaves now: all since its last checkpoint, or since its start."""
    cards = sum(unit.share for unit in running.units) / CARD
    since = running.started_at if running.checkpoint_at is None else max(running.started_at, running.checkpoint_at)
    return cards * max(0, now - since)


def _class_of(snapshot: Snapshot, running: Running) -> int:
    """The value that a request must exceed to displace it now."""
    if running.priority is None:
        return _NOBODY
    own = snapshot.priorities[running.priority]
    young = running.started_at + own.minimum_run > snapshot.now
    return own.value if own.preemptible and not young else _NOBODY


class Victims:
    """What runs, as candidates to leave, while a plan tells some of it to."""

    def __init__(self, space: Space) -> None:
        snapshot = space.snapshot
        self._space, self._snapshot = space, snapshot
        self._told = np.array([one.signalled_at is not None for one in snapshot.running], bool)
        self._failed: dict[tuple[Wish, int], int] = {}

    @cached_property
    def _class(self) -> Ints:
        return np.array([_class_of(self._snapshot, one) for one in self._snapshot.running], np.int64)

    @cached_property
    def _harm(self) -> Floats:
        return np.array([harm(one, self._snapshot.now) for one in self._snapshot.running], float)

    @cached_property
    def _order(self) -> Ints:
        """Lower classes first, then what loses least."""
        running = self._snapshot.running
        names = sorted(range(len(running)), key=lambda place: str(running[place].id))
        by_name = np.empty(len(names), np.int64)
        by_name[names] = np.arange(len(names))
        return np.lexsort((by_name, self._harm, self._class))

    def being_freed(self, request: Request, options: Sequence[Wish]) -> list[Running]:
        """Work that was told to leave and makes room for the request."""
        if not self._told.any():
            return []
        for wish in options:
            freed = _Freed(self._space, wish, request.time_limit)
            useful = freed.useful & self._told
            if useful.any() and freed.fits(useful):
                return [self._snapshot.running[place] for place in np.flatnonzero(useful)]
        return []

    def choose(self, request: Request, options: Sequence[Wish]) -> tuple[Wish, list[Preemption]] | None:
        """The work that must leave so that the request fits, as little as possible; None when nothing helps."""
        own = self._snapshot.priorities[request.priority]
        if not (self._snapshot.policy.preemption and own.may_preempt):
            return None
        best: tuple[float, Wish, list[int]] | None = None
        for wish in options:
            failed = self._failed.get((wish, own.value), request.time_limit + 1) <= request.time_limit
            if wish.spec.mode is not Mode.WHOLE or failed:
                continue
            chosen = self._least(wish, own.value, request.time_limit)
            if chosen is None:
                # less comes free for longer work, and less as the plan goes on
                self._failed[wish, own.value] = request.time_limit
            elif best is None or self._harm[chosen].sum() < best[0]:
                best = float(self._harm[chosen].sum()), wish, chosen
        if best is None or not best[2]:
            return None
        return best[1], [self._preemption(place, request) for place in best[2]]

    def tell(self, chosen: Sequence[Preemption]) -> None:
        """These leave; nobody else may count on their cards."""
        places = {one.id: place for place, one in enumerate(self._snapshot.running)}
        for one in chosen:
            place = places[one.running.id]
            self._told[place] = True
            self._space.told_to_leave(place, one.leaves_at)

    def _preemption(self, place: int, request: Request) -> Preemption:
        running = self._snapshot.running[place]
        assert running.priority is not None, "work without a class is never displaced"
        end = self._snapshot.now + self._snapshot.priorities[running.priority].grace
        return Preemption(running, request, min(end, int(self._space.holders.until[place])), float(self._harm[place]))

    def _least(self, wish: Wish, value: int, time_limit: int) -> list[int] | None:
        freed = _Freed(self._space, wish, time_limit)
        eligible = (self._class < value) & ~self._told & freed.useful
        if not freed.fits(eligible):
            return None
        cheapest = self._on_cheapest_cards(wish, freed, eligible)
        enough = cheapest if cheapest is not None and freed.fits(cheapest) else eligible
        return _shortest(self._order[enough[self._order]], len(eligible), freed.fits)

    def _on_cheapest_cards(self, wish: Wish, freed: "_Freed", eligible: Mask) -> Mask | None:
        """Who holds the cards that it costs least to free: a first guess, which looks at cards one by one."""
        harm = self._harm + 1.0 + (self._class - self._class.min()) * _PER_CLASS
        cost, holder = self._space.holders.by_card(eligible, np.where(eligible, harm, 0.0))
        cost = np.where(freed.free, 0.0, np.where(freed.open & (holder >= 0), cost, np.inf))
        order = np.argsort(cost, axis=1, kind="stable")
        each = wish.spec.cards
        units = cost.shape[1] // each
        row = np.arange(len(cost))[:, None]
        by_unit = cost[row, order][:, : units * each].reshape(len(cost), units, each).sum(axis=2)
        chosen = _cheapest_units(by_unit, self._space.groups(_level(wish)), wish.count)
        if chosen is None:
            return None
        found = np.zeros(len(eligible), bool)
        for node, unit in zip(*chosen, strict=True):
            cards = order[node, unit * each : (unit + 1) * each]
            found[[one for one in holder[node, cards].tolist() if one >= 0]] = True
        return found & eligible


class _Freed:
    """What of the fleet would be free for a wish if some work left."""

    def __init__(self, space: Space, wish: Wish, time_limit: int) -> None:
        self._space, self._wish = space, wish
        self.open = space.open_until(wish, space.snapshot.now + time_limit)
        self.free = self.open & space.whole_free()
        self.useful = space.holders.holding(self.open)

    def fits(self, leaving: Mask) -> bool:
        """Whether all units of the wish have a place once these have left."""
        space, wish = self._space, self._wish
        whole = self.open & (space.room.free + space.holders.cards_of(leaving) >= CARD)
        hosts = space.units_on(wish.spec, *space.hosts_with(*space.holders.hosts_of(leaving)))
        return closest(space, wish, units_by_node(space, wish, whole, hosts)) is not None


def _level(wish: Wish) -> Near:
    return Near.NODE if wish.near is Near.ISLAND else wish.near


def _cheapest_units(cost: Floats, groups: Ints, count: int) -> tuple[list[int], list[int]] | None:
    """The nodes and units of the place (by `groups` of nodes) where `count` units cost least together."""
    nodes, units = np.nonzero(np.isfinite(cost))
    values, places = cost[nodes, units], groups[nodes]
    by_place = np.lexsort((values, places))
    starts = np.flatnonzero(np.diff(places[by_place], prepend=-1))
    ends = np.append(starts[1:], len(by_place))
    sums = np.concatenate(([0.0], np.cumsum(values[by_place])))
    holding = starts[ends - starts >= count]
    if not len(holding):
        return None
    start = holding[(sums[holding + count] - sums[holding]).argmin()]
    picked = by_place[start : start + count]
    return nodes[picked].tolist(), units[picked].tolist()


def _shortest(ordered: Ints, size: int, fits: Callable[[Mask], bool]) -> list[int]:
    """The shortest beginning of the list, all of which is enough, less whatever of it is not needed."""

    def mask(places: Ints) -> Mask:
        found = np.zeros(size, bool)
        found[places] = True
        return found

    low, high = 0, len(ordered)
    while low < high:
        middle = (low + high) // 2
        if fits(mask(ordered[:middle])):
            high = middle
        else:
            low = middle + 1
    chosen = mask(ordered[:low])
    # the most harmful are tried first: what can stay, stays
    for place in ordered[:low][::-1]:
        chosen[place] = False
        if not fits(chosen):
            chosen[place] = True
    return [int(place) for place in ordered[:low] if chosen[place]]
