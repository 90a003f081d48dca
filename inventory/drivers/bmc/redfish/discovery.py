"""The long visit: everything worth knowing about a server, and the links that make polls short."""

import asyncio
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from inventory.drivers.bmc.redfish.environment import SensorSet, choose_inlet, find_power, find_sensors, unnamed_twice
from inventory.drivers.bmc.redfish.firmware import bios_version, firmware_readings
from inventory.drivers.bmc.redfish.links import CardLinks, Links
from inventory.drivers.bmc.redfish.metrics import overlay
from inventory.drivers.bmc.redfish.parts import FoundCards, assign_sensors, find_cards, known_cards, margin_source
from inventory.drivers.bmc.redfish.reader import Collection, Reader
from inventory.drivers.bmc.redfish.resources import Resource, name_in, path_of, pick, same, words
from inventory.drivers.bmc.redfish.systems import choose_host, choose_manager, host_chassis, power_state, vendor_of
from inventory.drivers.bmc.redfish.values import ValueSource, nested, read_values
from inventory.observations import BmcReading, CardReading, PowerState
from inventory.rules.identity import known_text, system_uuid
from sensaka.kernel.units import plausible

# Reports that speak of cards; those of ports, CPUs, resets and health are big and say nothing here.
_REPORT = re.compile(r"Environment|ProcessorMetrics|ProcessorGPM|MemoryMetrics", re.IGNORECASE)
_NO_REPORT = re.compile(r"Port|Cpu|Reset|Health|NVSwitch|Retimer", re.IGNORECASE)
_MOST_REPORTS = 6
_MOST_PAGES_POLLED = 6
_ALL = 1000  # requests a card in discovery: no limit but the deadline


@dataclass(slots=True)
class _Server:
    """The resources that say what this server is."""

    root: Resource
    systems: Collection
    chassis: Collection
    host: Resource
    manager: Resource


async def discover(reader: Reader, root: Resource) -> tuple[BmcReading, Links]:
    """Walks the tree. What can't be read is missing from the result and named in the reader's failures."""
    server = await _server(reader, root)
    systems, chassis = server.systems.members, server.chassis.members
    processors = [path for path in (path_of(pick(entry, "Processors")) for entry in systems) if path]
    found, firmware, sensors, reports = await asyncio.gather(
        find_cards(reader, processors=processors, systems=systems, chassis=chassis),
        _firmware(reader, root),
        find_sensors(reader, chassis, systems),
        _reports(reader, root),
    )
    found.complete &= server.systems.complete and bool(systems or chassis)
    assign_sensors(found.cards, sensors.readings, sensors.resources)
    links = Links(
        node=msgspec.structs.replace(_node(server, firmware), power_state=_power_state(server)),
        levels=reader.levels,
        host=path_of(server.host),
        last_reset=words(pick(server.host, "LastResetTime")),
        processors=processors,
        memory=_memory_collections(found.cards),
        others=found.others,
        complete=found.complete,
        cards=found.cards,
        sensor_meta={path: msgspec.structs.replace(entry, value=None) for path, entry in sensors.readings.items()},
        inlet=sensors.path(choose_inlet(sensors.readings, sensors.resources)),
    )
    links.reports = [path for path, report in reports.items() if _useful(report, links)]
    hosts = host_chassis(chassis, server.host)
    links.power, power = await find_power(reader, hosts, sensors)
    told = overlay(reports[path] for path in links.reports).keys()
    links.sensor_pages = _pages(sensors, links, told, hosts)
    links.single = [
        path for path in (links.power, links.inlet) if path and "#" not in path and not _brought(path, links, told)
    ]
    links.broken = sorted(reader.broken)
    cards = await _values(reader, found, links, sensors)
    reading = msgspec.structs.replace(
        links.node,
        observed_at=datetime.now(UTC),
        power=plausible(power, 0, 100_000),
        inlet_temperature=_inlet(sensors, links),
        cards=tuple(cards),
        cards_known=found.complete,
        sensors=unnamed_twice(sensors.readings.values()),
        firmware=firmware_readings(firmware, known_cards(found.cards)),
    )
    return reading, links


async def _server(reader: Reader, root: Resource) -> _Server:
    paths = [path_of(pick(root, name)) or f"/redfish/v1/{name}" for name in ("Systems", "Chassis", "Managers")]
    systems, chassis, managers = (
        collection or Collection(complete=False)
        for collection in await asyncio.gather(*(reader.members(path) for path in paths))
    )
    host = choose_host(systems.members) or {}
    manager = choose_manager(managers.members, host, root) or {}
    return _Server(root=root, systems=systems, chassis=chassis, host=host, manager=manager)


async def _firmware(reader: Reader, root: Resource) -> list[Resource]:
    service_path = path_of(pick(root, "UpdateService"))
    service = await reader.fetch(service_path, optional=True)
    path = path_of(pick(service, "FirmwareInventory"))
    members = await reader.members(path, optional=True) if path else None
    return members.members if members else []


