"""Dividing cards: MIG instances by the places that the hardware has, time slices and MPS shares in equal parts.

A divided card changes its layout only while nobody holds any of it. The places are NVIDIA's (MIG user
guide, "Supported MIG profiles"): a card has 8 memory slots (4 on the A30 and RTX PRO 6000), an instance
takes 1, 2, 4 or 8 of them from certain starts, and instances must not overlap. How many of a profile fit
tells which starts it has, so a catalogue needs no more than the counts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from pools.rules.demand import Spec
from pools.rules.fleet import CARD, Card, Mode, Slice
from sensaka.kernel.errors import InvalidInput

Range = tuple[int, int]
"""[start, stop) in thousandths of a card."""

_STARTS: Mapping[int, Mapping[int, tuple[int, tuple[int, ...]]]] = {
    8: {7: (1, (0, 1, 2, 3, 4, 5, 6)), 4: (2, (0, 2, 4, 6)), 3: (2, (0, 2, 4)), 2: (4, (0, 4)), 1: (4, (0,))},
    4: {4: (1, (0, 1, 2, 3)), 2: (2, (0, 2)), 1: (4, (0,))},
}
"""By memory slots of the card and the most instances of a profile: (slots of one, first slots)."""

_SEVENTHS = 7


@dataclass(frozen=True, slots=True)
class Profile:
    """A MIG profile of a card model: how many memory slots one takes, where it may begin, the most of it."""

    name: str
    size: int
    starts: tuple[int, ...]
    most: int

    @property
    def media(self) -> bool:
        """Has the card's media engines, which one instance alone can have."""
        return "+me" in self.name


@dataclass(frozen=True)
class Geometry:
    """How a card model can be divided."""

    slots: int
    profiles: tuple[Profile, ...]

    def profile(self, name: str) -> Profile:
        """InvalidInput when the model has no such profile."""
        for profile in self.profiles:
            if profile.name == name:
                return profile
        raise InvalidInput(f"there is no MIG profile {name!r}; known: {', '.join(one.name for one in self.profiles)}")

    def range_of(self, instance: Slice) -> Range:
        """The thousandths of the card that an instance stands for."""
        size = self.profile(instance.profile).size
        return instance.slot * CARD // self.slots, (instance.slot + size) * CARD // self.slots

    def share_of(self, name: str) -> int:
        """Thousandths of one instance."""
        return self.profile(name).size * CARD // self.slots

    def valid(self, layout: Iterable[Slice]) -> bool:
        """Whether a card can hold these instances at once."""
        layout = tuple(layout)
        taken: set[int] = set()
        for instance in layout:
            profile = self.profile(instance.profile)
            slots = set(range(instance.slot, instance.slot + profile.size))
            if instance.slot not in profile.starts or slots & taken:
                return False
            taken |= slots
        counts = {profile.name: 0 for profile in self.profiles}
        for instance in layout:
            counts[instance.profile] += 1
        return all(counts[profile.name] <= profile.most for profile in self.profiles) and (
            sum(counts[profile.name] for profile in self.profiles if profile.media) <= 1
        )


@lru_cache(maxsize=256)
def _geometry(counts: tuple[tuple[str, int], ...]) -> Geometry:
    """From (profile, most instances) of a model."""
    slots = 8 if any(_compute(name) == _SEVENTHS for name, _ in counts) else 4
    plain = {name: most for name, most in counts if "+" not in name}
    found = []
    for name, most in counts:
        # a variant of a profile (with media engines) stands where the plain one does, only fewer times
        like = plain.get(name.split("+")[0], most)
        size, starts = (slots, (0,)) if _compute(name) == _SEVENTHS else _STARTS[slots][like]
        found.append(Profile(name, size, starts, most))
    return Geometry(slots, tuple(sorted(found, key=lambda profile: (-profile.size, profile.name))))


def _compute(name: str) -> int:
    return int(name.split("g.")[0])


def geometry(counts: Mapping[str, int]) -> Geometry | None:
    """How a model with these MIG profiles (name: most instances) is divided; None for a model without MIG."""
    return _geometry(tuple(sorted(counts.items()))) if counts else None


