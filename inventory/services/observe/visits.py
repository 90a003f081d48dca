"""One reading of one node, whatever its source, ready to be recorded."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from inventory.observations import CardReading, ReadFailure


@dataclass(frozen=True, slots=True)
class Visit:
    """`cards` are those that are there; `complete` says that a known card not among them is gone."""

    node: UUID
    source: str
    collector: UUID
    at: datetime
    cards: tuple[CardReading, ...]
    complete: bool
    failures: tuple[ReadFailure, ...] = ()
    simulated: bool = False