async def _reports(reader: Reader, root: Resource) -> dict[str, Resource]:
    service = await reader.fetch(path_of(pick(root, "TelemetryService")), optional=True)
    collection = path_of(pick(service, "MetricReports"))
    names = await reader.references(collection, optional=True) if collection else None
    wanted = [path for path in names or [] if _REPORT.search(name_in(path)) and not _NO_REPORT.search(name_in(path))]
    fetched = await reader.fetch_all(wanted[:_MOST_REPORTS], optional=True)
    return {path: fetched[same(path)] for path in wanted if same(path) in fetched}


def _useful(report: Resource, links: Links) -> bool:
    """Whether a report tells something a poll would otherwise ask for one by one."""
    told = overlay([report]).keys()
    sensors = {same(path) for card in links.cards for path in card.sensors.values()}
    if told & (sensors | links.sensor_meta.keys()):
        return True
    if links.levels >= 2:
        return False  # expanded processors bring their metrics along
    metrics = {same(path) for card in links.cards for path in (card.metrics, *card.memory_metrics)}
    return bool(told & metrics)


def _brought(path: str, links: Links, told: Container[str]) -> bool:
    """Whether a poll learns this resource from a page or a report anyway."""
    pages = [same(page) for page in links.sensor_pages]
    if "#" in path:
        return True  # a place inside an old Thermal resource
    return same(path) in told or any(
        same(path).startswith((f"{page}/", f"{page}#")) or same(path) == page for page in pages
    )


def _pages(sensors: SensorSet, links: Links, told: Container[str], hosts: Sequence[Resource]) -> list[str]:
    """The sensor collections that a poll reads again: those that reports leave out, the host's own first."""
    own = [same(path_of(entry)) for entry in hosts]

    def worth(page: str) -> tuple[bool, int]:
        inside = [path for path in sensors.readings if path.startswith(f"{same(page)}/") or f"{same(page)}#" in path]
        return any(same(page).startswith(f"{entry}/") for entry in own), len([p for p in inside if p not in told])

    single = not links.levels  # without $expand a collection costs a request a sensor
    pages = [page for page in sensors.pages if worth(page)[1] and not (single and same(page).endswith("/sensors"))]
    return sorted(pages, key=worth, reverse=True)[:_MOST_PAGES_POLLED]


def _memory_collections(cards: Sequence[CardLinks]) -> list[str]:
    collections = (path.rstrip("/").rpartition("/")[0] for card in cards for path in card.memory)
    return [path for path in dict.fromkeys(collections) if path]


async def _values(reader: Reader, found: FoundCards, links: Links, sensors: SensorSet) -> list[CardReading]:
    environments = nested(found.resources)
    for entry in found.cards:
        environment = environments.get(same(entry.environment), {})
        entry.temperature_is_margin = margin_source(environment, sensors.resources)
    source = ValueSource(expanded={**environments, **sensors.resources}, reported={})
    if links.levels >= 2:
        for path in links.memory:
            members = await reader.members(path, levels=2, optional=True)
            source.learn(nested({same(path_of(entry)): entry for entry in (members.members if members else [])}))
    return await read_values(reader, found.cards, source, most=_ALL)


def _node(server: _Server, firmware: Sequence[Resource]) -> BmcReading:
    host, manager, root = server.host, server.manager, server.root
    chassis = next(iter(host_chassis(server.chassis.members, host)), {})

    def told(name: str) -> str:
        return (known_text(words(pick(host, name))) or known_text(words(pick(chassis, name))))[:200]

    uuids = (pick(manager, "UUID"), pick(manager, "ServiceEntryPointUUID"), pick(root, "UUID"))
    return BmcReading(
        observed_at=datetime.now(UTC),
        reached=True,
        vendor=vendor_of(root, host, manager),
        bmc_model=known_text(words(pick(manager, "Model")))[:200],
        bmc_firmware=known_text(words(pick(manager, "FirmwareVersion")))[:200],
        bmc_uuid=next((found for found in (system_uuid(words(uuid)) for uuid in uuids) if found), ""),
        manufacturer=told("Manufacturer"),
        system_model=told("Model"),
        system_serial=told("SerialNumber"),
        system_uuid=system_uuid(words(pick(host, "UUID"))),
        hostname=known_text(words(pick(host, "HostName")))[:200],
        bios_version=(known_text(words(pick(host, "BiosVersion"))) or bios_version(firmware))[:200],
    )


def _power_state(server: _Server) -> PowerState:
    state = power_state(pick(server.host, "PowerState"))
    if state is not PowerState.UNKNOWN:
        return state
    states = [power_state(pick(entry, "PowerState")) for entry in host_chassis(server.chassis.members, server.host)]
    return next((entry for entry in states if entry is not PowerState.UNKNOWN), PowerState.UNKNOWN)


def _inlet(sensors: SensorSet, links: Links) -> float | None:
    reading = sensors.readings.get(same(links.inlet))
    return plausible(reading.value, -60, 250) if reading else None
