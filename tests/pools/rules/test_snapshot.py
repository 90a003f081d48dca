"""The snapshot refuses parts that don't fit together, and its arrays say what the parts say."""

import re

import numpy as np
import pytest

from pools.rules.demand import Hold, Request, Running, Scope, Spec, Unit
from pools.rules.fleet import Card, Cluster, Maintenance, Mode, Node, Pool, Rule
from pools.rules.snapshot import NEVER
from pools.rules.tenancy import Project, Quota, Resource
from sensaka.kernel.errors import InvalidInput
from tests.pools.rules.build import GIB, HOUR, NOW, cards_of, holding, node, request, snapshot

FAULTS = {
    "a card on an unknown node": ({"cards": [Card("x", "nowhere", "H100")]}, "'x' names 'nowhere', which is not among"),
    "a node in an unknown cluster": ({"nodes": [Node("n1", "nowhere")]}, "'n1' names 'nowhere'"),
    "two cards of one id": ({"cards": [*cards_of("n1", 1), *cards_of("n1", 1)]}, "'n1/0' stands twice"),
    "a request for an unknown spec": ({"waiting": [request("r1", "nothing")]}, "'r1' names 'nothing'"),
    "a request without units": ({"waiting": [request("r1", count=0)]}, "needs a count and a time limit"),
    "a request without time": ({"waiting": [request("r1", time_limit=0)]}, "needs a count and a time limit"),
    "a project of nobody": ({"projects": [Project("p1", "nobody")]}, "'p1' names 'nobody'"),
    "a quota of nobody": ({"quotas": [Quota("nobody", Resource.CARDS, 1)]}, "neither a tenant nor a project"),
    "a quota below zero": ({"quotas": [Quota("t1", Resource.CARDS, -1)]}, "below zero"),
    "a card promised twice": (
        {"running": [holding("a", ["n1/0"]), holding("b", ["n1/0"])]},
        "'a' and 'b' hold the same part of card 'n1/0'",
    ),
    "a card whole and divided": (
        {"running": [holding("a", ["n1/0"]), holding("b", (), units=(Unit("n1/0", 500, 625),))]},
        "hold the same part",
    ),
    "a unit beyond the card": ({"running": [holding("a", (), units=(Unit("n1/0", 900, 1100),))]}, r"holds [900, 1100)"),
    "a window that ends first": (
        {"maintenance": [Maintenance("m", frozenset({"n1"}), NOW + 10, NOW + 10)]},
        "ends before it starts",
    ),
    "a share of two cards": (
        {"specs": [Spec("s", frozenset({"H100"}), cards=2, mode=Mode.MPS, shares=10)]},
        "is on one card",
    ),
    "a whole card in two": ({"specs": [Spec("s", frozenset({"H100"}), shares=2)]}, "don't fit whole"),
    "one time slice": ({"specs": [Spec("s", frozenset({"H100"}), mode=Mode.TIME_SLICE)]}, "don't fit time_slice"),
    "a MIG spec without profile": ({"specs": [Spec("s", frozenset({"H100"}), mode=Mode.MIG)]}, "a profile"),
    "time slices without number": ({"cards": [Card("x", "n1", "H100", mode=Mode.TIME_SLICE)]}, "must have shares"),
}


