"""What a reading changed, for whoever called."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID


@dataclass(frozen=True, slots=True)
class TreeChanges:
    """What came of one reading.

    `node` is the node that it was recorded for, `nodes` all that changed, `events` what happened
    (journal kinds in order), empty when nothing did. `series` and `slices` say under which number
    the cards (by index in the reading) and slices (by UUID) keep their samples. `unmatched` counts
    observed cards that stand for known ones without telling which; `stale` says that the reading
    was older than what is known.
    """

    node: UUID
    nodes: frozenset[UUID] = frozenset()
    events: tuple[str, ...] = ()
    series: Mapping[int, int] = field(default_factory=dict)
    slices: Mapping[str, int] = field(default_factory=dict)
    unmatched: int = 0
    stale: bool = False

    @property
    def cards(self) -> int:
        """How many cards of the reading are in the tree."""
        return len(self.series)
