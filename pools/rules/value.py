"""What the free part of a node is worth at given values of work, and what taking some of it costs.

The value of a node is how much useful work its free cores and cards can still hold:

    V = min over p of  p * cores + whole(p, n) + sum of part(p, x) over its partly used cards

where p is a price of a core, `part` fills x of one card with shares (an unbounded knapsack) and
`whole` fills n free cards with work of several cards or of one. The p that attains the minimum is
the node's own price: 0 where cores are plentiful, high where they are what runs out. Work costs
what the value falls by. All values are in cards.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pools.rules.fleet import CARD
from pools.rules.pricing import SHARE_STEP, Shape

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

CORE_PRICES: Floats = np.concatenate(([0.0], 0.003 * 1.27 ** np.arange(23)))
"""The prices of a core that are tried, in cards."""

STEPS = CARD // SHARE_STEP
ROUNDING = 1e-6
"""Cores by which sums of fractions may be off."""

UNLIMITED_CPU = 1e6
"""Cores of a node whose cores are not counted."""

_NEVER = -np.inf


@dataclass(frozen=True, slots=True)
class Fill:
    """How the value of one card with x free is attained: units of each share, and cores, by (x, price)."""

    units: Floats
    cores: Floats
    shape: Ints
    """Which shape stands for each share, by (share, price); -1 where none does."""


@dataclass(frozen=True, slots=True)
class Tables:
    """`part[x, p]` of a card with x steps free, `whole[n, p]` of n free cards, `several[n, p]` the shape of
    several cards that `whole` begins with (-1: a card for shares and single cards)."""

    part: Floats
    whole: Floats
    several: Ints
    fill: Fill


def tables(shapes: list[Shape], values: Floats, width: int) -> Tables:
    """The tables for nodes of at most `width` cards when one unit of `shapes[j]` is worth `values[j]`."""
    cores = np.array([shape.cpu for shape in shapes], float)
    gain = values[:, None] - cores[:, None] * CORE_PRICES
    part, fill = _part(shapes, cores, gain)
    whole = np.zeros((width + 1, len(CORE_PRICES)))
    several = np.full(whole.shape, -1, np.int64)
    large = [j for j, shape in enumerate(shapes) if shape.cards > 1]
    for n in range(1, width + 1):
        whole[n] = whole[n - 1] + part[STEPS]
        for j in large:
            if shapes[j].cards <= n:
                with_it = gain[j] + whole[n - shapes[j].cards]
                better = with_it > whole[n]
                whole[n][better] = with_it[better]
                several[n][better] = j
    return Tables(part, whole, several, fill)


def _part(shapes: list[Shape], cores: Floats, gain: Floats) -> tuple[Floats, Fill]:
    """The knapsack of one card, in blocks of the smallest share: within a block no step depends on another."""
    single = [(-(-shape.share // SHARE_STEP), j) for j, shape in enumerate(shapes) if shape.cards == 1]
    sizes = np.array(sorted({size for size, _ in single}), np.int64)
    prices = np.arange(len(CORE_PRICES))
    best = np.full((len(sizes), len(prices)), _NEVER)
    shape = np.full(best.shape, -1, np.int64)
    for place, size in enumerate(sizes):
        own = np.array([j for other, j in single if other == size])
        chosen = gain[own].argmax(axis=0)
        shape[place] = own[chosen]
        best[place] = gain[shape[place], prices]
    # rows below STEPS stand for less than nothing, so that shares that are too large never win
    value = np.full((2 * STEPS + 1, len(prices)), _NEVER)
    value[STEPS] = 0.0
    units = np.zeros((STEPS + 1, len(prices), max(len(sizes), 1)))
    block = int(sizes[0]) if len(sizes) else STEPS
    for start in range(1, STEPS + 1, block):
        steps = np.arange(start, min(start + block, STEPS + 1))
        _fill_block(value, units, best, sizes, steps)
    used = cores[np.maximum(shape, 0)] if len(cores) else np.zeros(shape.shape)
    taken = np.einsum("xps,sp->xp", units, used) if len(sizes) else np.zeros((STEPS + 1, len(prices)))
    return value[STEPS:], Fill(units, taken, shape)


def _fill_block(value: Floats, units: Floats, best: Floats, sizes: Ints, steps: Ints) -> None:
    if not len(sizes):
        value[STEPS + steps] = 0.0
        return
    prices = np.arange(value.shape[1])
    options = best[:, None, :] + value[STEPS + steps[None, :] - sizes[:, None]]
    chosen, fresh = options.argmax(axis=0), options.max(axis=0)
    running = np.maximum.accumulate(np.concatenate((value[STEPS + steps[0] - 1][None], fresh)), axis=0)
    value[STEPS + steps] = running[1:]
    # a step that gains nothing is filled like the last one that did
    gained = fresh > running[:-1]
    source = np.maximum.accumulate(np.where(gained, np.arange(len(steps))[:, None], -1), axis=0)
    rows = np.maximum(source, 0)
    picked = chosen[rows, prices]
    filled = units[steps[rows] - sizes[picked], prices]
    filled[np.arange(len(steps))[:, None], prices, picked] += 1
    units[steps] = np.where((source < 0)[:, :, None], units[steps[0] - 1], filled)


class _Costs:
    """What one shape costs by state, as far as worked out; `entered` is how far in the states' log it has looked."""

    def __init__(self) -> None:
        self.cost, self.card = np.zeros(0), np.zeros(0, np.int64)
        self.worked_out = bytearray()
        self.entered = 0

    def reach(self, room: int) -> None:
        """Have a place for each state."""
        if (more := room - len(self.cost)) > 0:
            self.cost = np.concatenate((self.cost, np.full(more, np.nan)))
            self.card = np.concatenate((self.card, np.zeros(more, np.int64)))
            self.worked_out.extend(bytes(more))


