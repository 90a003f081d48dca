"""The cards of a snapshot while a plan spends them: what is free, until when, and how cards are divided.

Cards are addressed by node and column (their place on the node). Everything that a plan changes goes
through `spend`, so that a trial can be taken back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pools.rules.demand import Near, Request, Spec
from pools.rules.fleet import CARD, Id, Mode
from pools.rules.holders import Holders
from pools.rules.room import Room
from pools.rules.sharing import Division, Range, division_of
from pools.rules.snapshot import NEVER, Snapshot

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Wish:
    """What matters of a request for finding a place; requests with equal wishes find the same one."""

    spec: Spec
    model: str
    pool: Id
    count: int
    near: Near
    preemptible: bool
    cached: str = ""

    @property
    def cards(self) -> int:
        """Cards, or cards with a share, in all."""
        return self.count * self.spec.cards


_CLOSEST_FIRST = tuple(Near)


def wishes(snapshot: Snapshot, request: Request) -> list[Wish]:
    """One wish for each model that the spec takes, in the order of their names."""
    spec = snapshot.specs[request.spec]
    near = spec.near if request.near is None else min(spec.near, request.near, key=_CLOSEST_FIRST.index)
    preemptible = snapshot.priorities[request.priority].preemptible
    return [
        Wish(spec, model, request.pool, request.count, near, preemptible, request.model)
        for model in sorted(spec.models)
    ]


@dataclass(frozen=True, slots=True)
class Taken:
    """A part of a card for a unit: node and column, and the range in thousandths."""

    node: int
    column: int
    start: int = 0
    stop: int = CARD


class Space:
    """A working copy of the fleet of a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        fleet = snapshot.fleet
        counts = np.diff(fleet.first)
        self.width = int(counts.max()) if len(counts) else 0
        self.columns = np.arange(len(fleet.cards)) - fleet.first[fleet.node]
        self.real = np.arange(self.width) < counts[:, None]
        self.placeable = self.grid(fleet.placeable, False)
        self.restricted = self.grid(fleet.restricted, False)
        self.risk = self.grid(fleet.risk, 0.0)
        self.island = self.grid(fleet.island, -1)
        free = np.where(self.placeable, CARD - self.grid(fleet.taken, CARD), 0)
        first_models = np.full(len(fleet.nodes), -1, np.int64)
        some = counts > 0
        first_models[some] = fleet.model[fleet.first[:-1][some]]
        self.room = Room(
            cpu=fleet.cpu, memory=fleet.memory, free=free, model=first_models, models=fleet.models,
            prices=snapshot.prices,
        )  # fmt: skip
        self.divisions: dict[tuple[int, int], Division] = {
            (int(fleet.node[place]), int(self.columns[place])): division_of(card)
            for place, card in enumerate(fleet.cards)
            if card.mode is not Mode.WHOLE
        }
        self.undivided = self.real.copy()
        for node, column in self.divisions:
            self.undivided[node, column] = False
        self._undivided_at_first = self.undivided.copy()
        self.held: dict[tuple[int, int], list[tuple[Range, int]]] = {}
        self.free_at = np.where(self.placeable, snapshot.now, NEVER)
        self.holders = Holders(snapshot, self.columns, self.width)
        self._occupy()
        # observed work may use more of a host than there is; what leaves first only pays that back
        cpu, memory = self.holders.hosts_of(np.ones(len(self.holders.until), bool))
        cores = np.array([np.inf if one.cpu is None else one.cpu for one in fleet.nodes])
        sizes = np.array([np.inf if one.memory is None else one.memory for one in fleet.nodes])
        self._owed_cpu, self._owed_memory = np.maximum(0, cpu - cores), np.maximum(0, memory - sizes)
        # promised to somebody at a time: work that would still run then may not use it
        self.promised_at = np.full(self.real.shape, NEVER)
        self.node_promised_at = np.full(len(fleet.nodes), NEVER)
        self.spare_cpu = np.full(len(fleet.nodes), np.inf)
        self.spare_memory = np.full(len(fleet.nodes), np.inf)
        self._usable: dict[tuple[Id, str, bool, bool], Mask] = {}

    def grid(self, by_card: NDArray[Any], empty: object) -> NDArray[Any]:
        """What stands by card, by node and column."""
        found: NDArray[Any] = np.full(self.real.shape, empty, by_card.dtype)
        found[self.snapshot.fleet.node, self.columns] = by_card
        return found

    def at(self, card: Id) -> tuple[int, int]:
        """Node and column of a card."""
        place = self.snapshot.fleet.card_places[card]
        return int(self.snapshot.fleet.node[place]), int(self.columns[place])

    def card(self, node: int, column: int) -> int:
        """The place of a card among all."""
        return int(self.snapshot.fleet.first[node]) + column

    def _occupy(self) -> None:
        """Cards come free when the last holder of them leaves."""
        self.holders.hold_until_they_leave(self.free_at)
        if not self.holders.shares:
            return
        for place, running in enumerate(self.snapshot.running):
            until = int(self.holders.until[place])
            for unit in running.units:
                if not unit.whole:
                    self.held.setdefault(self.at(unit.card), []).append(((unit.start, unit.stop), until))

    def usable(self, wish: Wish) -> Mask:
        """Cards that may be given to such work at all, free or not."""
        key = (wish.pool, wish.model, wish.preemptible, wish.spec.mode is Mode.WHOLE)
        if key not in self._usable:
            fleet = self.snapshot.fleet
            if wish.model in fleet.models:
                of_model = fleet.model == fleet.models.index(wish.model)
                found = self.grid(of_model & self.snapshot.members[wish.pool], False) & self.placeable
            else:
                found = np.zeros(self.real.shape, bool)
            if wish.spec.mode is Mode.WHOLE and Mode.WHOLE not in self.snapshot.pools[wish.pool].sharing:
                # cards that were divided by hand stay so
                found = found & self._undivided_at_first
            self._usable[key] = found if wish.preemptible else found & ~self.restricted
        return self._usable[key]

    def open_until(self, wish: Wish, ends_at: int) -> Mask:
        """Usable cards that are neither promised to others nor needed for maintenance before `ends_at`."""
        ready = self.snapshot.fleet.needed_at >= ends_at
        return np.asarray(self.usable(wish) & (self.promised_at >= ends_at) & ready[:, None])

    def whole_free(self) -> Mask:
        """Cards of which nobody holds anything."""
        return np.asarray(self.room.free == CARD)

    def hosts_for(self, spec: Spec, ends_at: int) -> Ints:
        """How many units that run until then the cores and the memory of each node allow."""
        late = self.node_promised_at < ends_at
        cpu = np.where(late, np.minimum(self.room.cpu, self.spare_cpu), self.room.cpu)
        memory = np.where(late, np.minimum(self.room.memory, self.spare_memory), self.room.memory)
        return self.units_on(spec, cpu, memory)

    def units_on(self, spec: Spec, cpu: Floats, memory: Floats) -> Ints:
        """How many units so many cores and bytes of each node allow."""
        most = np.full(len(cpu), 2**31)
        if spec.cpu:
            most = np.minimum(most, np.floor(np.clip(cpu / spec.cpu + 1e-9, 0, 1e9)).astype(np.int64))
        if spec.memory:
            most = np.minimum(most, np.floor(np.clip(memory / spec.memory, 0, 1e9)).astype(np.int64))
        return most

    def groups(self, near: Near) -> Ints:
        """The number of the place (of that level) that each node is in; nodes without one stand alone."""
        return self._groups[near]

    @cached_property
    def _groups(self) -> Mapping[Near, Ints]:
        fleet = self.snapshot.fleet
        alone = np.arange(len(fleet.nodes))
        rack = np.where(fleet.rack < 0, alone, fleet.rack + len(alone))
        leaf = np.where(fleet.leaf < 0, rack, fleet.leaf + 2 * len(alone))
        return {
            Near.ISLAND: alone, Near.NODE: alone, Near.RACK: _dense(rack, fleet.cluster),
            Near.LEAF: _dense(leaf, fleet.cluster), Near.CLUSTER: fleet.cluster,
        }  # fmt: skip

    def spend(self, taken: Iterable[Taken], spec: Spec, until: int) -> None:
        """Give these parts to one unit that runs until then at most."""
        parts = list(taken)
        node = parts[0].node
        share = parts[0].stop - parts[0].start
        self.room.take(node, [part.column for part in parts], share, spec.cpu, spec.memory)
        if until > self.node_promised_at[node]:
            self.spare_cpu[node] -= spec.cpu
            self.spare_memory[node] -= spec.memory
        for part in parts:
            if share < CARD:
                self.held.setdefault((node, part.column), []).append(((part.start, part.stop), until))
            self.free_at[node, part.column] = max(self.free_at[node, part.column], until)
        if spec.cpu or spec.memory:
            self.holders.start(node, until, spec.cpu, spec.memory)

    def told_to_leave(self, place: int, leaves_at: int) -> None:
        """Running work (by its place in the snapshot) will have left by then."""
        self.holders.until[place] = leaves_at
        for unit in self.snapshot.running[place].units:
            card, part = self.at(unit.card), (unit.start, unit.stop)
            parts = [(other, leaves_at if other == part else until) for other, until in self.held.get(card, ())]
            if parts:
                self.held[card] = parts
            self.free_at[card] = max([leaves_at, *(until for _, until in parts)])

    def held_of(self, card: tuple[int, int]) -> list[Range]:
        """The parts of a divided card that somebody holds."""
        return [part for part, _ in self.held.get(card, ())]

    def hosts_at(self, moment: int) -> tuple[Floats, Floats]:
        """Free cores and memory of each node once everything that ends until then has left."""
        return self.hosts_with(*self.holders.hosts_left_by(moment))

    def hosts_with(self, cpu: Floats, memory: Floats) -> tuple[Floats, Floats]:
        """Free cores and memory of each node when so much more has left."""
        return (
            self.room.cpu + np.maximum(0, cpu - self._owed_cpu),
            self.room.memory + np.maximum(0, memory - self._owed_memory),
        )

    def divide(self, node: int, column: int, division: Division) -> None:
        """From now on the card, which is empty, is divided so."""
        if division.mode is Mode.WHOLE:
            self.divisions.pop((node, column), None)
        else:
            self.divisions[node, column] = division
        self.undivided[node, column] = division.mode is Mode.WHOLE


def _dense(groups: Ints, cluster: Ints) -> Ints:
    """Small numbers; a place that spans clusters is one in each of them."""
    _, numbers = np.unique(np.stack((cluster, groups)), axis=1, return_inverse=True)
    return np.asarray(numbers, np.int64).reshape(-1)
