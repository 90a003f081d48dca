"""The free space of a fleet while a plan spends it, and the node where work costs least.

Rows are nodes; columns are their cards, in thousandths that are free (0 where there is no card, or
none that may be given out). The costs of a shape are kept by node state, so that a decision looks at
what changed since the shape was last asked for and nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pools.rules.fleet import CARD
from pools.rules.learning import Free, refreshed
from pools.rules.pricing import Prices, Shape
from pools.rules.value import States, tables

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

NEAR_TIE = 0.02
"""Cards. Nodes within this of the least cost are as good; the fullest of them is taken, then the first."""

SURCHARGE = 0.3
"""Cards of surcharge on one card of a model that is asked for by name more than there is of it."""

_FULL = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Offer:
    """A place for one unit: its node, what it costs (cards), and the free thousandths of the card to share."""

    node: int
    cost: float
    card: int


class Room:
    """A working copy. `model` is the number of each node's model in `models`; -1 where it has no card."""

    def __init__(
        self, *, cpu: Floats, memory: Floats, free: Ints, model: Ints, models: Sequence[str], prices: Prices
    ) -> None:
        self.cpu, self.memory, self.free = cpu.copy(), memory.copy(), free.copy()
        self.model, self.models = model, tuple(models)
        self.total = self.free.sum(axis=1)
        self.width = max(free.shape[1], 1)
        self.reprice(prices)

    def reprice(self, prices: Prices) -> None:
        """Go on at other prices."""
        self.prices = prices
        shapes = list(prices.values)
        values = np.array([prices.values[shape] for shape in shapes])
        if not shapes:
            # nothing learned yet: work is worth its size, and a free card as much as it holds
            shapes, values = [Shape(0.0, 1, CARD)], np.ones(1)
        self._states = States(tables(shapes, values, self.width), self.width)
        self.state = np.array([self._join(node) for node in range(len(self.cpu))], np.int64)
        self.surcharge = self._surcharges()
        self.surcharged = bool(self.surcharge.any())

    def refresh(self) -> None:
        """Learn from what arrived and what is free now."""
        known = len(self._states)
        kinds = Free(self._states.cpu[:known], self._states.free[:known], np.array(self._states.users))
        self.reprice(refreshed(self.prices, kinds, self.width))

    def _join(self, node: int) -> int:
        return self._states.join(float(self.cpu[node]), tuple(sorted(self.free[node].tolist())))

    def _surcharges(self) -> Floats:
        """By node: SURCHARGE x min(1, demand for its model / free cards of it).

        The demand for a model is the part of the arrived cards that was restricted to a set of models with
        it, times all free cards, split over the set by what is free of each.
        """
        demand: Mapping[frozenset[str], float] = self.prices.demand
        total = sum(demand.values())
        if not total or not any(demand):
            return np.zeros(len(self.cpu))
        free = np.bincount(self.model[self.model >= 0], self.total[self.model >= 0], len(self.models)) / CARD
        ratio = np.zeros(len(self.models))
        for wanted, size in demand.items():
            members = [place for place, name in enumerate(self.models) if name in wanted]
            here = free[members].sum()
            if members and size:
                ratio[members] += size / total * free.sum() / here if here else 1.0
        by_model = np.append(SURCHARGE * np.minimum(1, ratio), 0.0)
        return np.asarray(by_model[self.model])

    def costs(self, shape: Shape, *, memory: float = 0, allowed: Mask | None = None) -> Floats:
        """What one unit costs on each node, in cards; inf where it does not fit."""
        by_state, _ = self._states.costs(shape)
        cost = by_state[self.state]
        if shape.cards and self.surcharged:
            cost += shape.size * self.surcharge
        if memory:
            cost[self.memory < memory] = np.inf
        if allowed is not None:
            cost[~allowed] = np.inf
        return cost

    def best(self, shape: Shape, *, memory: float = 0, allowed: Mask | None = None) -> Offer | None:
        """The place that costs least; None when the unit fits nowhere."""
        return self.pick(shape, self.costs(shape, memory=memory, allowed=allowed))

    def pick(self, shape: Shape, cost: Floats) -> Offer | None:
        """The fullest of the nodes that cost as good as least, then the first."""
        if not len(cost):
            return None
        least = cost.min()
        if least == np.inf:
            return None
        node = int(np.where(cost <= least + NEAR_TIE, self.total, _FULL).argmin())
        return Offer(node, float(cost[node]), int(self._states.costs(shape)[1][self.state[node]]))

    def columns(self, offer: Offer, shape: Shape) -> list[int]:
        """The cards of an offer by place on their node: the first ones with the free thousandths that it names."""
        fits = [place for place, free in enumerate(self.free[offer.node].tolist()) if free == offer.card]
        return fits[: shape.cards]

    def take(self, node: int, columns: Sequence[int], share: int, cpu: float, memory: float) -> None:
        """Spend `share` thousandths of these cards and some of the host. Negative amounts give back."""
        self.free[node, columns] -= share
        self.cpu[node] -= cpu
        self.memory[node] -= memory
        self.total[node] -= share * len(columns)
        self._states.leave(int(self.state[node]))
        self.state[node] = self._join(node)

    def price_of_cores(self, node: int) -> float:
        """The node's own price of a core, in cards."""
        return self._states.price_of_cores(int(self.state[node]))
