"""Where the simulated nodes stand and by which door each is read: three sites, five clusters, racks of four."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

NODES_PER_RACK = 4
RACK_HEIGHT = 42
NODE_HEIGHT = 8
RACK_DESIGN_POWER = 45_000  # W: four 8-card nodes at 10.2 kW each and their switch
LARGEST = 200  # the last number of an address takes one node of a site


class Door(StrEnum):
    """How a node's cards are read in band.

    Exporter pages name no machine but by its host name, so only nodes whose BMC gives the cards'
    UUIDs (Redfish, not in every style) are read that way: the cards then tell that both are one node.
    """

    AGENT = "agent"
    REAL_AGENT = "real_agent"
    EXPORTER = "exporter"
    NONE = "none"


class Work(StrEnum):
    """What a node is used for."""

    TRAINING = "training"
    SERVING = "serving"
    INTERACTIVE = "interactive"


@dataclass(frozen=True, slots=True)
class SitePlan:
    """A place. `number` is the third part of its loopback addresses."""

    name: str
    code: str
    kind: str
    time_zone: str
    number: int
    inlet: float  # degrees C


SITES: dict[str, SitePlan] = {
    "fra": SitePlan("Frankfurt", "fra", "central", "Europe/Berlin", 1, 22.0),
    "sin": SitePlan("Singapore", "sin", "regional", "Asia/Singapore", 2, 24.5),
    "den": SitePlan("Denver", "den", "edge", "America/Denver", 3, 19.5),
}

SCHEDULERS: dict[str, str] = {
    "fra-train": "slurm",
    "fra-serve": "kubernetes",
    "sin-train": "slurm",
    "sin-serve": "kubernetes",
    "den-edge": "kubernetes",
}


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes of one model in one cluster. `styles` says how many of them have which kind of BMC."""

    cluster: str
    kind: str
    styles: tuple[tuple[str, int], ...]
    work: Work
    mig: frozenset[int] = frozenset()
    interactive: frozenset[int] = frozenset()
    exporters: frozenset[int] = frozenset()
    real_agent: int = -1
    bmc_only: int = -1
    os_down: int = -1
    silent: int = -1

    @property
    def site(self) -> str:
        return self.cluster[:3]

    @property
    def size(self) -> int:
        return sum(count for _, count in self.styles)

    def style(self, index: int) -> str:
        """The BMC style of the group's node `index`; beyond the pattern it starts again."""
        index %= self.size
        for name, count in self.styles:
            if index < count:
                return name
            index -= count
        raise AssertionError("an index within the group's size has a style")

    def door(self, index: int) -> Door:
        """By which in-band door the group's node `index` is read."""
        if index == self.real_agent:
            return Door.REAL_AGENT
        if index == self.bmc_only:
            return Door.NONE
        return Door.EXPORTER if index in self.exporters or index == self.silent else Door.AGENT


GROUPS: tuple[Group, ...] = (
    Group(
        "fra-train", "h100", (("supermicro", 10), ("dell", 10)), Work.TRAINING,
        real_agent=0, bmc_only=1, os_down=2, silent=3, exporters=frozenset({10}), interactive=frozenset({8, 9, 19}),
    ),
    Group("fra-train", "mi300x", (("lenovo", 4), ("dell", 4)), Work.TRAINING, exporters=frozenset({0, 4})),
    Group("fra-serve", "h200", (("hpe", 6), ("lenovo", 6)), Work.SERVING, exporters=frozenset({6, 7})),
    Group("sin-train", "h100", (("hpe", 4), ("ipmi", 6)), Work.TRAINING, interactive=frozenset({7})),
    Group(
        "sin-serve", "a100", (("supermicro", 3), ("ipmi", 5)), Work.SERVING,
        mig=frozenset({0, 1, 3, 4}), exporters=frozenset({0, 1, 2}),
    ),
    Group("den-edge", "h100", (("ipmi", 2),), Work.SERVING),
    Group(
        "den-edge", "a100", (("dell", 1), ("ipmi", 3)), Work.SERVING,
        mig=frozenset({2}), exporters=frozenset({0}), interactive=frozenset({3}),
    ),
)  # fmt: skip
FULL_SIZE = sum(group.size for group in GROUPS)


def group_sizes(nodes: int) -> list[int]:
    """How many nodes each group gets: in proportion, and at least one for every site.

    Raises ValueError outside 3 to 200 nodes.
    """
    if not len(SITES) <= nodes <= LARGEST:
        raise ValueError(f"the fleet has {len(SITES)} to {LARGEST} nodes, not {nodes}")
    exact = [group.size * nodes / FULL_SIZE for group in GROUPS]
    sizes = [int(share) for share in exact]
    by_remainder = sorted(range(len(GROUPS)), key=lambda i: (sizes[i] - exact[i], i))
    for i in by_remainder[: nodes - sum(sizes)]:
        sizes[i] += 1
    for site in SITES:
        members = [i for i, group in enumerate(GROUPS) if group.site == site]
        if not any(sizes[i] for i in members):
            sizes[sizes.index(max(sizes))] -= 1
            sizes[members[0]] += 1
    return sizes


def members(nodes: int) -> Iterator[tuple[Group, int]]:
    """Every node of a fleet of that size as its group and its number inside the group."""
    for group, size in zip(GROUPS, group_sizes(nodes), strict=True):
        for index in range(size):
            yield group, index
