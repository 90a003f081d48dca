"""Which cards and nodes a list shows: the filters of its address, so that every number can link to its rows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from django.http import QueryDict

from inventory.rules.counts import KINDS
from sensaka.live.fleet import CardRow

KIND_CHOICES = ("available", *KINDS)
_PLACES: dict[str, Callable[[CardRow], UUID | None]] = {
    "site": lambda card: card.site_id,
    "cluster": lambda card: card.cluster_id,
    "rack": lambda card: card.rack_id,
    "node": lambda card: card.node_id,
    "model": lambda card: card.model_id,
}


@dataclass(frozen=True, slots=True)
class Choice:
    """An option of a filter."""

    value: str
    title: str
    chosen: bool


def _identifier(text: str) -> UUID | None:
    """`None` is a real choice here: cards without a rack or model."""
    try:
        return UUID(text)
    except ValueError:
        return None


def matches(card: CardRow, words: Iterable[str]) -> bool:
    """Whether every word is found in what names the card."""
    text = " ".join((card.uuid, card.serial, card.pci_address, card.slot, card.model, card.node, card.rack, card.site))
    lowered = text.lower()
    return all(word in lowered for word in words)


def filtered(cards: Iterable[CardRow], query: QueryDict) -> list[CardRow]:
    """The cards that pass every filter of the address. An empty filter passes all."""
    rows = list(cards)
    for name, place in _PLACES.items():
        if text := query.get(name, ""):
            wanted = _identifier(text)
            rows = [card for card in rows if place(card) == wanted]
    kind = query.get("kind", "")
    if kind == "available":
        rows = [card for card in rows if card.available]
    elif kind in KINDS:
        rows = [card for card in rows if card.kind == kind]
    if words := query.get("q", "").lower().split():
        rows = [card for card in rows if matches(card, words)]
    return rows


def choices(cards: Iterable[CardRow], query: QueryDict, name: str, title: Callable[[CardRow], str]) -> list[Choice]:
    """The options of one filter: what exists, by title."""
    place = _PLACES[name]
    found = {place(card): title(card) or f"Without a {name}" for card in cards}
    chosen = query.get(name, "")
    return sorted(
        (Choice(str(key), text, str(key) == chosen) for key, text in found.items()), key=lambda choice: choice.title
    )