class States:
    """The distinct free states that nodes are in, and what each shape would cost in each of them.

    A state is its free cores and, ascending, the free thousandths of its cards. Costs are worked out
    once for each pair of state and shape, when somebody asks for the shape and a node is in the state.
    """

    def __init__(self, made: Tables, width: int) -> None:
        self.tables, self.width = made, width
        # the worth of a card at each step; wholly free ones are counted together by `whole`
        self._worth = made.part.copy()
        self._worth[STEPS] = 0.0
        self._numbers: dict[tuple[float, tuple[int, ...]], int] = {}
        self._entered: list[int] = []
        self._costs: dict[Shape, _Costs] = {}
        self.cpu = np.zeros(256)
        self.free = np.zeros((256, width), np.int64)
        self.whole = np.zeros(256, np.int64)
        self.by_price = np.zeros((256, len(CORE_PRICES)))
        self.users: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def join(self, cpu: float, free: tuple[int, ...]) -> int:
        """The number of the state of one more node; `free` ascends and has one entry for each of `width` cards."""
        key = (cpu, free)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            self.users.append(0)
            if number == len(self.cpu):
                self._grow()
            self.cpu[number] = cores = min(cpu, UNLIMITED_CPU)
            self.free[number] = free
            self.whole[number] = whole = free.count(CARD)
            steps = self.free[number] // SHARE_STEP
            self.by_price[number] = CORE_PRICES * cores + self.tables.whole[whole] + self._worth[steps].sum(axis=0)
        if not self.users[number]:
            self._entered.append(number)
        self.users[number] += 1
        return number

    def leave(self, number: int) -> None:
        """One node less is in the state."""
        self.users[number] -= 1

    def _grow(self) -> None:
        for name in ("cpu", "free", "whole", "by_price"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate((old, np.zeros_like(old))))

    def costs(self, shape: Shape) -> tuple[Floats, Ints]:
        """(cost, card) by state: inf where it does not fit, and of a share the free thousandths of its best card.

        Only states that some node is in are worked out; the others are NaN.
        """
        known = self._costs.setdefault(shape, _Costs())
        known.reach(len(self.cpu))
        cost, card = known.cost, known.card
        # only states that a node entered since the shape was last asked for can be new to it
        entered = self._entered[known.entered :]
        known.entered = len(self._entered)
        new = [number for number in entered if self.users[number] and not known.worked_out[number]]
        if new:
            missing = np.array(new)
            for number in new:
                known.worked_out[number] = 1
            cost[missing] = np.inf
            fits = missing[self.cpu[missing] >= shape.cpu - ROUNDING]
            if shape.cards == 1 and shape.share < CARD:
                self._cost_share(shape, fits, cost, card)
            else:
                fits = fits[self.whole[fits] >= shape.cards]
                after = self.by_price[fits] - shape.cpu * CORE_PRICES
                whole = self.whole[fits]
                after += self.tables.whole[whole - shape.cards] - self.tables.whole[whole]
                cost[fits] = self.by_price[fits].min(axis=1) - after.min(axis=1)
                card[fits] = CARD
        return cost, card

    def _cost_share(self, shape: Shape, states: Ints, cost: Floats, card: Ints) -> None:
        free = self.free[states]
        # equal cards of a state cost the same: the first of them stands for all
        distinct = np.ones(free.shape, bool)
        distinct[:, 1:] = free[:, 1:] != free[:, :-1]
        rows, columns = np.nonzero((free >= shape.share) & distinct)
        if not len(rows):
            return
        before = free[rows, columns]
        whole = self.whole[states[rows]]
        gone = np.where(
            (before == CARD)[:, None],
            self.tables.whole[whole] - self.tables.whole[whole - 1],
            self._worth[before // SHARE_STEP],
        )
        left = self._worth[(before - shape.share) // SHARE_STEP]
        after = (self.by_price[states[rows]] - shape.cpu * CORE_PRICES - gone + left).min(axis=1)
        falls = np.full(free.shape, np.inf)
        falls[rows, columns] = self.by_price[states[rows]].min(axis=1) - after
        # cards ascend, so that the first of equal costs is the tightest
        best = (falls - 1e-9 * (falls <= falls.min(axis=1, keepdims=True) + 1e-9)).argmin(axis=1)
        chosen = np.arange(len(states))
        cost[states], card[states] = falls[chosen, best], free[chosen, best]

    def price_of_cores(self, number: int) -> float:
        """The node's own price of a core, in cards."""
        return float(CORE_PRICES[self.by_price[number].argmin()])
