"""Pages of AMD's device-metrics-exporter to one node's cards.

The exporter turns "no value" (255, 65535, all ones) into 0, so a power or temperature of 0 is none.
A partitioned card (DPX, QPX, CPX) prints its partitions as GPUs that share the serial number of the
board; only partition 0 carries power and temperature. They come out as one card with slices.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from inventory.drivers.cards.exporters.assembly import (
    Metric,
    Numbers,
    binding,
    label,
    most_common,
    several_hosts,
    through_prometheus,
)
from inventory.drivers.cards.exporters.exposition import Row
from inventory.drivers.cards.values import card_values, short
from inventory.observations import (
    CardReading,
    FailureKind,
    NodeReading,
    ProcessReading,
    ReadFailure,
    SliceReading,
)
from sensaka.kernel.units import MIB

METRICS: dict[str, Metric] = {
    "gpu_gfx_activity": Metric("utilization", whole_card=False),
    "gpu_umc_activity": Metric("memory_activity", whole_card=False),
    "gpu_package_power": Metric("power"),
    "gpu_average_package_power": Metric("power", rank=1),
    "gpu_power_usage": Metric("power", rank=2),
    "gpu_junction_temperature": Metric("temperature"),
    "gpu_edge_temperature": Metric("temperature", rank=1),
    "gpu_memory_temperature": Metric("memory_temperature"),
    "gpu_hbm_temperature": Metric("memory_temperature", rank=1),
    "gpu_energy_consumed": Metric("energy", scale=1e-6),
    "gpu_used_vram": Metric("memory_used", scale=MIB, whole_card=False),
    "gpu_total_vram": Metric("_memory_total", scale=MIB, whole_card=False),
    "gpu_ecc_correct_total": Metric("ecc_corrected"),
    "gpu_ecc_uncorrect_total": Metric("ecc_uncorrected"),
    "pcie_replay_count": Metric("pcie_replays"),
}
_CLOCKS = {"system": Metric("sm_clock"), "memory": Metric("memory_clock")}
_ALL = (*METRICS.values(), *_CLOCKS.values())
_OF_CARD = frozenset(metric.field for metric in _ALL if metric.whole_card)
_ZERO_MEANS_NONE = frozenset({"power", "temperature", "memory_temperature", "energy"})
_UNNAMED = "the page labels it with neither gpu_uuid nor serial_number"
_WHOLE_MODES = frozenset({"", "spx", "na", "n/a", "none"})


@dataclass(slots=True)
class _Device:
    """One logical GPU of the page: a card, or a partition of one."""

    labels: dict[str, str] = field(default_factory=dict)
    numbers: Numbers = field(default_factory=Numbers)
    bindings: dict[ProcessReading, None] = field(default_factory=dict)

    @property
    def mode(self) -> str:
        return label(self.labels, "gpu_compute_partition_type").lower()

    @property
    def partition(self) -> str:
        return label(self.labels, "gpu_partition_id") or "0"


def plain_name(name: str) -> str:
    """A series' name without the prefix that sites add and in the spelling of current releases."""
    name = name.lower()
    return name.removeprefix("amd_")


def is_amd(rows: Iterable[Row]) -> bool:
    """Whether a page comes from AMD's exporter: it always labels its GPUs with `gpu_id`."""
    return any(plain_name(row.name).startswith("gpu_") and "gpu_id" in _lower(row.labels) for row in rows)


def _lower(labels: dict[str, str]) -> dict[str, str]:
    return {name.lower(): text for name, text in labels.items()}


def _metric(row: Row, labels: dict[str, str]) -> Metric | None:
    name = plain_name(row.name)
    if name == "gpu_clock":
        kind = label(labels, "clock_type").lower().removeprefix("gpu_clock_type_")
        return _CLOCKS.get(kind)
    return METRICS.get(name)


def _collect(rows: list[Row]) -> list[_Device]:
    devices: dict[tuple[str, str], _Device] = {}
    renamed = through_prometheus(rows)
    for row in rows:
        labels = _lower(row.labels)
        index = label(labels, "gpu_id")
        if not index or not plain_name(row.name).startswith(("gpu_", "pcie_")):
            continue
        device = devices.setdefault((index, label(labels, "gpu_partition_id") or "0"), _Device())
        device.labels.update((name, text) for name, text in labels.items() if text)
        bound = binding(labels, renamed=renamed)
        if bound is not None:
            device.bindings[bound] = None
        metric = _metric(row, labels)
        if metric is None or row.value != row.value:
            continue
        if row.value == 0 and metric.field in _ZERO_MEANS_NONE:
            continue
        device.numbers.put_max(metric, plain_name(row.name), row.value)
    return list(devices.values())


