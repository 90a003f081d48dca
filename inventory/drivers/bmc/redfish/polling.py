"""The short visit: power state, card values and sensors, by the links of an earlier long one."""

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec

from inventory.drivers.bmc.redfish.cards import is_card_processor
from inventory.drivers.bmc.redfish.environment import power_of, read_pages, refreshed, reported_sensors, unnamed_twice
from inventory.drivers.bmc.redfish.links import Links
from inventory.drivers.bmc.redfish.metrics import overlay
from inventory.drivers.bmc.redfish.reader import Reader
from inventory.drivers.bmc.redfish.resources import Resource, is_absent, moment, path_of, pick, same, words
from inventory.drivers.bmc.redfish.systems import power_state
from inventory.drivers.bmc.redfish.values import ValueSource, nested, read_values
from inventory.observations import BmcReading, PowerState, SensorReading
from inventory.rules.identity import card_serial, card_uuid, known_text
from sensaka.kernel.units import plausible

_CLOCK_JITTER = timedelta(minutes=2)


class LinksOutdated(Exception):
    """The server is not what the links say any more; a long visit is needed."""


async def poll(reader: Reader, links: Links) -> BmcReading:
    """One reading in few requests. LinksOutdated when cards or the host have changed since discovery."""
    resources, reports, sensors, (members, complete), memory = await asyncio.gather(
        reader.fetch_all(path for path in (links.host, *links.single) if path),
        reader.fetch_all(links.reports, optional=True),
        read_pages(reader, links.sensor_pages),
        _members(reader, links),
        _memory(reader, links),
    )
    host = resources.get(same(links.host), {})
    _check(links, host, members, complete=complete)
    reported = overlay(reports.values())
    source = ValueSource(expanded={**sensors.resources, **nested(members), **nested(memory)}, reported=reported)
    seen = [entry for entry in links.cards if same(entry.processor) in members]
    cards = await read_values(reader, seen, source)
    readings = {**reported_sensors(links.sensor_meta, reported), **sensors.readings}
    for path, resource in resources.items():
        if path in links.sensor_meta:
            readings[path] = refreshed(links.sensor_meta[path], resource)
    inlet = readings.get(same(links.inlet))
    power = power_of(links.power, resources.get(same(links.power)))
    power = sensors.power if power is None else power
    return msgspec.structs.replace(
        links.node,
        observed_at=datetime.now(UTC),
        hostname=known_text(words(pick(host, "HostName")))[:200] or links.node.hostname,
        power_state=power_state(pick(host, "PowerState")) if host else PowerState.UNKNOWN,
        power=power if power is not None else _watts(readings.get(same(links.power))),
        inlet_temperature=plausible(inlet.value, -60, 250) if inlet else None,
        cards=tuple(cards),
        cards_known=complete and links.complete and len(seen) == len(links.cards),
        sensors=unnamed_twice(readings.values()),
    )


def _watts(reading: SensorReading | None) -> float | None:
    return plausible(reading.value, 0, 100_000) if reading else None


async def _members(reader: Reader, links: Links) -> tuple[dict[str, Resource], bool]:
    """The resources that are or could be cards by path, {} where only their presence was read."""
    holding = {same(card.processor.rpartition("/")[0]) for card in links.cards}
    listed = {same(path) for path in links.processors}
    # Where no collection holds a card (they were found elsewhere, or there are none) all are looked at.
    wanted = [path for path in links.processors if same(path) in holding] or links.processors
    found: dict[str, Resource] = {}
    complete = bool(links.processors or links.cards)
    for path in wanted:
        if links.levels >= 1:
            collection = await reader.members(path, levels=2)
            complete &= collection is not None and collection.complete
            found |= {same(path_of(entry)): entry for entry in (collection.members if collection else [])}
        else:
            names = await reader.references(path)
            complete &= names is not None
            found |= {same(name): {} for name in names or []}
    elsewhere = [card.processor for card in links.cards if same(card.processor.rpartition("/")[0]) not in listed]
    apart = await reader.fetch_all(elsewhere)
    return found | apart, complete and len(apart) == len(elsewhere)


async def _memory(reader: Reader, links: Links) -> dict[str, Resource]:
    if links.levels < 2:
        return {}
    found: dict[str, Resource] = {}
    for members in await asyncio.gather(*(reader.members(path, levels=2, optional=True) for path in links.memory)):
        found |= {same(path_of(entry)): entry for entry in (members.members if members else [])}
    return found


def _check(links: Links, host: Resource, members: dict[str, Resource], *, complete: bool) -> None:
    """Raises LinksOutdated when what is seen contradicts the links."""
    serial = known_text(words(pick(host, "SerialNumber")))
    if serial and links.node.system_serial and serial != links.node.system_serial:
        raise LinksOutdated("another server answers at this address")
    # Cards are only ever exchanged with the power off.
    if _restarted(links, host):
        raise LinksOutdated("the server was restarted")
    known = {same(card.processor) for card in links.cards}
    if complete and not known <= members.keys():
        raise LinksOutdated("a card is gone")
    for path in members.keys() - known - set(links.others) - set(links.broken):
        if not members[path] or is_card_processor(members[path]):
            raise LinksOutdated("there is a card more")
    for card in links.cards:
        resource = members.get(same(card.processor), {})
        uuid = card_uuid(words(pick(resource, "UUID")), card.card.vendor)
        told = card_serial(words(pick(resource, "SerialNumber")))
        if (uuid and uuid != card.card.uuid) or (told and told != card.card.serial) or is_absent(resource):
            raise LinksOutdated("a card was exchanged")


def _restarted(links: Links, host: Resource) -> bool:
    """Whether the host was off since discovery; small differences are BMCs that count back from now."""
    then, now = moment(links.last_reset), moment(pick(host, "LastResetTime"))
    if then is not None and now is not None:
        return abs(now - then) > _CLOCK_JITTER
    state = power_state(pick(host, "PowerState"))
    return state is PowerState.ON and links.node.power_state is not PowerState.ON
