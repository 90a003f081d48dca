"""Quotas: each that is exceeded is told, raising it by what is missing unblocks, and none is ever exceeded."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pools.rules.demand import Unit
from pools.rules.quota import Ledger
from pools.rules.snapshot import Snapshot
from pools.rules.tenancy import Project, Quota, Resource, Tenant
from tests.pools.rules.build import GIB, HOUR, NOW, holding, request, snapshot

COHORT = [Tenant("t1", "team one", cohort="all"), Tenant("t2", "team two", cohort="all")]


def codes(taken: Snapshot, share: int = 1000, **changes: Any) -> list[str]:
    return [reason.code for reason in Ledger(taken).shortfalls(request("r", **changes), "H100", share)]


def cards(holder: str, nominal: float, **changes: Any) -> Quota:
    return Quota(holder, Resource.CARDS, nominal, **changes)


def test_cards_at_once_count_what_runs() -> None:
    taken = snapshot(quotas=[cards("t1", 3)], running=[holding("a", ["n1/0", "n1/1"])])
    assert codes(taken, 1000) == []
    assert codes(taken, 2000) == ["QUOTA_CONCURRENT"]
    (reason,) = Ledger(taken).shortfalls(request("r"), "H100", 2000)
    assert reason.detail == "cards at once of team one: needs 2 cards, 1 left of 3; short by 1"


def test_a_quota_of_one_model_leaves_the_others_alone() -> None:
    taken = snapshot(quotas=[cards("t1", 0, model="A100")])
    assert codes(taken) == []
    assert [one.code for one in Ledger(taken).shortfalls(request("r"), "A100", 1000)] == ["QUOTA_CONCURRENT"]


def test_shares_count_as_fractions_of_cards_and_of_their_memory() -> None:
    running = [holding("a", (), units=(Unit("n1/0", 0, 125), Unit("n1/0", 125, 250)))]
    taken = snapshot(running=running, quotas=[cards("t1", 0.5), Quota("t1", Resource.MEMORY, 40 * GIB)])
    assert codes(taken, 250) == []
    assert codes(taken, 251) == ["QUOTA_CONCURRENT", "QUOTA_MEMORY"]


def test_gpu_hours_hold_what_running_work_may_still_use_in_the_period() -> None:
    end = NOW + 10 * HOUR
    quota = Quota("t1", Resource.HOURS, 20, period_end=end, used=4)
    running = [holding("a", ["n1/0"], ends_at=NOW + 100 * HOUR), holding("b", ["n1/1"], ends_at=NOW + 2 * HOUR)]
    taken = snapshot(quotas=[quota], running=running)
    # 4 used, 10 of a until the period ends, 2 of b: 4 are left
    assert codes(taken, 1000, time_limit=4 * HOUR) == []
    assert codes(taken, 1000, time_limit=4 * HOUR + 1) == ["QUOTA_HOURS"]
    assert codes(taken, 400, time_limit=50 * HOUR) == [], "what lies after the period is of the next one"


def test_work_without_an_end_is_counted_up_to_now() -> None:
    taken = snapshot(quotas=[Quota("t1", Resource.HOURS, 5, used=4)], running=[holding("a", ["n1/0"], ends_at=None)])
    assert codes(taken, time_limit=HOUR) == []


@pytest.mark.parametrize("resource", [Resource.TOKENS, Resource.STORAGE])
def test_recorded_usage_stops_new_work_when_nothing_is_left(resource: Resource) -> None:
    quota = Quota("p1", resource, 1000, used=999)
    assert codes(snapshot(quotas=[quota])) == []
    spent = snapshot(quotas=[replace(quota, used=1000)])
    assert codes(spent) == [f"QUOTA_{resource.value.upper()}"]
    assert Ledger(spent).shortfalls(request("r", tenant="t2", project="p2"), "H100", 1000) == []


def test_all_quotas_that_are_exceeded_are_told() -> None:
    quotas = [
        cards("t1", 0), cards("p1", 0), Quota("t1", Resource.HOURS, 0), Quota("t1", Resource.MEMORY, 0),
        Quota("t1", Resource.TOKENS, 5, used=9), Quota("t1", Resource.STORAGE, 5, used=9),
    ]  # fmt: skip
    assert sorted(codes(snapshot(quotas=quotas))) == [
        "QUOTA_CONCURRENT", "QUOTA_CONCURRENT", "QUOTA_HOURS", "QUOTA_MEMORY", "QUOTA_STORAGE", "QUOTA_TOKENS",
    ]  # fmt: skip


def test_a_tenant_borrows_what_others_do_not_use_up_to_its_limit() -> None:
    quotas = [cards("t1", 2, borrowing=3), cards("t2", 8)]
    taken = snapshot(tenants=COHORT, quotas=quotas)
    assert codes(taken, 5000) == []
    assert codes(taken, 5001) == ["QUOTA_CONCURRENT"]
    alone = snapshot(quotas=quotas)
    assert codes(alone, 2001) == ["QUOTA_CONCURRENT"], "without a cohort nobody lends"


def test_a_tenant_keeps_back_what_it_does_not_lend() -> None:
    quotas = [cards("t1", 2, borrowing=None), cards("t2", 8, lending=3)]
    taken = snapshot(tenants=COHORT, quotas=quotas)
    assert codes(taken, 5000) == []
    assert codes(taken, 5001) == ["QUOTA_CONCURRENT"]


def test_what_is_lent_out_is_not_there_until_it_comes_back() -> None:
    borrowed = [holding("b", [f"n1/{number}" for number in range(6)])]
    quotas = [cards("t1", 2, borrowing=None), cards("t2", 8)]
    taken = snapshot(tenants=COHORT, quotas=quotas, running=borrowed)
    theirs = {"tenant": "t2", "project": "p2"}
    assert codes(taken, 4000, **theirs) == []
    assert codes(taken, 4001, **theirs) == ["QUOTA_CONCURRENT"]


def test_projects_of_a_tenant_lend_to_each_other() -> None:
    projects = [Project("p1", "t1"), Project("p2", "t2"), Project("p3", "t1")]
    taken = snapshot(projects=projects, quotas=[cards("p1", 1, borrowing=2), cards("p3", 1), cards("p2", 9)])
    assert codes(taken, 2000) == []
    assert codes(taken, 2001) == ["QUOTA_CONCURRENT"]


def test_a_start_is_charged_to_tenant_and_project() -> None:
    ledger = Ledger(snapshot(quotas=[cards("t1", 2), cards("p1", 3)]))
    ledger.charge(request("r"), "H100", 2000)
    assert [(quota.holder, used, left) for quota, used, left in ledger.standing()] == [("t1", 2, 0), ("p1", 2, 1)]


LIMITS = st.integers(0, 12)
AMOUNTS = st.one_of(st.none(), LIMITS)


@given(
    st.tuples(LIMITS, LIMITS), st.tuples(AMOUNTS, AMOUNTS), st.tuples(AMOUNTS, AMOUNTS),
    st.lists(st.tuples(st.sampled_from(["1", "2"]), st.integers(1, 8)), max_size=12),
)  # fmt: skip
def test_no_sequence_of_starts_exceeds_a_quota_or_what_the_cohort_has(
    nominal: tuple[int, int], borrowing: tuple[int | None, int | None], lending: tuple[int | None, int | None],
    starts: list[tuple[str, int]],
) -> None:  # fmt: skip
    quotas = [
        cards(f"t{number + 1}", nominal[number], borrowing=borrowing[number], lending=lending[number])
        for number in range(2)
    ]
    ledger = Ledger(snapshot(tenants=COHORT, quotas=quotas))
    used = {"1": 0, "2": 0}
    for tenant, amount in starts:
        one = request("r", tenant=f"t{tenant}", project=f"p{tenant}")
        if not ledger.shortfalls(one, "H100", amount * 1000):
            ledger.charge(one, "H100", amount * 1000)
            used[tenant] += amount
    assert sum(used.values()) <= sum(nominal)
    for place, tenant in enumerate("12"):
        if (most := borrowing[place]) is not None:
            assert used[tenant] <= nominal[place] + most
        lent = nominal[place] if lending[place] is None else min(lending[place] or 0, nominal[place])
        assert used["21"[place]] <= nominal[1 - place] + lent, "no more is lent than a tenant lends"


@given(
    LIMITS, LIMITS, AMOUNTS, AMOUNTS, st.integers(0, 8), st.integers(0, 8), st.integers(1, 8), st.sampled_from([0, 3])
)
def test_raising_a_quota_by_what_is_missing_unblocks(
    nominal: int, other: int, borrowing: int | None, lending: int | None, mine: int, theirs: int, needed: int, kept: int
) -> None:
    running = [
        holding("a", [f"n1/{number}" for number in range(mine)]),
        holding("b", [f"n2/{number}" for number in range(theirs)], tenant="t2", project="p2"),
    ]
    quota = cards("t1", nominal, borrowing=borrowing, lending=lending)
    taken = snapshot(tenants=COHORT, quotas=[quota, cards("t2", other, lending=kept)], running=running)
    found = Ledger(taken).shortfalls(request("r"), "H100", needed * 1000)
    assume(found)
    raised = replace(quota, nominal=nominal + found[0].args["short"])
    after = taken.with_(quotas=[raised, cards("t2", other, lending=kept)])
    assert not Ledger(after).shortfalls(request("r"), "H100", needed * 1000)
    less = replace(quota, nominal=nominal + found[0].args["short"] - 0.001)
    assert Ledger(taken.with_(quotas=[less, cards("t2", other, lending=kept)])).shortfalls(
        request("r"), "H100", needed * 1000
    ), "and not by less"
