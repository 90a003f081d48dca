"""Cards, nodes and clusters of a pool, as the rules see them."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from inventory.models import Card, Cluster, Node, SchedulerNode, Slice
from inventory.selectors.cordons import cordoned_nodes
from pools.models import Allocation, ClusterMode, Mode, Pool
from pools.rules import fleet as rules
from pools.rules.fleet import CARD
from pools.rules.layouts import Instance, slots_of
from pools.rules.sharing import Geometry, geometry
from pools.selectors.membership import places
from pools.selectors.unknown import nodes_of_unknown

_LAUNCHING = ("submit", "place")


@dataclass(frozen=True, slots=True)
class Fleet:
    """The parts of a snapshot that are hardware."""

    clusters: list[rules.Cluster]
    nodes: list[rules.Node]
    cards: list[rules.Card]
    pool: rules.Pool
    profiles: dict[str, dict[str, int]]


_CARD = (
    "id", "node", "state", "conflict", "mig_enabled", "memory_total", "model__name", "model_name", "model__memory",
    "model__mig_profiles",
)  # fmt: skip


def fleet_of(pool: Pool, held: set[Any]) -> Fleet:
    """The cards of a pool, and those of others that are held. Nine queries.

    On a node where work runs whose cards nobody tells, no card is given out. Cards stay divided as they
    are: nothing here changes a layout, so the pool's ways of sharing are those that its cards are in.
    """
    own = {card for card, place in places().items() if place.pool == pool.pk}
    rows = list(
        Card.objects.filter(pk__in=own | held, node__isnull=False).order_by("node", "slot", "id").values(*_CARD)
    )
    nodes = {row["node"] for row in rows}
    cordoned, blocked = cordoned_nodes(), nodes_of_unknown()
    layouts = _layouts({row["id"]: _counts(row) for row in rows if row["mig_enabled"]})
    cards = [
        rules.Card(
            id=row["id"],
            node=row["node"],
            model=name_of(row["model__name"], row["model_name"]),
            memory=row["memory_total"] or row["model__memory"] or 0,
            available=row["state"] == "present" and not row["conflict"] and row["node"] not in blocked,
            cordoned=row["node"] in cordoned,
            mode=rules.Mode.MIG if row["mig_enabled"] else rules.Mode.WHOLE,
            layout=layouts.get(row["id"], ()),
        )
        for row in rows
    ]
    members = frozenset(own)
    frozen = rules.Pool(id=pool.pk, name=pool.name, rank=pool.rank, include=members, sharing=frozenset())
    clusters, described = _nodes(nodes)
    profiles = {card.model: _counts(row) for card, row in zip(cards, rows, strict=True)}
    return Fleet(clusters, described, cards, frozen, profiles)


def name_of(model: str | None, told: str) -> str:
    """What a card model is called in the rules: its name in the catalogue, else what the device says."""
    return model or told or "unknown"


def _counts(row: dict[str, Any]) -> dict[str, int]:
    return {one["name"]: one["count"] for one in row["model__mig_profiles"] or ()}


def slices_at(cards: Collection[Any]) -> dict[tuple[Any, int], UUID]:
    """The slices of divided cards, by card and where their share begins (thousandths). Three queries."""
    rows = Card.objects.filter(pk__in=cards).values_list("id", "model__mig_profiles")
    counts = {card: _counts({"model__mig_profiles": profiles}) for card, profiles in rows}
    found: dict[tuple[Any, int], Any] = {}
    for card, slots in _slots_on(counts).items():
        of = geometry(counts[card])
        assert of is not None, "there are slots"
        found |= {(card, slot * CARD // of.slots): one.id for one, slot in slots}
    return found


def _layouts(counts: dict[UUID, dict[str, int]]) -> dict[UUID, tuple[rules.Slice, ...]]:
    """The instances of divided cards with their slots."""
    if not counts:
        return {}
    return {
        card: tuple(rules.Slice(one.profile, slot) for one, slot in slots) for card, slots in _slots_on(counts).items()
    }


def _slots_on(counts: dict[UUID, dict[str, int]]) -> dict[UUID, list[tuple[Instance, int]]]:
    """The instances of divided cards with their first slots, those that are held where the ledger has them."""
    instances: dict[Any, list[Instance]] = defaultdict(list)
    for part, card, profile in Slice.objects.filter(card__in=counts, closed_at=None).values_list(
        "id", "card", "profile"
    ):
        instances[card].append(Instance(part, profile))
    held: dict[Any, int] = {}
    rows = Allocation.objects.filter(card__in=counts, slice__isnull=False, span__upper_inf=True)
    for part, share in rows.values_list("slice", "share"):
        held[part] = share.lower
    found = {}
    for card, own in instances.items():
        of = geometry(counts[card])
        slots = _slots(of, own, held)
        found[card] = [(one, slots[one.id]) for one in own] if slots is not None else []
    return found


def _slots(of: Geometry | None, own: list[Instance], held: dict[Any, int]) -> dict[Any, int] | None:
    if of is None:
        return None
    fixed = {one.id: -(-held[one.id] * of.slots // CARD) for one in own if one.id in held}
    return slots_of(of, own, fixed)


def _nodes(keys: set[UUID]) -> tuple[list[rules.Cluster], list[rules.Node]]:
    """Nodes without a cluster are in one of their own that nobody can start work in."""
    described = Node.objects.filter(pk__in=keys).order_by("name", "id")
    rows = list(described.values_list("id", "name", "state", "cluster", "rack", "labels"))
    hosts: dict[Any, tuple[int | None, int | None]] = {}
    for node, cpus, memory in SchedulerNode.objects.filter(node__in=keys, gone_at=None).values_list(
        "node", "cpus", "memory"
    ):
        hosts[node] = (cpus, memory)
    clusters = _clusters({cluster for *_, cluster, _rack, _labels in rows if cluster is not None})
    nowhere = rules.Cluster(id=_NOWHERE, name="no cluster", managed=False, reachable=False)
    nodes = [
        rules.Node(
            id=key, cluster=cluster or _NOWHERE, name=name, state=state, rack=rack, leaf=labels.get("leaf"),
            cpu=hosts.get(key, (None, None))[0], memory=hosts.get(key, (None, None))[1], labels=labels,
        )
        for key, name, state, cluster, rack, labels in rows
    ]  # fmt: skip
    return [*clusters, nowhere], nodes


_NOWHERE = UUID(int=0)


def _clusters(keys: set[UUID]) -> list[rules.Cluster]:
    managed = set(ClusterMode.objects.filter(mode=Mode.MANAGED).values_list("cluster", flat=True))
    found = []
    for cluster in Cluster.objects.filter(pk__in=keys).select_related("connection").order_by("name", "id"):
        connection = getattr(cluster, "connection", None)
        able = {one["capability"] for one in connection.capabilities if one.get("available")} if connection else set()
        reachable = connection is not None and connection.enabled and not connection.error_kind
        found.append(
            rules.Cluster(cluster.pk, cluster.name, cluster.pk in managed, reachable and able.issuperset(_LAUNCHING))
        )
    return found
