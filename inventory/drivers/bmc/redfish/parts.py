"""The resources of cards: found, and gathered with what hangs on them. Used by discovery and by polls."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from inventory.drivers.bmc.redfish import dell
from inventory.drivers.bmc.redfish.cards import (
    card_reading,
    chassis_paths,
    is_card_chassis,
    is_card_device,
    is_card_processor,
    may_be_card_device,
    path_key,
    same_card,
)
from inventory.drivers.bmc.redfish.firmware import KnownCard
from inventory.drivers.bmc.redfish.links import CardLinks
from inventory.drivers.bmc.redfish.reader import Reader
from inventory.drivers.bmc.redfish.resources import Resource, dig, name_in, path_of, paths_in, pick, same, words
from inventory.drivers.bmc.redfish.sensors import is_margin, named_like_margin, related_paths
from inventory.drivers.bmc.redfish.slots import fill_slots, slot_number
from inventory.observations import CardReading, SensorReading

_MOST_DEVICES = 200
_MODULE = re.compile(r"^(SXM|OAM|GPU)[ _-]?\d+$", re.IGNORECASE)
_MODULE_SENSOR = re.compile(r"^(?:\d+(?:\.\d+)?-)?GPU[ _]?(\d+)(?:[ _]?Temp)?$", re.IGNORECASE)
_ILO_NAME = re.compile(r"XLR8R (\d+)-", re.IGNORECASE)


@dataclass(slots=True)
class FoundCards:
    """Cards with their links, and whether every place that could hold one was read."""

    cards: list[CardLinks] = field(default_factory=list)
    resources: dict[str, Resource] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    complete: bool = True


async def find_cards(
    reader: Reader, *, processors: Sequence[str], systems: Sequence[Resource], chassis: Sequence[Resource]
) -> FoundCards:
    """Every accelerator this BMC knows, each once."""
    found = FoundCards()
    candidates: list[Resource] = []
    for collection in await asyncio.gather(*(reader.members(path, levels=2) for path in processors)):
        if collection is None:
            found.complete = False
            continue
        found.complete &= collection.complete
        for entry in collection.members:
            if is_card_processor(entry):
                candidates.append(entry)
            else:
                found.others.append(path_key(entry))
    devices: list[tuple[Resource, list[Resource]]] = []
    listed = 0
    if not candidates or any(_needs_device(entry) for entry in candidates):
        listed, devices = await _card_devices(reader, systems=systems, chassis=chassis)
    for entry in candidates:
        _add(found, await _with_details(reader, entry, devices), entry)
    if not candidates:
        for device, functions in devices:
            links = CardLinks(
                processor=path_of(device),
                card=card_reading(device, device=device, functions=functions, memory=[]),
                device=path_of(device),
            )
            _add(found, links, device)
    if not found.cards:
        for entry in chassis:
            if is_card_chassis(entry):
                links = CardLinks(
                    processor=path_of(entry),
                    card=card_reading(entry, device={}, functions=[], memory=[]),
                    environment=path_of(pick(entry, "EnvironmentMetrics")),
                    chassis=[path_of(entry)],
                )
                _add(found, links, entry)
    await dell.fill_identity(reader, found.cards, systems)
    await fill_slots(reader, found.cards, chassis)
    nameless = [entry for entry in found.cards if not _has_identity(entry.card)]
    found.cards = [entry for entry in found.cards if entry not in nameless]
    # No cards, and no list of devices that they would be in: this service can't say whether there are any.
    found.complete &= not nameless and bool(found.cards or listed)
    return found


def known_cards(cards: Sequence[CardLinks]) -> list[KnownCard]:
    """The cards as firmware entries refer to them."""
    return [
        KnownCard(
            reading=entry.card,
            own_id=entry.processor.rstrip("/").rsplit("/", 1)[-1],
            paths=frozenset(map(same, [entry.processor, *entry.chassis])),
        )
        for entry in cards
    ]


def assign_sensors(
    cards: Sequence[CardLinks], readings: Mapping[str, SensorReading], resources: Mapping[str, Resource]
) -> None:
    """Notes on each card which sensors are its temperature, memory temperature, power and energy."""
    numbered = _numbered_sensors(cards, readings)
    for entry in cards:
        for path, reading in sorted(readings.items()):
            sensor = resources.get(path, {})
            if _belongs(path, sensor, entry) or path in numbered.get(entry.processor, ()):
                quantity = _quantity(reading)
                if quantity:
                    entry.sensors.setdefault(quantity, path if "#" in path else path_of(sensor) or path)


def _numbered_sensors(cards: Sequence[CardLinks], readings: Mapping[str, SensorReading]) -> dict[str, list[str]]:
    """Sensors that only their name ties to a module: `44-GPU 1` is of SXM1.

    Believed only where cards and sensors count alike, every module having its sensor and the reverse.
    """
    modules = {slot_number(entry.card.slot): entry.processor for entry in cards if _MODULE.match(entry.card.slot)}
    named: dict[int, list[str]] = {}
    for path, reading in readings.items():
        match = _MODULE_SENSOR.match(reading.name)
        if match and reading.kind == "temperature":
            named.setdefault(int(match[1]), []).append(path)
    if len(modules) != len(cards) or named.keys() != modules.keys():
        return {}
    return {processor: named[number] for number, processor in modules.items() if number is not None}


def margin_source(environment: Resource, sensors: Mapping[str, Resource]) -> bool:
    """Whether EnvironmentMetrics' temperature is really a margin, by the sensor it is copied from."""
    source = path_of(dig(environment, "TemperatureCelsius", "DataSourceUri"))
    if not source:
        return False
    sensor = sensors.get(same(source))
    return is_margin(sensor) if sensor is not None else named_like_margin(source)


