"""Claims on parts of cards, settled so that no two overlap: what was seen beats what is planned.

Of two that were seen on the same part of a card at the same time the later one holds it: the earlier
one can only have left. What is planned starts when what was seen has left, and gives way to what is
still there.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pools.rules.fleet import CARD, Id


@dataclass(slots=True)
class Claim:
    """A share [low, high) of a card, in thousandths, from `start` to `end` (None: still held).

    Of two with the same start the one with the higher `rank` counts as the later one.
    """

    id: Id
    card: Id
    start: datetime
    end: datetime | None
    rank: str = ""
    planned: bool = False
    low: int = 0
    high: int = CARD

    def shares_with(self, other: "Claim") -> bool:
        """Whether both want some of the same part."""
        return self.low < other.high and other.low < self.high


@dataclass(frozen=True, slots=True)
class Settlement:
    """Ids of claims: `cut` end earlier now, `void` are nothing any more, `late` start later, `ousted` give way."""

    cut: frozenset[Id]
    void: frozenset[Id]
    late: frozenset[Id]
    ousted: frozenset[Id]


def settle(claims: Iterable[Claim]) -> Settlement:
    """Changes starts and ends of the claims; says which. Settled claims stay as they are."""
    by_card: dict[Id, list[Claim]] = defaultdict(list)
    for claim in claims:
        by_card[claim.card].append(claim)
    cut: set[Id] = set()
    void: set[Id] = set()
    late: set[Id] = set()
    ousted: set[Id] = set()
    for own in by_card.values():
        if len(own) == 1:
            continue
        own.sort(key=lambda claim: (claim.start, claim.rank))
        seen = _seen([claim for claim in own if not claim.planned], cut, void)
        for claim in (claim for claim in own if claim.planned):
            for other in seen:
                if not claim.shares_with(other):
                    continue
                if other.end is None:
                    ousted.add(claim.id)
                elif other.end > claim.start:
                    claim.start = other.end
                    late.add(claim.id)
    return Settlement(frozenset(cut - void), frozenset(void), frozenset(late - ousted), frozenset(ousted))


def _seen(ordered: list[Claim], cut: set[Id], void: set[Id]) -> list[Claim]:
    """All that is left of what was seen."""
    present: list[Claim] = []
    for claim in ordered:
        present = [other for other in present if other.end is None or other.end > claim.start]
        for other in present:
            if claim.shares_with(other):
                other.end = claim.start
                (void if other.end <= other.start else cut).add(other.id)
        present.append(claim)
    return [claim for claim in ordered if claim.id not in void]
