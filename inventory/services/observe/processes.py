"""The processes on a node's cards and what they belong to, as last reported."""

import hashlib
from collections.abc import Sequence
from uuid import UUID

from inventory.models import ProcessBinding
from inventory.observations import ProcessReading
from inventory.rules.identity import card_uuid, uuid_key
from inventory.services.observe.recording import Recording

_TEXTS = {
    "name": 200, "user": 100, "container_id": 100, "pod_uid": 64, "pod": 253, "namespace": 253, "slurm_job_id": 32,
}  # fmt: skip
# What names a job, or a pod and its container, where no process is named.
_OWNER = ("namespace", "pod", "pod_uid", "container_id", "slurm_job_id", "name")
_Key = tuple[UUID, UUID | None, int, str]


def write_processes(recording: Recording, readings: Sequence[ProcessReading]) -> None:
    """Adds, renews and removes bindings. Memory and times are renewed with the sightings, not each time."""
    node, at = recording.node, recording.visit.at
    stored: dict[_Key, ProcessBinding] = {
        (row.card_id, row.slice_id, row.pid, row.owner): row for row in ProcessBinding.objects.filter(node=node)
    }
    reported = _rows(recording, readings)
    gone = [row.pk for key, row in stored.items() if key not in reported]
    new = [row for key, row in reported.items() if key not in stored]
    renewed: list[ProcessBinding] = []
    for key, row in reported.items():
        before = stored.get(key)
        if before is None:
            continue
        differs = any(getattr(before, name) != getattr(row, name) for name in _TEXTS)
        if differs or recording.refresh:
            for name in (*_TEXTS, "memory_used"):
                setattr(before, name, getattr(row, name))
            before.seen_at = at
            renewed.append(before)
        if differs:
            recording.changed()
    if gone:
        ProcessBinding.objects.filter(pk__in=gone).delete()
    if new:
        ProcessBinding.objects.bulk_create(
            new,
            update_conflicts=True,
            unique_fields=["card", "slice", "pid", "owner"],
            update_fields=[*_TEXTS, "memory_used", "node", "seen_at"],
        )
    if renewed:
        ProcessBinding.objects.bulk_update(renewed, [*_TEXTS, "memory_used", "seen_at"])
    if gone or new:
        recording.changed()


def _rows(recording: Recording, readings: Sequence[ProcessReading]) -> dict[_Key, ProcessBinding]:
    cards = {uuid_key(card.uuid): card for card in recording.applied.by_index.values() if card.uuid}
    slices = {one.uuid: one for rows in recording.snapshot.slices.values() for one in rows if one.closed_at is None}
    at, rows = recording.visit.at, {}
    for reading in readings:
        card = cards.get(uuid_key(card_uuid(reading.card_uuid)))
        if card is None or reading.pid < 0:
            continue
        part = slices.get(reading.slice_uuid)
        owner = _owner(reading)
        rows[card.id, part.id if part else None, reading.pid, owner] = ProcessBinding(
            node=recording.node,
            card=card,
            slice=part,
            pid=reading.pid,
            owner=owner,
            memory_used=reading.memory_used,
            first_seen_at=at,
            seen_at=at,
            **{name: getattr(reading, name)[:length] for name, length in _TEXTS.items()},
        )
    return rows


def _owner(reading: ProcessReading) -> str:
    """What tells bindings without a process apart; empty where the pid does, or where nothing is named.

    A process keeps its record when its pod or job becomes known later, so its key is the pid alone.
    """
    named = [getattr(reading, name) for name in _OWNER]
    if reading.pid or not any(named):
        return ""
    return hashlib.sha256("\x1f".join(named).encode()).hexdigest()