def _boards(devices: list[_Device]) -> list[list[_Device]]:
    """Partitions of one board together, lowest partition first; everything else alone.

    The serial number alone does not do: both halves of an MI250X share one and are two cards.
    """
    boards: dict[str, list[_Device]] = {}
    for number, device in enumerate(devices):
        serial = label(device.labels, "serial_number")
        together = serial and device.mode not in _WHOLE_MODES
        boards.setdefault(serial if together else f"#{number}", []).append(device)
    return [sorted(board, key=lambda device: device.partition.zfill(4)) for board in boards.values()]


def _numbers(device: _Device) -> tuple[dict[str, float], int | None]:
    taken = device.numbers.take(_ALL)
    total = taken.pop("_memory_total", None)
    return taken, round(total) if total and 0 < total < 2**62 else None


def _slice(device: _Device, card_uuid: str) -> tuple[SliceReading, tuple[ReadFailure, ...]]:
    """A partition. Its uuid is its own, except that partition 0 answers to the card's: that gets a suffix."""
    own = label(device.labels, "gpu_uuid")
    uuid = own if own and own != card_uuid else short(f"{card_uuid}/{device.partition}")
    taken, total = _numbers(device)
    values, refused = card_values({key: taken[key] for key in taken if key not in _OF_CARD}, what=uuid)
    memory_mode = label(device.labels, "gpu_memory_partition_type").lower()
    profile = "_".join(part for part in (device.mode, memory_mode) if part)
    reading = SliceReading(
        uuid=uuid,
        profile=profile,
        kind="partition",
        instance_id=device.partition,
        memory_total=total,
        values=values,
    )
    return reading, refused


def _card(board: list[_Device]) -> tuple[CardReading, list[ProcessReading]]:
    first, serial = board[0], label(board[0].labels, "serial_number")
    uuid = label(first.labels, "gpu_uuid")
    name = uuid or serial or f"gpu_id {label(first.labels, 'gpu_id')}"
    partitioned = first.mode not in _WHOLE_MODES
    taken, total = _numbers(first)
    if partitioned:
        taken, total = {key: taken[key] for key in taken if key in _OF_CARD}, None
    values, refused = card_values(taken, what=name)
    slices = [_slice(device, name) for device in board] if partitioned else []
    processes = []
    for position, device in enumerate(board):
        of_slice = slices[position][0].uuid if slices else ""
        processes += [replace(bound, card_uuid=name, slice_uuid=of_slice) for bound in device.bindings]
    index = label(first.labels, "gpu_id")
    card = CardReading(
        uuid=uuid,
        serial=serial,
        vendor="AMD",
        model_name=label(first.labels, "card_series") or label(first.labels, "card_model"),
        part_number=label(first.labels, "card_model"),
        vbios=label(first.labels, "vbios_version"),
        index=int(index) if index.isascii() and index.isdigit() and len(index) < 5 else None,
        partition_mode=first.mode,
        memory_total=total,
        values=values,
        slices=tuple(reading for reading, _ in slices),
        failures=refused + tuple(failure for _, found in slices for failure in found),
    )
    return card, processes


def read_amd(rows: list[Row], *, observed_at: datetime) -> NodeReading:
    """One node's cards, partitions and the pods or jobs that the page ties to them (with pid 0)."""
    devices = _collect(rows)
    refusal = several_hosts((label(device.labels, "hostname") for device in devices), observed_at=observed_at)
    if refusal is not None:
        return refusal
    found = [_card(board) for board in _boards(devices)]
    labels = [_lower(row.labels) for row in rows]
    identified = [(card, bound) for card, bound in found if card.uuid or card.serial]
    unnamed = [
        ReadFailure(what=f"gpu_id {card.index}", kind=FailureKind.PROTOCOL, detail=_UNNAMED)
        for card, _ in found
        if not (card.uuid or card.serial)
    ]
    return NodeReading(
        observed_at=observed_at,
        hostname=most_common(label(each, "hostname") for each in labels),
        driver_version=most_common(label(each, "driver_version") for each in labels),
        cards=tuple(card for card, _ in identified),
        processes=tuple(process for _, bound in identified for process in bound),
        failures=tuple(unnamed),
        complete=not unnamed,
    )
