"""Figures of a whole card that have a call of their own. NVML counts mW and mJ; we keep W and J."""

from typing import Any

import pynvml

from inventory.drivers.cards.nvml.calls import Calls
from inventory.drivers.cards.nvml.identity import read_memory
from sensaka.kernel.units import milli

_CORRECTED, _UNCORRECTED, _VOLATILE = 0, 1, 0


def _temperature(calls: Calls, handle: Any) -> float | None:
    """The versioned call where the driver has it; the old one is to vanish with CUDA 14."""
    value = calls.ask("temperature", pynvml.nvmlDeviceGetTemperatureV, handle, pynvml.NVML_TEMPERATURE_GPU)
    if value is None and "temperature" in calls.absent:
        name = "temperature (old call)"
        value = calls.ask(name, pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU)
    return value if value is None else float(value)


def _reasons(calls: Calls, handle: Any) -> int | None:
    """The mask of what holds the clocks down, under its new or its old name."""
    value = calls.whole("clock event reasons", pynvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
    if value is None and "clock event reasons" in calls.absent:
        name = "clock throttle reasons"
        value = calls.whole(name, pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    return value


def _remapped(calls: Calls, handle: Any) -> int | None:
    rows = calls.ask("remapped rows", pynvml.nvmlDeviceGetRemappedRows, handle)
    return rows[0] + rows[1] if rows is not None else None


def _ecc(calls: Calls, handle: Any, what: str, kind: int) -> int | None:
    return calls.whole(what, pynvml.nvmlDeviceGetTotalEccErrors, handle, kind, _VOLATILE)


def read_figures(calls: Calls, handle: Any, *, mig: bool) -> dict[str, float | None]:
    """Values by field name. Utilization does not exist while MIG is on and is not asked for."""
    rates = None if mig else calls.ask("utilization", pynvml.nvmlDeviceGetUtilizationRates, handle)
    memory = read_memory(calls, handle)
    clock = pynvml.nvmlDeviceGetClockInfo
    return {
        "utilization": rates.gpu if rates is not None else None,
        "memory_activity": rates.memory if rates is not None else None,
        "memory_used": memory[1] if memory else None,
        "temperature": _temperature(calls, handle),
        "power": milli(calls.whole("power", pynvml.nvmlDeviceGetPowerUsage, handle)),
        # The lowest of all limiters, also those that a BMC sets.
        "power_limit": milli(calls.whole("power limit", pynvml.nvmlDeviceGetEnforcedPowerLimit, handle)),
        "energy": milli(calls.whole("energy", pynvml.nvmlDeviceGetTotalEnergyConsumption, handle)),
        "sm_clock": calls.whole("SM clock", clock, handle, pynvml.NVML_CLOCK_SM),
        "memory_clock": calls.whole("memory clock", clock, handle, pynvml.NVML_CLOCK_MEM),
        "throttle_reasons": _reasons(calls, handle),
        "ecc_corrected": _ecc(calls, handle, "corrected ECC errors", _CORRECTED),
        "ecc_uncorrected": _ecc(calls, handle, "uncorrected ECC errors", _UNCORRECTED),
        "remapped_rows": _remapped(calls, handle),
        "pcie_replays": calls.whole("PCIe replays", pynvml.nvmlDeviceGetPcieReplayCounter, handle),
    }
