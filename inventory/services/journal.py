"""Writing the journal: whole sentences, in the same transaction as the change they tell of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from inventory.models import JournalEntry, JournalKind
from sensaka.identity.models import User

_LONGEST = 500


@dataclass(frozen=True, slots=True)
class Note:
    """One entry to be written: what happened, when, to whom, and by which source it was seen."""

    kind: JournalKind
    text: str
    at: datetime
    node: UUID | None = None
    card: UUID | None = None
    source: str = ""
    detail: Mapping[str, object] = field(default_factory=dict)
    cluster: UUID | None = None


def write_entries(*, notes: Iterable[Note], actor: User | None = None) -> None:
    """Writes entries in their order, in one statement. Texts that are too long end with an ellipsis."""
    entries = [
        JournalEntry(
            kind=note.kind,
            text=note.text if len(note.text) <= _LONGEST else note.text[: _LONGEST - 1] + "…",
            at=note.at,
            node_id=note.node,
            card_id=note.card,
            cluster_id=note.cluster,
            source=note.source,
            actor=actor,
            detail=dict(note.detail),
        )
        for note in notes
    ]
    JournalEntry.objects.bulk_create(entries)


def add_note(*, text: str, at: datetime, actor: User, node: UUID | None = None, card: UUID | None = None) -> None:
    """An entry that a person writes about a node or card."""
    write_entries(notes=[Note(JournalKind.NOTE, text, at, node, card, "user")], actor=actor)
