"""One logical GPU as the package `amdsmi` answers for it, in the shape of `amd-smi`'s documents."""

from typing import Any

from inventory.drivers.cards.amd.devices import Device, read_metric, read_processes, read_static
from inventory.drivers.cards.values import pci_address, short
from inventory.observations import FailureKind, ReadFailure

# amdsmi_status_t of the package's 7.0 release; earlier ones agree.
_KINDS = {
    2: FailureKind.NOT_SUPPORTED,
    3: FailureKind.NOT_SUPPORTED,
    8: FailureKind.TIMEOUT,
    10: FailureKind.PERMISSION,
    30: FailureKind.BUSY,
    34: FailureKind.UNREACHABLE,
}


class Handle:
    """One logical GPU: its handle, what it does not support, and its identity."""

    def __init__(self, smi: Any, handle: Any, index: int) -> None:
        self._smi, self._handle, self._index = smi, handle, index
        self._absent: set[str] = set()
        self._failures: list[ReadFailure] = []
        self._static: dict[str, Any] = {}

    def ask(self, name: str, *arguments: Any) -> Any:
        """The answer of `amdsmi_<name>`, or "N/A", which is what the tool prints for a missing value."""
        key = f"{name} {arguments}"
        function = getattr(self._smi, f"amdsmi_{name}", None)
        if function is None or key in self._absent:
            return "N/A"
        try:
            return function(self._handle, *arguments)
        except self._smi.AmdSmiException as error:
            kind = _KINDS.get(getattr(error, "err_code", None) or 0, FailureKind.UNKNOWN)
            if kind is FailureKind.NOT_SUPPORTED:
                self._absent.add(key)
            detail = " ".join(str(error).split())[:2000]
            self._failures.append(ReadFailure(what=short(f"GPU {self._index}: {name}"), kind=kind, detail=detail))
        except (KeyError, ValueError, UnicodeDecodeError) as error:  # the package trips over what firmware says
            failure = ReadFailure(
                what=short(f"GPU {self._index}: {name}"), kind=FailureKind.PROTOCOL, detail=repr(error)
            )
            self._failures.append(failure)
        return "N/A"

    def _identity(self) -> dict[str, Any]:
        if not self._static:
            pcie = self.ask("get_pcie_info")
            self._static = {
                "asic": self.ask("get_gpu_asic_info"),
                "board": self.ask("get_gpu_board_info"),
                "bus": pcie.get("pcie_static", "N/A") if isinstance(pcie, dict) else "N/A",
                "vbios": self.ask("get_gpu_vbios_info"),
                "driver": self.ask("get_gpu_driver_info"),
                "uuid": self.ask("get_gpu_device_uuid"),
                "bdf": self.ask("get_gpu_device_bdf"),
            }
        return self._static

    def _partition(self) -> dict[str, Any]:
        kfd = self.ask("get_gpu_kfd_info")
        return {
            "compute_partition": self.ask("get_gpu_compute_partition"),
            "memory_partition": self.ask("get_gpu_memory_partition"),
            "partition_id": kfd.get("current_partition_id") if isinstance(kfd, dict) else "N/A",
        }

    def _metric(self) -> dict[str, Any]:
        smi = self._smi
        heat, now = smi.AmdSmiTemperatureType, smi.AmdSmiTemperatureMetric.CURRENT
        pcie, energy, cap = self.ask("get_pcie_info"), self.ask("get_energy_count"), self.ask("get_power_cap_info")
        power = self.ask("get_power_info")
        if isinstance(power, dict):
            # The cap is in microwatts; `power_limit` beside it has had several units.
            micro = cap.get("power_cap") if isinstance(cap, dict) else "N/A"
            power = {**power, "power_limit": {"value": micro, "unit": "uW"}}
        return {
            "usage": self.ask("get_gpu_activity"),
            "power": power,
            "temperature": {
                "hotspot": self.ask("get_temp_metric", heat.HOTSPOT, now),
                "edge": self.ask("get_temp_metric", heat.EDGE, now),
                "mem": self.ask("get_temp_metric", heat.VRAM, now),
            },
            "clock": {
                "gfx": self.ask("get_clock_info", smi.AmdSmiClkType.GFX),
                "mem": self.ask("get_clock_info", smi.AmdSmiClkType.MEM),
            },
            "energy": _joules(energy),
            "ecc": self.ask("get_gpu_total_ecc_count"),
            "pcie": pcie.get("pcie_metric", "N/A") if isinstance(pcie, dict) else "N/A",
            "mem_usage": self.ask("get_gpu_vram_usage"),
        }

    def read(self) -> tuple[Device, tuple[ReadFailure, ...]]:
        """One round of this logical GPU."""
        identity = self._identity()
        device = Device(self._index, uuid=_known(identity["uuid"]), address=pci_address(_known(identity["bdf"])))
        read_static(device, {**identity, "partition": self._partition()})
        read_metric(device, self._metric())
        read_processes(device, {"process_list": self.ask("get_gpu_process_list")})
        failures, self._failures = tuple(self._failures), []
        return device, failures


def _known(text: Any) -> str:
    return short(text) if isinstance(text, str) and text != "N/A" else ""


def _joules(answer: Any) -> float | str:
    """Energy in J: an accumulator (called `power` before ROCm 6.4) times its resolution in microjoules."""
    if not isinstance(answer, dict):
        return "N/A"
    counted, resolution = answer.get("energy_accumulator", answer.get("power")), answer.get("counter_resolution")
    if isinstance(counted, (int, float)) and isinstance(resolution, (int, float)):
        return counted * resolution * 1e-6
    return "N/A"
