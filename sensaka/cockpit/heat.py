"""The heat map's data: where every card stands, sent once, and one number a card, sent often.

Unknown is null, never zero; the page hatches it. Both bodies follow the order of the tree.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from inventory.observations import CardValues
from inventory.rules.counts import KINDS
from inventory.selectors.samples import CurrentSample
from sensaka.live.fleet import CardRow, SliceRow

Of = Callable[[CardValues], float | None]


@dataclass(frozen=True, slots=True)
class HeatMeasure:
    """A measure of the map: its title, unit and range. `high` None: the range follows the data."""

    title: str
    unit: str
    of: Of | None
    low: float = 0.0
    high: float | None = None
    shared: bool = False
    """Whether the whole card owns the value, so that its slices show none of their own."""


HEAT: dict[str, HeatMeasure] = {
    "state": HeatMeasure("State", "", None),
    "activity": HeatMeasure("Activity", "%", None, 0, 100),
    "utilization": HeatMeasure("GPU utilization", "%", lambda values: values.utilization, 0, 100),
    "sm_activity": HeatMeasure("SM activity", "%", lambda values: values.sm_activity, 0, 100),
    "memory": HeatMeasure("Memory used", "%", None, 0, 100),
    "temperature": HeatMeasure("Temperature", "°C", lambda values: values.temperature, 20, 95, shared=True),
    "power": HeatMeasure("Power", "W", lambda values: values.power, 0, None, shared=True),
}
DEFAULT = "state"


def _of_sample(measure: str, sample: CurrentSample | None, fresh: bool, memory_total: int | None) -> float | None:
    if sample is None or not fresh:
        return None
    if measure == "activity":
        return sample.activity
    if measure == "memory":
        used = sample.values.memory_used
        return None if used is None or not memory_total else min(100.0, 100 * used / memory_total)
    read = HEAT[measure].of
    return None if read is None else read(sample.values)


def _card_value(measure: str, card: CardRow) -> float | None:
    if measure == "activity":
        return card.activity
    return _of_sample(measure, card.sample, card.fresh, card.memory_total)


def _slice_value(measure: str, piece: SliceRow, now: datetime) -> float | None:
    fresh = piece.sample is not None and piece.sample.fresh(now)
    return _of_sample(measure, piece.sample, fresh, piece.memory_total)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def layout(cards: Sequence[CardRow]) -> dict[str, Any]:
    """Sites as blocks, racks as columns, nodes as rows: each node with its cards' place in the list."""
    sites: list[dict[str, Any]] = []
    for index, card in enumerate(cards):
        if not sites or sites[-1]["id"] != str(card.site_id):
            sites.append({"id": str(card.site_id), "name": card.site or "Without a node", "racks": []})
        racks = sites[-1]["racks"]
        if not racks or racks[-1]["id"] != str(card.rack_id):
            racks.append({"id": str(card.rack_id), "name": card.rack or "no rack", "nodes": []})
        nodes = racks[-1]["nodes"]
        if not nodes or nodes[-1]["id"] != str(card.node_id):
            nodes.append({"id": str(card.node_id), "name": card.node or "no node", "first": index, "count": 0})
        nodes[-1]["count"] += 1
    return {
        "sites": sites,
        "cards": [str(card.id) for card in cards],
        "labels": [card.label for card in cards],
        "models": sorted({card.model for card in cards}),
        "model": _indexes([card.model for card in cards]),
        "slices": {
            str(index): [piece.profile for piece in card.slices] for index, card in enumerate(cards) if card.slices
        },
    }  # fmt: skip


def _indexes(names: Sequence[str]) -> list[int]:
    place = {name: index for index, name in enumerate(sorted(set(names)))}
    return [place[name] for name in names]


def version(cards: Sequence[CardRow]) -> str:
    """Changes when a card, slice or place does: the page then fetches the layout again."""
    parts = [(card.id.int, card.node_id, card.rack_id, card.label, len(card.slices)) for card in cards]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def values(cards: Sequence[CardRow], measure: str) -> dict[str, Any]:
    """One number a card, null where it is not known, and each card's kind as an index into `kinds`."""
    if measure not in HEAT:
        measure = DEFAULT
    now = timezone.now()
    about = HEAT[measure]
    numbers = [] if measure == "state" else [_rounded(_card_value(measure, card)) for card in cards]
    high = about.high
    if high is None and measure != "state":
        limits = [card.tdp for card in cards if card.tdp]
        high = max([*limits, *(number for number in numbers if number is not None), 1])
    own: dict[str, list[float | None]] = {}
    if measure != "state" and not about.shared:
        own = {
            str(index): [_rounded(_slice_value(measure, piece, now)) for piece in card.slices]
            for index, card in enumerate(cards)
            if card.slices
        }
    return {
        "version": version(cards),
        "at": int(now.timestamp()),
        "measure": measure,
        "title": about.title,
        "unit": about.unit,
        "low": about.low,
        "high": high,
        "values": numbers,
        "slices": own,
        "kinds": KINDS,
        "kind": [KINDS.index(card.kind) for card in cards],
    }
