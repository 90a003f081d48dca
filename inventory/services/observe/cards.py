"""What a card says of itself besides its identity: model, memory, modes, links."""

from collections.abc import Sequence
from uuid import UUID

from django.utils import timezone

from inventory.models import Card, CardModel, JournalKind
from inventory.observations import CardReading
from inventory.rules.changes import PRECEDENCE
from inventory.services.catalogue import match_model
from inventory.services.journal import Note
from inventory.services.observe import sentences
from inventory.services.observe.apply import Applied
from inventory.services.observe.snapshot import Snapshot

_LASTING = ("vendor", "model_name", "pci_id", "part_number", "memory_total", "partition_mode", "mig_enabled", "minor")
# These follow load and power saving, so they are only written when sightings are renewed anyway.
_PASSING = ("nvlink_active", "pcie_generation", "pcie_width")
_LENGTHS = {"vendor": 32, "model_name": 200, "pci_id": 16, "part_number": 64, "partition_mode": 16}


def write_facts(
    *, applied: Applied, readings: Sequence[CardReading], source: str, snapshot: Snapshot, refresh: bool
) -> None:
    """Writes facts that changed. A BMC fills gaps; what the operating system said of a card stands."""
    dirty: dict[UUID, Card] = {}
    models: dict[tuple[str, str, int | None], CardModel | None] = {}
    for index, card in applied.by_index.items():
        known = {row.source for row in snapshot.sightings.get(card.id, ())}
        junior = any(PRECEDENCE[other] < PRECEDENCE[source] for other in known)
        before = card.mig_enabled
        names = (*_LASTING, *_PASSING) if refresh else _LASTING
        if _take_over(card, readings[index], names=names, gaps_only=junior):
            dirty[card.id] = card
        if before is not None and card.mig_enabled is not None and before != card.mig_enabled:
            applied.notes.append(_mig_note(card, source))
        if card.model_id is None and refresh:
            key = (card.model_name, card.pci_id, card.memory_total)
            if key not in models:
                models[key] = match_model(name=card.model_name, pci_id=card.pci_id, memory=card.memory_total)
            if models[key] is not None:
                card.model = models[key]
                dirty[card.id] = card
    if dirty:
        Card.objects.bulk_update(dirty.values(), (*_LASTING, *_PASSING, "model"))
        applied.nodes |= {card.node_id for card in dirty.values() if card.node_id}


def _take_over(card: Card, reading: CardReading, *, names: Sequence[str], gaps_only: bool) -> bool:
    changed = False
    for name in names:
        said, stands = getattr(reading, name), getattr(card, name)
        if said is None or said == "" or (gaps_only and stands not in (None, "")):
            continue
        if name in _LENGTHS:
            said = said[: _LENGTHS[name]]
        if said != stands:
            setattr(card, name, said)
            changed = True
            if name == "model_name":
                card.model = None
    return changed


def _mig_note(card: Card, source: str) -> Note:
    switched = "on" if card.mig_enabled else "off"
    text = sentences.sentence(f"MIG was switched {switched} on {sentences.card_name(card)}")
    return Note(JournalKind.SLICES_CHANGED, text, timezone.now(), card.node_id, card.id, source)
