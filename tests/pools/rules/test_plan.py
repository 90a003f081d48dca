"""The admission plan, story by story: gangs, quotas, backfill, preemption, sharing, sleep, and every reason told."""

from typing import Any

import pytest

from pools.rules.demand import Hold, Near, Scope, Spec, Unit
from pools.rules.fleet import Card, Cluster, Maintenance, Mode, Pool, Rule
from pools.rules.plan import admit
from pools.rules.result import Plan, Wait, applied
from pools.rules.snapshot import Policy, Snapshot
from pools.rules.tenancy import Quota, Resource
from tests.pools.rules.build import EIGHT, GIB, HOUR, NOW, ONE, cards_of, holding, node, request, snapshot

H100 = {"1g.10gb": 7, "1g.10gb+me": 1, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1}
MIG = Spec("mig", frozenset({"H100"}), name="3g", mode=Mode.MIG, profile="3g.40gb")
SMALL = Spec("small", frozenset({"H100"}), name="1g", mode=Mode.MIG, profile="1g.10gb")
SLICE = Spec("slice", frozenset({"H100"}), name="quarter", mode=Mode.TIME_SLICE, shares=4)
SHARED = Pool("main", rules=(Rule(clusters=frozenset({"c1"})),), sharing=frozenset(Mode))
SHARING: dict[str, Any] = {"specs": [ONE, EIGHT, MIG, SMALL, SLICE], "pools": [SHARED], "profiles": {"H100": H100}}


def started(plan: Plan) -> dict[object, set[object]]:
    return {start.request.id: {unit.card for units in start.units for unit in units} for start in plan.starts}


def codes(plan: Plan, name: str = "r") -> list[str]:
    return [reason.code for reason in waits(plan)[name].reasons]


def waits(plan: Plan) -> dict[object, Wait]:
    return {wait.request.id: wait for wait in plan.waits}


def full(key: str, node_name: str, **changes: Any) -> Any:
    return holding(key, [f"{node_name}/{number}" for number in range(8)], **changes)


def test_a_gang_starts_whole() -> None:
    plan = admit(snapshot(waiting=[request("r", "eight", count=2)]))
    (start,) = plan.starts
    assert [len(units) for units in start.units] == [8, 8]
    assert set(start.nodes) == {"n1", "n2"}
    assert start.ends_at == NOW + HOUR
    assert start.why.startswith("n1, n2: all in one cluster, its free part loses the least value (8.00 cards; 2 nodes")


def test_a_gang_that_does_not_fit_whole_starts_nothing() -> None:
    """The sentence of the page: what is missing, the largest block, and what comes free when."""
    taken = snapshot(
        waiting=[request("r", "eight", count=2)],
        running=[
            holding("a", [f"n1/{number}" for number in range(5)], name="job 4711", ends_at=NOW + 2 * HOUR),
        ],
    )
    plan = admit(taken)
    assert not plan.starts
    assert codes(plan) == ["NO_FREE_CARDS", "GANG_INCOMPLETE"]
    told = waits(plan)["r"].reasons
    assert told[0].detail == (
        "needs 16 H100 on 2 nodes; 11 free, largest block 8; 5 come free at 10:00 UTC when job 4711 ends"
    )
    assert (
        told[1].detail
        == "1 of 2 units would fit now and all must start together; 5 come free at 10:00 UTC when job 4711 ends"
    )
    assert waits(plan)["r"].expected_start == NOW + 2 * HOUR


def test_free_cards_on_several_nodes_are_fragmented() -> None:
    running = [holding("a", ["n1/0", "n1/1"]), holding("b", ["n2/0", "n2/1"], ends_at=NOW + 2 * HOUR)]
    plan = admit(snapshot(running=running, waiting=[request("r", "eight")]))
    assert codes(plan) == ["FRAGMENTED"]
    assert waits(plan)["r"].reasons[0].detail == (
        "needs 8 H100 on one node; 12 free, but spread over 2 nodes, largest block 6; "
        "2 come free at 09:00 UTC when a ends"
    )


def test_cordoned_cards_and_those_at_risk() -> None:
    cards = [*cards_of("n1", 1, cordoned=True), Card("n1/1", "n1", "H100", preemptible_only=True)]
    taken = snapshot(1, cards=cards, waiting=[request("r", priority="high"), request("s", priority="spot")])
    plan = admit(taken)
    assert started(plan) == {"s": {"n1/1"}}, "a card at risk gets only preemptible work"
    assert codes(plan) == ["SPEC_UNAVAILABLE"]


