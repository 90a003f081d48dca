"""UpdateService/FirmwareInventory to components, matched to cards where a name or link says so. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inventory.drivers.bmc.redfish.resources import (
    Resource,
    is_absent,
    name_in,
    oem,
    path_of,
    paths_in,
    pick,
    same,
    words,
)
from inventory.observations import CardReading, FirmwareReading
from inventory.rules.identity import known_text

# iDRAC lists what was installed before and what could be installed; only what runs counts (TELEMETRY 6.4).
_NOT_RUNNING = re.compile(r"^(Previous|Available|Rollback)[-_]", re.IGNORECASE)
_DELL_ID = re.compile(r"^Installed-(?P<device>[^_]+)-")
_GENERIC_NAMES = frozenset({"software inventory", "firmware inventory", "firmware", "software", ""})


@dataclass(frozen=True, slots=True)
class KnownCard:
    """A card with the paths and the id that firmware entries may refer to it by."""

    reading: CardReading
    own_id: str
    paths: frozenset[str]


def firmware_readings(items: Iterable[Resource], cards: Sequence[KnownCard]) -> tuple[FirmwareReading, ...]:
    """One entry a component and version; entries without a version and old or offered ones are left out."""
    found: dict[tuple[str, str, str], FirmwareReading] = {}
    for item in items:
        own = words(pick(item, "Id")) or name_in(path_of(item))
        version = known_text(words(pick(item, "Version")))
        if not version or _NOT_RUNNING.match(own) or is_absent(item):
            continue
        card = _card_of(item, own, cards)
        updateable = pick(item, "Updateable")
        reading = FirmwareReading(
            component=_component(item, own)[:200],
            version=version[:200],
            card_uuid=card.reading.uuid if card else "",
            card_serial=card.reading.serial if card else "",
            updateable=updateable if isinstance(updateable, bool) else None,
        )
        found.setdefault((reading.component, reading.version, reading.card_uuid or reading.card_serial), reading)
    return tuple(found.values())


def bios_version(items: Iterable[Resource]) -> str:
    """The BIOS version by the inventory, for systems that leave BiosVersion blank."""
    for item in items:
        own = words(pick(item, "Id"))
        name = f"{own} {words(pick(item, 'Name'))}"
        if re.search(r"\bbios\b|hostbios|system rom", name, re.IGNORECASE) and not _NOT_RUNNING.match(own):
            version = known_text(words(pick(item, "Version")))
            if version and "erot" not in own.lower():
                return version
    return ""


def _component(item: Resource, own: str) -> str:
    """The id where the name says nothing or is shared, as on OpenBMC; the name where the id is a number."""
    name = words(pick(item, "Name"))
    if name.lower() in _GENERIC_NAMES or name == own:
        return own
    return name if own.isdigit() or _DELL_ID.match(own) or len(own) > 40 else own


def _card_of(item: Resource, own: str, cards: Sequence[KnownCard]) -> KnownCard | None:
    related = {same(path) for path in paths_in(pick(item, "RelatedItem"))}
    for card in cards:
        if related & card.paths:
            return card
    ends = [card for card in cards if card.own_id and not card.own_id.isdigit() and own.endswith(f"_{card.own_id}")]
    if ends:
        # GPU_1 must not take GPU_SXM_1's entry: the longest id that fits is the right one.
        return max(ends, key=lambda card: len(card.own_id))
    place = words(oem(item, "DeviceContext")) or words(oem(item, "DeviceInstance"))
    here = [card for card in cards if place and card.reading.slot and _place(card.reading.slot) == _place(place)]
    if len(here) == 1:
        return here[0]
    fqdd = [card for card in cards if "." in card.own_id and f"__{card.own_id}".lower() in own.lower()]
    return fqdd[0] if len(fqdd) == 1 else None


def _place(label: str) -> str:
    """A slot label without the words around its number: `PCI-E Slot 14` and `Slot 14` are one place."""
    numbers = re.findall(r"\d+", label)
    return f"slot {int(numbers[-1])}" if "slot" in label.lower() and numbers else label.lower()
