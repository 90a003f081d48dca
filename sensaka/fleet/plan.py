"""The fleet as it was built: nodes and cards with their identity, the same for the same seed.

Every serial number starts with SIM. A plan never changes; what moves, fails or is switched off
stands in sensaka.fleet.world.
"""

from collections import Counter
from dataclasses import dataclass, field

from sensaka.fleet.hardware import CHASSIS, KINDS, PCI_BUSES, CardKind, Chassis
from sensaka.fleet.layout import (
    NODE_HEIGHT,
    NODES_PER_RACK,
    SCHEDULERS,
    SITES,
    Door,
    Group,
    SitePlan,
    Work,
    members,
)
from sensaka.fleet.seeds import hexadecimal, identifier

SLOTS = 8
SCHEDULER_NETWORK = "127.76"
REDFISH_NETWORK = "127.77"
IPMI_NETWORK = "127.78"
EXPORTER_NETWORK = "127.79"


@dataclass(frozen=True, slots=True)
class CardPlan:
    """One card as it left the factory. `number` is its place in the arrays of the simulation."""

    number: int
    kind: CardKind
    uuid: str
    serial: str
    part_number: str


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One server with its BMC and the door by which its cards are read."""

    number: int
    name: str
    site: SitePlan
    cluster: str
    rack: str
    rack_position: int
    kind: CardKind
    chassis: Chassis
    door: Door
    work: Work
    mig: bool
    protocol: str  # of the BMC: redfish or ipmi
    address: str  # of the BMC
    exporter_address: str
    system_serial: str
    system_uuid: str
    machine_id: str
    silent_exporter: bool = False
    os_down: bool = False
    ipmi_missing: bool = False

    @property
    def pci_addresses(self) -> tuple[str, ...]:
        """The PCI address of each slot, as the NVIDIA driver writes it."""
        return tuple(f"00000000:{bus:02X}:00.0" for bus in PCI_BUSES[self.kind.key])


@dataclass(frozen=True, slots=True)
class RackPlan:
    """A rack and the site it stands in."""

    name: str
    site: SitePlan


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole fleet."""

    seed: int
    nodes: tuple[NodePlan, ...]
    cards: tuple[CardPlan, ...]
    by_name: dict[str, NodePlan] = field(compare=False)

    @property
    def sites(self) -> tuple[SitePlan, ...]:
        return tuple(site for site in SITES.values() if any(node.site is site for node in self.nodes))

    @property
    def clusters(self) -> tuple[tuple[str, SitePlan, str], ...]:
        """Name, site and scheduler of each cluster that has nodes."""
        used = {node.cluster: node.site for node in self.nodes}
        return tuple((name, site, SCHEDULERS[name]) for name, site in used.items())

    @property
    def slurm_clusters(self) -> tuple[str, ...]:
        """Names of the clusters that Slurm runs."""
        return tuple(name for name, _, scheduler in self.clusters if scheduler == "slurm")

    @property
    def racks(self) -> tuple[RackPlan, ...]:
        return tuple(RackPlan(name, site) for name, site in {node.rack: node.site for node in self.nodes}.items())


def make_plan(*, seed: int, nodes: int, ipmi: bool) -> Plan:
    """Build the plan. Without `ipmi` the IPMI nodes get Redfish BMCs; ValueError outside 3-200 nodes."""
    built: list[NodePlan] = []
    counts: Counter[str] = Counter()
    for number, (group, index) in enumerate(members(nodes)):
        built.append(_node(seed, number, group, index, counts, ipmi))
    cards = tuple(_card(seed, node, slot) for node in built for slot in range(SLOTS))
    return Plan(seed, tuple(built), cards, {node.name: node for node in built})


def _node(seed: int, number: int, group: Group, index: int, counts: Counter[str], ipmi: bool) -> NodePlan:
    site = SITES[group.site]
    style = group.style(index)
    # By the intended protocol, so that no address moves when ipmi_sim comes or goes between two starts.
    network = IPMI_NETWORK if style == "ipmi" else REDFISH_NETWORK
    missing = style == "ipmi" and not ipmi
    if missing:
        style = "supermicro"
    protocol = "ipmi" if style == "ipmi" else "redfish"
    counts[site.code] += 1
    counts[f"{site.code} {group.kind}"] += 1
    counts[f"{site.code} {network}"] += 1
    in_site = counts[site.code]
    rack, place = divmod(in_site - 1, NODES_PER_RACK)
    name = f"{site.code}-{group.kind}-{counts[f'{site.code} {group.kind}']:02d}"
    return NodePlan(
        number=number,
        name=name,
        site=site,
        cluster=group.cluster,
        rack=f"{site.code.upper()}-R{rack + 1:02d}",
        rack_position=1 + place * (NODE_HEIGHT + 1),
        kind=KINDS[group.kind],
        chassis=CHASSIS[style],
        door=group.door(index),
        work=Work.INTERACTIVE if index in group.interactive else group.work,
        mig=index in group.mig,
        protocol=protocol,
        address=f"{network}.{site.number}.{counts[f'{site.code} {network}']}",
        exporter_address=f"{EXPORTER_NETWORK}.{site.number}.{in_site}",
        system_serial="SIM" + hexadecimal(9, seed, "system", name),
        system_uuid=identifier(seed, "system", name),
        machine_id=identifier(seed, "machine", name).replace("-", ""),
        silent_exporter=index == group.silent,
        os_down=index == group.os_down,
        ipmi_missing=missing,
    )


def _card(seed: int, node: NodePlan, slot: int) -> CardPlan:
    kind = node.kind
    uuid = identifier(seed, "card", node.name, slot)
    digits = int(hexadecimal(12, seed, "serial", node.name, slot), 16) % 10**10
    return CardPlan(
        number=node.number * SLOTS + slot,
        kind=kind,
        uuid=f"GPU-{uuid}" if kind.vendor == "nvidia" else uuid,
        serial=f"SIM{digits:010d}",
        part_number=f"SIM-{kind.pci_id[-4:].upper()}-A1",
    )