def test_every_reason_that_stands_is_told_at_once() -> None:
    taken = snapshot(
        1,
        running=[full("a", "n1")],
        holds=[Hold("h", Scope.PROJECT, "p1", text="budget is spent", by="metering")],
        quotas=[Quota("t1", Resource.CARDS, 8), Quota("t1", Resource.HOURS, 0)],
        waiting=[request("r", not_before=NOW + HOUR)],
    )
    plan = admit(taken)
    assert codes(plan) == ["HELD", "NOT_BEFORE", "QUOTA_HOURS", "QUOTA_CONCURRENT", "NO_FREE_CARDS"]
    assert waits(plan)["r"].expected_start is None, "it depends on people"


def test_what_could_never_be_given() -> None:
    other = Spec("other", frozenset({"B200"}), name="1 x B200")
    plan = admit(snapshot(specs=[ONE, EIGHT, other], waiting=[request("r", "other"), request("s", "eight", count=3)]))
    assert codes(plan) == ["SPEC_UNAVAILABLE"]
    assert waits(plan)["r"].reasons[0].detail == "the pool has no B200 that is in service"
    assert waits(plan)["s"].reasons[0].detail == "needs 24 H100; the pool has 16 at most, even when empty"


def test_a_cluster_that_cannot_be_reached_is_named() -> None:
    clusters = [Cluster("c1"), Cluster("c2", "cluster two", reachable=False)]
    pools = [Pool("main", rules=(Rule(models=frozenset({"H100"})),))]
    nodes = [node("n1"), node("n2", cluster="c2")]
    plan = admit(snapshot(clusters=clusters, nodes=nodes, pools=pools, waiting=[request("r", "eight", count=2)]))
    assert codes(plan) == ["SPEC_UNAVAILABLE", "CLUSTER_UNREACHABLE"]
    busy = admit(
        snapshot(clusters=clusters, nodes=nodes, pools=pools, running=[full("a", "n1")], waiting=[request("r")])
    )
    assert codes(busy) == ["CLUSTER_UNREACHABLE", "NO_FREE_CARDS"]
    assert waits(busy)["r"].reasons[0].detail == "8 cards of the spec are in cluster two, which can't be reached"


def test_quota_is_spent_in_the_order_of_the_queue() -> None:
    waiting = [request(f"r{number}", "eight", submitted_at=NOW - 60 + number) for number in range(2)]
    plan = admit(snapshot(waiting=waiting, quotas=[Quota("t1", Resource.CARDS, 15)]))
    assert list(started(plan)) == ["r0"]
    assert codes(plan, "r1") == ["QUOTA_CONCURRENT"]


def test_backfill_starts_what_does_not_delay_the_head() -> None:
    running = [full("a", "n1", ends_at=NOW + 2 * HOUR)]
    head = request("head", "eight", count=2, submitted_at=NOW - HOUR)
    short = request("short", time_limit=2 * HOUR)
    long = request("long", time_limit=2 * HOUR + 1)
    plan = admit(snapshot(running=running, waiting=[head, short, long]))
    assert list(started(plan)) == ["short"]
    assert [(one.request.id, one.at) for one in plan.promises] == [("head", NOW + 2 * HOUR)]
    assert codes(plan, "long") == ["BEHIND_PRIORITY", "BACKFILL_BLOCKED"]
    assert waits(plan)["long"].reasons[1].detail == (
        "the cards that are free are promised to head at 10:00 UTC, and the time limit of 121 minutes ends later"
    )
    assert waits(plan)["head"].expected_start == NOW + 2 * HOUR


def test_reserved_are_the_cards_that_come_free_last() -> None:
    """One card is needed for long: the free one stays for others, since another comes free at the same time."""
    running = [holding("a", [f"n1/{number}" for number in range(7)], ends_at=NOW + HOUR)]
    head = request("head", "one", count=8, near=Near.NODE, submitted_at=NOW - HOUR)
    other = request("other", time_limit=100 * HOUR)
    two = snapshot(running=[*running, holding("b", ["n2/0"], ends_at=NOW + HOUR)], waiting=[head, other])
    plan = admit(two)
    assert len(started(plan)) == 1
    assert len({card.split("/")[0] for card in map(str, plan.promises[0].cards)}) == 1


def test_maintenance_is_planned_around() -> None:
    windows = [Maintenance("m", frozenset({"n1"}), NOW + HOUR, NOW + 3 * HOUR, name="switch change")]
    fits, late = request("fits", time_limit=HOUR), request("late", time_limit=HOUR + 1, submitted_at=NOW - 5)
    plan = admit(snapshot(1, maintenance=windows, waiting=[fits, late]))
    assert list(started(plan)) == ["fits"]
    assert codes(plan, "late") == ["MAINTENANCE"]
    assert waits(plan)["late"].reasons[0].detail == (
        "7 free cards can't be used: switch change starts at 09:00 UTC, before the time limit would end at 09:00 UTC"
    )
    assert waits(plan)["late"].expected_start == NOW + 3 * HOUR


