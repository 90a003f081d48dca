"""All reasons why a request waits, each true by itself and together complete.

`standing` are those that hold whatever is free: holds, times, quotas, the spec itself. `lacking` are
those of space: what would have to be free, closer together, or not promised to somebody else.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pools.rules.backfill import Reservation
from pools.rules.demand import Near, Request
from pools.rules.dividing import Parts
from pools.rules.fleet import CARD, Mode
from pools.rules.placement import closest, units_by_node
from pools.rules.quota import Ledger, total_share
from pools.rules.reasons import Code, Reason
from pools.rules.sharing import share_of
from pools.rules.snapshot import NEVER, Snapshot
from pools.rules.space import Space, Wish

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


def standing(snapshot: Snapshot, request: Request) -> list[Reason]:
    """What stops the request whatever is free, quotas apart."""
    spec = snapshot.specs[request.spec]
    found = [
        Reason(
            Code.HELD,
            {"scope": hold.scope.value, "text": hold.text, "by": hold.by, "until": hold.until, "now": snapshot.now},
        )
        for hold in snapshot.holds
        if hold.stops(request)
    ]
    if request.not_before is not None and request.not_before > snapshot.now:
        found.append(Reason(Code.NOT_BEFORE, {"at": request.not_before, "now": snapshot.now}))
    if not spec.offered:
        found.append(Reason(Code.SPEC_UNAVAILABLE, {"cause": "withdrawn", "spec": spec.name or str(spec.id)}))
    return found


def over_quota(ledger: Ledger, snapshot: Snapshot, request: Request, options: Sequence[Wish]) -> list[Reason]:
    """The quotas that stop it, when those of every model do; of the model with the fewest."""
    found: list[list[Reason]] = []
    for wish in options:
        share = share_of(wish.spec, snapshot.profiles.get(wish.model, {}))
        if share is not None:
            found.append(ledger.shortfalls(request, wish.model, total_share(request, wish.spec, share)))
    return min(found, key=len) if found and all(found) else []


class Lack:
    """The reasons of space for one wish, with the numbers."""

    def __init__(self, space: Space, wish: Wish) -> None:
        self.space, self.wish = space, wish
        self.usable = space.usable(wish)
        self.free = self.usable & space.whole_free()
        self.what = wish.model if wish.spec.mode is Mode.WHOLE else f"{wish.model} {self._part()}"

    def _part(self) -> str:
        return self.wish.spec.profile or f"1/{self.wish.spec.shares}"

    def impossible(self) -> Reason | None:
        """The spec can't be given even when everything is empty."""
        wish, space = self.wish, self.space
        spec = wish.spec.name or str(wish.spec.id)
        if not self.usable.any():
            return Reason(Code.SPEC_UNAVAILABLE, {"cause": "empty", "models": wish.model, "spec": spec})
        fits = self._units(np.ones_like(self.usable), empty=True)
        if not fits.any() and wish.spec.mode is not Mode.WHOLE:
            return Reason(Code.SPEC_UNAVAILABLE, {"cause": "mode", "spec": spec})
        if closest(space, wish, fits) is None:
            most = int(self._best_group(fits)) * wish.spec.cards
            args = {"cause": "size", "needed": wish.cards, "most": most, "what": self.what, "spec": spec}
            return Reason(Code.SPEC_UNAVAILABLE, args)
        return None

    def unreachable(self) -> Reason | None:
        """Cards of the model stand in clusters that can't be reached."""
        fleet = self.space.snapshot.fleet
        away = [place for place, one in enumerate(fleet.clusters) if one.managed and not one.reachable]
        if not away or self.wish.model not in fleet.models:
            return None
        members = self.space.snapshot.members[self.wish.pool]
        there = (
            members & np.isin(fleet.cluster[fleet.node], away) & (fleet.model == fleet.models.index(self.wish.model))
        )
        if not there.any():
            return None
        named = {int(place) for place in fleet.cluster[fleet.node[there]]}
        names = ", ".join(sorted(fleet.clusters[place].name or str(fleet.clusters[place].id) for place in named))
        return Reason(Code.CLUSTER_UNREACHABLE, {"cards": int(there.sum()), "clusters": names})

    def _units(self, open_: Mask, *, empty: bool = False) -> Ints:
        """How many units fit on each node, on the cards of `open_` (as they are, or when nobody held anything)."""
        space, spec = self.space, self.wish.spec
        if empty:
            nodes = space.snapshot.fleet.nodes
            cpu = np.array([np.inf if node.cpu is None else node.cpu for node in nodes])
            memory = np.array([np.inf if node.memory is None else node.memory for node in nodes])
            hosts = space.units_on(spec, cpu, memory)
        else:
            hosts = space.units_on(spec, space.room.cpu, space.room.memory)
        if spec.mode is Mode.WHOLE:
            return units_by_node(space, self.wish, open_ & (self.usable if empty else self.free), hosts)
        return np.minimum(self._share_units(open_, empty=empty), hosts)

    def _share_units(self, open_: Mask, *, empty: bool) -> Ints:
        parts = Parts.of(self.space, self.wish, open_ & self.usable, {})
        if parts is None:
            return np.zeros(len(open_), np.int64)
        if empty:
            may_divide = self.wish.spec.mode in self.space.snapshot.pools[self.wish.pool].sharing
            cards = (open_ & self.usable).sum(axis=1) if may_divide else np.zeros(len(open_), np.int64)
            return np.asarray(np.maximum(parts.each * cards, parts.units_by_node()))
        return np.asarray(parts.units_by_node())

    def _best_group(self, fits: Ints) -> int:
        near = Near.NODE if self.wish.near is Near.ISLAND else self.wish.near
        return int(np.bincount(self.space.groups(near), fits).max(initial=0))

    @cached_property
    def short(self) -> tuple[Reason, ...]:
        """What is missing now however short the work would be; empty when there is enough."""
        space, wish = self.space, self.wish
        fits = self._units(np.ones_like(self.usable))
        if closest(space, wish, fits) is not None:
            return ()
        now = {"now": space.snapshot.now}
        return tuple(Reason(one.code, {**one.args, **now}) for one in self._short(fits, next_release(space, wish)))

    def reasons(self, reservations: Sequence[Reservation], time_limit: int) -> list[Reason]:
        """What is missing now for work of that length."""
        if self.short:
            return list(self.short)
        space, wish, now = self.space, self.wish, self.space.snapshot.now
        until = now + time_limit
        ready = np.broadcast_to((space.snapshot.fleet.needed_at >= until)[:, None], self.usable.shape)
        unpromised = space.promised_at >= until
        found: list[Reason] = []
        if closest(space, wish, self._units(ready)) is None:
            found.append(self._maintenance(until))
        if not found and closest(space, wish, np.minimum(self._units(ready & unpromised), self._spare(until))) is None:
            found += self._promised(reservations, until)
        return [Reason(one.code, {**one.args, "now": now}) for one in found]

    def _spare(self, until: int) -> Ints:
        return self.space.hosts_for(self.wish.spec, until)

    def _short(self, fits: Ints, release: dict[str, Any]) -> list[Reason]:
        wish, space = self.wish, self.space
        free, units = self._free_cards()
        total = int(fits.sum())
        largest = int(free.max(initial=0))
        found = []
        numbers = {"each": wish.spec.cards, "free": int(free.sum())}
        common = {"what": self.what, "largest": largest, **release}
        if int(free.sum()) < wish.cards:
            out = int((self._of_model() & ~space.placeable).sum())
            where = f" on {wish.count} nodes" if wish.count > 1 and wish.spec.cards > 1 else ""
            args = {"needed": wish.cards, "where": where, "free": int(free.sum()), "out": out}
            found.append(Reason(Code.NO_FREE_CARDS, {**common, **args}))
        elif units < wish.count:
            places = {"place": "node", "places": int((free > 0).sum())}
            found.append(Reason(Code.FRAGMENTED, {**common, **places, **numbers}))
        elif total < wish.count and wish.near is Near.ISLAND:
            islands = np.unique(space.island[self.free])
            places = {"place": "NVLink island", "places": len(islands)}
            found.append(Reason(Code.FRAGMENTED, {**common, **places, **numbers, "largest": self._largest_island()}))
        elif total < wish.count:
            found.append(Reason(Code.FRAGMENTED, {**common, "cause": "host", "units": units, "fit": total}))
        if total >= wish.count:
            near = {"near": wish.near.value, "fit": self._best_group(fits), "units": wish.count, "elsewhere": total}
            found.append(Reason(Code.TOPOLOGY, {**near, **release}))
        if wish.count > 1 and 0 < total < wish.count:
            found.append(Reason(Code.GANG_INCOMPLETE, {"fit": total, "units": wish.count, **release}))
        return found

    def _free_cards(self) -> tuple[Ints, int]:
        """(free cards, or free parts, by node; how many units they would be without regard to hosts)."""
        if self.wish.spec.mode is Mode.WHOLE:
            free = self.free.sum(axis=1)
            return free, int((free // self.wish.spec.cards).sum())
        parts = self._share_units(np.ones_like(self.usable), empty=False)
        return parts, int(parts.sum())

    def _largest_island(self) -> int:
        return int(np.unique(self.space.island[self.free], return_counts=True)[1].max(initial=0))

    def _of_model(self) -> Mask:
        fleet = self.space.snapshot.fleet
        if self.wish.model not in fleet.models:
            return np.zeros_like(self.usable)
        own = (fleet.model == fleet.models.index(self.wish.model)) & self.space.snapshot.members[self.wish.pool]
        return np.asarray(self.space.grid(own, False))

    def _maintenance(self, until: int) -> Reason:
        snapshot = self.space.snapshot
        places = np.flatnonzero(self.usable.any(axis=1) & (snapshot.fleet.needed_at < until))
        nodes = {snapshot.fleet.nodes[place].id for place in places}
        windows = [one for one in snapshot.maintenance if one.nodes & nodes and one.start < until]
        first = min(windows, key=lambda window: window.start)
        return Reason(
            Code.MAINTENANCE,
            {
                "cards": int(self._free_cards()[0][places].sum()),
                "name": first.name or "maintenance",
                "start": first.start,
                "would_end": until,
                "minutes": max(0, first.start - snapshot.now) // 60,
                "end": max(window.end for window in windows),
            },
        )

    def _promised(self, reservations: Sequence[Reservation], until: int) -> list[Reason]:
        now = self.space.snapshot.now
        # a card is in one pool and of one model: others can't be in the way
        key = (self.wish.pool, self.wish.model)
        heads = [one for one in reservations if one.at < until and (one.wish.pool, one.wish.model) == key]
        if not heads:
            return []
        first = min(heads, key=lambda one: one.at)
        args = {
            "head": first.name,
            "others": len(heads) - 1,
            "reserved_at": first.at,
            "minutes": -(-(until - now) // 60),
            "at_most": max(0, first.at - now) // 60,
        }
        return [Reason(Code.BACKFILL_BLOCKED, args)]


def next_release(space: Space, wish: Wish) -> dict[str, Any]:
    """What comes free next of the cards that the wish could use: when, how many, and when whose work ends."""
    snapshot = space.snapshot
    free_at = np.where(space.usable(wish) & (space.room.free < CARD), space.free_at, NEVER)
    at = int(free_at.min(initial=NEVER))
    if at >= NEVER:
        return {"released": 0, "release_at": None, "release_by": None}
    holding = np.flatnonzero(space.holders.holding(free_at == at))
    holders = [snapshot.running[place].name or str(snapshot.running[place].id) for place in holding]
    by = holders[0] if len(holders) == 1 else f"{len(holders)} jobs" if holders else None
    return {"released": int((free_at == at).sum()), "release_at": at, "release_by": by, "holders": len(holders)}
