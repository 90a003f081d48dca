"""What holds for every plan: quotas, cordons, whole gangs, divided cards, promises kept, reasons true and complete."""

from collections import Counter, defaultdict
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from pools.rules.fleet import Mode
from pools.rules.plan import admit
from pools.rules.quota import Ledger
from pools.rules.reasons import Code
from pools.rules.result import Plan, Start, applied
from pools.rules.sharing import division_of, geometry, ranges
from pools.rules.snapshot import Snapshot
from pools.rules.tenancy import Resource
from sensaka.kernel.errors import InvalidInput
from tests.pools.rules.build import GIB, NOW, holding, request, snapshot
from tests.pools.rules.worlds import H100, worlds

MANY = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(worlds())
@MANY
def test_what_starts_may_stand_where_it_stands(taken: Snapshot) -> None:
    plan = admit(taken)
    after = applied(taken, plan)  # raises when a part of a card is promised twice
    cards = {card.id: card for card in after.fleet.cards}
    nodes = {node.id: node for node in taken.fleet.nodes}
    for start in plan.starts:
        spec = taken.specs[start.request.spec]
        assert len(start.units) == start.request.count, "all or nothing"
        assert len({cards[unit.card].model for units in start.units for unit in units}) == 1
        for units, node in zip(start.units, start.nodes, strict=True):
            assert len(units) == spec.cards
            assert len({unit.card for unit in units}) == spec.cards
            for unit in units:
                card = cards[unit.card]
                assert card.node == node
                assert card.available
                assert not card.cordoned
                assert card.model in spec.models
                assert nodes[node].state == "active"
                assert not card.preemptible_only or taken.priorities[start.request.priority].preemptible
                assert (unit.start, unit.stop) in ranges(spec, division_of(card), H100 if card.model == "H100" else {})
        for window in taken.maintenance:
            assert not set(start.nodes) & window.nodes or start.ends_at <= window.start
    _check_hosts(taken, plan)


def _check_hosts(taken: Snapshot, plan: Plan) -> None:
    used: Counter[object] = Counter()
    for start in plan.starts:
        for node in start.nodes:
            used[node] += taken.specs[start.request.spec].cpu
    for node, cores in used.items():
        assert cores <= taken.fleet.cpu[taken.fleet.node_places[node]] + 1e-6


@given(worlds())
@MANY
def test_a_card_is_whole_or_divided_and_changes_only_when_empty(taken: Snapshot) -> None:
    plan = admit(taken)
    after = applied(taken, plan)
    before = {card.id: card for card in taken.fleet.cards}
    held = {unit.card for one in taken.running for unit in one.units}
    parts = defaultdict(list)
    for one in after.running:
        for unit in one.units:
            parts[unit.card].append(unit)
    for card in after.fleet.cards:
        if card.id in held:
            assert division_of(card) == division_of(before[card.id])
        if division_of(card) != division_of(before[card.id]):
            assert card.mode in taken.pools["main"].sharing
        if card.mode is Mode.MIG:
            of = geometry(H100)
            assert of is not None
            assert of.valid(card.layout)
        for unit in parts[card.id]:
            assert unit.whole == (card.mode is Mode.WHOLE)


@given(worlds())
@MANY
def test_no_plan_exceeds_a_quota(taken: Snapshot) -> None:
    plan = admit(taken)
    before = {quota: used for quota, used, _ in Ledger(taken).standing()}
    for quota, used, _ in Ledger(applied(taken, plan)).standing():
        if used > before[quota] + 1e-9 and quota.borrowing is not None:
            assert used <= quota.nominal + quota.borrowing + 1e-6
        lent = sum(one.nominal for one in taken.quotas if one.resource is quota.resource)
        if used > before[quota] + 1e-9:
            assert used <= lent + 1e-6, "no more than all that lend have together"


