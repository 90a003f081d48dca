"""How prices are learned: what would fill the free space that there is with the work that comes?

Each round lets every free state of a node report the fill that attains its value, and raises the
value of a shape of which less would fit than its part of the arrivals, lowering the others: a dual
step for "fill what is left with the mix seen so far, as many times as possible".
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pools.rules.fleet import CARD
from pools.rules.pricing import SHARE_STEP, Prices, Shape, next_due
from pools.rules.value import CORE_PRICES, STEPS, UNLIMITED_CPU, Tables, tables

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDS, FIRST_ROUNDS, AVERAGED = 20, 120, 10
STEP, FIRST_STEP = 0.03, 0.1
FLOOR = 0.02
"""A shape is worth at least this part of its size."""


class Free:
    """The distinct free states: cores, wholly free cards, partly used cards by steps, and how many nodes are so."""

    def __init__(self, cpu: Floats, free: Ints, weight: Ints) -> None:
        """From the cores and the free thousandths of the cards (0 for none) of each state, and how many are in it."""
        some = (free > 0).any(axis=1) & (weight > 0)
        self.cpu, free = np.minimum(cpu[some], UNLIMITED_CPU), free[some]
        self.weight = weight[some].astype(float)
        self.whole = (free == CARD).sum(axis=1)
        # one entry for each partly used card, in the order of states, and again in the order of steps
        self._rows, columns = np.nonzero((free > 0) & (free < CARD))
        self._steps = free[self._rows, columns] // SHARE_STEP
        self._having, self._starts = np.unique(self._rows, return_index=True)
        self._order = np.argsort(self._steps, kind="stable")
        self._used_steps, self._step_starts = np.unique(self._steps[self._order], return_index=True)

    def over_partly(self, by_step: Floats) -> Floats:
        """For each state, the sum over its partly used cards of what stands at their steps."""
        found = np.zeros((len(self.cpu), by_step.shape[1]))
        if len(self._rows):
            found[self._having] = np.add.reduceat(by_step[self._steps], self._starts, axis=0)
        return found

    def to_steps(self, by_state: Floats) -> Floats:
        """For each step, the sum over partly used cards with so much free of what stands at their states."""
        found = np.zeros((STEPS + 1, by_state.shape[1]))
        if len(self._rows):
            found[self._used_steps] = np.add.reduceat(by_state[self._rows[self._order]], self._step_starts, axis=0)
        return found


def refreshed(prices: Prices, free: Free, width: int) -> Prices:
    """The next prices, from the arrivals so far and the space that is free now. Nodes have at most `width` cards."""
    shapes = [shape for shape, count in prices.counts.items() if count]
    if not shapes or not len(free.cpu):
        return replace(prices, due_at=next_due(prices.arrivals))
    counts = np.array([prices.counts[shape] for shape in shapes], float)
    part = counts / counts.sum()
    size = np.array([shape.size for shape in shapes])
    values = np.array([prices.learning.get(shape, shape.size) for shape in shapes])
    rounds, step = (ROUNDS, STEP) if prices.learning else (FIRST_ROUNDS, FIRST_STEP)
    average = np.zeros(len(shapes))
    for number in range(rounds):
        # the first time starts far away: large steps, shrinking to the usual one
        eta = STEP + (step - STEP) * (1 - number / rounds)
        supply = _supply(shapes, tables(shapes, values, width), free)
        values = _stepped(values, supply, part, size, eta)
        if number >= rounds - AVERAGED:
            average += values / AVERAGED
    return replace(
        prices,
        values=dict(zip(shapes, average.tolist(), strict=True)),
        learning=dict(zip(shapes, values.tolist(), strict=True)),
        due_at=next_due(prices.arrivals),
    )


def _stepped(values: Floats, supply: Floats, part: Floats, size: Floats, eta: float) -> Floats:
    """Values after one round: up where less fits than is asked, down where more does; their mean stays."""
    asked = part @ size
    if not asked:
        return values
    wanted = (supply @ size) / asked * part
    total = wanted + supply
    change = np.divide(wanted - supply, total, out=np.zeros_like(total), where=total > 0)
    moved = np.maximum(FLOOR * size, values * np.exp(eta * change))
    return np.asarray(moved * asked / (part @ moved))


def _supply(shapes: Sequence[Shape], made: Tables, free: Free) -> Floats:
    """Units of each shape in the fills that attain the values of all free states."""
    cores = np.array([shape.cpu for shape in shapes])
    whole_cores = _whole_cores(shapes, made, cores)
    value = free.cpu[:, None] * CORE_PRICES + made.whole[free.whole] + free.over_partly(made.part)
    used = whole_cores[free.whole] + free.over_partly(made.fill.cores)
    rows = np.arange(len(free.cpu))
    at = value.argmin(axis=1)
    # between two prices of a core, mix the fills so that the cores are used exactly
    left = free.cpu - used[rows, at]
    beside = np.clip(at + np.where(left < 0, 1, -1), 0, len(CORE_PRICES) - 1)
    gap = used[rows, beside] - used[rows, at]
    share = np.clip(np.divide(left, gap, out=np.zeros_like(left), where=gap != 0), 0, 1)
    weight = np.zeros(value.shape)
    weight[rows, at] += free.weight * (1 - share)
    weight[rows, beside] += free.weight * share
    return _units(shapes, made, free, weight)


def _whole_cores(shapes: Sequence[Shape], made: Tables, cores: Floats) -> Floats:
    used = np.zeros(made.whole.shape)
    prices = np.arange(len(CORE_PRICES))
    need = np.array([shape.cards for shape in shapes])
    for n in range(1, len(used)):
        first = made.several[n]
        single = used[n - 1] + made.fill.cores[STEPS]
        used[n] = np.where(first < 0, single, cores[first] + used[n - need[first], prices])
    return used


def _units(shapes: Sequence[Shape], made: Tables, free: Free, weight: Floats) -> Floats:
    """Follow the fills back, from `weight` nodes at each price, to units of each shape."""
    prices = np.arange(len(CORE_PRICES))
    supply = np.zeros(len(shapes))
    cards = free.to_steps(weight)
    whole = np.zeros(made.whole.shape)
    np.add.at(whole, free.whole, weight)
    need = np.array([shape.cards for shape in shapes])
    for n in range(len(whole) - 1, 0, -1):
        first = made.several[n]
        single = first < 0
        cards[STEPS] += np.where(single, whole[n], 0)
        whole[n - 1] += np.where(single, whole[n], 0)
        if not single.all():
            several = prices[~single]
            np.add.at(supply, first[several], whole[n, several])
            np.add.at(whole, (n - need[first[several]], several), whole[n, several])
    by_share = np.einsum("xp,xps->sp", cards, made.fill.units)
    if made.fill.shape.size:
        np.add.at(supply, made.fill.shape, by_share)
    return supply
