"""What the learned prices are made of: the shapes of work seen so far and the value of one of each.

`Prices` is the frozen record that a snapshot carries and a service stores; `learning.refreshed` makes
the next one. Shapes are those of single units: model, memory and topology are wishes that filter
places, not parts of a shape.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pools.rules.demand import Spec
from pools.rules.fleet import CARD

CPU_STEP = 0.5
"""Cores are rounded up to this in shapes, so that like requests share one."""

SHARE_STEP = 10
"""Thousandths of a card in one step of the value grid; finer shares are rounded up in the value only."""

FIRST_REFRESH, GROWTH, REFRESH_EVERY = 20, 1.3, 500
"""Prices are due at 20 arrivals, then each time 30 % later, and in the end every 500."""


@dataclass(frozen=True, slots=True, order=True)
class Shape:
    """One unit of work: host cores and `cards` cards of which it takes `share` thousandths each."""

    cpu: float
    cards: int
    share: int

    @property
    def size(self) -> float:
        """Cards, shares as fractions."""
        return self.cards * self.share / CARD


def shape_of(spec: Spec, share: int = CARD) -> Shape:
    """The shape of one unit of a spec that takes `share` thousandths of each of its cards."""
    return Shape(-(-spec.cpu // CPU_STEP) * CPU_STEP, spec.cards, share)


@dataclass(frozen=True)
class Prices:
    """Arrivals by shape and what one is worth, in cards.

    `values` are for placing (an average of the last rounds), `learning` is where the next refresh goes
    on. `demand` is the size (cards) that arrived by the models it was restricted to; what may run
    anywhere is under the empty set.
    """

    counts: Mapping[Shape, int] = field(default_factory=dict)
    values: Mapping[Shape, float] = field(default_factory=dict)
    learning: Mapping[Shape, float] = field(default_factory=dict)
    demand: Mapping[frozenset[str], float] = field(default_factory=dict)
    due_at: int = FIRST_REFRESH

    @property
    def arrivals(self) -> int:
        """How many units were seen."""
        return sum(self.counts.values())

    @property
    def due(self) -> bool:
        """Enough arrived since the last refresh for another."""
        return self.arrivals >= self.due_at

    def seen(self, arrived: Iterable[tuple[Shape, frozenset[str], int]]) -> "Prices":
        """With more arrivals: (shape, models it is restricted to or empty, units). A new shape is worth its size."""
        counts, demand = Counter(self.counts), Counter(self.demand)
        for shape, models, units in arrived:
            counts[shape] += units
            demand[models] += units * shape.size  # type: ignore[assignment]
        return replace(self, counts=dict(counts), demand=dict(demand))


def next_due(arrivals: int) -> int:
    """At how many arrivals the refresh after this one is due."""
    due = FIRST_REFRESH
    while due <= arrivals:
        due = min(int(due * GROWTH), due + REFRESH_EVERY)
    return due
