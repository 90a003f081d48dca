"""The whole fleet as one list of cards with their present values: what every page starts from.

A handful of queries for any number of cards, kept for half a second and shared by all readers of this process.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Generic, TypeVar
from uuid import UUID

from django.db import DatabaseError, connection
from django.utils import timezone

from inventory.models import Card, Slice
from inventory.selectors import cards
from inventory.selectors.samples import CurrentSample, current_samples

T = TypeVar("T")
logger = logging.getLogger(__name__)
KEEP = 0.5  # seconds; current samples are kept for one more behind it
SLOW = 0.5  # seconds; what takes longer to make is renewed in the background
STALE = 10.0  # seconds that readers may get the last value meanwhile; live pages are read again as often


class Shared(Generic[T]):
    """A value that is made at most once in `keep` seconds in this process, by whoever asks first.

    One that took long to make (SLOW) is kept for as long as that, and up to STALE readers get the last
    one while a thread makes the next: a page of a large fleet opens at once, and its live line follows.
    """

    def __init__(self, make: Callable[[], T], keep: float = KEEP) -> None:
        self._make, self._keep = make, keep
        self._lock = threading.Lock()
        self._value: T | None = None
        self._made_at = self._took = float("-inf")
        self._renewing = False

    def get(self) -> T:
        """The value, not older than `keep`, or than STALE where it takes long to make."""
        known, age = self._value, time.monotonic() - self._made_at
        if known is not None and age <= max(self._keep, self._took):
            return known
        # Inside a transaction only this thread sees what was written.
        if known is not None and self._took > SLOW and age <= STALE and not connection.in_atomic_block:
            self._renew()
            return known
        with self._lock:
            value = self._value
            if value is None or time.monotonic() - self._made_at > max(self._keep, self._took):
                value = self._remake()
            return value

    def forget(self) -> None:
        """The next `get` makes it anew."""
        with self._lock:
            self._value = None

    def _remake(self) -> T:
        began = time.monotonic()
        value = self._make()
        self._value, self._made_at = value, time.monotonic()
        self._took = self._made_at - began
        return value

    def _renew(self) -> None:
        if self._renewing:
            return
        self._renewing = True
        threading.Thread(target=self._renew_now, name="live-renewal", daemon=True).start()

    def _renew_now(self) -> None:
        try:
            with self._lock:
                self._remake()
        except DatabaseError as error:  # whoever asks after STALE is told
            logger.warning("the fleet could not be read anew: %s", error)
        finally:
            self._renewing = False
            connection.close()


@dataclass(frozen=True, slots=True)
class SliceRow:
    """An open slice and its present sample, measured against its own grant."""

    id: UUID
    series: int
    uuid: str
    profile: str
    memory_total: int | None
    sample: CurrentSample | None


@dataclass(frozen=True, slots=True)
class CardRow:
    """An installed card as the inventory counts it (`base`), with what lists and pages show of it besides."""

    base: cards.CardRow
    uuid: str
    serial: str
    pci_address: str
    slot: str
    state_since: datetime
    conflict: str
    memory_total: int | None
    tdp: int | None
    slices: tuple[SliceRow, ...]

    @property
    def id(self) -> UUID:
        return self.base.id

    @property
    def series(self) -> int:
        return self.base.series

    @property
    def label(self) -> str:
        """A short name inside its node."""
        return self.base.label

    @property
    def state(self) -> str:
        return self.base.facts.state

    @property
    def node_state(self) -> str:
        return self.base.facts.node_state

    @property
    def threshold(self) -> float:
        """Percent of activity from which it is busy."""
        return self.base.facts.threshold

    @property
    def sample(self) -> CurrentSample | None:
        return self.base.sample

    @property
    def fresh(self) -> bool:
        return self.base.fresh

    @property
    def node_id(self) -> UUID | None:
        return self.base.node

    @property
    def rack_id(self) -> UUID | None:
        return self.base.rack

    @property
    def cluster_id(self) -> UUID | None:
        return self.base.cluster

    @property
    def site_id(self) -> UUID | None:
        return self.base.site

    @property
    def model_id(self) -> UUID | None:
        return self.base.model

    @property
    def node(self) -> str:
        return self.base.names["node"]

    @property
    def rack(self) -> str:
        return self.base.names["rack"]

    @property
    def cluster(self) -> str:
        return self.base.names["cluster"]

    @property
    def site(self) -> str:
        return self.base.names["site"]

    @property
    def model(self) -> str:
        return self.base.names["model"] or "Unknown model"

    @property
    def available(self) -> bool:
        return self.base.facts.available

    @property
    def activity(self) -> float | None:
        """Percent, from a fresh sample; of a divided card the busiest slice; None when unknown."""
        return self.base.facts.activity

    @property
    def kind(self) -> str:
        """One of inventory.rules.counts.KINDS."""
        return self.base.facts.kind


@dataclass(frozen=True, slots=True)
class Fleet:
    """All cards at one moment, in the order of the tree."""

    at: datetime
    cards: tuple[CardRow, ...]
    by_id: Mapping[UUID, CardRow]

    def where(self, *, node: UUID | None = None) -> list[CardRow]:
        """The cards of one node."""
        return [card for card in self.cards if card.node_id == node]


_COLUMNS = (
    "id", "uuid", "serial", "pci_address", "slot", "state_since", "conflict", "memory_total", "model__memory",
    "model__tdp",
)  # fmt: skip


@lru_cache(maxsize=65_536)
def _natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key in which gpu10 follows gpu9."""
    parts: list[tuple[int, int, str]] = []
    digits, word = "", ""
    for sign in text:
        if sign.isdigit() and sign.isascii():
            if word:
                parts.append((1, 0, word))
                word = ""
            digits += sign
        else:
            if digits:
                parts.append((0, int(digits), ""))
                digits = ""
            word += sign
    if digits:
        parts.append((0, int(digits), ""))
    if word:
        parts.append((1, 0, word))
    return tuple(parts)


def _slices(samples: Mapping[int, CurrentSample]) -> dict[UUID, list[SliceRow]]:
    found: dict[UUID, list[SliceRow]] = {}
    rows = Slice.objects.filter(closed_at=None).values_list(
        "card_id", "id", "series", "uuid", "profile", "memory_total"
    )
    for card_id, key, series, uuid, profile, memory in rows.order_by("instance_id", "id"):
        found.setdefault(card_id, []).append(SliceRow(key, series, uuid, profile, memory, samples.get(series)))
    return found


def _make() -> Fleet:
    now = timezone.now()
    samples = current_samples()
    rows = cards.card_rows(now=now, samples=samples)
    slices = _slices(samples)
    more = {row[0]: row[1:] for row in Card.objects.exclude(state="retired").order_by().values_list(*_COLUMNS)}
    found = []
    for row in rows:
        if row.id not in more:  # retired between the two queries
            continue
        uuid, serial, pci_address, slot, since, conflict, memory, model_memory, tdp = more[row.id]
        own = tuple(slices.get(row.id, ()))
        memory = memory or model_memory
        found.append(CardRow(row, uuid, serial, pci_address, slot, since, conflict, memory, tdp, own))
    found.sort(
        key=lambda card: (card.site, _natural(card.rack), _natural(card.node), _natural(card.label), str(card.id))
    )
    return Fleet(now, tuple(found), {card.id: card for card in found})


_shared: Shared[Fleet] = Shared(_make)


def fleet() -> Fleet:
    """All cards, not older than KEEP or than it takes to read them (plus a second for the samples)."""
    return _shared.get()


def forget() -> None:
    """Read anew at the next call: after an act of a person, whose page must show it."""
    _shared.forget()
