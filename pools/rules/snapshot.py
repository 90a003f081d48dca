"""Everything that a decision looks at, frozen, with `now` in it, and the arrays that make it fast.

`build` checks what it is given and raises InvalidInput with the first fault found; a snapshot that
exists is sound. The arrays are read-only; `room.Room` is the working copy that a plan spends.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pools.rules.checks import check
from pools.rules.demand import Hold, PriorityClass, Request, Running, Spec
from pools.rules.fleet import CARD, Card, Cluster, Id, Maintenance, Node, Pool
from pools.rules.pricing import Prices
from pools.rules.tenancy import Project, Quota, Tenant

NEVER = 2**62
"""A time that does not come (s)."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator decides once. Seconds where not said otherwise.

    `half_life` of usage in fair share; weights of the parts of a request's order; `age_full` is when
    age counts fully. `gang_weight`: what no single node can hold counts as if it had waited this part of
    `age_full` longer (at equal weights). `reservations`: how many blocked requests of one kind are promised a start.
    `launch`: between a decision and the start of its work, `wake` for a sleeping node. `preemption`
    off means that nothing is ever preempted.
    """

    half_life: int = 7 * 86_400
    fair_share_weight: float = 1.0
    age_weight: float = 1.0
    age_full: int = 7 * 86_400
    gang_weight: float = 1.0
    reservations: int = 1
    launch: int = 5
    wake: int = 300
    preemption: bool = True


@dataclass(frozen=True)
class Fleet:
    """Cards as arrays, those of one node next to each other (`first[n]:first[n + 1]`).

    Card arrays: `node`, `island` (numbers over the whole fleet), `model` (place in `models`),
    `placeable` (available, not cordoned, on a serving node of a managed, reachable cluster), `risk`,
    `restricted` (only preemptible work), `taken` (thousandths held by running allocations). Node
    arrays: `cpu` and `memory` free now (inf where not limited), `rack`, `leaf`, `cluster` (-1 where
    unknown), `asleep`, `needed_at` (start of the next maintenance, NEVER when there is none).
    """

    cards: tuple[Card, ...]
    nodes: tuple[Node, ...]
    clusters: tuple[Cluster, ...]
    models: tuple[str, ...]
    card_places: Mapping[Id, int]
    node_places: Mapping[Id, int]
    first: Ints
    node: Ints
    island: Ints
    model: Ints
    placeable: Mask
    risk: Floats
    restricted: Mask
    taken: Ints
    cpu: Floats
    memory: Floats
    rack: Ints
    leaf: Ints
    cluster: Ints
    asleep: Mask
    needed_at: Ints


@dataclass(frozen=True)
class Snapshot:
    """The state of the pools at `now`. Made by `build`."""

    now: int
    fleet: Fleet
    pools: Mapping[Id, Pool]
    specs: Mapping[Id, Spec]
    priorities: Mapping[Id, PriorityClass]
    tenants: Mapping[Id, Tenant]
    projects: Mapping[Id, Project]
    quotas: tuple[Quota, ...]
    waiting: tuple[Request, ...]
    running: tuple[Running, ...]
    holds: tuple[Hold, ...]
    maintenance: tuple[Maintenance, ...]
    profiles: Mapping[str, Mapping[str, int]]
    prices: Prices
    policy: Policy
    _parts: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)

    @cached_property
    def members(self) -> Mapping[Id, Mask]:
        """The cards of each pool; each card is in one at most."""
        fleet = self.fleet
        left = np.ones(len(fleet.cards), bool)
        found = {}
        for pool in sorted(self.pools.values(), key=lambda pool: (pool.rank, str(pool.id))):
            own = np.fromiter(
                (pool.holds(card, fleet.nodes[place]) for card, place in zip(fleet.cards, fleet.node, strict=True)),
                bool,
                len(fleet.cards),
            )
            found[pool.id] = own & left
            left &= ~own
        return found

    def preemptible(self, priority: Id | None) -> bool:
        """Whether work of that class may be told to leave; unknown work may not."""
        return priority is not None and self.priorities[priority].preemptible

    def with_work(
        self, *, now: int, waiting: Sequence[Request], running: Sequence[Running], tenants: Sequence[Tenant]
    ) -> "Snapshot":
        """The same fleet at another time, with other work: as `with_`, but what is the same is not made again."""
        parts = {**self._parts, "now": now, "waiting": waiting, "running": running, "tenants": tenants}
        check(parts, changed=("tenants", "waiting", "running"))
        fleet = self.fleet
        taken, cpu, memory = _used(fleet.nodes, fleet.card_places, fleet.node_places, running)
        needed_at = _needed_at(now, fleet.node_places, self._parts["maintenance"])
        for array in (taken, cpu, memory, needed_at):
            array.flags.writeable = False
        later = replace(
            self,
            now=now,
            fleet=replace(fleet, taken=taken, cpu=cpu, memory=memory, needed_at=needed_at),
            tenants=_by_id(tenants),
            waiting=tuple(waiting),
            running=tuple(running),
            holds=tuple(hold for hold in self._parts["holds"] if hold.until is None or hold.until > now),
            maintenance=tuple(window for window in self._parts["maintenance"] if window.end > now),
            _parts=parts,
        )
        later.__dict__["members"] = self.members
        return later

    def with_(self, **changes: Any) -> "Snapshot":
        """The same parts, some of them changed (the arguments of `build`), checked again."""
        return build(**{**self._parts, **changes})


def build(
    *,
    now: int,
    clusters: Sequence[Cluster],
    nodes: Sequence[Node],
    cards: Sequence[Card],
    pools: Sequence[Pool],
    specs: Sequence[Spec] = (),
    priorities: Sequence[PriorityClass] = (),
    tenants: Sequence[Tenant] = (),
    projects: Sequence[Project] = (),
    quotas: Sequence[Quota] = (),
    waiting: Sequence[Request] = (),
    running: Sequence[Running] = (),
    holds: Sequence[Hold] = (),
    maintenance: Sequence[Maintenance] = (),
    profiles: Mapping[str, Mapping[str, int]] | None = None,
    prices: Prices | None = None,
    policy: Policy | None = None,
) -> Snapshot:
    """The snapshot of these parts. InvalidInput says what is wrong with them.

    `profiles` are the MIG profiles of each card model with the most instances of each, as the
    catalogue has them. Cards that a running allocation holds must be among `cards`.
    """
    parts: dict[str, Any] = {
        "now": now, "clusters": clusters, "nodes": nodes, "cards": cards, "pools": pools, "specs": specs,
        "priorities": priorities, "tenants": tenants, "projects": projects, "quotas": quotas, "waiting": waiting,
        "running": running, "holds": holds, "maintenance": maintenance, "profiles": profiles, "prices": prices,
        "policy": policy,
    }  # fmt: skip
    check(parts)
    return Snapshot(
        now=now,
        fleet=_fleet(now, clusters, nodes, cards, running, maintenance),
        pools=_by_id(pools),
        specs=_by_id(specs),
        priorities=_by_id(priorities),
        tenants=_by_id(tenants),
        projects=_by_id(projects),
        quotas=tuple(quotas),
        waiting=tuple(waiting),
        running=tuple(running),
        holds=tuple(hold for hold in holds if hold.until is None or hold.until > now),
        maintenance=tuple(window for window in maintenance if window.end > now),
        profiles=dict(profiles or {}),
        prices=prices or Prices(),
        policy=policy or Policy(),
        _parts=parts,
    )


def _by_id(items: Iterable[Item]) -> dict[Id, Item]:
    return {item.id: item for item in items}  # type: ignore[attr-defined]


def _numbers(values: Iterable[Id | None]) -> Ints:
    """Equal values get equal numbers; None is -1."""
    seen: dict[Id, int] = {}
    return np.array([-1 if value is None else seen.setdefault(value, len(seen)) for value in values], np.int64)


def _fleet(
    now: int,
    clusters: Sequence[Cluster],
    nodes: Sequence[Node],
    cards: Sequence[Card],
    running: Sequence[Running],
    maintenance: Sequence[Maintenance],
) -> Fleet:
    node_places = {node.id: place for place, node in enumerate(nodes)}
    ordered = tuple(sorted(cards, key=lambda card: node_places[card.node]))
    card_places = {card.id: place for place, card in enumerate(ordered)}
    cluster_places = {cluster.id: place for place, cluster in enumerate(clusters)}
    models = tuple(sorted({card.model for card in ordered}))
    model_places = {model: place for place, model in enumerate(models)}
    node = np.array([node_places[card.node] for card in ordered], np.int64)
    cluster = np.array([cluster_places[one.cluster] for one in nodes], np.int64)
    serving = np.array([one.serving for one in nodes], bool)
    open_ = np.array([one.managed and one.reachable for one in clusters], bool)
    usable = np.array([card.available and not card.cordoned for card in ordered], bool)
    ready = serving & open_[cluster] if len(nodes) else serving
    taken, cpu, memory = _used(nodes, card_places, node_places, running)
    fleet = Fleet(
        cards=ordered,
        nodes=tuple(nodes),
        clusters=tuple(clusters),
        models=models,
        card_places=card_places,
        node_places=node_places,
        first=np.searchsorted(node, np.arange(len(nodes) + 1)).astype(np.int64),
        node=node,
        island=_numbers((card.node, card.island) for card in ordered),
        model=np.array([model_places[card.model] for card in ordered], np.int64),
        placeable=usable & ready[node] if len(ordered) else usable,
        risk=np.array([card.risk for card in ordered], float),
        restricted=np.array([card.preemptible_only for card in ordered], bool),
        taken=taken,
        cpu=cpu,
        memory=memory,
        rack=_numbers(one.rack for one in nodes),
        leaf=_numbers(one.leaf for one in nodes),
        cluster=cluster,
        asleep=np.array([one.state == "asleep" for one in nodes], bool),
        needed_at=_needed_at(now, node_places, maintenance),
    )
    for value in vars(fleet).values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return fleet


def _used(
    nodes: Sequence[Node], card_places: Mapping[Id, int], node_places: Mapping[Id, int], running: Sequence[Running]
) -> tuple[Ints, Floats, Floats]:
    taken = np.zeros(len(card_places), np.int64)
    cpu = np.array([np.inf if node.cpu is None else node.cpu for node in nodes], float)
    memory = np.array([np.inf if node.memory is None else node.memory for node in nodes], float)
    for one in running:
        for unit in one.units:
            taken[card_places[unit.card]] += unit.share
        for node_id, (cores, size) in one.hosts.items():
            if (place := node_places.get(node_id)) is not None:
                cpu[place] -= cores
                memory[place] -= size
    # an observed job may use more of a host than its node has to give; that leaves nothing, not less
    return np.minimum(taken, CARD), np.maximum(cpu, 0), np.maximum(memory, 0)


def _needed_at(now: int, node_places: Mapping[Id, int], maintenance: Sequence[Maintenance]) -> Ints:
    needed = np.full(len(node_places), NEVER, np.int64)
    for window in maintenance:
        if window.end <= now:
            continue
        for node_id in window.nodes:
            if (place := node_places.get(node_id)) is not None:
                needed[place] = min(needed[place], max(window.start, now))
    return needed