def test_topology_is_kept_and_told() -> None:
    nodes = [node("n1", rack="a", leaf="x"), node("n2", rack="b", leaf="x")]
    apart = snapshot(nodes=nodes, waiting=[request("r", "eight", count=2, near=Near.RACK)])
    assert codes(admit(apart)) == ["SPEC_UNAVAILABLE"], "no rack has two nodes"
    nodes = [node(f"n{number}", rack="ab"[number // 3], leaf="x") for number in range(1, 5)]
    taken = snapshot(4, nodes=nodes, running=[full("a", "n1"), full("b", "n3")])
    assert codes(admit(taken.with_(waiting=[request("r", "eight", count=2, near=Near.RACK)]))) == ["TOPOLOGY"]
    assert started(admit(taken.with_(waiting=[request("r", "eight", count=2, near=Near.LEAF)])))


def test_cards_of_one_island_are_given_together() -> None:
    cards = [Card(f"n1/{number}", "n1", "H100", island=number // 4) for number in range(8)]
    four = Spec("four", frozenset({"H100"}), cards=4)
    taken = snapshot(
        1, cards=cards, specs=[ONE, four], running=[holding("a", ["n1/0"])], waiting=[request("r", "four")]
    )
    assert started(admit(taken)) == {"r": {"n1/4", "n1/5", "n1/6", "n1/7"}}
    strict = taken.with_(running=[holding("a", ["n1/0", "n1/4"])], waiting=[request("r", "four", near=Near.ISLAND)])
    assert codes(admit(strict)) == ["FRAGMENTED"]
    assert "on one NVLink island; 6 free, but spread over 2 NVLink islands, largest block 3" in (
        waits(admit(strict))["r"].reasons[0].detail
    )


def test_a_node_with_the_model_on_its_disk_is_preferred() -> None:
    nodes = [node("n1"), node("n2", cached=frozenset({"llama"}))]
    plan = admit(snapshot(nodes=nodes, waiting=[request("r", model="llama")]))
    assert plan.starts[0].nodes == ("n2",)
    assert "llama is on its disk" in plan.starts[0].why


def test_sleeping_nodes_are_woken_only_when_nothing_awake_will_do() -> None:
    nodes = [node("n1"), node("n2", state="asleep")]
    both = snapshot(nodes=nodes, waiting=[request("r", "eight"), request("s", "eight", submitted_at=NOW - 5)])
    plan = admit(both)
    assert plan.wakes == ("n2",)
    assert list(started(plan)) == ["r"]
    assert codes(plan, "s") == ["WAKING_NODES"]
    assert waits(plan)["s"].expected_start == NOW + Policy().wake


def test_cores_and_memory_of_the_host_count() -> None:
    spec = Spec("one", frozenset({"H100"}), cpu=16.0, memory=100 * GIB)
    taken = snapshot(1, nodes=[node("n1", cpu=40.0, memory=1000 * GIB)], specs=[spec], waiting=[request("r", count=3)])
    plan = admit(taken)
    assert codes(plan) == ["SPEC_UNAVAILABLE"]
    used = taken.with_(waiting=[request("r", count=2), request("s", submitted_at=NOW - 5)])
    plan = admit(used)
    assert list(started(plan)) == ["r"]
    assert (
        waits(plan)["s"]
        .reasons[0]
        .detail.startswith("the free H100 would do for 6 units, but their nodes have cores and memory free for 0 only")
    )


def test_a_higher_class_displaces_the_least_and_waits_for_it() -> None:
    running = [
        full("a", "n1", priority="spot", started_at=NOW - 100),
        full("b", "n2", priority="spot", started_at=NOW - 5000, name="old"),
    ]
    taken = snapshot(running=running, waiting=[request("r", "eight", priority="high")])
    plan = admit(taken)
    assert [(one.running.id, one.leaves_at, one.lost) for one in plan.preemptions] == [("a", NOW + 30, 800.0)]
    assert codes(plan) == ["NO_FREE_CARDS", "PREEMPTING"]
    assert waits(plan)["r"].expected_start == NOW + 30
    after = applied(taken, plan)
    again = admit(after)
    assert not again.preemptions, "who was told to leave is waited for"
    assert "PREEMPTING" in codes(again)
    gone = after.with_(running=[one for one in after.running if one.id != "a"], now=NOW + 30)
    assert list(started(admit(gone))) == ["r"]


PROTECTED: dict[str, dict[str, Any]] = {
    "equal class": {"priority": "high"},
    "not preemptible": {"priority": None},
    "in its minimum time": {"priority": "normal", "started_at": NOW - 599},
}


@pytest.mark.parametrize("changes", PROTECTED.values(), ids=PROTECTED.keys())
def test_what_is_not_displaced(changes: dict[str, Any]) -> None:
    taken = snapshot(1, running=[full("a", "n1", **changes)], waiting=[request("r", "eight", priority="high")])
    assert not admit(taken).preemptions


def test_nobody_is_displaced_in_vain_or_for_what_comes_anyhow() -> None:
    spot = full("a", "n1", priority="spot", started_at=NOW - 100)
    fixed = full("b", "n2", priority="high", ends_at=None)
    gang = request("r", "eight", count=2, priority="high")
    assert not admit(snapshot(running=[spot, fixed], waiting=[gang])).preemptions
    soon = full("b", "n2", priority="high", ends_at=NOW + 20)
    assert not admit(snapshot(running=[spot, soon], waiting=[request("r", "eight", priority="high")])).preemptions
    off = snapshot(1, running=[spot], waiting=[request("r", "eight", priority="high")], policy=Policy(preemption=False))
    assert not admit(off).preemptions


def test_an_empty_card_is_divided_for_what_waits() -> None:
    waiting = [request(f"r{number}", "mig", submitted_at=NOW - 60 + number) for number in range(3)]
    taken = snapshot(1, 2, waiting=waiting, **SHARING)
    plan = admit(taken)
    assert len(plan.starts) == 3
    units = [start.units[0][0] for start in plan.starts]
    assert [(unit.start, unit.stop) for unit in units] == [(0, 500), (500, 1000), (0, 500)]
    assert units[0].card == units[1].card != units[2].card
    assert set(plan.starts[0].divided) == {units[0].card}
    assert not plan.starts[1].divided
    after = applied(taken, plan).with_(waiting=[request("w")])
    assert codes(admit(after), "w") == ["NO_FREE_CARDS"], "a divided card that somebody holds is not given whole"


def test_a_divided_card_that_is_empty_can_be_whole_again() -> None:
    cards = [Card("n1/0", "n1", "H100", mode=Mode.TIME_SLICE, shares=4)]
    plan = admit(snapshot(1, cards=cards, waiting=[request("r")], **SHARING))
    assert started(plan) == {"r": {"n1/0"}}
    assert plan.starts[0].divided["n1/0"].mode is Mode.WHOLE
    held = holding("a", (), units=(Unit("n1/0", 0, 250),))
    assert codes(admit(snapshot(1, cards=cards, running=[held], waiting=[request("r")], **SHARING))) == [
        "NO_FREE_CARDS"
    ]


def test_time_slices_share_a_card_up_to_their_number() -> None:
    waiting = [request(f"r{number}", "slice", submitted_at=NOW - 60 + number) for number in range(5)]
    plan = admit(snapshot(1, 1, waiting=waiting, **SHARING))
    assert len(plan.starts) == 4
    assert codes(plan, "r4") == ["NO_FREE_CARDS"]
    assert waits(plan)["r4"].expected_start == NOW + HOUR
    assert waits(plan)["r4"].reasons[0].detail.startswith("needs 1 H100 1/4; 0 free")


def test_a_pool_that_does_not_share_gives_no_shares() -> None:
    parts = {**SHARING, "pools": [Pool("main", rules=SHARED.rules)]}
    assert codes(admit(snapshot(1, waiting=[request("r", "mig")], **parts))) == ["SPEC_UNAVAILABLE"]


def test_a_plan_applied_twice_changes_nothing() -> None:
    running = [full("a", "n1", priority="spot", started_at=NOW - 100)]
    waiting = [request("r", "eight", count=2, priority="high"), request("s", "mig"), request("t")]
    taken = snapshot(3, running=running, waiting=waiting, **SHARING)
    plan = admit(taken)
    once = applied(taken, plan)
    assert applied(once, plan) is once
    assert admit(taken) == plan, "the same snapshot gives the same plan"


def test_positions_follow_the_order() -> None:
    waiting = [request(f"r{number}", "eight", count=2, submitted_at=NOW - 60 + number) for number in range(3)]
    plan = admit(snapshot(waiting=waiting))
    assert [(wait.request.id, wait.position) for wait in plan.waits] == [("r1", 2), ("r2", 3)]
    assert [wait.expected_start for wait in plan.waits] == [NOW + HOUR, NOW + 2 * HOUR]
    assert codes(plan, "r2") == ["NO_FREE_CARDS", "BEHIND_PRIORITY"]


def test_an_empty_fleet_and_an_empty_queue() -> None:
    assert admit(snapshot(0)).empty
    nothing: Snapshot = snapshot(0, waiting=[request("r")])
    assert codes(admit(nothing)) == ["SPEC_UNAVAILABLE"]


def test_a_request_that_wakes_nodes_is_not_over_the_quota_that_it_takes_itself() -> None:
    nodes = [node("n1", state="asleep")]
    plan = admit(snapshot(1, nodes=nodes, waiting=[request("r")], quotas=[Quota("t1", Resource.CARDS, 1)]))
    assert codes(plan) == ["WAKING_NODES"]
