"""The order of the queue: total, stable, by class, fair share and age."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pools.rules.demand import Request
from pools.rules.ordering import accrued, decayed, order
from pools.rules.snapshot import Policy
from pools.rules.tenancy import Tenant
from tests.pools.rules.build import HOUR, NOW, request, snapshot

DAY = 24 * HOUR


def names(*waiting: Request, **changes: object) -> list[object]:
    return [place.request.id for place in order(snapshot(waiting=list(waiting), **changes))]  # type: ignore[arg-type]


def test_a_higher_class_goes_first_whatever_its_age() -> None:
    old = request("old", submitted_at=NOW - 30 * DAY)
    assert names(old, request("urgent", priority="high"), request("cheap", priority="spot")) == [
        "urgent",
        "old",
        "cheap",
    ]


def test_an_operators_order_beats_the_class() -> None:
    assert names(request("urgent", priority="high"), request("moved", priority="spot", boost=1)) == ["moved", "urgent"]
    place = order(snapshot(waiting=[request("moved", boost=1)]))[0]
    assert place.sentence.startswith("moved by an operator (+1), class 5")


def test_the_tenant_that_used_less_goes_first() -> None:
    tenants = [Tenant("t1", usage=1000 * HOUR), Tenant("t2", usage=10 * HOUR)]
    mine = request("mine", submitted_at=NOW - 600)
    theirs = request("theirs", tenant="t2", project="p2")
    assert names(mine, theirs, tenants=tenants) == ["theirs", "mine"]


def test_twice_the_weight_is_twice_the_share() -> None:
    tenants = [Tenant("t1", usage=200 * HOUR, weight=2.0), Tenant("t2", usage=110 * HOUR)]
    both = [request("light", tenant="t2", project="p2"), request("heavy")]
    assert names(*both, tenants=tenants) == ["heavy", "light"]


def test_age_lifts_what_fair_share_holds_back() -> None:
    tenants = [Tenant("t1", usage=1000 * HOUR), Tenant("t2", usage=900 * HOUR)]
    waiting = [request("old", submitted_at=NOW - 7 * DAY), request("new", tenant="t2", project="p2")]
    assert names(*waiting, tenants=tenants) == ["old", "new"]
    by_share_alone = snapshot(waiting=waiting, tenants=tenants, policy=Policy(age_weight=0))
    assert [place.request.id for place in order(by_share_alone)] == ["new", "old"]


def test_a_burst_of_one_tenant_lets_the_other_in_between() -> None:
    burst = [request(f"a{number}", "eight", submitted_at=NOW - 60) for number in range(6)]
    other = [request(f"b{number}", "eight", submitted_at=NOW - 59, tenant="t2", project="p2") for number in range(3)]
    assert names(*burst, *other)[:6] == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_waiting_counts_from_the_last_return_to_the_queue() -> None:
    back = request("back", submitted_at=NOW - 5 * DAY, waited_since=NOW - 10)
    assert names(back, request("new", submitted_at=NOW - 20)) == ["new", "back"]


def test_usage_halves_in_a_half_life() -> None:
    assert decayed(100, 7 * DAY, 7 * DAY) == pytest.approx(50)
    assert decayed(decayed(100, DAY, 7 * DAY), 6 * DAY, 7 * DAY) == pytest.approx(50)


@given(st.floats(0, 1e6), st.floats(1, 100), st.integers(1, 10 * DAY), st.integers(1, 10 * DAY))
def test_usage_is_the_same_however_its_time_is_cut(usage: float, cards: float, first: int, second: int) -> None:
    whole = accrued(usage, cards, first + second, 7 * DAY)
    assert accrued(accrued(usage, cards, first, 7 * DAY), cards, second, 7 * DAY) == pytest.approx(whole)


REQUESTS = st.builds(
    lambda number, tenant, priority, boost, age, count: (number, tenant, priority, boost, age, count),
    st.integers(0, 10_000), st.sampled_from(["1", "2"]), st.sampled_from(["high", "normal", "spot"]),
    st.integers(-1, 1), st.integers(0, 10) , st.integers(1, 4),
)  # fmt: skip


@given(st.lists(REQUESTS, max_size=30, unique_by=lambda parts: parts[0]), st.randoms(use_true_random=False))
def test_the_order_is_total_and_does_not_depend_on_how_requests_are_listed(
    parts: list[tuple[int, str, str, int, int, int]], chance: random.Random
) -> None:
    waiting = [
        request(f"r{number:05}", tenant=f"t{tenant}", project=f"p{tenant}", priority=priority, boost=boost,
                submitted_at=NOW - HOUR * age, count=count)
        for number, tenant, priority, boost, age, count in parts
    ]  # fmt: skip
    shuffled = list(waiting)
    chance.shuffle(shuffled)
    first, second = names(*waiting), names(*shuffled)
    assert first == second
    assert sorted(map(str, first)) == sorted(str(one.id) for one in waiting)
    places = {name: place for place, name in enumerate(first)}
    values = {"high": 2, "normal": 1, "spot": 0}
    for one in waiting:
        for other in waiting:
            if (one.boost, values[str(one.priority)]) > (other.boost, values[str(other.priority)]):
                assert places[one.id] < places[other.id]
            same = (one.boost, one.priority, one.tenant) == (other.boost, other.priority, other.tenant)
            if same and one.submitted_at < other.submitted_at:
                assert places[one.id] < places[other.id], "a tenant's own requests of a class go by age"


def test_what_no_node_can_hold_counts_as_if_it_had_waited_longer() -> None:
    gang = request("gang", "eight", count=2, submitted_at=NOW - 60)
    old = request("old", "eight", submitted_at=NOW - 3 * DAY, tenant="t2", project="p2")
    mine = request("mine", submitted_at=NOW - 3 * DAY)
    assert names(gang, old, mine) == ["gang", "old", "mine"]
    quarter = Policy(gang_weight=0.25)
    assert names(gang, old, mine, policy=quarter) == ["mine", "old", "gang"], "less than two days longer"
    place = order(snapshot(waiting=[gang]))[0]
    assert place.gang
    assert place.sentence.endswith("a gang of several nodes")


def test_units_that_one_node_can_hold_together_are_no_gang() -> None:
    small = request("small", count=8, submitted_at=NOW - 60)
    assert names(small, request("old", submitted_at=NOW - DAY)) == ["old", "small"]
    assert names(request("wide", count=9, submitted_at=NOW - 60), request("old", submitted_at=NOW - DAY)) == [
        "wide",
        "old",
    ]
