"""MIG instances of a card. Only memory, activity and processes are measured for an instance; power,
temperature and clocks exist for the whole card alone."""

from dataclasses import dataclass
from typing import Any

import pynvml

from inventory.drivers.cards.nvml.calls import Calls
from inventory.drivers.cards.nvml.gpm import Gpm
from inventory.drivers.cards.nvml.identity import read_memory
from inventory.drivers.cards.values import card_values
from inventory.observations import SliceReading
from sensaka.kernel.units import mib_to_bytes

NO_INSTANCE = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Instance:
    """One MIG device: a compute instance inside a GPU instance."""

    handle: Any
    uuid: str
    gpu_instance: int
    compute_instance: int


def mig_enabled(calls: Calls, handle: Any) -> bool | None:
    """Whether MIG is on now (not whether it will be after a reset); None on boards without it."""
    modes = calls.ask("MIG mode", pynvml.nvmlDeviceGetMigMode, handle)
    return bool(modes[0]) if modes is not None else None


def _handle(card: Any, index: int) -> Any:
    try:
        return pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, index)
    except pynvml.NVMLError as error:
        # The index space is sparse: an empty place is no failure.
        if error.value in (pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_INVALID_ARGUMENT):
            return None
        raise


def list_instances(calls: Calls, card: Any) -> list[Instance]:
    """Every MIG device of a card, in the library's order."""
    found = []
    for index in range(calls.whole("MIG device count", pynvml.nvmlDeviceGetMaxMigDeviceCount, card) or 0):
        handle = calls.ask("MIG device", _handle, card, index)
        if handle is None:
            continue
        uuid = calls.text("MIG uuid", pynvml.nvmlDeviceGetUUID, handle)
        outer = calls.whole("GPU instance id", pynvml.nvmlDeviceGetGpuInstanceId, handle)
        inner = calls.whole("compute instance id", pynvml.nvmlDeviceGetComputeInstanceId, handle)
        if uuid and outer is not None:
            found.append(Instance(handle, uuid, outer, inner or 0))
    return found


class Slices:
    """The slices of one card. What an instance is granted is read once in its life."""

    def __init__(self) -> None:
        self._granted: dict[str, tuple[str, int | None]] = {}
        # What an instance does not support the card may: their lists are kept apart.
        self._calls = Calls()

    def read(self, calls: Calls, card: Any, gpm: Gpm, instances: list[Instance]) -> tuple[SliceReading, ...]:
        """One reading an instance. `instance_id` is the GPU instance, with the compute instance
        behind a slash where several share one (they also share its memory)."""
        shared = [one.gpu_instance for one in instances]
        activity = {number: gpm.read(calls, card, number) for number in dict.fromkeys(shared)}
        gpm.keep(set(shared))
        self._granted = {one.uuid: self._granted[one.uuid] for one in instances if one.uuid in self._granted}
        slices = []
        for one in instances:
            profile, granted = self._grant(self._calls, one)
            memory = read_memory(self._calls, one.handle)
            raw = {**activity[one.gpu_instance], "memory_used": memory[1] if memory else None}
            values, refused = card_values(raw, what=one.uuid)
            calls.failures.extend(refused)
            alone = shared.count(one.gpu_instance) == 1
            slices.append(
                SliceReading(
                    uuid=one.uuid,
                    profile=profile,
                    instance_id=str(one.gpu_instance) if alone else f"{one.gpu_instance}/{one.compute_instance}",
                    memory_total=granted if granted is not None else (memory[0] if memory else None),
                    values=values,
                )
            )
        calls.failures.extend(self._calls.drain())
        return tuple(slices)

    def _grant(self, calls: Calls, one: Instance) -> tuple[str, int | None]:
        """Profile and memory (bytes). The memory is the driver's figure: the name rounds it."""
        if one.uuid not in self._granted:
            attributes = calls.ask("MIG attributes", pynvml.nvmlDeviceGetAttributes, one.handle)
            name = calls.text("MIG name", pynvml.nvmlDeviceGetName, one.handle)
            # "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
            profile = name.rpartition(" MIG ")[2] if " MIG " in name else ""
            if not profile and attributes is not None:
                profile = f"{attributes.gpuInstanceSliceCount}g"
            memory = mib_to_bytes(attributes.memorySizeMB) if attributes is not None else None
            self._granted[one.uuid] = (profile or "unknown", memory)
        return self._granted[one.uuid]
