"""What there is to give out: clusters, nodes, cards, pools and the times in which nodes are needed elsewhere."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Id = Hashable

CARD = 1000
"""A whole card in thousandths. A unit of an allocation is the range [start, stop) of them."""


class Mode(StrEnum):
    """How a card is used: by one holder, or divided in one of three ways; never both at once."""

    WHOLE = "whole"
    MIG = "mig"
    TIME_SLICE = "time_slice"
    MPS = "mps"


@dataclass(frozen=True, slots=True)
class Slice:
    """A MIG instance: its profile ("1g.10gb") and its first memory slot."""

    profile: str
    slot: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster under one scheduler. `managed`: Sensaka's queue decides; otherwise it only watches.

    `reachable` is False while its adapter can't launch.
    """

    id: Id
    name: str = ""
    managed: bool = True
    reachable: bool = True


@dataclass(frozen=True, slots=True)
class Node:
    """A server. `cpu` in cores and `memory` in bytes are what work may use; None where unknown (not limited).

    `state` is the node's state in inventory; only active nodes serve, asleep ones after a wake-up.
    `leaf` is the network switch over it, `cached` the names of models on its disk.
    """

    id: Id
    cluster: Id
    name: str = ""
    state: str = "active"
    rack: Id | None = None
    leaf: Id | None = None
    cpu: float | None = None
    memory: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    cached: frozenset[str] = frozenset()

    @property
    def serving(self) -> bool:
        """Runs work now or after a wake-up."""
        return self.state in ("active", "asleep")


@dataclass(frozen=True, slots=True)
class Card:
    """One accelerator. `available`: present, healthy and without identity conflict.

    `island` names the cards of a node that NVLink or the like joins; None is an island with all others
    of its node that say None. `risk` is health's score (0-1) and `preemptible_only` its restriction.
    What a divided card holds now: MIG instances (`layout`), or time slices or MPS shares (how many `shares`).
    """

    id: Id
    node: Id
    model: str
    memory: int = 0
    available: bool = True
    cordoned: bool = False
    preemptible_only: bool = False
    risk: float = 0.0
    island: Id | None = None
    mode: Mode = Mode.WHOLE
    layout: tuple[Slice, ...] = ()
    shares: int = 0


@dataclass(frozen=True, slots=True)
class Rule:
    """Cards that match all of what is given. Nothing given matches nothing."""

    models: frozenset[str] = frozenset()
    clusters: frozenset[Id] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)

    def matches(self, card: Card, node: Node) -> bool:
        """Whether the rule takes the card."""
        if not (self.models or self.clusters or self.labels):
            return False
        return (
            (not self.models or card.model in self.models)
            and (not self.clusters or node.cluster in self.clusters)
            and all(node.labels.get(key) == value for key, value in self.labels.items())
        )


@dataclass(frozen=True, slots=True)
class Pool:
    """Cards offered together: by rule, by hand (node or card ids), less what is excluded by hand.

    A card that several pools would take is a member of the one with the lowest `rank`. `sharing` are the
    ways in which an empty card of the pool may be used.
    """

    id: Id
    name: str = ""
    rank: int = 100
    rules: tuple[Rule, ...] = ()
    include: frozenset[Id] = frozenset()
    exclude: frozenset[Id] = frozenset()
    sharing: frozenset[Mode] = frozenset({Mode.WHOLE})

    def holds(self, card: Card, node: Node) -> bool:
        """Whether the card is a member."""
        if card.id in self.exclude or node.id in self.exclude:
            return False
        if card.id in self.include or node.id in self.include:
            return True
        return any(rule.matches(card, node) for rule in self.rules)


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Nodes that must be empty in [start, end)."""

    id: Id
    nodes: frozenset[Id]
    start: int
    end: int
    name: str = ""
