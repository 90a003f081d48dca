"""dcgm-exporter pages of any age to one node's cards.

MIG: `UUID` stays the parent's on instance rows, and figures of the whole card (power, temperature)
are repeated on each of them; they are taken once. A page gives no UUID of an instance, so its uuid
is made of its parent's and the GPU instance id, stable while the instance lives.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from inventory.drivers.cards.exporters.assembly import (
    Numbers,
    binding,
    distinct_labels,
    label,
    most_common,
    several_hosts,
    through_prometheus,
)
from inventory.drivers.cards.exporters.dcgm_names import (
    FP64_BLANK,
    INT32_BLANKS,
    INT64_BLANK,
    METRICS,
    PERCENT_OR_RATIO,
    ZERO_MEANS_NONE,
)
from inventory.drivers.cards.exporters.exposition import Row
from inventory.drivers.cards.values import card_values, pci_address, short
from inventory.observations import (
    CardReading,
    CardValues,
    FailureKind,
    NodeReading,
    ProcessReading,
    ReadFailure,
    SliceReading,
)

_PREFIXES = ("DCGM_FI_", "DCGM_EXP_", "dcgm_")


@dataclass(slots=True)
class _Card:
    """What the rows of one UUID add up to."""

    numbers: Numbers = field(default_factory=Numbers)
    labels: dict[str, str] = field(default_factory=dict)
    slices: dict[str, tuple[str, Numbers]] = field(default_factory=dict)


def is_dcgm(rows: Iterable[Row]) -> bool:
    """Whether a page comes from dcgm-exporter."""
    return any(row.name.startswith(_PREFIXES) for row in rows)


def slice_uuid(card_uuid: str, instance: str) -> str:
    """The name of a MIG instance that only its parent and GPU instance id identify."""
    return short(f"MIG-{card_uuid}/{instance}")


def blank(value: float, *, counter: bool) -> bool:
    """Whether DCGM means "no value" by this number.

    The int32 sentinels are ordinary numbers for a counter (mJ pass 2147483632 within the hour).
    """
    return value >= INT64_BLANK or value == FP64_BLANK or (not counter and value in INT32_BLANKS)


# "Fallen off the bus": from then on the driver answers GPU_IS_LOST to everything. The number itself is
# sticky, so it means that only while nothing else is read of the card.
_OFF_THE_BUS = 79
_COUNTERS = ("energy", "pcie_replays", "ecc_corrected", "ecc_uncorrected", "nvlink_errors", "remapped_rows")


def _number(row: Row) -> float | None:
    metric = METRICS[row.name]
    value = row.value
    if value != value or blank(value, counter=metric.field in _COUNTERS):
        return None
    if value == 0 and metric.field in ZERO_MEANS_NONE:
        return None
    if row.name in PERCENT_OR_RATIO and "." in row.spelled:
        value *= 100
    # SM activity above 1 is reported on MIG instances; the instance was busy all the time.
    if metric.field == "sm_activity" and value > 1:
        value = 1.0
    return value


@dataclass(frozen=True, slots=True)
class _Place:
    """What a set of labels says: the card, its GPU instance, and to whom it is bound."""

    card: _Card | None
    instance: str
    bound: ProcessReading | None


def _place(labels: dict[str, str], cards: dict[str, _Card], *, renamed: bool) -> _Place:
    uuid = label(labels, "UUID", "uuid")
    if not uuid.startswith("GPU-"):
        return _Place(None, "", None)  # NVSwitch, CPU and link series carry no card
    card = cards.setdefault(uuid, _Card())
    card.labels.update((name, text) for name, text in labels.items() if text)
    instance = label(labels, "GPU_I_ID")
    if instance and instance not in card.slices:
        card.slices[instance] = (label(labels, "GPU_I_PROFILE"), Numbers())
    bound = binding(labels, renamed=renamed)
    if bound is not None:
        of_slice = slice_uuid(uuid, instance) if instance else ""
        bound = replace(bound, card_uuid=uuid, slice_uuid=of_slice)
    return _Place(card, instance, bound)


def _collect(rows: list[Row]) -> tuple[dict[str, _Card], dict[ProcessReading, None]]:
    cards: dict[str, _Card] = {}
    bindings: dict[ProcessReading, None] = {}
    places: dict[int, _Place] = {}
    renamed = through_prometheus(rows)
    for row in rows:
        if not row.name.startswith(_PREFIXES):
            continue
        place = places.get(id(row.labels))
        if place is None:
            place = places[id(row.labels)] = _place(row.labels, cards, renamed=renamed)
        if place.card is None:
            continue
        if place.bound is not None:
            bindings[place.bound] = None
        metric = METRICS.get(row.name)
        value = _number(row) if metric is not None else None
        if metric is not None and value is not None:
            of_card = metric.whole_card or not place.instance
            (place.card.numbers if of_card else place.card.slices[place.instance][1]).put(metric, row.name, value)
    return cards, bindings


def _memory_total(numbers: dict[str, float]) -> int | None:
    """Total as printed, else the sum of its parts (bytes); None while a part is missing or absurd."""
    total = numbers.get("_memory_total")
    if total is None and "memory_used" in numbers and "_memory_free" in numbers:
        total = numbers["memory_used"] + numbers["_memory_free"] + numbers.get("_memory_reserved", 0)
    return round(total) if total is not None and 0 <= total < 2**62 else None


def _values_only(numbers: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in numbers.items() if not name.startswith("_")}


def _slices(uuid: str, card: _Card) -> tuple[tuple[SliceReading, ...], tuple[ReadFailure, ...]]:
    slices: list[SliceReading] = []
    failures: list[ReadFailure] = []
    for instance, (profile, numbers) in sorted(card.slices.items()):
        taken = numbers.take(METRICS.values())
        name = slice_uuid(uuid, instance)
        values, refused = card_values(_values_only(taken), what=name)
        failures += refused
        slices.append(
            SliceReading(
                uuid=name,
                profile=profile or "unknown",
                instance_id=instance,
                memory_total=_memory_total(taken),
                values=values,
            )
        )
    return tuple(slices), tuple(failures)


def _small(value: float | None) -> int | None:
    """A PCIe generation or width: whole and small, or nothing."""
    return int(value) if value is not None and 0 < value < 256 else None


def _card(uuid: str, card: _Card) -> CardReading:
    taken = card.numbers.take(METRICS.values())
    values, refused = card_values(_values_only(taken), what=uuid)
    slices, slices_refused = _slices(uuid, card)
    lost: tuple[ReadFailure, ...] = ()
    if values == CardValues(xid=_OFF_THE_BUS):
        lost = (ReadFailure(what=uuid, kind=FailureKind.LOST, detail="XID 79, and nothing else is read of it"),)
    index = label(card.labels, "gpu")
    mig_mode = taken.get("_mig_mode")
    return CardReading(
        uuid=uuid,
        pci_address=pci_address(label(card.labels, "pci_bus_id")),
        vendor="NVIDIA",
        model_name=label(card.labels, "modelName", "model_name"),
        # `device="nvidiaN"` repeats the exporter's own number and is not the device file's minor.
        index=int(index) if index.isascii() and index.isdigit() and len(index) < 5 else None,
        memory_total=_memory_total(taken),
        mig_enabled=bool(mig_mode) if mig_mode is not None else (True if slices else None),
        pcie_generation=_small(taken.get("_pcie_generation")),
        pcie_width=_small(taken.get("_pcie_width")),
        values=values,
        slices=slices,
        failures=lost + refused + slices_refused,
    )


def read_dcgm(rows: list[Row], *, observed_at: datetime) -> NodeReading:
    """One node's cards, slices and the pods or jobs that the page ties to them (with pid 0)."""
    cards, bindings = _collect(rows)
    hosts = (label(card.labels, "Hostname", "hostname") for card in cards.values())
    refusal = several_hosts(hosts, observed_at=observed_at)
    if refusal is not None:
        return refusal
    labels = distinct_labels(rows)
    return NodeReading(
        observed_at=observed_at,
        hostname=most_common(label(each, "Hostname", "hostname") for each in labels),
        driver_version=most_common(
            label(each, "DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION") for each in labels
        ),
        cards=tuple(_card(uuid, card) for uuid, card in cards.items()),
        processes=tuple(bindings),
    )
