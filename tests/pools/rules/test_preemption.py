"""Preemption over time: random arrivals, ends and signals, with the plan applied after each; no cycles. (P7)"""

import random
from dataclasses import replace

import pytest

from pools.rules.demand import Running
from pools.rules.plan import admit
from pools.rules.result import applied
from pools.rules.snapshot import Snapshot
from tests.pools.rules.build import EIGHT, HIGH, HOUR, NORMAL, NOW, ONE, SPOT, request, snapshot

VALUES = {one.id: one.value for one in (HIGH, NORMAL, SPOT)}


def _pass_time(taken: Snapshot, now: int, chance: random.Random) -> tuple[list[Running], list[Running]]:
    """(what still runs, what left after its signal): limits end work, graces end what was told to leave."""
    stays, displaced = [], []
    for one in taken.running:
        told = one.signalled_at is not None and one.signalled_at + _grace(one) <= now
        if (one.ends_at is not None and one.ends_at <= now) or chance.random() < 0.02:
            continue
        (displaced if told else stays).append(one)
    return stays, displaced


def _grace(one: Running) -> int:
    return {"normal": NORMAL.grace, "spot": SPOT.grace}[str(one.priority)]


def _events(count: int, seed: int) -> tuple[int, int]:
    """Play `count` events; (starts, displacements)."""
    chance = random.Random(seed)
    taken = snapshot(3, 4, specs=[ONE, replace(EIGHT, id="four", cards=4)])
    now, number, starts, displaced = NOW, 0, 0, 0
    origin = {}
    for _ in range(count):
        now += chance.choice([5, 30, 120, 600])
        stays, left = _pass_time(taken, now, chance)
        waiting = list(taken.waiting)
        for one in left:
            displaced += 1
            asked = origin[one.request]
            waiting.append(replace(asked, waited_since=now, preempted=asked.preempted + 1))
        if len(waiting) < 8:
            number += 1
            new = request(
                f"r{number:05}", chance.choice(["one", "one", "four"]), count=chance.choice([1, 1, 2]),
                time_limit=chance.choice([600, HOUR, 4 * HOUR]), priority=chance.choice(["high", "normal", "spot"]),
                submitted_at=now,
            )  # fmt: skip
            origin[new.id] = new
            waiting.append(new)
        taken = taken.with_(now=now, running=stays, waiting=waiting)
        plan = admit(taken)
        for one in plan.preemptions:
            lower, higher = one.running, one.by
            assert VALUES[str(lower.priority)] < VALUES[str(higher.priority)], "displacement only goes down in class"
            assert now - lower.started_at >= (NORMAL if lower.priority == "normal" else SPOT).minimum_run
        starts += len(plan.starts)
        taken = applied(taken, plan)
        held = [unit.card for one in taken.running for unit in one.units]
        assert len(held) == len(set(held))
        told = {one.request for one in taken.running if one.signalled_at is not None}
        assert not told & {one.id for one in taken.waiting}, "who was told to leave is not in the queue yet"
    return starts, displaced


@pytest.mark.parametrize("seed", [1, 2])
def test_no_cycle_and_no_double_holding_in_a_random_sequence(seed: int) -> None:
    starts, displaced = _events(150, seed)
    assert starts > 10
    assert displaced > 0, "the sequence was too tame to show anything"


@pytest.mark.soak
def test_ten_thousand_events() -> None:
    starts, displaced = _events(10_000, 7)
    assert starts > 1000
    assert displaced > 100
