"""The journal's sentences about cards. Each stands for itself: who, from where, to where."""

from collections import Counter
from collections.abc import Iterable, Mapping
from uuid import UUID

from inventory.models import Card
from inventory.rules.changes import Place

_SOURCES = {"agent": "its agent", "exporter": "an exporter", "bmc": "its BMC"}


def card_name(card: Card) -> str:
    """How a card is called in a sentence: the strongest identity that it has."""
    if card.uuid:
        return f"card {card.uuid}"
    model = card.model_name or "card"
    if card.serial:
        return f"card {model} with serial {card.serial}"
    return f"card {model} at {card.pci_address or card.slot or 'an unknown place'}"


def place_name(place: Place, names: Mapping[UUID, str]) -> str:
    """A place in words: `n01 slot 3`, `n01 at 0000:18:00.0`."""
    node = names.get(place.node, "a removed node")
    if place.slot:
        return f"{node} slot {place.slot}"
    return f"{node} at {place.pci_address}" if place.pci_address else node


def sentence(text: str) -> str:
    """The text with a capital and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


def source_name(source: str) -> str:
    """Who saw it, in words."""
    return _SOURCES.get(source, source)


def slices_name(profiles: Iterable[str]) -> str:
    """A partition in words: `2 x 1g.10gb and 1 x 3g.40gb`."""
    counted = [f"{number} x {profile}" for profile, number in sorted(Counter(profiles).items())]
    if not counted:
        return "no slices"
    return counted[0] if len(counted) == 1 else f"{', '.join(counted[:-1])} and {counted[-1]}"
