"""The counts that everything shows: installed, available, and what the available cards do.

Definitions (DESIGN 3): installed = known and not retired, on a node that is not retired; available =
installed, present, without conflict and without a cordon, its node active or asleep; busy, idle and unknown divide the
available ones by their activity in the last window. A missing sample is unknown, never idle.
Allocated is None until pools record promises.
"""

from collections.abc import Iterable
from dataclasses import dataclass

SERVING = frozenset({"active", "asleep"})
KINDS = ("busy", "idle", "unknown", "out", "failed", "missing")
"""What an installed card is doing. `out`: present, but not available (its node's state, a cordon or a conflict)."""


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What counting needs of one card. `activity` (percent) is None when no fresh sample has one."""

    state: str
    node_state: str
    conflict: bool
    activity: float | None
    threshold: float
    cordoned: bool = False

    @property
    def installed(self) -> bool:
        """Known and not retired."""
        return self.state != "retired" and self.node_state != "retired"

    @property
    def available(self) -> bool:
        """Could be given to somebody now, or after its node was woken."""
        return self.state == "present" and self.node_state in SERVING and not self.conflict and not self.cordoned

    @property
    def kind(self) -> str:
        """One of KINDS, for an installed card."""
        if self.state in ("failed", "missing"):
            return self.state
        if not self.available:
            return "out"
        if self.activity is None:
            return "unknown"
        return "busy" if self.activity >= self.threshold else "idle"


@dataclass(frozen=True, slots=True)
class Counts:
    """Cards by what they do. available = busy + idle + unknown; installed = available + out + failed + missing.

    Parts that overlap with these: `standby` of the available, `cordoned` of the installed.
    """

    installed: int = 0
    available: int = 0
    standby: int = 0
    allocated: int | None = None
    busy: int = 0
    idle: int = 0
    unknown: int = 0
    out: int = 0
    failed: int = 0
    missing: int = 0
    cordoned: int = 0

    @property
    def coverage(self) -> float | None:
        """Percent of available cards with a fresh activity; None when none is available."""
        return 100 * (self.busy + self.idle) / self.available if self.available else None

    def __add__(self, other: "Counts") -> "Counts":
        both = self.allocated is not None and other.allocated is not None
        numbers = {name: getattr(self, name) + getattr(other, name) for name in _NUMBERS}
        return Counts(**numbers, allocated=(self.allocated or 0) + (other.allocated or 0) if both else None)


_NUMBERS = tuple(name for name in Counts.__dataclass_fields__ if name != "allocated")


def count(cards: Iterable[CardFacts]) -> Counts:
    """Counts of some cards; those that are not installed are left out."""
    numbers = dict.fromkeys(_NUMBERS, 0)
    for card in cards:
        if not card.installed:
            continue
        numbers["installed"] += 1
        numbers[card.kind] += 1
        numbers["cordoned"] += card.cordoned
        if card.available:
            numbers["available"] += 1
            numbers["standby"] += card.node_state == "asleep"
    return Counts(**numbers)
