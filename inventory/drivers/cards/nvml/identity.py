"""What a card is: read once after the library was opened, because none of it changes while it is open."""

from ctypes import byref, c_uint
from typing import Any

import pynvml

from inventory.drivers.cards.nvml.calls import Calls
from inventory.drivers.cards.values import pci_address
from inventory.observations import CardReading


def module_id(handle: Any) -> int:
    """The SXM slot. pynvml's own default argument is one object for all threads, so it gets a fresh one."""
    answer = c_uint()
    code = pynvml.nvmlDeviceGetModuleId(handle, byref(answer))
    if code != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(code)
    return answer.value


def read_identity(calls: Calls, handle: Any, index: int) -> CardReading:
    """Identity and fixed figures of a card.

    `pcie_generation` is what card and slot can do together: the current one falls at idle by design.
    """
    pci = calls.ask("PCI address", pynvml.nvmlDeviceGetPciInfo, handle)
    memory = read_memory(calls, handle)
    slot = calls.whole("module id", module_id, handle)
    device = pci.pciDeviceId if pci is not None else 0
    return CardReading(
        uuid=calls.text("uuid", pynvml.nvmlDeviceGetUUID, handle),
        serial=calls.text("serial", pynvml.nvmlDeviceGetSerial, handle),
        pci_address=pci_address(pci.busId) if pci is not None else "",
        vendor="NVIDIA",
        model_name=calls.text("name", pynvml.nvmlDeviceGetName, handle),
        # pciDeviceId is device << 16 | vendor.
        pci_id=f"{device & 0xFFFF:04x}:{device >> 16:04x}" if device else "",
        part_number=calls.text("part number", pynvml.nvmlDeviceGetBoardPartNumber, handle),
        vbios=calls.text("VBIOS version", pynvml.nvmlDeviceGetVbiosVersion, handle),
        firmware=calls.text("InfoROM version", pynvml.nvmlDeviceGetInforomImageVersion, handle),
        slot=str(slot) if slot is not None else "",
        minor=calls.whole("minor number", pynvml.nvmlDeviceGetMinorNumber, handle),
        index=index,
        memory_total=memory[0] if memory else None,
        pcie_generation=calls.whole("PCIe generation", pynvml.nvmlDeviceGetMaxPcieLinkGeneration, handle),
    )


def read_memory(calls: Calls, handle: Any) -> tuple[int, int] | None:
    """Total and used bytes. The second version counts allocations only, as nvidia-smi does; the
    first, on drivers before R510, also what the driver keeps for itself."""
    memory = calls.ask("memory", pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2)
    if memory is None:
        memory = calls.ask("memory (old call)", pynvml.nvmlDeviceGetMemoryInfo, handle)
    return (int(memory.total), int(memory.used)) if memory is not None else None
