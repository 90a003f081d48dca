"""From amd-smi's documents, or the library's answers, to one record a logical GPU."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from inventory.drivers.cards.amd.documents import entries, first, group, highest, number, text
from inventory.drivers.cards.values import pci_address

# Figures that exist once a board: partitions other than the first have none of them.
BOARD = frozenset({"power", "power_limit", "temperature", "memory_temperature", "energy", "ecc_corrected",
                   "ecc_uncorrected", "pcie_replays", "sm_clock", "memory_clock"})  # fmt: skip


@dataclass(slots=True)
class Process:
    """A process on one logical GPU; memory in bytes."""

    pid: int
    name: str
    memory: int | None


@dataclass(slots=True)
class Device:
    """One logical GPU: a card, or a partition of one. `values` are by the names of `CardValues`."""

    index: int
    uuid: str = ""
    serial: str = ""
    address: str = ""
    name: str = ""
    pci_id: str = ""
    part_number: str = ""
    vbios: str = ""
    slot: str = ""
    driver_version: str = ""
    memory_total: int | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    partition: int = 0
    compute_mode: str = ""
    memory_mode: str = ""
    values: dict[str, float | None] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)


def device_id(vendor: str, device: str) -> str:
    """`1002:74a1` from whatever spelling of the two hexadecimal numbers; empty when there is none."""
    try:
        return f"{int(vendor or '0x1002', 16):04x}:{int(device, 16):04x}"
    except ValueError:
        return ""


def _whole(value: float | None) -> int | None:
    return round(value) if value is not None and 0 <= value < 2**62 else None


def _generation(bus: dict[str, Any]) -> int | None:
    """PCIe generation from `Gen 5`, a plain number, or the speed in GT/s."""
    named = text(bus, "pcie_interface_version").removeprefix("Gen").strip()
    if named.isascii() and named.isdigit() and len(named) == 1:
        return int(named)
    # Transfer rate of each generation, from the PCI Express specifications.
    speeds = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
    speed = number(bus.get("max_pcie_speed"))
    return speeds.get(speed / 1000 if speed and speed > 100 else speed) if speed is not None else None


def read_static(device: Device, entry: dict[str, Any]) -> None:
    """Identity, from `static`."""
    asic, board, bus = group(entry, "asic"), group(entry, "board"), group(entry, "bus")
    firmware = group(entry, "ifwi", "vbios")  # `vbios` became `ifwi` with ROCm 7.1
    partition = group(entry, "partition")
    device.name = text(asic, "market_name") or text(board, "product_name")
    device.pci_id = device_id(text(asic, "vendor_id"), text(asic, "device_id"))
    device.serial = text(board, "product_serial") or text(asic, "asic_serial")
    device.part_number = text(board, "model_number")
    device.slot = text(asic, "oam_id")
    device.vbios = text(firmware, "version", "name")
    device.driver_version = text(group(entry, "driver"), "version", "driver_version")
    device.address = device.address or pci_address(text(bus, "bdf"))
    device.pcie_generation = _generation(bus)
    device.pcie_width = _whole(number(bus.get("max_pcie_width")))
    device.memory_total = _whole(first(group(entry, "vram"), "size", "vram_size_mb", unit="MB"))
    device.values["power_limit"] = first(group(entry, "limit"), "socket_power", "current_power", "max_power")
    read_partition(device, partition)


def read_partition(device: Device, entry: dict[str, Any]) -> None:
    """Partition modes; `compute_partition` is called `accelerator_partition` from ROCm 7."""
    device.compute_mode = text(entry, "accelerator_partition", "compute_partition", "accelerator_type").lower()
    device.memory_mode = text(entry, "memory_partition", "memory").lower() or device.memory_mode
    device.partition = _whole(number(entry.get("partition_id"))) or device.partition


def read_metric(device: Device, entry: dict[str, Any]) -> None:
    """Values, from `metric`."""
    usage, power, clock = group(entry, "usage"), group(entry, "power"), group(entry, "clock")
    heat, ecc, pcie = group(entry, "temperature"), group(entry, "ecc"), group(entry, "pcie")
    memory = group(entry, "mem_usage", "vram", "fb_usage")
    energy = entry.get("energy")
    device.values |= {
        "utilization": first(usage, "gfx_activity", "gfx_usage"),
        "memory_activity": first(usage, "umc_activity", "mem_activity", "mem_usage"),
        "power": first(power, "socket_power", "current_socket_power", "average_socket_power", "current_power")
        or None,  # secondary partitions say 0
        "temperature": first(heat, "hotspot", "junction", "hotspot_temperature", "edge", "edge_temperature"),
        "memory_temperature": first(heat, "mem", "vram", "mem_temperature"),
        "sm_clock": highest(clock, "gfx", "clk") if clock else None,
        "memory_clock": highest(clock, "mem", "clk") if clock else None,
        "memory_used": _whole(first(memory, "used_vram", "vram_used", unit="MB")),
        "energy": first(energy, "total_energy_consumption", "energy") if isinstance(energy, dict) else number(energy),
        "ecc_corrected": _whole(first(ecc, "total_correctable_count", "total_correctable", "correctable_count")),
        "ecc_uncorrected": _whole(
            first(ecc, "total_uncorrectable_count", "total_uncorrectable", "uncorrectable_count")
        ),
        "pcie_replays": _whole(first(pcie, "replay_count", "pcie_replay_count", "replay_counter")),
    }
    limit = first(power, "power_limit", "power_cap")
    if limit is not None:
        device.values["power_limit"] = limit
    device.memory_total = _whole(first(memory, "total_vram", "vram_total", unit="MB")) or device.memory_total


def read_processes(device: Device, entry: dict[str, Any]) -> None:
    """Processes, from `process`; a text in place of the list says that there are none."""
    listed = entry.get("process_list")
    for one in listed if isinstance(listed, list) else ():
        info = one.get("process_info", one) if isinstance(one, dict) else None
        pid = number(info.get("pid")) if isinstance(info, dict) else None
        if pid is None or not 0 < pid < 2**31 or not isinstance(info, dict):
            continue
        memory = first(group(info, "memory_usage"), "vram_mem", unit="B")
        if memory is None:
            memory = first(info, "mem_usage", "mem", unit="B")
        device.processes.append(Process(int(pid), text(info, "name"), _whole(memory)))


def read_devices(documents: Mapping[str, Any]) -> list[Device]:
    """Records of all GPUs named by any of the documents `list`, `static`, `metric`, `partition`, `process`."""
    devices: dict[int, Device] = {}
    for name, read in (("list", _read_list), ("static", read_static), ("metric", read_metric),
                       ("process", read_processes)):  # fmt: skip
        for index, entry in entries(documents.get(name)).items():
            read(devices.setdefault(index, Device(index)), entry)
    partitions = documents.get("partition")
    current = partitions.get("current_partition") if isinstance(partitions, dict) else partitions
    for index, entry in entries(current).items():
        if index in devices:
            read_partition(devices[index], entry)
    return [devices[index] for index in sorted(devices)]


def _read_list(device: Device, entry: dict[str, Any]) -> None:
    device.uuid = text(entry, "uuid")
    device.address = pci_address(text(entry, "bdf"))
    device.partition = _whole(number(entry.get("partition_id"))) or 0
