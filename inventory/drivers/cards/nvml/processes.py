"""Processes on a card. Their pids are those of the host's namespace: inside a container without the
host's pids the list is empty or means others, which only the agent's own look at /proc can tell."""

from typing import Any

import pynvml

from inventory.drivers.cards.nvml.calls import Calls
from inventory.drivers.cards.nvml.mig import NO_INSTANCE, Instance
from inventory.observations import ProcessReading

_LISTS = (
    ("compute processes", "nvmlDeviceGetComputeRunningProcesses_v3"),
    ("graphics processes", "nvmlDeviceGetGraphicsRunningProcesses_v3"),
    ("MPS processes", "nvmlDeviceGetMPSComputeRunningProcesses_v3"),
)
_LARGEST = 2**63 - 1


def _listed(calls: Calls, handle: Any, of: str) -> list[Any] | None:
    """Entries of all three lists, None when not even the compute list could be read."""
    answers = [calls.ask(f"{name}{of}", getattr(pynvml, function), handle) for name, function in _LISTS]
    if answers[0] is None:
        return None
    return [entry for answer in answers for entry in answer or ()]


def _reading(entry: Any, card_uuid: str, slice_uuid: str) -> ProcessReading:
    memory = entry.usedGpuMemory
    return ProcessReading(
        pid=int(entry.pid),
        card_uuid=card_uuid,
        slice_uuid=slice_uuid,
        memory_used=int(memory) if memory is not None and 0 <= memory <= _LARGEST else None,
    )


def read_processes(
    calls: Calls, handle: Any, *, card_uuid: str, instances: list[Instance]
) -> tuple[ProcessReading, ...]:
    """Each process once for each card or slice it holds, with the memory (bytes) it holds there.

    With MIG on the card's own list names the instance of each process, to privileged callers;
    others must ask each instance.
    """
    places = {(one.gpu_instance, one.compute_instance): one.uuid for one in instances}
    found: list[ProcessReading] = []
    entries = _listed(calls, handle, "")
    for entry in entries or ():
        # A board without MIG says "no instance"; an unknown pair is left on the card.
        pair = (entry.gpuInstanceId, entry.computeInstanceId)
        of_slice = places.get(pair, "") if entry.gpuInstanceId != NO_INSTANCE else ""
        found.append(_reading(entry, card_uuid, of_slice))
    if entries is None:
        for one in instances:
            listed = _listed(calls, one.handle, " of an instance") or ()
            found += [_reading(entry, card_uuid, one.uuid) for entry in listed]
    # A process that computes and draws stands in two lists with the same memory.
    once: dict[tuple[int, str], ProcessReading] = {}
    for process in found:
        key = (process.pid, process.slice_uuid)
        if key not in once or (once[key].memory_used or 0) < (process.memory_used or 0):
            once[key] = process
    return tuple(once.values())
