"""The card models of the simulated fleet: what the real boards say of themselves, and a thermal sketch.

Names, PCI ids, memory sizes, power limits and link counts follow the vendors' drivers and data
sheets. Idle power, thermal resistance and clocks under load are chosen so that the curves look like
the real ones; nothing is billed or judged by them outside the demo.
"""

from dataclasses import dataclass

MEBIBYTE = 1024**2


@dataclass(frozen=True, slots=True)
class CardKind:
    """One model. Powers in W, clocks in MHz, memory in bytes, link rates in bytes/s of one direction."""

    key: str
    vendor: str
    name: str
    bmc_name: str
    pci_id: str
    vbios: str
    memory: int
    limit: float
    idle_power: float
    resident_power: float  # a context holds the card in its highest state without any work
    resistance: float  # K/W from the die to the inlet air
    slowdown: float  # degrees C from which the card lowers its clocks
    idle_clock: float
    top_clock: float
    memory_clock: float
    links: int
    link_rate: float
    pcie_generation: int
    module: str  # how the baseboard labels a slot, with {n} for the 1-based number


H100 = CardKind(
    key="h100", vendor="nvidia", name="NVIDIA H100 80GB HBM3", bmc_name="H100 80GB HBM3", pci_id="10de:2330",
    vbios="96.00.89.00.01", memory=85_520_809_984, limit=700, idle_power=71, resident_power=118, resistance=0.058,
    slowdown=87, idle_clock=345, top_clock=1980, memory_clock=2619, links=18, link_rate=25e9, pcie_generation=5,
    module="SXM{n}",
)  # fmt: skip
H200 = CardKind(
    key="h200", vendor="nvidia", name="NVIDIA H200", bmc_name="H200", pci_id="10de:2335", vbios="96.00.99.00.0E",
    memory=150_754_820_096, limit=700, idle_power=76, resident_power=124, resistance=0.056, slowdown=87,
    idle_clock=345, top_clock=1980, memory_clock=3201, links=18, link_rate=25e9, pcie_generation=5, module="SXM{n}",
)  # fmt: skip
A100 = CardKind(
    key="a100", vendor="nvidia", name="NVIDIA A100-SXM4-80GB", bmc_name="A100-SXM4-80GB", pci_id="10de:20b2",
    vbios="92.00.45.00.03", memory=81_920 * MEBIBYTE, limit=400, idle_power=52, resident_power=72, resistance=0.092,
    slowdown=89, idle_clock=210, top_clock=1410, memory_clock=1593, links=12, link_rate=25e9, pcie_generation=4,
    module="SXM{n}",
)  # fmt: skip
MI300X = CardKind(
    key="mi300x", vendor="amd", name="AMD Instinct MI300X OAM", bmc_name="AMD Instinct MI300X OAM",
    pci_id="1002:74a1", vbios="113-M3000100-102", memory=196_592 * MEBIBYTE, limit=750, idle_power=138,
    resident_power=165, resistance=0.066, slowdown=100, idle_clock=132, top_clock=2100, memory_clock=1300, links=7,
    link_rate=64e9, pcie_generation=5, module="OAM{n}",
)  # fmt: skip

KINDS: dict[str, CardKind] = {kind.key: kind for kind in (H100, H200, A100, MI300X)}

# Bus numbers of the eight modules on an HGX or OAM baseboard, in the order of the slots 1-8.
PCI_BUSES: dict[str, tuple[int, ...]] = {
    "h100": (0x18, 0x2A, 0x3A, 0x5D, 0x9A, 0xAB, 0xBA, 0xDB),
    "h200": (0x19, 0x3B, 0x4C, 0x5D, 0x9B, 0xBB, 0xCB, 0xDB),
    "a100": (0x07, 0x0F, 0x47, 0x4E, 0x87, 0x90, 0xB7, 0xBD),
    "mi300x": (0x0C, 0x22, 0x38, 0x5C, 0x9F, 0xAF, 0xBF, 0xDF),
}

# On hosts whose root ports are walked in another order the device minors differ from the PCI order.
MINORS: dict[str, tuple[int, ...]] = {
    "h100": (0, 1, 2, 3, 4, 5, 6, 7),
    "h200": (0, 1, 2, 3, 4, 5, 6, 7),
    "a100": (2, 3, 0, 1, 6, 7, 4, 5),
    "mi300x": (0, 1, 2, 3, 4, 5, 6, 7),
}


@dataclass(frozen=True, slots=True)
class MigProfile:
    """One MIG profile of the 80 GB boards: compute slices of seven and memory in MiB."""

    name: str
    slices: int
    memory: int


_PROFILES = (
    MigProfile("1g.10gb", 1, 9_856),
    MigProfile("2g.20gb", 2, 19_968),
    MigProfile("3g.40gb", 3, 40_192),
    MigProfile("4g.40gb", 4, 40_192),
)
MIG_PROFILES: dict[str, MigProfile] = {profile.name: profile for profile in _PROFILES}
MIG_LAYOUTS: tuple[tuple[str, ...], ...] = (
    ("3g.40gb", "3g.40gb"),
    ("4g.40gb", "3g.40gb"),
    ("3g.40gb", "2g.20gb", "1g.10gb"),
    ("2g.20gb", "2g.20gb", "2g.20gb", "1g.10gb"),
    ("1g.10gb",) * 7,
)
MIG_CAPABLE = frozenset({"a100", "h100"})


@dataclass(frozen=True, slots=True)
class Chassis:
    """A server product in the manner of one vendor; `style` chooses the shape of its Redfish tree."""

    style: str
    vendor: str
    product: str
    bmc_model: str
    bmc_firmware: str
    bios: str


CHASSIS: dict[str, Chassis] = {
    "dell": Chassis("dell", "Dell", "PowerEdge XE9680", "iDRAC9", "7.10.50.00", "2.3.6"),
    "hpe": Chassis("hpe", "HPE", "Cray XD670", "iLO 6", "1.66", "U58 v2.44"),
    "supermicro": Chassis("supermicro", "Supermicro", "SYS-821GE-TNHR", "AST2600", "01.03.18", "2.1a"),
    "lenovo": Chassis("lenovo", "Lenovo", "ThinkSystem SR680a V3", "XCC2", "5.10 (ESX328P)", "ESE134D"),
    "ipmi": Chassis("ipmi", "Supermicro", "AS-4124GO-NART", "AST2500", "1.74", "2.5"),
}
