"""Where the instances of a divided card lie, told from their profiles alone.

Inventory knows which instances a card has, not in which memory slots they begin. Any arrangement that
the hardware allows keeps them apart and gives each its share, which is what the ledger needs; those
that are in it already keep their places.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pools.rules.fleet import CARD, Id, Slice
from pools.rules.sharing import Geometry, Range


@dataclass(frozen=True, slots=True)
class Instance:
    """A MIG instance of a card."""

    id: Id
    profile: str


def slots_of(
    of: Geometry | None, instances: Sequence[Instance], fixed: Mapping[Id, int] | None = None
) -> dict[Id, int] | None:
    """The first slot of each instance, larger ones placed first; None when the hardware has no such arrangement.

    `fixed` are slots that some of them are in already.
    """
    if of is None:
        return None
    known = {profile.name: profile for profile in of.profiles}
    if any(one.profile not in known for one in instances):
        return None
    kept = {one.id: fixed[one.id] for one in instances if fixed and one.id in fixed}
    taken = {slot + step for one in instances if one.id in kept for slot in [kept[one.id]]
             for step in range(known[one.profile].size)}  # fmt: skip
    rest = sorted((one for one in instances if one.id not in kept), key=lambda one: -known[one.profile].size)

    def arranged(place: int, used: frozenset[int]) -> dict[Id, int] | None:
        if place == len(rest):
            return {}
        profile = known[rest[place].profile]
        for start in profile.starts:
            slots = frozenset(range(start, start + profile.size))
            if not slots & used and (after := arranged(place + 1, used | slots)) is not None:
                return {rest[place].id: start, **after}
        return None

    found = arranged(0, frozenset(taken))
    return None if found is None else {**kept, **found}


def parts_of(
    of: Geometry | None, instances: Sequence[Instance], fixed: Mapping[Id, Range] | None = None
) -> dict[Id, Range]:
    """The thousandths of the card that each instance stands for; equal parts where its profiles aren't known."""
    held = {} if of is None else {key: _slot(of, part) for key, part in (fixed or {}).items()}
    slots = slots_of(of, instances, held) or slots_of(of, instances)
    if of is None or slots is None:
        count = len(instances)
        return {one.id: (place * CARD // count, (place + 1) * CARD // count) for place, one in enumerate(instances)}
    return {one.id: of.range_of(Slice(one.profile, slots[one.id])) for one in instances}


def _slot(of: Geometry, part: Range) -> int:
    """Thousandths are rounded down from slots, so the way back rounds up."""
    return -(-part[0] * of.slots // CARD)
