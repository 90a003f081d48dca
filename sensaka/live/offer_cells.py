"""The topic `offers`: how much of each spec is free now, for whoever may ask for it."""

from pools.selectors.counts import Capacity, capacity
from pools.selectors.offers import Offer, offers
from sensaka.identity.models import User
from sensaka.live.cells import Cell, Cells, count, unknown, version
from sensaka.live.fleet import Shared

_KEEP = 2.0  # seconds that one count of everything serves all who look at what is offered
_shared: Shared[Capacity] = Shared(capacity, keep=_KEEP)


def current() -> Capacity:
    """The counts of all pools and specs, shared by all readers of this process."""
    return _shared.get()


def forget() -> None:
    """Count anew at the next call."""
    _shared.forget()


def free_cell(offer: Offer) -> Cell:
    """Units that nobody holds now."""
    if offer.free is None:
        return unknown("How many fit depends on how the cards are divided.")
    where = ", ".join(f"{place.pool.name} {count(place.free)}" for place in offer.places)
    return Cell(
        count(offer.free), "" if offer.free else "warn", hint=f"Units on available cards that nobody holds: {where}."
    )


def waiting_cell(offer: Offer) -> Cell:
    """Requests for it that wait, of all teams."""
    return Cell(count(offer.waiting), hint="Requests for this spec that wait in these pools, of all teams.")


def cells(user: User) -> Cells:
    """What of each spec is free, how many wait for it, and a version that changes when the offers do."""
    found: Cells = {}
    rows = offers(user, current())
    for offer in rows:
        found[f"offer.{offer.spec.pk}.free"] = free_cell(offer)
        found[f"offer.{offer.spec.pk}.waiting"] = waiting_cell(offer)
    parts = [
        (one.spec.pk, one.spec.updated_at, one.free, one.waiting, [place.pool.pk for place in one.places])
        for one in rows
    ]
    found["offers.version"] = version(parts)
    return found
