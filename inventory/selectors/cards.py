"""Cards with their place and what they do: the rows that counts, the heat map and the tree start from."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django.db.models import Prefetch
from django.utils import timezone

from inventory.models import BusyThreshold, Card, JournalEntry, Placement, ProcessBinding, Sighting, Slice
from inventory.rules.activity import threshold_for
from inventory.rules.counts import CardFacts
from inventory.selectors.cordons import cordoned_nodes
from inventory.selectors.samples import CurrentSample, current_samples

_FIELDS = (
    "id", "series", "state", "conflict", "slot", "pci_address", "uuid", "model_id", "model__name", "model_name",
    "node_id", "node__name", "node__state", "node__rack_id", "node__rack__name", "node__cluster_id",
    "node__cluster__name", "node__site_id", "node__site__name",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CardRow:
    """An installed card, its place by id and name, and its facts for counting."""

    id: UUID
    series: int
    label: str
    node: UUID | None
    rack: UUID | None
    cluster: UUID | None
    site: UUID | None
    model: UUID | None
    names: dict[str, str]
    facts: CardFacts
    sample: CurrentSample | None
    fresh: bool


def card_rows(*, now: datetime | None = None, samples: Mapping[int, CurrentSample] | None = None) -> list[CardRow]:
    """Every installed card in the order of the tree. Five queries for any number of cards, one less with `samples`."""
    now = now or timezone.now()
    rows = list(
        Card.objects.exclude(state="retired")
        .exclude(node__state="retired")
        .order_by("node__site__name", "node__rack__name", "node__name", "slot", "pci_address", "id")
        .values(*_FIELDS)
    )
    samples = current_samples() if samples is None else samples
    parts = _slices_by_card(rows)
    cordoned = cordoned_nodes()
    thresholds = list(BusyThreshold.objects.values_list("model_id", "cluster_id", "activity"))
    return [_row(row, samples, parts, thresholds, now, row["node_id"] in cordoned) for row in rows]


def _slices_by_card(rows: Sequence[dict[str, Any]]) -> dict[UUID, list[int]]:
    found: dict[UUID, list[int]] = defaultdict(list)
    if rows:
        for card, series in Slice.objects.filter(closed_at=None).values_list("card", "series"):
            found[card].append(series)
    return found


def _row(
    row: dict[str, Any], samples: Mapping[int, CurrentSample], parts: dict[UUID, list[int]],
    thresholds: Sequence[tuple[Any, Any, float]], now: datetime, cordoned: bool,
) -> CardRow:  # fmt: skip
    sample = samples.get(row["series"])
    fresh = sample is not None and sample.fresh(now)
    own = [samples[series] for series in parts.get(row["id"], ()) if series in samples]
    facts = CardFacts(
        state=row["state"],
        node_state=row["node__state"] or "",
        conflict=bool(row["conflict"]),
        activity=_activity(sample, own, now),
        threshold=threshold_for(thresholds, model=row["model_id"], cluster=row["node__cluster_id"]),
        cordoned=cordoned,
    )
    names = {
        "node": row["node__name"],
        "rack": row["node__rack__name"],
        "cluster": row["node__cluster__name"],
        "site": row["node__site__name"],
        "model": row["model__name"] or row["model_name"],
    }
    return CardRow(
        id=row["id"],
        series=row["series"],
        label=row["slot"] or row["pci_address"] or row["uuid"][-12:],
        node=row["node_id"],
        rack=row["node__rack_id"],
        cluster=row["node__cluster_id"],
        site=row["node__site_id"],
        model=row["model_id"],
        names={key: value or "" for key, value in names.items()},
        facts=facts,
        sample=sample,
        fresh=fresh,
    )


def _activity(sample: CurrentSample | None, parts: Sequence[CurrentSample], now: datetime) -> float | None:
    """A card's own activity; of a divided card, which has none, that of its busiest slice."""
    if sample is not None and sample.fresh(now) and sample.activity is not None:
        return sample.activity
    known = [part.activity for part in parts if part.fresh(now) and part.activity is not None]
    return max(known) if known else None


@dataclass(frozen=True, slots=True)
class CardDetail:
    """One card with everything that its page shows."""

    card: Card
    slices: list[Slice]
    sightings: list[Sighting]
    processes: list[ProcessBinding]
    placements: list[Placement]
    journal: list[JournalEntry]
    samples: dict[int, CurrentSample]
    now: datetime

    @property
    def sample(self) -> CurrentSample | None:
        """The card's own current sample."""
        return self.samples.get(self.card.series)


def card_detail(card_id: UUID, *, journal: int = 50) -> CardDetail:
    """A card and what belongs to it, in a fixed number of queries. Raises Card.DoesNotExist."""
    card = (
        Card.objects.select_related("node__site", "node__cluster", "node__rack", "model")
        .prefetch_related(
            Prefetch("slices", queryset=Slice.objects.filter(closed_at=None), to_attr="open_slices"),
            Prefetch("sightings", queryset=Sighting.objects.select_related("node").order_by("-seen_at")),
            Prefetch("processes", queryset=ProcessBinding.objects.select_related("slice")),
            Prefetch("placements", queryset=Placement.objects.select_related("node").order_by("-span")),
        )
        .get(pk=card_id)
    )
    slices = cast(list[Slice], card.open_slices)
    entries = JournalEntry.objects.filter(card=card).select_related("node", "actor").order_by("-at", "-id")[:journal]
    return CardDetail(
        card=card,
        slices=slices,
        sightings=list(card.sightings.all()),
        processes=list(card.processes.all()),
        placements=list(card.placements.all()),
        journal=list(entries),
        samples=current_samples([card.series, *(one.series for one in slices)]),
        now=timezone.now(),
    )
