"""Which resources are accelerators, and who they are. Pure.

Cards are found in this order: Processors of type GPU or Accelerator, PCIeDevices that are accelerators
by class or name, and, where a service lists neither, chassis that are GPUs.
"""

import re
from collections.abc import Iterable, Mapping

from inventory.drivers.bmc.redfish.resources import (
    Resource,
    count,
    dig,
    entries_in,
    is_absent,
    name_in,
    number,
    oem,
    path_of,
    paths_in,
    pick,
    same,
    words,
)
from inventory.observations import CardReading
from inventory.rules.identity import card_serial, card_uuid, known_text, pci_address
from sensaka.kernel.units import mib_to_bytes

# PCI vendor ids (pci.ids) of makers of accelerators, and the names BMCs give them.
_VENDORS: Mapping[str, str] = {"10de": "NVIDIA", "1002": "AMD", "8086": "Intel", "1da3": "Habana", "19e5": "Huawei"}
_VENDOR_NAMES = (
    ("nvidia", "NVIDIA"),
    ("advanced micro devices", "AMD"),
    ("amd", "AMD"),
    ("intel", "Intel"),
    ("habana", "Habana"),
    ("huawei", "Huawei"),
)
_ACCELERATOR_NAME = re.compile(
    r"\b(H100|H200|H800|H20|B100|B200|B300|GB200|GB300|GH200|A100|A800|A30|A40|A10|A16|A2|L40S?|L4|L20|V100S?|T4|P40|P100|"
    r"RTX[ -]?\w+|Tesla\w*|Instinct\w*|MI[1-4]\d{2}[AX]?|Gaudi\w*|HL-\d{3}\w*|Flex[ -]?1[47]0|Max[ -]?1[15]\d0|GPU)\b",
    re.IGNORECASE,
)
_NOT_A_CARD = re.compile(
    r"connectx|bluefield|\bnic\b|network|ethernet|infiniband|nvswitch|nvlink switch|pcie ?switch|retimer|bridge|"
    r"\bdpu\b|aspeed|matrox|embedded video|fpga|erot|irot|riser|baseboard|storage|nvme|controller$",
    re.IGNORECASE,
)
_GPU_CHASSIS = re.compile(r"(^|_)GPU(_|\d|$)", re.IGNORECASE)
_NOT_GPU_CHASSIS = re.compile(r"e?irot|erot|riser|board|tray|zone|fan", re.IGNORECASE)
_DELL_SLOT = re.compile(r"^(?:Video|ProcAccelerator|Accelerator)\.(?:Slot|Embedded|SXM)\.(\d+)")
_VBIOS = re.compile(r"^[0-9A-F]{2}\.[0-9A-F]{2}\.[0-9A-F]{2}\.[0-9A-F]{2}\.[0-9A-F]{2}$", re.IGNORECASE)
_PCIE_GENERATION = re.compile(r"^Gen(\d)$", re.IGNORECASE)
_PART_NUMBER = re.compile(r"^[\dA-Z]{2,}-[\dA-Z]+-[\dA-Z-]+$")


def is_card_processor(processor: Resource) -> bool:
    """Whether a Processor is an accelerator that is there: FPGAs, CPUs and empty slots are not."""
    if is_absent(processor):
        return False
    kind = words(pick(processor, "ProcessorType")).lower()
    if kind == "gpu":
        return True
    name = _names(processor)
    return kind == "accelerator" and not _NOT_A_CARD.search(name)


def is_card_device(device: Resource, functions: Iterable[Resource]) -> bool:
    """Whether a PCIeDevice is an accelerator: by its function's class and maker, else by its name."""
    if is_absent(device):
        return False
    name = _names(device)
    if _NOT_A_CARD.search(name):
        return False
    for function in functions:
        device_class = words(pick(function, "DeviceClass")).lower()
        if device_class == "processingaccelerators":
            return True
        if device_class == "displaycontroller" and _hex(pick(function, "VendorId")) in _VENDORS:
            return True
    kind = words(pick(device, "DeviceType")).lower()
    return kind != "simulated" and bool(_vendor(device)) and bool(_ACCELERATOR_NAME.search(name))


def may_be_card_device(device: Resource) -> bool:
    """Whether it is worth reading a PCIeDevice's functions to find out."""
    return not is_absent(device) and bool(_vendor(device)) and not _NOT_A_CARD.search(_names(device))


def is_card_chassis(chassis: Resource) -> bool:
    """Whether a chassis is one GPU: its name says so and it has a serial of its own."""
    own = words(pick(chassis, "Id"))
    kind = words(pick(chassis, "ChassisType")).lower()
    return (
        kind in ("component", "module", "card")
        and bool(_GPU_CHASSIS.search(own))
        and not _NOT_GPU_CHASSIS.search(own)
        and not is_absent(chassis)
        and bool(card_serial(words(pick(chassis, "SerialNumber"))) or known_text(words(pick(chassis, "UUID"))))
    )


