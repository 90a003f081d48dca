"""In-band readings: from an agent, or from an exporter's page."""

from uuid import UUID

from inventory.models import JournalKind, Node
from inventory.observations import NodeReading
from inventory.rules.identity import known_text, node_identity
from inventory.services.journal import Note
from inventory.services.nodes import complete_identity, rename_node
from inventory.services.observe.changes import TreeChanges
from inventory.services.observe.firmware import Version, write_versions
from inventory.services.observe.processes import write_processes
from inventory.services.observe.recording import Recording, latest, record
from inventory.services.observe.visits import Visit


def record_node_reading(
    *, node: Node, source: str, collector_id: UUID, reading: NodeReading, simulated: bool = False
) -> TreeChanges:
    """Brings the tree in line with what an agent or exporter saw; stores no samples.

    `source` is agent or exporter, `collector_id` the id of its row. `simulated` marks what comes from
    the simulator through a source that can't say so itself. Everything is written in one transaction.
    Raises Node.DoesNotExist when the node was removed meanwhile.
    """
    at = latest(reading.observed_at)
    visit = Visit(
        node=node.id,
        source=source,
        collector=collector_id,
        at=at,
        cards=tuple(card for card in reading.cards if card.present),
        complete=reading.complete,
        failures=reading.failures,
        simulated=reading.simulated or simulated,
    )
    return record(visit, lambda recording: _write_rest(recording, reading))


def _write_rest(recording: Recording, reading: NodeReading) -> None:
    _write_node(recording, reading)
    if recording.visit.source == "agent" or not _agent_reads(recording):
        write_processes(recording, reading.processes)
    versions = [
        Version(component, version, index)
        for index, card in enumerate(recording.visit.cards)
        for component, version in (("VBIOS", card.vbios), ("Firmware", card.firmware))
        if version
    ]
    write_versions(recording, versions)


def _agent_reads(recording: Recording) -> bool:
    rows = [row for rows in recording.snapshot.sightings.values() for row in rows]
    return any(row.source == "agent" and row.node_id == recording.node.id for row in rows)


def _write_node(recording: Recording, reading: NodeReading) -> None:
    node, visit = recording.node, recording.visit
    fields: list[str] = []
    if reading.boot_id and reading.boot_id != node.boot_id:
        if node.boot_id:
            _note(recording, JournalKind.NODE_REBOOTED, f"Node {node.name} was rebooted.")
        node.boot_id = reading.boot_id[:64]
        fields.append("boot_id")
    for field, what in (("driver_version", "Driver"), ("runtime_version", "Runtime")):
        before, after = getattr(node, field), getattr(reading, field)[:64]
        if after and after != before:
            if before:
                text = f"{what} of node {node.name} changed from {before} to {after}."
                _note(recording, JournalKind.FIRMWARE_CHANGED, text, component=what, before=before, after=after)
            setattr(node, field, after)
            fields.append(field)
    if visit.source == "agent":
        fields += _write_identity(recording, reading)
    if fields or recording.refresh:
        node.read_at = max(visit.at, node.read_at or visit.at)
        node.save(update_fields=[*fields, "read_at", "updated_at"])
    if fields:
        recording.changed()


def _write_identity(recording: Recording, reading: NodeReading) -> list[str]:
    node = recording.node
    identity = node_identity(machine_id=reading.machine_id, serial=reading.system_serial, uuid="")
    if complete_identity(node=node, identity=identity):
        recording.changed()
    hostname = known_text(reading.hostname)[:200]
    if not hostname or hostname == node.hostname:
        return []
    # A name that an operator gave stays; one that was the old hostname, or none yet, follows.
    follows = not node.hostname or node.name == node.hostname or node.name.startswith(f"{node.hostname}~")
    node.hostname = hostname
    if follows:
        rename_node(node=node, name=hostname, at=recording.visit.at, source=recording.visit.source)
    return ["hostname"]


def _note(recording: Recording, kind: JournalKind, text: str, **detail: object) -> None:
    visit = recording.visit
    recording.notes.append(Note(kind, text, visit.at, recording.node.id, None, visit.source, detail))
