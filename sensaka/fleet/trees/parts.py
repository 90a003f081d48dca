"""Resources of one card that several vendor styles share."""

from typing import Any

from inventory.observations import CardValues
from sensaka.fleet.hardware import MEBIBYTE
from sensaka.fleet.physics import REASON_POWER_CAP, REASON_THERMAL
from sensaka.fleet.plan import CardPlan
from sensaka.fleet.trees.base import NodeTree, Resource, resource

_JOULES_PER_KWH = 3.6e6


def identity(tree: NodeTree, card: CardPlan, slot: int) -> Resource:
    """What every style says of a card: maker, serial, part, place."""
    return {
        "ProcessorType": "GPU",
        "Manufacturer": "NVIDIA" if card.kind.vendor == "nvidia" else "AMD",
        "SerialNumber": card.serial,
        "PartNumber": card.part_number,
        "Location": {
            "PartLocation": {"LocationType": "Slot", "ServiceLabel": card.kind.module.format(n=slot + 1)},
        },
        "SystemInterface": {
            "InterfaceType": "PCIe",
            "PCIe": {
                "PCIeType": f"Gen{card.kind.pcie_generation}",
                "MaxPCIeType": f"Gen{card.kind.pcie_generation}",
                "LanesInUse": 16,
                "MaxLanes": 16,
            },
        },
        "Status": tree.status_of(card),
    }


def bare_uuid(card: CardPlan) -> str:
    """The UUID as BMCs give it: without the driver's prefix."""
    return card.uuid.removeprefix("GPU-")


def power_limit(card: CardPlan) -> Resource:
    """The power limit of a card; its Reading repeats the present power on real boards, so it is left out."""
    return {
        "SetPoint": card.kind.limit,
        "AllowableMin": 200,
        "AllowableMax": card.kind.limit,
        "ControlMode": "Automatic",
    }


def environment(path: str, card: CardPlan, values: CardValues | None, temperature: object) -> Resource:
    """`EnvironmentMetrics` of a card; `temperature` is the excerpt that the style gives."""
    power = None if values is None else values.power
    energy = None if values is None else values.energy
    return resource(
        path,
        "EnvironmentMetrics.v1_3_0",
        "Environment Metrics",
        TemperatureCelsius=temperature,
        PowerWatts={"Reading": power},
        EnergyJoules={"Reading": energy},
        EnergykWh={"Reading": None if energy is None else round(energy / _JOULES_PER_KWH, 6)},
        PowerLimitWatts=power_limit(card),
    )


def throttle_reasons(reasons: int | None) -> list[str]:
    """The throttle mask in the words of NVIDIA's BMC; `NA` when there is nothing."""
    names = [
        name for bit, name in ((REASON_POWER_CAP, "SWPowerCap"), (REASON_THERMAL, "SWThermalSlowdown"))
        if (reasons or 0) & bit
    ]  # fmt: skip
    return names or ["NA"]


def processor_metrics(path: str, values: CardValues | None, *, nvidia: bool) -> Resource:
    """`ProcessorMetrics` of a card: utilization, clock, errors, and NVIDIA's own activity figures."""
    v = values or CardValues()
    oem: dict[str, Any] = {
        "Nvidia": {
            "@odata.type": "#NvidiaProcessorMetrics.v1_2_0.NvidiaGPUProcessorMetrics",
            "SMUtilizationPercent": v.sm_activity,
            "SMActivityPercent": v.sm_activity,
            "TensorCoreActivityPercent": v.tensor_activity,
            "ThrottleReasons": throttle_reasons(v.throttle_reasons),
            "NVLinkDataTxBandwidthGbps": None if v.nvlink_tx is None else round(v.nvlink_tx * 8e-9, 3),
            "NVLinkDataRxBandwidthGbps": None if v.nvlink_rx is None else round(v.nvlink_rx * 8e-9, 3),
            "PCIeRawTxBandwidthGbps": None if v.pcie_tx is None else round(v.pcie_tx * 8e-9, 3),
            "PCIeRawRxBandwidthGbps": None if v.pcie_rx is None else round(v.pcie_rx * 8e-9, 3),
        }
    }
    return resource(
        path,
        "ProcessorMetrics.v1_6_0",
        "Processor Metrics",
        BandwidthPercent=v.utilization if v.utilization is not None else v.sm_activity,
        OperatingSpeedMHz=v.sm_clock,
        CacheMetricsTotal={
            "LifeTime": {"CorrectableECCErrorCount": 0, "UncorrectableECCErrorCount": v.ecc_uncorrected or 0}
        },
        PCIeErrors={
            "CorrectableErrorCount": 0,
            "NonFatalErrorCount": 0,
            "FatalErrorCount": 0,
            "ReplayCount": v.pcie_replays,
        },
        **({"Oem": oem} if nvidia else {}),
    )


def memory_module(path: str, card: CardPlan, metrics: str) -> Resource:
    """The card's HBM as a Memory resource."""
    return resource(
        path,
        "Memory.v1_17_0",
        "GPU memory",
        CapacityMiB=card.kind.memory // MEBIBYTE,
        MemoryDeviceType="HBM3" if card.kind.key != "a100" else "HBM2E",
        MemoryType="DRAM",
        ErrorCorrection="SingleBitECC",
        OperatingSpeedMhz=card.kind.memory_clock,
        Metrics={"@odata.id": metrics},
        Oem={"Nvidia": {"RowRemappingFailed": False, "RowRemappingPending": False}},
        Status={"Health": "OK", "State": "Enabled"},
    )


def memory_metrics(path: str, card: CardPlan, values: CardValues | None) -> Resource:
    """`MemoryMetrics` of the card's HBM; capacity and bandwidth in percent, lifetime error counts."""
    v = values or CardValues()
    used = None if v.memory_used is None else round(100 * v.memory_used / card.kind.memory)
    return resource(
        path,
        "MemoryMetrics.v1_7_0",
        "Memory Metrics",
        BandwidthPercent=v.memory_activity,
        CapacityUtilizationPercent=used,
        OperatingSpeedMHz=v.memory_clock,
        LifeTime={
            "CorrectableECCErrorCount": v.ecc_corrected,
            "UncorrectableECCErrorCount": v.ecc_uncorrected,
        },
        Oem={
            "Nvidia": {
                "RowRemapping": {"CorrectableRowRemappingCount": v.remapped_rows, "UncorrectableRowRemappingCount": 0}
            }
        },
    )