def _needs_device(processor: Resource) -> bool:
    """Whether a processor leaves out what its PCIeDevice may tell (iLO: no firmware, no slot)."""
    linked = path_of(dig(processor, "Links", "PCIeDevice"))
    return not linked and not words(pick(processor, "FirmwareVersion"))


def _has_identity(card: CardReading) -> bool:
    return bool(card.uuid or card.serial or card.pci_address or card.slot)


def _add(found: FoundCards, links: CardLinks, resource: Resource) -> None:
    card = links.card
    for known in found.cards:
        if known.processor == links.processor or (same_card(known.card, card) and not _both_here(known, links)):
            return
    found.cards.append(links)
    found.resources[path_key(resource) or same(links.processor)] = resource


def _both_here(one: CardLinks, other: CardLinks) -> bool:
    """Two members of one collection are two cards, even with one serial: a board's serial is on all its GPUs."""
    return one.processor.rpartition("/")[0] == other.processor.rpartition("/")[0]


async def _with_details(
    reader: Reader, processor: Resource, devices: Sequence[tuple[Resource, list[Resource]]]
) -> CardLinks:
    memory_paths = paths_in(dig(processor, "Links", "Memory"))
    device_path = path_of(dig(processor, "Links", "PCIeDevice"))
    function_paths = paths_in(dig(processor, "Links", "PCIeFunctions"))[:1]
    wanted = [*memory_paths, *function_paths]
    if device_path and not words(pick(processor, "FirmwareVersion")):
        wanted.append(device_path)
    fetched = await reader.fetch_all(wanted, optional=True)
    memory = [fetched[same(path)] for path in memory_paths if same(path) in fetched]
    functions = [fetched[same(path)] for path in function_paths if same(path) in fetched]
    device = fetched.get(same(device_path), {})
    if not device_path:
        plain = card_reading(processor, device={}, functions=[], memory=[])
        for other, other_functions in devices:
            if same_card(plain, card_reading(other, device={}, functions=other_functions, memory=[])):
                device, functions, device_path = other, other_functions, path_of(other)
                break
    metrics = [path_of(pick(entry, "Metrics")) for entry in memory]
    summary = path_of(dig(processor, "MemorySummary", "Metrics"))
    return CardLinks(
        processor=path_of(processor),
        card=card_reading(processor, device=device, functions=functions, memory=memory),
        device=device_path,
        environment=path_of(pick(processor, "EnvironmentMetrics")),
        metrics=path_of(pick(processor, "Metrics")),
        memory=memory_paths,
        memory_metrics=[path for path in metrics if path] or ([summary] if summary else []),
        chassis=chassis_paths(processor) or [path for path in [device_path.partition("/PCIeDevices/")[0]] if path],
    )


async def _card_devices(
    reader: Reader, *, systems: Sequence[Resource], chassis: Sequence[Resource]
) -> tuple[int, list[tuple[Resource, list[Resource]]]]:
    """How many PCIeDevices there are, and those that are accelerators, each with its first function."""
    collections = [path_of(pick(entry, "PCIeDevices")) for entry in chassis]
    listed = [path for system in systems for path in paths_in(pick(system, "PCIeDevices"))]
    devices: dict[str, Resource] = {}
    for collection in await asyncio.gather(
        *(reader.members(path, optional=True) for path in dict.fromkeys(collections) if path)
    ):
        devices |= {path_key(entry): entry for entry in (collection.members if collection else [])}
    missing = [path for path in listed if same(path) not in devices and not same(path).endswith("/pciedevices")]
    devices |= await reader.fetch_all(missing[:_MOST_DEVICES], optional=True)
    likely = [device for device in devices.values() if may_be_card_device(device)]
    functions = await asyncio.gather(*(_functions(reader, device) for device in likely))
    pairs = zip(likely, functions, strict=True)
    return len(devices), [(device, found) for device, found in pairs if is_card_device(device, found)]


async def _functions(reader: Reader, device: Resource) -> list[Resource]:
    collection = path_of(pick(device, "PCIeFunctions"))
    if collection:
        members = await reader.members(collection, optional=True)
        return members.members[:1] if members else []
    linked = paths_in(dig(device, "Links", "PCIeFunctions"))[:1]
    return list((await reader.fetch_all(linked, optional=True)).values())


def _belongs(path: str, sensor: Resource, entry: CardLinks) -> bool:
    related = {same(target) for target in related_paths(sensor)}
    if related & {same(entry.processor), same(entry.device)} - {""} or dell.is_of_card(path, entry):
        return True
    own = [same(chassis) for chassis in entry.chassis if "gpu" in name_in(chassis).lower()]
    if any(path.startswith(f"{chassis}/sensors/") for chassis in own):
        return True
    # iLO says which slot in the name alone: "51.1-XLR8R 14-GPU ASIC".
    place = _ILO_NAME.search(words(pick(sensor, "Name")))
    return place is not None and int(place[1]) == slot_number(entry.card.slot)


def _quantity(reading: SensorReading) -> str:
    text = reading.name.lower()
    memory = any(mark in text for mark in ("dram", "hbm", "memory", "_mem_"))
    if reading.kind == "temperature":
        return "memory_temperature" if memory else "temperature"
    if reading.kind in ("power", "energy") and not memory:
        return reading.kind if reading.unit != "kWh" else ""
    return ""
