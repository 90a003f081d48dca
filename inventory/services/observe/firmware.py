"""Firmware and driver versions as last read; a change goes to the journal."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from inventory.models import FirmwareComponent, JournalKind
from inventory.services.journal import Note
from inventory.services.observe import sentences
from inventory.services.observe.recording import Recording

_RENEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Version:
    """A component and its version; `index` is that of the card in the reading, None for the node's own."""

    component: str
    version: str
    index: int | None = None


def write_versions(recording: Recording, versions: Sequence[Version]) -> None:
    """Creates, renews and changes components. One query when nothing changed."""
    if not versions:
        return
    node, at, source = recording.node, recording.visit.at, recording.visit.source
    known = {(row.card_id, row.component): row for row in FirmwareComponent.objects.filter(node=node)}
    new: dict[tuple[UUID | None, str], FirmwareComponent] = {}
    changed: list[FirmwareComponent] = []
    for one in versions:
        card = recording.applied.by_index.get(one.index) if one.index is not None else None
        if one.index is not None and card is None:
            continue
        key = (card.id if card else None, one.component[:200])
        row, version = known.get(key), one.version[:200]
        if row is None:
            new[key] = FirmwareComponent(
                node=node, card=card, component=key[1], version=version, source=source, read_at=at
            )
        elif row.version != version:
            owner = sentences.card_name(card) if card else f"node {node.name}"
            text = f"{one.component} of {owner} changed from {row.version} to {version}."
            detail = {"component": one.component, "before": row.version, "after": version}
            kind = JournalKind.FIRMWARE_CHANGED
            recording.notes.append(Note(kind, text, at, node.id, card.id if card else None, source, detail))
            recording.changed()
            row.version, row.source, row.read_at = version, source, at
            changed.append(row)
        elif at - row.read_at >= _RENEW:
            row.read_at = at
            changed.append(row)
    FirmwareComponent.objects.bulk_create(new.values())
    for row in changed:
        row.updated_at = timezone.now()
    FirmwareComponent.objects.bulk_update(changed, ["version", "source", "read_at", "updated_at"])
