"""The four counts by pool and by spec: installed, available, allocated, and what the allocated cards do.

Definitions (docs/glossary.md): allocated = held by an open allocation, whole or in part; busy, idle and
unknown divide the allocated cards by their activity in the last window, so allocated = busy + idle +
unknown. What is allocated though no longer available is shown as its own part. Cards are counted once.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from inventory.selectors.cards import CardRow, card_rows
from pools.models import Pool, SharingMode, Spec
from pools.selectors.held import Held, held_by_card
from pools.selectors.membership import Place, places


@dataclass(frozen=True, slots=True)
class HeldCounts:
    """Cards of a pool or for a spec. `lost` of the allocated ones are no longer available."""

    installed: int = 0
    available: int = 0
    standby: int = 0
    allocated: int = 0
    lost: int = 0
    busy: int = 0
    idle: int = 0
    unknown: int = 0
    free: int = 0

    @property
    def coverage(self) -> float | None:
        """Percent of the allocated cards with a fresh activity; None when none is allocated."""
        return 100 * (self.busy + self.idle) / self.allocated if self.allocated else None

    @property
    def idle_rate(self) -> float | None:
        """Percent of the allocated cards with a known activity that are idle; None when none is known."""
        known = self.busy + self.idle
        return 100 * self.idle / known if known else None

    @property
    def allocation_rate(self) -> float | None:
        """Percent of the available cards that are allocated; None when none is available."""
        return 100 * (self.allocated - self.lost) / self.available if self.available else None

    def __add__(self, other: "HeldCounts") -> "HeldCounts":
        return HeldCounts(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class _Group:
    """The cards of one model in one pool: their counts, and the free ones by node."""

    counts: HeldCounts
    free: Counter[UUID | None]


def _tally(cards: Iterable[CardRow], held: Mapping[UUID, Sequence[Held]]) -> _Group:
    """One look at each card. Those that are not installed are left out."""
    found: Counter[str] = Counter()
    free: Counter[UUID | None] = Counter()
    for card in cards:
        facts = card.facts
        if not facts.installed:
            continue
        available = facts.available
        found["installed"] += 1
        found["available"] += available
        found["standby"] += available and facts.node_state == "asleep"
        if card.id in held:
            activity = facts.activity
            found["allocated"] += 1
            found["lost"] += not available
            found["unknown" if activity is None else "busy" if activity >= facts.threshold else "idle"] += 1
        elif available:
            found["free"] += 1
            free[card.node] += 1
    return _Group(HeldCounts(**found), free)


@dataclass(frozen=True, slots=True)
class SpecCounts:
    """The cards that a spec could use in a pool, and `held`: units of it that run. `free_units` could start now.

    Free units are counted on available cards that nobody holds; for MIG they are None, because what fits
    depends on the layouts.
    """

    counts: HeldCounts
    held: int
    free_units: int | None


@dataclass(frozen=True, slots=True)
class Capacity:
    """Everything that the pages and the API show of pools and specs at one moment."""

    at: datetime
    pools: dict[UUID, HeldCounts]
    specs: dict[tuple[UUID, UUID], SpecCounts]
    outside: HeldCounts


def capacity(*, now: datetime | None = None) -> Capacity:
    """Counts by pool, by (pool, spec), and of the cards that are in no pool. A fixed number of queries."""
    now = now or timezone.now()
    placed = places()
    held = held_by_card(now)
    cards: dict[UUID | None, dict[UUID | None, list[CardRow]]] = defaultdict(lambda: defaultdict(list))
    for row in card_rows(now=now):
        place = placed.get(row.id)
        cards[place.pool if place else None][row.model].append(row)
    groups = {pool: {model: _tally(rows, held) for model, rows in models.items()} for pool, models in cards.items()}
    units = _units_held(placed, held)
    specs = {
        (pool.pk, spec.pk): _of_spec(spec, groups.get(pool.pk, {}), units[pool.pk, spec.pk])
        for spec in Spec.objects.filter(pools__isnull=False).distinct().prefetch_related("card_models", "pools")
        for pool in spec.pools.all()
    }
    pools = {key: _sum(groups.get(key, {}).values()) for key in Pool.objects.values_list("pk", flat=True)}
    return Capacity(now, pools, specs, _sum(groups.get(None, {}).values()))


def _sum(groups: Iterable[_Group]) -> HeldCounts:
    return sum((group.counts for group in groups), HeldCounts())


def _units_held(placed: Mapping[UUID, Place], held: Mapping[UUID, Sequence[Held]]) -> Counter[tuple[UUID, UUID]]:
    """How many rows of the ledger are open by (pool, spec): cards of whole units, and shares."""
    return Counter(
        (placed[card].pool, row.spec)
        for card, rows in held.items()
        if card in placed
        for row in rows
        if row.spec is not None
    )


def _of_spec(spec: Spec, groups: Mapping[UUID | None, _Group], rows: int) -> SpecCounts:
    fitting = [groups[model.pk] for model in spec.card_models.all() if model.pk in groups]
    units = rows // spec.cards if spec.mode == SharingMode.WHOLE else rows
    return SpecCounts(_sum(fitting), units, _free_units(spec, fitting))


def _free_units(spec: Spec, groups: Sequence[_Group]) -> int | None:
    if spec.mode == SharingMode.MIG:
        return None
    if spec.mode != SharingMode.WHOLE:
        return spec.shares_per_card * sum(group.counts.free for group in groups)
    # a unit stands on one node, with cards of one model
    return sum(number // spec.cards for group in groups for number in group.free.values())