def card_reading(
    resource: Resource, *, device: Resource, functions: Iterable[Resource], memory: Iterable[Resource]
) -> CardReading:
    """Identity and fixed facts of a card. `device` is its PCIeDevice or {}; `resource` decides where both speak."""
    functions = list(functions)
    vendor = _vendor(resource) or _vendor(device) or _function_vendor(functions)
    firmware = _known(resource, "FirmwareVersion") or _known(device, "FirmwareVersion")
    link = _first_mapping(dig(resource, "SystemInterface", "PCIe"), pick(device, "PCIeInterface"))
    mig = oem(resource, "MIGModeEnabled")
    return CardReading(
        uuid=card_uuid(words(pick(resource, "UUID")) or words(pick(device, "UUID")), vendor)[:200],
        serial=card_serial(words(pick(resource, "SerialNumber"))) or card_serial(words(pick(device, "SerialNumber"))),
        pci_address=_address(functions, device),
        vendor=vendor,
        model_name=_model(resource, device),
        pci_id=_pci_id(functions),
        part_number=(_known(resource, "PartNumber") or _known(device, "PartNumber"))[:200],
        vbios=firmware if vendor == "NVIDIA" and _VBIOS.match(firmware) else "",
        firmware=firmware[:200],
        slot=_slot(resource, device)[:64],
        memory_total=memory_total(resource, memory),
        mig_enabled=mig if isinstance(mig, bool) else None,
        pcie_generation=_generation(link),
        pcie_width=count(pick(link, "LanesInUse")) or None,
    )


def memory_total(processor: Resource, memory: Iterable[Resource]) -> int | None:
    """Bytes of the card's own memory; a capacity of 0 (GB300 firmware) means that nobody knows."""
    modules = [number(pick(module, "CapacityMiB")) or 0 for module in memory]
    inside = [number(pick(entry, "CapacityMiB")) or 0 for entry in entries_in(pick(processor, "ProcessorMemory"))]
    summary = number(dig(processor, "MemorySummary", "TotalMemorySizeMiB")) or 0
    for mebibytes in (sum(modules), summary, sum(inside)):
        if mebibytes > 0:
            return mib_to_bytes(mebibytes)
    return None


def chassis_paths(processor: Resource) -> list[str]:
    """The chassis a processor says it is in."""
    return paths_in(dig(processor, "Links", "Chassis"))


def same_card(one: CardReading, other: CardReading) -> bool:
    """Whether two descriptions from one BMC are one card: by UUID where both have it, else by serial.

    The serial alone does not tell cards with UUIDs apart: two GPUs of a superchip carry their board's.
    """
    if one.uuid and other.uuid:
        return one.uuid == other.uuid
    return bool(one.serial) and one.serial == other.serial


def _names(resource: Resource) -> str:
    return " ".join(words(pick(resource, key)) for key in ("Model", "Name", "Description"))


def _known(resource: Resource, name: str) -> str:
    return known_text(words(pick(resource, name)))


def _hex(value: object) -> str:
    return words(value).lower().removeprefix("0x").rjust(4, "0")


def _vendor(resource: Resource) -> str:
    maker = words(pick(resource, "Manufacturer")).lower() or words(pick(resource, "Model")).lower()
    return next((name for mark, name in _VENDOR_NAMES if maker.startswith(mark)), "")


def _function_vendor(functions: Iterable[Resource]) -> str:
    return next(
        (_VENDORS[found] for found in (_hex(pick(entry, "VendorId")) for entry in functions) if found in _VENDORS), ""
    )


def _model(resource: Resource, device: Resource) -> str:
    """The product's name; iLO and iDRAC put the part number under Model and the name under Name."""
    model, name = _known(resource, "Model"), _known(resource, "Name")
    is_part = bool(_PART_NUMBER.match(model)) or (model and model == _known(resource, "PartNumber"))
    if (not model or is_part) and _ACCELERATOR_NAME.search(name):
        return name[:200]
    return (model or _known(device, "Model") or name)[:200]


def _slot(resource: Resource, device: Resource) -> str:
    module = words(oem(device, "GPUSlot"))  # Supermicro's own number, which its sensors are named after
    if module:
        return f"GPU {module}"
    for place in (
        dig(resource, "Location", "PartLocation", "ServiceLabel"),
        dig(device, "Slot", "Location", "PartLocation", "ServiceLabel"),
        dig(device, "Location", "PartLocation", "ServiceLabel"),
        pick(resource, "Socket"),
    ):
        label = known_text(words(place))
        if label:
            return label
    for part in (resource, device):
        match = _DELL_SLOT.match(words(pick(part, "Id")))
        if match:
            return f"Slot {match[1]}"
    return ""


def _address(functions: Iterable[Resource], device: Resource) -> str:
    for part in (*functions, device):
        bus, slot, function = (oem(part, name) for name in ("BusNumber", "DeviceNumber", "FunctionNumber"))
        segment = number(oem(part, "SegmentNumber")) or 0
        numbers = [number(value) for value in (bus, slot)]
        if all(value is not None for value in numbers):
            text = (
                f"{int(segment):04x}:{int(numbers[0] or 0):02x}:{int(numbers[1] or 0):02x}.{int(number(function) or 0)}"
            )
            return pci_address(text)
    return ""


def _pci_id(functions: Iterable[Resource]) -> str:
    for function in functions:
        vendor, device = words(pick(function, "VendorId")), words(pick(function, "DeviceId"))
        if vendor and device:
            return f"{_hex(vendor)}:{_hex(device)}"[:16]
    return ""


def _generation(link: Mapping[str, object]) -> int | None:
    match = _PCIE_GENERATION.match(words(pick(link, "PCIeType")))
    return int(match[1]) if match else None


def _first_mapping(*values: object) -> Mapping[str, object]:
    return next((value for value in values if isinstance(value, Mapping)), {})


def path_id(resource: Resource) -> str:
    """The last part of a resource's own path, which names it in firmware lists and sensors."""
    return name_in(path_of(resource)) or words(pick(resource, "Id"))


def path_key(resource: Resource) -> str:
    """A resource's own path, for comparing."""
    return same(path_of(resource))
