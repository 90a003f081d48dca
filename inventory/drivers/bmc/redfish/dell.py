"""What iDRAC keeps beside the standard tree: serials and UUIDs of GPUs, and their temperatures.

Both collections are linked under `Links/Oem/Dell` of the system and give their members whole; a
member has the id of the card's Processor (`Video.Slot.7-1`).
"""

import asyncio
from collections.abc import Iterator, Sequence

import msgspec

from inventory.drivers.bmc.redfish.links import CardLinks
from inventory.drivers.bmc.redfish.reader import Reader
from inventory.drivers.bmc.redfish.resources import (
    Resource,
    dig,
    is_absent,
    name_in,
    number,
    path_of,
    pick,
    same,
    words,
)
from inventory.observations import SensorReading
from inventory.rules.identity import card_serial, card_uuid

_QUANTITIES = {
    "PrimaryGPUTemperatureCelsius": "GPU Temperature",
    "MemoryTemperatureCelsius": "Memory Temperature",
}


def gpu_sensor_pages(systems: Sequence[Resource]) -> list[str]:
    """The collections of GPU sensors."""
    links = (path_of(dig(system, "Links", "Oem", "Dell", "DellGPUSensorCollection")) for system in systems)
    return [path for path in links if path]


def is_gpu_sensor_page(path: str) -> bool:
    """Whether a sensor page is one of those."""
    return name_in(path).lower().startswith("dellgpusensor")


def gpu_sensors(member: Resource) -> Iterator[tuple[str, SensorReading]]:
    """The temperatures of one GPU with their place in the member; 0 stands for what the card does not tell."""
    if is_absent(member):
        return
    for name, title in _QUANTITIES.items():
        value = number(pick(member, name))
        if name in member:
            yield (
                name.lower(),
                SensorReading(
                    name=f"{words(pick(member, 'Id'))} {title}"[:200], kind="temperature", unit="C", value=value or None
                ),
            )


def is_of_card(path: str, entry: CardLinks) -> bool:
    """Whether a sensor's path is that of this card's GPU sensor."""
    member = path.partition("#")[0]
    return is_gpu_sensor_page(member.rpartition("/")[0]) and name_in(member) == name_in(same(entry.processor))


async def fill_identity(reader: Reader, cards: Sequence[CardLinks], systems: Sequence[Resource]) -> None:
    """Serial and UUID for cards whose Processor tells neither."""
    if all(entry.card.serial and entry.card.uuid for entry in cards):
        return
    dell = [system for system in systems if dig(system, "Links", "Oem", "Dell") is not None]
    paths = [f"{path_of(system).rstrip('/')}/Oem/Dell/DellVideo" for system in dell]
    for collection in await asyncio.gather(*(reader.members(path, optional=True) for path in paths)):
        known = {words(pick(member, "Id")).lower(): member for member in (collection.members if collection else [])}
        for entry in cards:
            member = known.get(name_in(entry.processor).lower(), {})
            serial, uuid = card_serial(words(pick(member, "SerialNumber"))), words(pick(member, "GPUGUID"))
            entry.card = msgspec.structs.replace(
                entry.card,
                serial=entry.card.serial or serial,
                uuid=entry.card.uuid or card_uuid(uuid, entry.card.vendor)[:200],
            )