def layout_for(of: Geometry, wanted: str, demand: Mapping[str, int]) -> tuple[Slice, ...]:
    """The layout of an empty card with one `wanted` at least that serves the most of `demand` (profile: units).

    Of those that serve equally much, the one that leaves the fewest slots without an instance; what
    nobody asks for is filled with the wanted profile.
    """
    asked = tuple(sorted((name, count) for name, count in demand.items() if count > 0))
    return _layout_for(of, wanted, asked)


@lru_cache(maxsize=1024)
def _layout_for(of: Geometry, wanted: str, demand: tuple[tuple[str, int], ...]) -> tuple[Slice, ...]:
    asked = dict(demand)
    asked[wanted] = max(asked.get(wanted, 0), 1)
    useful = [profile for profile in of.profiles if profile.name in asked]
    best: tuple[tuple[int, int, int], tuple[Slice, ...]] | None = None
    for layout in _layouts(of, useful):
        counts = {profile.name: sum(one.profile == profile.name for one in layout) for profile in useful}
        if not counts[wanted]:
            continue
        served = sum(min(counts[profile.name], asked[profile.name]) * profile.size for profile in useful)
        covered = sum(counts[profile.name] * profile.size for profile in useful)
        rank = (served, covered, counts[wanted])
        if best is None or rank > best[0]:
            best = rank, layout
    assert best is not None, "a profile alone is a layout"
    return best[1]


def _layouts(of: Geometry, profiles: list[Profile]) -> list[tuple[Slice, ...]]:
    """All sets of instances that fit, with the first slot left free only when it must be or may be."""
    found: list[tuple[Slice, ...]] = []

    def extend(slot: int, chosen: tuple[Slice, ...]) -> None:
        if slot >= of.slots:
            found.append(chosen)
            return
        extend(slot + 1, chosen)
        for profile in profiles:
            if slot in profile.starts:
                layout = (*chosen, Slice(profile.name, slot))
                if of.valid(layout):
                    extend(slot + profile.size, layout)

    extend(0, ())
    return found


def parts(shares: int) -> list[Range]:
    """A card in equal parts, as time slices or MPS shares."""
    return [(number * CARD // shares, (number + 1) * CARD // shares) for number in range(shares)]


@dataclass(frozen=True, slots=True)
class Division:
    """What an empty card is to become."""

    mode: Mode
    layout: tuple[Slice, ...] = ()
    shares: int = 0


WHOLE = Division(Mode.WHOLE)


def division_of(card: Card) -> Division:
    """How a card is divided now."""
    return Division(card.mode, card.layout, card.shares)


def share_of(spec: Spec, profiles: Mapping[str, int]) -> int | None:
    """Thousandths of a card that a unit of the spec takes of each of its cards; None when a model can't give it."""
    if spec.mode is not Mode.MIG:
        return CARD // spec.shares
    of = geometry(profiles)
    if of is None or all(profile.name != spec.profile for profile in of.profiles):
        return None
    return of.share_of(spec.profile)


def ranges(spec: Spec, division: Division, profiles: Mapping[str, int]) -> list[Range]:
    """The parts of a card so divided that are a unit of the spec, held or not."""
    if spec.mode is not division.mode:
        return []
    if spec.mode is Mode.WHOLE:
        return [(0, CARD)]
    if spec.mode is Mode.MIG:
        of = geometry(profiles)
        return [of.range_of(one) for one in division.layout if one.profile == spec.profile] if of is not None else []
    return parts(spec.shares) if division.shares == spec.shares else []


def free_ranges(found: Iterable[Range], taken: Iterable[Range]) -> list[Range]:
    """Those of `found` that nothing in `taken` overlaps."""
    held = tuple(taken)
    return [(start, stop) for start, stop in found if all(stop <= low or high <= start for low, high in held)]


def division_for(spec: Spec, profiles: Mapping[str, int], demand: Mapping[str, int]) -> Division | None:
    """What an empty card must become to give a unit of the spec; None when its model can't.

    `demand` are the units of MIG profiles that wait, so that one change serves several.
    """
    if spec.mode is Mode.WHOLE:
        return WHOLE
    if spec.mode is Mode.MIG:
        if share_of(spec, profiles) is None:
            return None
        of = geometry(profiles)
        assert of is not None
        known = {profile.name for profile in of.profiles}
        return Division(Mode.MIG, layout_for(of, spec.profile, {k: v for k, v in demand.items() if k in known}))
    return Division(spec.mode, shares=spec.shares)