@given(worlds())
@MANY
def test_the_same_snapshot_gives_the_same_plan_and_applying_it_twice_changes_nothing(taken: Snapshot) -> None:
    plan = admit(taken)
    assert admit(taken) == plan
    assert {one.request.id for one in (*plan.starts, *plan.waits)} == {one.id for one in taken.waiting}
    once = applied(taken, plan)
    assert applied(once, plan) is once
    started = {one.request.id for one in plan.starts}
    assert not started & {one.request.id for one in admit(once).starts}
    told = {one.running.id for one in plan.preemptions}
    assert not told & {one.running.id for one in admit(once).preemptions}


@given(worlds(preemption=False))
@MANY
def test_what_is_backfilled_never_delays_a_promise(taken: Snapshot) -> None:
    """When the promised time comes and everything used its full time, the promised request starts."""
    plan = admit(taken)
    after = applied(taken, plan)
    # the first promise of all is kept whatever else was planned; later ones stand behind it
    for promise in plan.promises[:1]:
        then = after.with_(
            now=promise.at,
            running=[one for one in after.running if one.ends_at is None or one.ends_at > promise.at],
            waiting=[promise.request],
            quotas=[],
            holds=[],
        )
        at_least = [one.request.id for one in admit(then).starts]
        woken = admit(then).wakes
        assert at_least == [promise.request.id] or woken


@given(worlds())
@MANY
def test_everybody_who_waits_is_told_why_and_lifting_it_all_unblocks(taken: Snapshot) -> None:
    plan = admit(taken)
    for wait in plan.waits:
        assert wait.reasons, "nobody waits without a reason"
        assert list(wait.reasons) == sorted(wait.reasons, key=lambda one: list(Code).index(one.code))
        for reason in wait.reasons:
            assert reason.detail
            assert reason.unblock.endswith(".")
        if Code.SPEC_UNAVAILABLE in {reason.code for reason in wait.reasons}:
            continue
        alone = taken.with_(
            waiting=[replace(wait.request, not_before=None)], running=[], holds=[], quotas=[], maintenance=[]
        )
        freed = admit(alone)
        assert freed.starts or freed.wakes


SPACE = {Code.NO_FREE_CARDS, Code.FRAGMENTED, Code.GANG_INCOMPLETE, Code.TOPOLOGY, Code.MAINTENANCE}
PROMISED = {Code.BACKFILL_BLOCKED, Code.BEHIND_PRIORITY, Code.WAKING_NODES, Code.PREEMPTING}


@given(worlds())
@MANY
def test_reasons_are_true_and_complete(taken: Snapshot) -> None:
    """Alone after the plan: with reasons of space it can't start; without, lifting what stands starts it."""
    plan = admit(taken)
    after = applied(taken, plan)
    for wait in plan.waits:
        found = {reason.code for reason in wait.reasons}
        if found & ({Code.SPEC_UNAVAILABLE} | {Code.PREEMPTING, Code.WAKING_NODES}):
            continue
        lifted = after.with_(waiting=[replace(wait.request, not_before=None)], holds=[], quotas=[])
        then = admit(lifted)
        if found & SPACE:
            assert not then.starts, "what is said to be missing is missing"
        elif not found & PROMISED:
            assert then.starts or then.wakes, "what was lifted was all that stood in the way"
        if Code.HELD in found:
            assert any(hold.stops(wait.request) for hold in taken.holds)
        if (Code.NOT_BEFORE in found) != (wait.request.not_before is not None and wait.request.not_before > NOW):
            raise AssertionError("a start time is a reason exactly while it lies ahead")


