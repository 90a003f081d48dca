"""The four counts by pool and by spec: installed, available, allocated, and what the allocated cards do.

Definitions (docs/glossary.md): allocated = held by an open allocation, whole or in part; busy, idle and
unknown divide the allocated cards by their activity in the last window, so allocated = busy + idle +
unknown. What is allocated though no longer available is shown as its own part. Cards are counted once.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from inventory.selectors.cards import CardRow, card_rows
from pools.models import Pool, SharingMode, Spec
from pools.selectors.held import Held, held_by_card
from pools.selectors.membership import places

WHOLE = 1000  # thousandths


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


def tally(cards: Iterable[CardRow], held: Mapping[UUID, Sequence[Held]]) -> HeldCounts:
    """The counts of some cards. Those that are not installed are left out."""
    found: Counter[str] = Counter()
    for card in cards:
        facts = card.facts
        if not facts.installed:
            continue
        found["installed"] += 1
        found["available"] += facts.available
        found["standby"] += facts.available and facts.node_state == "asleep"
        if card.id not in held:
            found["free"] += facts.available
            continue
        found["allocated"] += 1
        found["lost"] += not facts.available
        activity = facts.activity
        found["unknown" if activity is None else "busy" if activity >= facts.threshold else "idle"] += 1
    return HeldCounts(**found)


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
    rows = card_rows(now=now)
    placed = places()
    held = held_by_card(now)
    by_pool: dict[UUID | None, list[CardRow]] = defaultdict(list)
    for row in rows:
        place = placed.get(row.id)
        by_pool[place.pool if place else None].append(row)
    pools = {key: tally(by_pool.get(key, ()), held) for key in Pool.objects.values_list("pk", flat=True)}
    specs = {}
    for spec in Spec.objects.filter(pools__isnull=False).distinct().prefetch_related("card_models", "pools"):
        models = {model.pk for model in spec.card_models.all()}
        for pool in spec.pools.all():
            fitting = [row for row in by_pool.get(pool.pk, ()) if row.model in models]
            specs[pool.pk, spec.pk] = _of_spec(spec, fitting, held)
    return Capacity(now, pools, specs, tally(by_pool.get(None, ()), held))


def _of_spec(spec: Spec, cards: Sequence[CardRow], held: Mapping[UUID, Sequence[Held]]) -> SpecCounts:
    own = sum(1 for card in cards for row in held.get(card.id, ()) if row.spec == spec.pk)
    units = own // spec.cards if spec.mode == SharingMode.WHOLE else own
    return SpecCounts(tally(cards, held), units, _free_units(spec, cards, held))


def _free_units(spec: Spec, cards: Sequence[CardRow], held: Mapping[UUID, Sequence[Held]]) -> int | None:
    free = [card for card in cards if card.facts.available and card.id not in held]
    if spec.mode == SharingMode.MIG:
        return None
    if spec.mode != SharingMode.WHOLE:
        return len(free) * spec.shares_per_card
    # a unit stands on one node, with cards of one model
    groups = Counter((card.node, card.model) for card in free)
    return sum(number // spec.cards for number in groups.values())
