"""What of a card's sample is shown, under which name, and how it is written.

One table for the card page, the lists and the heat map: a value looks the same wherever it stands.
"""

from collections.abc import Callable
from dataclasses import dataclass

from inventory.observations import CardValues
from inventory.rules import throttling
from sensaka.live import cells


def _reasons(value: float | None) -> str:
    return cells.UNKNOWN if value is None else throttling.words(int(value)).capitalize()


def _reasons_level(value: float) -> str:
    return throttling.level(int(value))


def _plain(value: float) -> str:
    return ""


def _whole(value: float | None) -> str:
    return cells.count(None if value is None else int(value))


def _temperature(value: float | None) -> str:
    return cells.UNKNOWN if value is None else cells.decimal(value, "°C")


def _clock(value: float | None) -> str:
    return cells.UNKNOWN if value is None else cells.decimal(value, "MHz")


@dataclass(frozen=True, slots=True)
class Measure:
    """One field of a sample: its title, how it is written, and the group on the card page."""

    field: str
    title: str
    write: Callable[[float | None], str]
    group: str
    judge: Callable[[float], str] = _plain
    """What a known value means by itself: "", "warn" or "bad"."""

    def of(self, values: CardValues | None) -> float | None:
        """The value in a sample, None when absent."""
        return None if values is None else getattr(values, self.field)


_ALL = (
    Measure("utilization", "GPU utilization", cells.percent, "Work"),
    Measure("sm_activity", "SM activity", cells.percent, "Work"),
    Measure("tensor_activity", "Tensor activity", cells.percent, "Work"),
    Measure("memory_activity", "Memory activity", cells.percent, "Work"),
    Measure("memory_used", "Memory used", cells.size, "Work"),
    Measure("power", "Power", cells.watts, "Power and heat"),
    Measure("power_limit", "Power limit", cells.watts, "Power and heat"),
    Measure("energy", "Energy counter", cells.energy, "Power and heat"),
    Measure("temperature", "Temperature", _temperature, "Power and heat"),
    Measure("memory_temperature", "Memory temperature", _temperature, "Power and heat"),
    Measure("sm_clock", "SM clock", _clock, "Clocks"),
    Measure("memory_clock", "Memory clock", _clock, "Clocks"),
    Measure("throttle_reasons", "Slowed by", _reasons, "Clocks", _reasons_level),
    Measure("pcie_tx", "PCIe sent", cells.rate, "Links"),
    Measure("pcie_rx", "PCIe received", cells.rate, "Links"),
    Measure("nvlink_tx", "NVLink sent", cells.rate, "Links"),
    Measure("nvlink_rx", "NVLink received", cells.rate, "Links"),
    Measure("pcie_replays", "PCIe replays", _whole, "Links"),
    Measure("nvlink_errors", "NVLink errors", _whole, "Links"),
    Measure("ecc_corrected", "ECC corrected", _whole, "Faults"),
    Measure("ecc_uncorrected", "ECC uncorrected", _whole, "Faults"),
    Measure("remapped_rows", "Remapped rows", _whole, "Faults"),
    Measure("xid", "Last XID", _whole, "Faults"),
)
MEASURES: dict[str, Measure] = {measure.field: measure for measure in _ALL}
GROUPS: tuple[str, ...] = tuple(dict.fromkeys(measure.group for measure in _ALL))