@given(worlds())
@MANY
def test_raising_each_quota_that_is_named_by_what_is_missing_lifts_the_quotas(taken: Snapshot) -> None:
    plan = admit(taken)
    after = applied(taken, plan)
    for wait in plan.waits:
        named = [reason for reason in wait.reasons if reason.code.startswith("QUOTA")]
        if not named:
            continue
        assert any(reason.code in _codes(after.with_(waiting=[wait.request])) for reason in named)
        names = {one.name or one.id: one.id for one in (*taken.tenants.values(), *taken.projects.values())}
        more = {(names[reason.args["holder"]], _RESOURCES[reason.code]): reason.args["short"] for reason in named}
        quotas = [
            replace(quota, nominal=quota.nominal + more.get((quota.holder, quota.resource), 0) * _UNIT[quota.resource])
            for quota in taken.quotas
        ]
        left = _codes(after.with_(waiting=[wait.request], quotas=quotas))
        # several quotas of one kind and holder are raised by the last one's lack
        kinds = Counter((quota.holder, quota.resource) for quota in taken.quotas)
        if max(kinds.values()) == 1 and len(more) == len(named):
            assert not {code for code in left if code.startswith("QUOTA")}


_RESOURCES = {
    Code.QUOTA_CONCURRENT: Resource.CARDS, Code.QUOTA_HOURS: Resource.HOURS, Code.QUOTA_MEMORY: Resource.MEMORY,
}  # fmt: skip
_UNIT = {Resource.CARDS: 1, Resource.HOURS: 1.0000001, Resource.MEMORY: GIB}


def _codes(taken: Snapshot) -> set[str]:
    return {reason.code for wait in admit(taken).waits for reason in wait.reasons}


@given(worlds())
@MANY
def test_who_is_displaced_is_of_a_lower_class_and_ran_its_time(taken: Snapshot) -> None:
    plan = admit(taken)
    starts: dict[object, Start] = {one.request.id: one for one in plan.starts}
    for one in plan.preemptions:
        assert one.running.priority is not None
        lower, higher = taken.priorities[one.running.priority], taken.priorities[one.by.priority]
        assert lower.value < higher.value
        assert lower.preemptible
        assert one.running.started_at + lower.minimum_run <= NOW
        assert one.leaves_at <= NOW + lower.grace
        assert one.by.id not in starts, "it waits for them"
    told = Counter(one.running.id for one in plan.preemptions)
    assert all(count == 1 for count in told.values())
    if plan.preemptions:
        gone = applied(taken, plan)
        first = plan.preemptions[0].by
        leaving = {one.running.id for one in plan.preemptions if one.by.id == first.id}
        then = gone.with_(running=[one for one in gone.running if one.id not in leaving], waiting=[first], quotas=[])
        assert admit(then).starts or admit(then).wakes, "nobody is displaced in vain"


@given(worlds())
@MANY
def test_a_plan_that_tells_nobody_why_is_otherwise_the_same(taken: Snapshot) -> None:
    assert admit(taken, told=False) == replace(admit(taken), waits=())


@given(worlds(), worlds())
@MANY
def test_other_work_on_the_same_fleet_is_planned_as_if_it_were_frozen_anew(taken: Snapshot, other: Snapshot) -> None:
    known = set(taken.fleet.card_places)
    running = [one for one in other.running if all(unit.card in known for unit in one.units)]
    work = {"now": NOW + 60, "waiting": other.waiting, "tenants": [*other.tenants.values()]}
    try:
        anew = taken.with_(running=running, **work)
    except InvalidInput:
        running = []
        anew = taken.with_(running=running, **work)
    moved = taken.with_work(running=running, **work)
    assert admit(moved) == admit(anew)
    assert admit(moved.with_(now=NOW + 90)) == admit(anew.with_(now=NOW + 90))


def test_other_work_is_checked_as_well() -> None:
    frozen = snapshot()
    twice = [holding("a", ["n1/0"]), holding("b", ["n1/0"])]
    with pytest.raises(InvalidInput, match="same part"):
        frozen.with_work(now=NOW, waiting=[], running=twice, tenants=[*frozen.tenants.values()])
    with pytest.raises(InvalidInput, match="not among the tenants"):
        frozen.with_work(now=NOW, waiting=[request("r")], running=[], tenants=[])
