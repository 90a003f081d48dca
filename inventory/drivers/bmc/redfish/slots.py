"""Where a card sits, for services that do not say it on the card itself."""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from inventory.drivers.bmc.redfish.links import CardLinks
from inventory.drivers.bmc.redfish.reader import Reader
from inventory.drivers.bmc.redfish.resources import (
    Resource,
    dig,
    entries_in,
    name_in,
    path_of,
    paths_in,
    pick,
    same,
    words,
)
from inventory.rules.identity import card_serial, known_text


def slot_number(label: str) -> int | None:
    """The number in a slot's label; None when there is none."""
    numbers = re.findall(r"\d+", label)
    return int(numbers[-1]) if numbers else None


async def fill_slots(reader: Reader, cards: Sequence[CardLinks], chassis: Sequence[Resource]) -> None:
    """Slots from PCIeSlots and iLO's device list for cards without one; labels that two cards share get told apart."""
    homeless = [entry for entry in cards if not entry.card.slot]
    if homeless:
        await _from_slot_lists(reader, homeless, chassis)
        await _from_ilo_devices(reader, [entry for entry in homeless if not entry.card.slot], chassis)
    for entry in homeless:
        own = name_in(entry.processor)
        if not entry.card.slot and not own.isdigit():
            _place(entry, own)  # better than nothing: within one BMC it stays the same place
    labels = Counter(entry.card.slot for entry in cards)
    for entry in cards:
        if entry.card.slot and labels[entry.card.slot] > 1:
            # GB300 counts its GPUs anew on every processor module; the id counts them through.
            _place(entry, name_in(entry.processor))


async def _from_slot_lists(reader: Reader, cards: Sequence[CardLinks], chassis: Sequence[Resource]) -> None:
    holding = {same(entry.device.partition("/PCIeDevices/")[0]) for entry in cards if entry.device}
    paths = [path_of(pick(entry, "PCIeSlots")) for entry in chassis if same(path_of(entry)) in holding]
    for resource in (await reader.fetch_all(paths, optional=True)).values():
        for slot in entries_in(pick(resource, "Slots")):
            devices = {same(path) for path in paths_in(dig(slot, "Links", "PCIeDevice"))}
            label = known_text(words(dig(slot, "Location", "PartLocation", "ServiceLabel")))
            for entry in cards:
                if label and same(entry.device) in devices:
                    _place(entry, label)


async def _from_ilo_devices(reader: Reader, cards: Sequence[CardLinks], chassis: Sequence[Resource]) -> None:
    links = [path_of(dig(entry, "Oem", "Hpe", "Links", "Devices")) for entry in chassis]
    if not cards or not any(links):
        return
    found = await asyncio.gather(*(reader.members(path, optional=True) for path in links if path))
    for device in (member for collection in found if collection for member in collection.members):
        serial = card_serial(words(pick(device, "SerialNumber")))
        for entry in cards:
            if serial and serial == entry.card.serial:
                _place(entry, known_text(words(pick(device, "Location"))))


def _place(entry: CardLinks, label: str) -> None:
    entry.card = msgspec.structs.replace(entry.card, slot=label[:64])
