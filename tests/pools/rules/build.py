"""Small snapshots for the tests: a cluster of like nodes, one pool, one tenant; everything can be replaced."""

from collections.abc import Iterable
from typing import Any

from pools.rules.demand import PriorityClass, Request, Running, Spec, Unit
from pools.rules.fleet import CARD, Card, Cluster, Node, Pool, Rule
from pools.rules.snapshot import Snapshot, build
from pools.rules.tenancy import Project, Tenant

NOW = 1_800_000_000
"""A Friday, 08:00 UTC."""

HOUR = 3600
GIB = 2**30

HIGH = PriorityClass("high", value=10, name="high")
NORMAL = PriorityClass("normal", value=5, name="normal", preemptible=True, minimum_run=600, grace=120)
SPOT = PriorityClass("spot", value=0, name="spot", preemptible=True, grace=30)

ONE = Spec("one", frozenset({"H100"}), name="1 x H100")
EIGHT = Spec("eight", frozenset({"H100"}), name="8 x H100", cards=8)


def node(name: str, **changes: Any) -> Node:
    return Node(**{"id": name, "cluster": "c1", "name": name, **changes})


def cards_of(name: str, count: int = 8, *, model: str = "H100", **changes: Any) -> list[Card]:
    """Cards "n1/0", "n1/1" ... of a node."""
    same = {"node": name, "model": model, "memory": 80 * GIB, **changes}
    return [Card(id=f"{name}/{number}", **same) for number in range(count)]


def request(name: str, spec: str = "one", **changes: Any) -> Request:
    return Request(
        **{
            "id": name, "tenant": "t1", "project": "p1", "pool": "main", "spec": spec,
            "priority": "normal", "submitted_at": NOW - 60, "time_limit": HOUR, "name": name, **changes,
        }
    )  # fmt: skip


def holding(key: str, cards: Iterable[str], **changes: Any) -> Running:
    """A running allocation of whole cards."""
    return Running(
        **{
            "id": key, "tenant": "t1", "project": "p1", "units": tuple(Unit(card, 0, CARD) for card in cards),
            "started_at": NOW - HOUR, "ends_at": NOW + HOUR, "priority": "normal", "name": key, **changes,
        }
    )  # fmt: skip


def snapshot(size: int = 2, per_node: int = 8, **changes: Any) -> Snapshot:
    """`size` nodes n1, n2, ... of `per_node` H100 in one managed cluster."""
    names = [f"n{number}" for number in range(1, size + 1)]
    parts: dict[str, Any] = {
        "now": NOW,
        "clusters": [Cluster("c1", "cluster one")],
        "nodes": [node(name) for name in names],
        "cards": [card for name in names for card in cards_of(name, per_node)],
        "pools": [Pool("main", "main", rules=(Rule(clusters=frozenset({"c1"})),))],
        "specs": [ONE, EIGHT],
        "priorities": [HIGH, NORMAL, SPOT],
        "tenants": [Tenant("t1", "team one"), Tenant("t2", "team two")],
        "projects": [Project("p1", "t1", "project one"), Project("p2", "t2", "project two")],
    }
    return build(**{**parts, **changes})