@pytest.mark.parametrize(("parts", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_parts_that_do_not_fit_are_refused(parts: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        snapshot(**parts)  # type: ignore[arg-type]


def test_cards_of_a_node_stand_together_whatever_order_they_came_in() -> None:
    mixed = [*cards_of("n2", 2), *cards_of("n1", 3), Card("n2/9", "n2", "A100")]
    fleet = snapshot(cards=mixed).fleet
    assert [card.id for card in fleet.cards] == ["n1/0", "n1/1", "n1/2", "n2/0", "n2/1", "n2/9"]
    assert fleet.first.tolist() == [0, 3, 6]
    assert [fleet.models[place] for place in fleet.model] == ["H100"] * 5 + ["A100"]
    assert fleet.card_places["n2/9"] == 5


def test_only_serving_cards_of_managed_and_reachable_clusters_can_be_given_out() -> None:
    clusters = [Cluster("c1"), Cluster("seen", managed=False), Cluster("away", reachable=False)]
    nodes = [
        node("ok"), node("asleep", state="asleep"), node("draining", state="draining"), node("seen", cluster="seen"),
        node("away", cluster="away"),
    ]  # fmt: skip
    cards = [
        *(card for one in nodes for card in cards_of(one.name, 1)),
        Card("cordoned", "ok", "H100", cordoned=True),
        Card("failed", "ok", "H100", available=False),
    ]
    fleet = snapshot(clusters=clusters, nodes=nodes, cards=cards).fleet
    placeable = {card.id for card, free in zip(fleet.cards, fleet.placeable, strict=True) if free}
    assert placeable == {"ok/0", "asleep/0"}
    assert fleet.asleep.tolist() == [False, True, False, False, False]


def test_running_work_takes_cards_and_hosts() -> None:
    nodes = [node("n1", cpu=64.0, memory=512 * GIB), node("n2")]
    running = [
        holding("a", ["n1/0"], hosts={"n1": (16.0, 100 * GIB)}),
        holding("b", (), units=(Unit("n1/1", 125, 375), Unit("n1/1", 500, 625)), hosts={"n1": (60.0, 0)}),
    ]
    fleet = snapshot(nodes=nodes, running=running).fleet
    assert fleet.taken[:3].tolist() == [1000, 375, 0]
    assert fleet.cpu.tolist() == [0.0, np.inf], "an observed job that uses more than there is leaves nothing"
    assert fleet.memory[0] == 412 * GIB


def test_a_pool_takes_by_rule_and_by_hand() -> None:
    nodes = [node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"})]
    pools = [
        Pool(
            "main",
            rank=50,
            rules=(Rule(models=frozenset({"H100"}), labels={"zone": "a"}),),
            exclude=frozenset({"n1/1"}),
        ),
        Pool("hand", include=frozenset({"n2/0", "n1"})),
        Pool("late", rank=101, include=frozenset({"n2"})),
        Pool("empty", rules=(Rule(),)),
    ]
    members = snapshot(size=0, nodes=nodes, cards=[*cards_of("n1", 2), *cards_of("n2", 2)], pools=pools).members
    assert members["main"].tolist() == [True, False, False, False]
    assert members["hand"].tolist() == [False, True, True, False], "n1/0 is in the pool of the lower rank"
    assert members["late"].tolist() == [False, False, False, True]
    assert not members["empty"].any()


def test_the_next_maintenance_counts_and_past_ones_do_not() -> None:
    windows = [
        Maintenance("past", frozenset({"n1"}), NOW - 2 * HOUR, NOW - HOUR),
        Maintenance("later", frozenset({"n1"}), NOW + 9 * HOUR, NOW + 10 * HOUR),
        Maintenance("next", frozenset({"n1", "gone"}), NOW + HOUR, NOW + 2 * HOUR),
    ]
    taken = snapshot(maintenance=windows)
    assert taken.fleet.needed_at.tolist() == [NOW + HOUR, NEVER]
    assert [window.id for window in taken.maintenance] == ["later", "next"]


def test_a_hold_stops_what_it_names_until_it_ends() -> None:
    one = request("r1")
    for scope, target in (("tenant", "t1"), ("project", "p1"), ("request", "r1"), ("pool", "main")):
        assert Hold("h", Scope(scope), target).stops(one)
        assert not Hold("h", Scope(scope), "another").stops(one)
    assert snapshot(holds=[Hold("h", Scope.TENANT, "t1", until=NOW)]).holds == ()


def test_arrays_are_frozen_and_parts_can_be_changed_into_a_new_snapshot() -> None:
    first = snapshot()
    with pytest.raises(ValueError, match="read-only"):
        first.fleet.taken[0] = 1
    second = first.with_(running=[holding("a", ["n1/0"])], now=NOW + 1)
    assert first.fleet.taken[0] == 0
    assert second.fleet.taken[0] == 1000
    assert second.now == NOW + 1


def test_unknown_work_is_never_preemptible() -> None:
    taken = snapshot()
    assert taken.preemptible("spot")
    assert not taken.preemptible("high")
    assert not taken.preemptible(None)


def test_observed_work_needs_no_tenant() -> None:
    job = Running("job", None, None, (Unit("n1/0"),), NOW - 5, None)
    assert isinstance(snapshot(running=[job], waiting=[request("r1")]).waiting[0], Request)
