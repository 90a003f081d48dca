"""What a person may ask for: the specs that pools offer them, how much of each is free, and who waits for it."""

from collections import Counter
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Prefetch

from pools.models import Pool, Request, Spec
from pools.selectors.counts import Capacity
from sensaka.identity.models import User


@dataclass(frozen=True, slots=True)
class Place:
    """A pool that offers a spec, and how many units could start there now; None where layouts decide (MIG)."""

    pool: Pool
    free: int | None


@dataclass(frozen=True, slots=True)
class Offer:
    """A spec with the pools that take requests for it, lowest rank first, and requests of all teams that wait."""

    spec: Spec
    places: tuple[Place, ...]
    waiting: int

    @property
    def free(self) -> int | None:
        """Units free now, over all places; None when it can't be counted."""
        known = [place.free for place in self.places if place.free is not None]
        return sum(known) if len(known) == len(self.places) else None

    @property
    def longest_run(self) -> int | None:
        """The longest time limit (seconds) of the place that is taken first; None without a bound."""
        return self.places[0].pool.longest_run


def offers(user: User, found: Capacity) -> list[Offer]:
    """The specs that a person may ask for now, by name. Four queries for any number."""
    open_pools = Pool.objects.visible_to(user).filter(accepting=True).order_by("rank", "name")
    specs = list(
        Spec.objects.visible_to(user)
        .filter(active=True, pools__in=open_pools.values("pk"))
        .distinct()
        .prefetch_related("card_models", Prefetch("pools", queryset=open_pools, to_attr="open_pools"))
        .order_by("name")
    )
    waiting: Counter[tuple[UUID, UUID]] = Counter()
    rows = Request.objects.filter(state="queued", spec__in=[spec.pk for spec in specs]).order_by()
    for spec, pool, number in rows.values_list("spec", "pool").annotate(number=Count("pk")):
        waiting[spec, pool] = number
    return [_offer(spec, found, waiting) for spec in specs]


def _offer(spec: Spec, found: Capacity, waiting: Counter[tuple[UUID, UUID]]) -> Offer:
    open_pools: list[Pool] = spec.open_pools  # type: ignore[attr-defined] # by the prefetch
    places = []
    for pool in open_pools:
        counts = found.specs.get((pool.pk, spec.pk))
        places.append(Place(pool, counts.free_units if counts is not None else 0))
    return Offer(spec, tuple(places), sum(waiting[spec.pk, pool.pk] for pool in open_pools))
