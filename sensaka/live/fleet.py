"""The whole fleet as one list of cards with their present values: what every page starts from.

Three queries for any number of cards, kept for a second and shared by all readers of this process.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.utils import timezone

from inventory.models import BusyThreshold, Card, Slice
from inventory.rules.activity import threshold_for
from inventory.selectors.samples import CurrentSample, current_samples

T = TypeVar("T")
KEEP = 1.0  # seconds
KINDS = ("busy", "idle", "unknown", "out", "failed", "missing")
"""What a card is doing. `out`: its node is neither active nor asleep, so it is not available."""


class Shared(Generic[T]):
    """A value that is made at most once a `keep` seconds in this process, by whoever asks first."""

    def __init__(self, make: Callable[[], T], keep: float = KEEP) -> None:
        self._make, self._keep = make, keep
        self._lock = threading.Lock()
        self._value: T | None = None
        self._made_at = float("-inf")

    def get(self) -> T:
        """The value, not older than `keep`."""
        with self._lock:
            now = time.monotonic()
            if self._value is None or now - self._made_at > self._keep:
                self._value = self._make()
                self._made_at = time.monotonic()
            return self._value

    def forget(self) -> None:
        """The next `get` makes it anew."""
        with self._lock:
            self._value = None


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
    """A card that is not retired, where it stands, and its present sample."""

    id: UUID
    series: int
    uuid: str
    serial: str
    pci_address: str
    slot: str
    minor: int | None
    state: str
    state_since: datetime
    conflict: str
    model_id: UUID | None
    model: str
    memory_total: int | None
    tdp: int | None
    node_id: UUID | None
    node: str
    node_state: str
    rack_id: UUID | None
    rack: str
    cluster_id: UUID | None
    cluster: str
    site_id: UUID | None
    site: str
    threshold: float
    sample: CurrentSample | None
    fresh: bool
    slices: tuple[SliceRow, ...]

    @property
    def label(self) -> str:
        """A short name inside its node: the slot, else the PCI address, else the end of its identity."""
        return self.slot or self.pci_address or (self.uuid or self.serial or str(self.id))[-12:]

    @property
    def available(self) -> bool:
        """Installed, healthy, its node active or asleep."""
        return self.state == "present" and self.node_state in {"active", "asleep"}

    @property
    def activity(self) -> float | None:
        """Percent, from a fresh sample; of a divided card the busiest slice; None when unknown."""
        if self.fresh and self.sample is not None and self.sample.activity is not None:
            return self.sample.activity
        now = timezone.now()
        own = [
            piece.sample.activity
            for piece in self.slices
            if piece.sample is not None and piece.sample.fresh(now) and piece.sample.activity is not None
        ]
        return max(own) if own else None

    @property
    def kind(self) -> str:
        """One of KINDS."""
        if self.state in {"failed", "missing"}:
            return self.state
        if not self.available:
            return "out"
        activity = self.activity
        if activity is None:
            return "unknown"
        return "busy" if activity >= self.threshold else "idle"


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
    "id", "series", "uuid", "serial", "pci_address", "slot", "minor", "state", "state_since", "conflict", "model_id",
    "model__name", "model_name", "memory_total", "model__memory", "model__tdp", "node_id", "node__name", "node__state",
    "node__rack_id", "node__rack__name", "node__cluster_id", "node__cluster__name", "node__site_id",
    "node__site__name",
)  # fmt: skip


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
    for card_id, *rest in rows.order_by("instance_id", "id").iterator(chunk_size=5000):
        series = rest[1]
        found.setdefault(card_id, []).append(SliceRow(*rest, sample=samples.get(series)))
    return found


def _make() -> Fleet:
    now = timezone.now()
    samples = current_samples()
    slices = _slices(samples)
    thresholds = list(BusyThreshold.objects.values_list("model_id", "cluster_id", "activity"))
    known: dict[tuple[UUID | None, UUID | None], float] = {}
    cards = []
    rows: Iterable[dict[str, Any]] = Card.objects.exclude(state="retired").order_by().values(*_COLUMNS)
    for row in rows:
        cards.append(_card(row, samples, slices, thresholds, known, now))
    cards.sort(
        key=lambda card: (card.site, _natural(card.rack), _natural(card.node), _natural(card.label), str(card.id))
    )
    return Fleet(now, tuple(cards), {card.id: card for card in cards})


def _card(
    row: Mapping[str, Any],
    samples: Mapping[int, CurrentSample],
    slices: Mapping[UUID, list[SliceRow]],
    thresholds: list[tuple[UUID | None, UUID | None, float]],
    known: dict[tuple[UUID | None, UUID | None], float],
    now: datetime,
) -> CardRow:
    place = (row["model_id"], row["node__cluster_id"])
    if place not in known:
        known[place] = threshold_for(thresholds, model=place[0], cluster=place[1])
    sample = samples.get(row["series"])
    return CardRow(
        **{name: row[name] for name in _COLUMNS if "__" not in name and name not in {"model_name", "memory_total"}},
        model=row["model__name"] or row["model_name"] or "Unknown model",
        memory_total=row["memory_total"] or row["model__memory"],
        tdp=row["model__tdp"],
        node=row["node__name"] or "",
        node_state=row["node__state"] or "",
        rack_id=row["node__rack_id"],
        rack=row["node__rack__name"] or "",
        cluster_id=row["node__cluster_id"],
        cluster=row["node__cluster__name"] or "",
        site_id=row["node__site_id"],
        site=row["node__site__name"] or "",
        threshold=known[place],
        sample=sample,
        fresh=sample is not None and sample.fresh(now),
        slices=tuple(slices.get(row["id"], ())),
    )


_shared: Shared[Fleet] = Shared(_make)


def fleet() -> Fleet:
    """All cards, not older than a second."""
    return _shared.get()


def forget() -> None:
    """Read anew at the next call: after an act of a person, whose page must show it."""
    _shared.forget()
