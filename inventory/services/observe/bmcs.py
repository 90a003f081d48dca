"""Out-of-band readings: what a BMC says of its server and of the cards in it."""

from django.db import transaction
from django.utils import timezone

from inventory.models import Bmc, JournalKind, Node
from inventory.observations import BmcReading, PowerState, SensorReading
from inventory.rules.identity import card_serial, card_uuid, known_text, node_identity, serial_key, uuid_key
from inventory.services.journal import Note, write_entries
from inventory.services.nodes import complete_identity, find_or_create_node, identity_of, rename_node
from inventory.services.observe.changes import TreeChanges
from inventory.services.observe.firmware import Version, write_versions
from inventory.services.observe.joining import node_of_cards
from inventory.services.observe.recording import Recording, latest, record
from inventory.services.observe.visits import Visit


def record_bmc_reading(*, bmc: Bmc, reading: BmcReading) -> TreeChanges:
    """Brings the tree in line with what a BMC said; stores no samples.

    The first reading ties the BMC to its node: the one with the same system serial or UUID, else
    the one whose operating system lists the same cards, else a new one in the BMC's place. Raises
    ValueError for a reading that reached nothing: that is the collector's state, not the tree's.
    """
    if not reading.reached:
        raise ValueError(f"{bmc} was not reached: there is nothing to record")
    at = latest(reading.observed_at)
    with transaction.atomic():
        node = _node_of(bmc, reading)
        visit = Visit(
            node=node.id,
            source="bmc",
            collector=bmc.id,
            at=at,
            cards=tuple(card for card in reading.cards if card.present),
            # A switched-off server may hide its cards from the BMC: they are not gone.
            complete=reading.cards_known and reading.power_state is not PowerState.OFF,
            simulated=reading.simulated or bmc.simulated or bmc.site.simulated,
        )
        changes = record(visit, lambda recording: _write_rest(recording, bmc, reading))
    return changes


def _node_of(bmc: Bmc, reading: BmcReading) -> Node:
    said = node_identity(machine_id="", serial=reading.system_serial, uuid=reading.system_uuid)
    if bmc.node is not None:
        known = identity_of(bmc.node)
        serials = known.serial and said.serial and known.serial.upper() != said.serial.upper()
        other_machine = serials and known.uuid and said.uuid and known.contradicts(said)
        if not other_machine:
            return bmc.node
    at = latest(reading.observed_at)
    node = None
    if bmc.node is None and reading.cards:
        node = _by_identity_or_cards(reading)
    if node is None:
        node = find_or_create_node(
            system_serial=reading.system_serial,
            system_uuid=reading.system_uuid,
            hostname=known_text(reading.hostname) or said.serial or f"bmc-{bmc.address}",
            site=bmc.site,
            cluster=bmc.cluster,
            rack=bmc.rack,
            at=at,
            source="bmc",
            simulated=reading.simulated or bmc.simulated or bmc.site.simulated,
        )
    if bmc.node is not None:
        text = f"The BMC at {bmc.address} now answers for node {node.name} instead of node {bmc.node.name}."
        write_entries(notes=[Note(JournalKind.SETTINGS_CHANGED, text, at, node.id, None, "bmc")])
    bmc.node = node
    Bmc.objects.filter(pk=bmc.pk).update(node=node, updated_at=timezone.now())
    return node


def _by_identity_or_cards(reading: BmcReading) -> Node | None:
    """A node that only its cards give away; None leaves it to serial and UUID."""
    node = node_of_cards(reading.cards, source="bmc")
    said = node_identity(machine_id="", serial=reading.system_serial, uuid=reading.system_uuid)
    if node is None or identity_of(node).contradicts(said):
        return None
    complete_identity(node=node, identity=said)
    return node


def _write_rest(recording: Recording, bmc: Bmc, reading: BmcReading) -> None:
    _write_node(recording, reading)
    _write_bmc(bmc, reading)
    write_versions(recording, _versions(recording, reading))


def _write_node(recording: Recording, reading: BmcReading) -> None:
    node, at = recording.node, recording.visit.at
    identity = node_identity(machine_id="", serial=reading.system_serial, uuid=reading.system_uuid)
    unnamed = node.name in (node.system_serial, node.system_uuid) or node.name.startswith("bmc-")
    complete_identity(node=node, identity=identity)
    hostname = known_text(reading.hostname)
    if unnamed and hostname and node.read_at is None:
        rename_node(node=node, name=hostname, at=at, source="bmc")
    facts: dict[str, object] = {"power": reading.power, "inlet_temperature": reading.inlet_temperature}
    if reading.manufacturer:
        facts["manufacturer"] = reading.manufacturer[:100]
    if reading.system_model:
        facts["product"] = reading.system_model[:200]
    power = reading.power_state
    if power is not PowerState.UNKNOWN and power != node.power_state:
        facts["power_state"] = str(power)
        if node.power_state != PowerState.UNKNOWN:
            words = str(power).replace("_", " ")
            text = f"Node {node.name} is {words}, says its BMC; it was {node.power_state.replace('_', ' ')}."
            recording.notes.append(Note(JournalKind.NODE_POWER, text, at, node.id, None, "bmc"))
        recording.changed()
    changed = {name: value for name, value in facts.items() if getattr(node, name) != value}
    for name, value in changed.items():
        setattr(node, name, value)
    if changed:
        node.save(update_fields=[*changed, "updated_at"])
        recording.changed()


def _write_bmc(bmc: Bmc, reading: BmcReading) -> None:
    facts: dict[str, object] = {
        "vendor": (reading.vendor or bmc.vendor)[:100],
        "product": (reading.bmc_model or bmc.product)[:200],
        "firmware": (reading.bmc_firmware or bmc.firmware)[:100],
        "reports_cards": reading.cards_known or bmc.reports_cards,
    }
    if reading.sensors:
        facts["sensors"] = [_sensor(one) for one in reading.sensors]
    changed = {name: value for name, value in facts.items() if getattr(bmc, name) != value}
    for name, value in changed.items():
        setattr(bmc, name, value)
    if changed:
        bmc.save(update_fields=[*changed, "updated_at"])


def _sensor(one: SensorReading) -> dict[str, object]:
    fields = {name: getattr(one, name) for name in one.__struct_fields__}
    return {name: value for name, value in fields.items() if value not in (None, "")}


def _versions(recording: Recording, reading: BmcReading) -> list[Version]:
    by_uuid = {uuid_key(card.uuid): index for index, card in recording.applied.by_index.items() if card.uuid}
    by_serial = {serial_key(card.serial): index for index, card in recording.applied.by_index.items() if card.serial}
    versions: dict[tuple[str, int | None], Version] = {}
    for component, version in (("BIOS", reading.bios_version), ("BMC", reading.bmc_firmware)):
        if version:
            versions[component, None] = Version(component, version)
    for one in reading.firmware:
        index = by_uuid.get(uuid_key(card_uuid(one.card_uuid)))
        if index is None and one.card_serial:
            index = by_serial.get(serial_key(card_serial(one.card_serial)))
        versions[one.component, index] = Version(one.component, one.version, index)
    return [version for version in versions.values() if version.version]
