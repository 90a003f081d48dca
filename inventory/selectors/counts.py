"""The four counts, whole or by one dimension, and the compact rows of the heat map."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from uuid import UUID

from inventory.rules.counts import Counts, count
from inventory.selectors.cards import CardRow, card_rows

DIMENSIONS = ("site", "cluster", "rack", "node", "model")


@dataclass(frozen=True, slots=True)
class CountRow:
    """The counts of one group; `key` is its id, None for cards that belong to none, and for the whole."""

    key: UUID | None
    name: str
    counts: Counts

    def __getattr__(self, name: str) -> int | None:
        if name in _COUNTED:
            value: int | None = getattr(self.counts, name)
            return value
        raise AttributeError(name)

    @property
    def coverage(self) -> float | None:
        """Percent of available cards with a fresh activity."""
        return self.counts.coverage


_COUNTED = frozenset(one.name for one in fields(Counts))


def counts(group_by: str | None = None, *, now: datetime | None = None) -> list[CountRow]:
    """Counts of all installed cards: one row, or one for each member of a dimension, ordered by name.

    Raises ValueError for an unknown dimension.
    """
    return counts_of(card_rows(now=now), group_by)


def counts_of(rows: Iterable[CardRow], group_by: str | None = None) -> list[CountRow]:
    """Counts of rows that were read already."""
    if group_by is None:
        return [CountRow(None, "all", count(row.facts for row in rows))]
    if group_by not in DIMENSIONS:
        raise ValueError(f"group_by is one of {', '.join(DIMENSIONS)}")
    groups: dict[tuple[str, UUID | None], list[CardRow]] = defaultdict(list)
    for row in rows:
        groups[row.names[group_by], getattr(row, group_by)].append(row)
    ordered = sorted(groups.items(), key=lambda item: (item[0][0] == "", item[0][0], str(item[0][1])))
    return [CountRow(key, name or "none", count(row.facts for row in cards)) for (name, key), cards in ordered]


@dataclass(frozen=True, slots=True)
class Cell:
    """A card in the heat map. Values are None unless the sample is fresh."""

    id: UUID
    node: UUID | None
    label: str
    kind: str
    activity: float | None
    temperature: float | None
    power: float | None
    memory_used: int | None


def fleet_cells(*, now: datetime | None = None) -> list[Cell]:
    """Every installed card as one small row, in the order of the tree."""
    return [_cell(row) for row in card_rows(now=now)]


def _cell(row: CardRow) -> Cell:
    values = row.sample.values if row.sample is not None and row.fresh else None
    return Cell(
        id=row.id,
        node=row.node,
        label=row.label,
        kind=row.facts.kind,
        activity=row.facts.activity,
        temperature=values.temperature if values else None,
        power=values.power if values else None,
        memory_used=values.memory_used if values else None,
    )
