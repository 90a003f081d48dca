"""When each waiting request can be expected to start, in the order of the queue.

A list schedule by time limits: each request takes the cards that are free first after those before it,
and holds them for its time limit. Work that ends early starts others earlier, so that this is a bound
where the order stays as it is. What runs without an end gives no expectation.
"""

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from pools.rules.backfill import Reservation, unit_times
from pools.rules.demand import Near
from pools.rules.fleet import Mode
from pools.rules.snapshot import NEVER
from pools.rules.space import Space, Wish

Ints = NDArray[np.int64]


class Forecast:
    """Cards by when they come free, while waiting requests are put on them one after the other."""

    def __init__(self, space: Space, reservations: list[Reservation]) -> None:
        self._space = space
        self._free_at = space.free_at.copy()
        self._times: dict[tuple[object, ...], Ints] = {}
        self._wish_of: dict[tuple[object, ...], Wish] = {}
        self._shares: dict[Wish, Ints] = {}
        self._given: dict[Wish, int] = defaultdict(int)
        for reservation in reservations:
            for card in reservation.cards:
                self._free_at[card] = reservation.at + reservation.request.time_limit

    def start(self, wish: Wish, time_limit: int, not_before: int) -> int | None:
        """When the request starts if all before it take their full time; it holds its cards from then on."""
        if wish.spec.mode is not Mode.WHOLE:
            at = self._share_start(wish)
            return None if at >= NEVER else max(at, not_before)
        times = self._whole_times(wish)
        at = max(self._first(wish, times), not_before)
        if at >= NEVER:
            return None
        self._hold(wish, times, at, at + time_limit)
        return at

    def _whole_times(self, wish: Wish) -> Ints:
        key = (wish.pool, wish.model, wish.preemptible, wish.spec.cards)
        if key not in self._times:
            self._times[key] = self._row_times(wish, np.arange(len(self._free_at)))
            self._wish_of[key] = wish
        return self._times[key]

    def _row_times(self, wish: Wish, rows: Ints) -> Ints:
        free_at = np.where(self._space.usable(wish)[rows], self._free_at[rows], NEVER)
        return np.asarray(np.sort(free_at, axis=1)[:, wish.spec.cards - 1 :: wish.spec.cards])

    def _first(self, wish: Wish, times: Ints) -> int:
        """The first moment at which one place of the level has all units."""
        if wish.near in (Near.NODE, Near.ISLAND):
            return int(times[:, wish.count - 1].min()) if 0 < wish.count <= times.shape[1] else NEVER
        groups = self._space.groups(wish.near)
        found = NEVER
        for group in np.unique(groups):
            own = times[groups == group].ravel()
            if len(own) >= wish.count:
                found = min(found, int(np.partition(own, wish.count - 1)[wish.count - 1]))
        return found

    def _hold(self, wish: Wish, times: Ints, at: int, until: int) -> None:
        """Put the units on the cards that come free last before `at`."""
        groups = self._space.groups(Near.NODE if wish.near is Near.ISLAND else wish.near)
        room = np.bincount(groups, (times <= at).sum(axis=1))
        group = int(np.flatnonzero(room >= wish.count)[0])
        nodes, units = np.nonzero((times <= at) & (groups == group)[:, None])
        chosen = np.argsort(-times[nodes, units], kind="stable")[: wish.count]
        rows, counts = np.unique(nodes[chosen], return_counts=True)
        usable = self._space.usable(wish)
        for node, count in zip(rows.tolist(), counts.tolist(), strict=True):
            fitting = np.flatnonzero(usable[node] & (self._free_at[node] <= at))
            latest = fitting[np.argsort(-self._free_at[node, fitting], kind="stable")]
            self._free_at[node, latest[: count * wish.spec.cards]] = until
        for key, cached in self._times.items():
            cached[rows] = self._row_times(self._wish_of[key], rows)

    def _share_start(self, wish: Wish) -> int:
        """Shares of one kind are given in the order in which parts come free."""
        if wish not in self._shares:
            self._shares[wish] = np.sort(unit_times(self._space, wish).ravel())
        self._given[wish] += wish.count
        times = self._shares[wish]
        return int(times[self._given[wish] - 1]) if self._given[wish] <= len(times) else NEVER
