"""Card values out of EnvironmentMetrics, ProcessorMetrics, MemoryMetrics, sensors and metric reports. Pure.

Property names and traps: DSP0268 (schema guide) and TELEMETRY 6.2. A temperature margin (ReadingBasis
Headroom, NVIDIA's T.Limit) is never taken for a temperature.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from inventory.drivers.bmc.redfish.resources import (
    Resource,
    count,
    dig,
    entries_in,
    excerpt,
    moment,
    number,
    oem,
    path_of,
    pick,
    same,
    words,
)
from inventory.observations import CardValues
from sensaka.kernel.units import plausible

_JOULES_PER_KWH = 3.6e6
_BYTES_PER_GBIT = 1e9 / 8
_STALE_AFTER = timedelta(seconds=120)  # of the newest value of its report; the BMC's clock may be wrong
T = TypeVar("T")
_NO_CLOCK = 65535.0  # SpeedLimitMHz and friends on HGX where no limit is set


@dataclass(slots=True)
class CardParts:
    """The resources that say something about one card; {} where a part is not known.

    `sensors` are readings by what they are: temperature, memory_temperature, power, energy.
    """

    processor: Resource = field(default_factory=dict)
    environment: Resource = field(default_factory=dict)
    metrics: Resource = field(default_factory=dict)
    memory_metrics: list[Resource] = field(default_factory=list)
    sensors: Mapping[str, float | None] = field(default_factory=dict)
    temperature_is_margin: bool = False


def card_values(parts: CardParts, *, memory_total: int | None) -> CardValues:
    """One sample; the sensor of a quantity goes before its copy in EnvironmentMetrics."""
    environment, metrics, sensors = parts.environment, parts.metrics, parts.sensors
    temperature = sensors.get("temperature")
    if temperature is None and not parts.temperature_is_margin:
        # Early versions of ProcessorMetrics have temperature and power themselves (DSP0268, deprecated there).
        temperature = _first(
            excerpt(pick(environment, "TemperatureCelsius")), number(pick(metrics, "TemperatureCelsius"))
        )
    energy = _first(sensors.get("energy"), excerpt(pick(environment, "EnergyJoules")), _from_kwh(environment))
    told = excerpt(pick(environment, "PowerWatts")), number(pick(metrics, "ConsumedPowerWatt"))
    power = _first(sensors.get("power"), *told)
    sm_utilization = number(oem(metrics, "SMUtilizationPercent"))
    memory = [_memory_values(entry) for entry in parts.memory_metrics]
    used = _memory_used(parts.memory_metrics, memory_total)
    return CardValues(
        utilization=_percent(_first(number(pick(metrics, "BandwidthPercent")), sm_utilization)),
        sm_activity=_percent(number(oem(metrics, "SMActivityPercent"))),
        tensor_activity=_percent(number(oem(metrics, "TensorCoreActivityPercent"))),
        memory_activity=_percent(_largest(values.get("activity") for values in memory)),
        memory_used=used,
        temperature=plausible(temperature, -60, 250),
        memory_temperature=plausible(sensors.get("memory_temperature"), -60, 250),
        power=plausible(power, 0, 100_000),
        power_limit=_power_limit(environment),
        sm_clock=_clock(_first(pick(metrics, "OperatingSpeedMHz"), pick(parts.processor, "OperatingSpeedMHz"))),
        memory_clock=_clock(_largest(values.get("clock") for values in memory)),
        pcie_tx=_rate(oem(metrics, "PCIeRawTxBandwidthGbps")),
        pcie_rx=_rate(oem(metrics, "PCIeRawRxBandwidthGbps")),
        nvlink_tx=_rate(oem(metrics, "NVLinkDataTxBandwidthGbps")),
        nvlink_rx=_rate(oem(metrics, "NVLinkDataRxBandwidthGbps")),
        energy=plausible(energy, 0, 1e15),
        ecc_corrected=_errors(parts, "Correctable"),
        ecc_uncorrected=_errors(parts, "Uncorrectable"),
        pcie_replays=count(dig(metrics, "PCIeErrors", "ReplayCount")),
        remapped_rows=_remapped(parts.memory_metrics),
    )


def _first(*values: T | None) -> T | None:
    return next((value for value in values if value is not None), None)


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _percent(value: float | None) -> float | None:
    return plausible(value, 0, 100)


def _clock(value: object) -> float | None:
    found = plausible(number(value), 0, 100_000)
    return None if found == _NO_CLOCK else found


def _rate(gbit: object) -> float | None:
    found = number(gbit)
    return None if found is None else plausible(found * _BYTES_PER_GBIT, 0, 1e15)


def _from_kwh(environment: Resource) -> float | None:
    hours = excerpt(pick(environment, "EnergykWh"))
    return None if hours is None else hours * _JOULES_PER_KWH


def _power_limit(environment: Resource) -> float | None:
    """The limit that is set; `Reading` of PowerLimitWatts repeats the present power and is no limit."""
    limit = pick(environment, "PowerLimitWatts")
    mode = words(pick(limit, "ControlMode")).lower()
    found = plausible(number(pick(limit, "SetPoint")), 0, 100_000)
    return None if mode == "disabled" or found == 0 else found


def _memory_values(metrics: Resource) -> dict[str, float | None]:
    return {
        "activity": number(pick(metrics, "BandwidthPercent")),
        "clock": number(pick(metrics, "OperatingSpeedMHz")),
    }


def _memory_used(memory_metrics: list[Resource], total: int | None) -> int | None:
    shares = [plausible(number(pick(entry, "CapacityUtilizationPercent")), 0, 100) for entry in memory_metrics]
    known = [share for share in shares if share is not None]
    if not total or not known or len(known) != len(shares):
        return None
    return round(total * sum(known) / len(known) / 100)


def _errors(parts: CardParts, kind: str) -> int | None:
    name = f"{kind}ECCErrorCount"
    found = [count(dig(parts.metrics, "CacheMetricsTotal", "LifeTime", name))]
    found += [count(dig(entry, "LifeTime", name)) for entry in parts.memory_metrics]
    known = [value for value in found if value is not None]
    return sum(known) if known else None


def _remapped(memory_metrics: list[Resource]) -> int | None:
    names = ("CorrectableRowRemappingCount", "UncorrectableRowRemappingCount")
    found = [count(oem(entry, "RowRemapping", name)) for entry in memory_metrics for name in names]
    known = [value for value in found if value is not None]
    return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class ReportValue:
    """One value of a metric report: which resource, which property in it, and its text."""

    path: str
    pointer: tuple[str, ...]
    value: object


def report_values(report: Resource) -> list[ReportValue]:
    """The values of a report that are not stale, by the BMC's flag or by their age within the report."""
    rows: list[tuple[ReportValue, datetime | None]] = []
    for row in entries_in(pick(report, "MetricValues")):
        where, _, pointer = words(pick(row, "MetricProperty")).partition("#")
        if not where or oem(row, "MetricValueStale") is True:
            continue
        names = tuple(name for name in pointer.split("/") if name)
        # Older reports name the sensor alone; then its reading is meant.
        rows.append((ReportValue(path_of(where), names or ("Reading",), pick(row, "MetricValue")), _time(row)))
    newest = max((time for _, time in rows if time is not None), default=None)
    return [
        value
        for value, time in rows
        if value.pointer != ("Reading",) or time is None or newest is None or newest - time <= _STALE_AFTER
    ]


def _time(row: Resource) -> datetime | None:
    return moment(pick(row, "Timestamp"))


def overlay(reports: Iterable[Resource]) -> dict[str, Resource]:
    """The resources that reports speak of, as far as they do, by comparable path."""
    found: dict[str, Resource] = {}
    for report in reports:
        for value in report_values(report):
            target = found.setdefault(same(value.path), {})
            for name in value.pointer[:-1]:
                inner = target.setdefault(name, {})
                target = inner if isinstance(inner, dict) else {}
            target[value.pointer[-1]] = value.value
    return found
