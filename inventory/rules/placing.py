"""Where a card that stays on its node is now, and into what it is divided."""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from inventory.rules.changes import (
    PRECEDENCE,
    Change,
    CloseSlice,
    KnownCard,
    Look,
    ObservedCard,
    OpenSlice,
    Place,
)


def place_after(look: Look, observed: ObservedCard, card: KnownCard) -> tuple[Place, bool]:
    """Where a card that stays on its node is now, and whether it changed its place."""
    before = Place(look.node, card.identity.slot, card.identity.pci_address)
    said = observed.identity
    mine = next((seen for seen in card.sightings if seen.collector == look.collector), None)
    if mine is not None and mine.node != look.node:
        mine = None
    rank = PRECEDENCE[look.source]
    others = [seen for seen in card.sightings if seen.node == look.node and seen is not mine]
    place, moved = before, False
    if any(seen.at > look.at for seen in card.sightings if seen.node == look.node):
        return Place(before.node, before.slot or said.slot, before.pci_address or said.pci_address), False
    if said.slot and said.slot != before.slot:
        senior = [seen for seen in others if seen.slot and PRECEDENCE[seen.source] < rank]
        same_rank = [seen for seen in others if seen.slot and PRECEDENCE[seen.source] == rank]
        changed = mine is not None and bool(mine.slot) and mine.slot != said.slot
        if not before.slot or (not senior and (not same_rank or changed)):
            place, moved = replace(place, slot=said.slot), changed and bool(before.slot)
        elif changed and not any(look.fresh(seen.valid_at) for seen in senior):
            place, moved = replace(place, slot=said.slot), True
    if said.pci_address and said.pci_address != before.pci_address:
        senior = [seen for seen in others if seen.pci_address and PRECEDENCE[seen.source] < rank]
        if not before.pci_address or not senior:
            place = replace(place, pci_address=said.pci_address)
            # Without slots the address is the place; with them, the bus was only renumbered.
            changed = mine is not None and mine.pci_address not in ("", said.pci_address)
            moved = moved or (changed and not (said.slot or before.slot))
    return place, moved


def slice_changes(
    look: Look, pairs: Mapping[int, KnownCard], seen: Mapping[int, UUID], places: Mapping[UUID | int, Place]
) -> list[Change]:
    """Slices that were made, remade or removed, on cards that are taken to be here.

    `pairs` are the known cards by index, `seen` those that are believed, `places` who stands here.
    """
    changes: list[Change] = []
    for index, observed in enumerate(look.cards):
        known = pairs.get(index)
        if observed.slices is None or observed.lost or not look.in_band:
            continue
        if (known.id if known else index) not in places or (known and index not in seen):
            continue
        if known is None or not _senior_sees(look, known):
            changes += _slices_of(index, observed, known)
    return changes


def _slices_of(index: int, observed: ObservedCard, known: KnownCard | None) -> list[Change]:
    changes: list[Change] = []
    listed = observed.slices or ()
    open_before = {one.uuid: one for one in known.slices} if known else {}
    first: dict[str, int] = {}
    for position, one in enumerate(listed):
        first.setdefault(one.uuid, position)
    for uuid, position in first.items():
        one, before = listed[position], open_before.get(uuid)
        if before is not None and (before.profile, before.instance_id) == (one.profile, one.instance_id):
            continue
        if before is not None and known is not None:
            changes.append(CloseSlice(known.id, before.id))
        changes.append(OpenSlice(index, position))
    if known is not None:
        changes += [CloseSlice(known.id, one.id) for uuid, one in open_before.items() if uuid not in first]
    return changes


def _senior_sees(look: Look, card: KnownCard) -> bool:
    """Whether a source that is trusted more sees the card here now: then its slices count."""
    rank = PRECEDENCE[look.source]
    return any(
        PRECEDENCE[seen.source] < rank and seen.node == look.node and look.fresh(seen.valid_at)
        for seen in card.sightings
    )
