"""Idle cards: what counts as idle, the two warnings, extensions, and that the unknown is never taken back. (P10)"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pools.rules.reclaim import Action, Case, IdlePolicy, Seen, State, Step, Verdict, decide, idle_rate, judge, period
from tests.pools.rules.build import HOUR, NOW

POLICY = IdlePolicy(action=Action.RECLAIM, after=2 * HOUR, grace=1800, gap=1800)
OLD = NOW - 24 * HOUR


def seen(busy: int = 0, idle: int | None = None, **changes: Any) -> Seen:
    whole = {"unit": "n1/0", "start": NOW - 2 * HOUR, "end": NOW, "busy": busy}
    return Seen(**{**whole, "idle": 2 * HOUR - busy if idle is None else idle, **changes})


def verdict(*found: Seen, started_at: int = OLD, policy: IdlePolicy = POLICY) -> Verdict:
    return judge(policy, found, started_at=started_at, now=NOW)


def test_a_whole_period_below_the_threshold_is_idle() -> None:
    found = verdict(seen(memory_held=60))
    assert (found.state, found.since, found.coverage, found.idle_held) == (State.IDLE, NOW - 2 * HOUR, 100.0, True)
    assert not verdict(seen(memory_held=0)).idle_held


@pytest.mark.parametrize("busy", [1, HOUR, 2 * HOUR])
def test_any_busy_second_of_any_card_is_not_idle(busy: int) -> None:
    assert verdict(seen(), seen(busy)).state is State.BUSY


def test_missing_samples_are_unknown_and_not_idle() -> None:
    nine_tenths = 2 * HOUR * 9 // 10
    assert verdict(seen(idle=nine_tenths)).state is State.IDLE
    assert verdict(seen(idle=nine_tenths - 1)).state is State.UNKNOWN
    assert verdict(seen(), seen(idle=0)).state is State.UNKNOWN, "one card of a gang without telemetry is enough"
    assert verdict().state is State.UNKNOWN
    assert verdict(seen(start=NOW - HOUR, idle=HOUR)).state is State.UNKNOWN


def test_a_policy_cannot_ask_for_less_coverage() -> None:
    lax = IdlePolicy(coverage=10.0, after=2 * HOUR)
    assert verdict(seen(idle=HOUR), policy=lax).state is State.UNKNOWN


def test_the_start_is_left_alone() -> None:
    youngest = NOW - 2 * HOUR - 1800
    assert verdict(seen(), started_at=youngest).state is State.IDLE
    assert verdict(seen(), started_at=youngest + 1).state is State.TOO_EARLY
    assert period(POLICY, started_at=youngest + 1, now=NOW) is None


IDLE = Verdict(State.IDLE, NOW - 2 * HOUR, 100.0)
FIRST = Case(since=NOW - 2 * HOUR, first_warned_at=NOW - 1800)
SECOND = Case(since=NOW - 3 * HOUR, first_warned_at=NOW - 2 * HOUR, second_warned_at=NOW - 1800)

STEPS: dict[str, tuple[Verdict, Case | None, Step]] = {
    "idle at first": (IDLE, None, Step.OPEN),
    "warned once, too early for the second": (IDLE, Case(NOW - HOUR, NOW - 1799), Step.NOTHING),
    "warned once": (IDLE, FIRST, Step.WARN_AGAIN),
    "warned twice, too early": (IDLE, Case(NOW - HOUR, NOW - HOUR, NOW - 1799), Step.NOTHING),
    "warned twice": (IDLE, SECOND, Step.RECLAIM),
    "in use again": (Verdict(State.BUSY), SECOND, Step.CLOSE),
    "never idle": (Verdict(State.BUSY), None, Step.NOTHING),
    "telemetry lost after two warnings": (Verdict(State.UNKNOWN), SECOND, Step.NOTHING),
    "telemetry lost": (Verdict(State.UNKNOWN), None, Step.NOTHING),
    "extended": (IDLE, Case(NOW - HOUR, NOW - HOUR, NOW - 1800, extended_until=NOW + 1), Step.NOTHING),
    "extension is over": (IDLE, Case(NOW - HOUR, NOW - HOUR, NOW - 1800, extended_until=NOW), Step.RECLAIM),
    "extension asked": (IDLE, Case(NOW - HOUR, NOW - HOUR, NOW - 1800, extension_asked=True), Step.NOTHING),
    "already asked": (IDLE, Case(NOW - HOUR, NOW - HOUR, NOW - 1800, asked_at=NOW - 5), Step.NOTHING),
}


@pytest.mark.parametrize(("found", "case", "step"), STEPS.values(), ids=STEPS.keys())
def test_steps(found: Verdict, case: Case | None, step: Step) -> None:
    assert decide(POLICY, found, case, now=NOW).step is step


def test_what_a_pool_may_do() -> None:
    assert decide(IdlePolicy(Action.WARN), IDLE, SECOND, now=NOW).step is Step.ASK_OPERATOR
    assert decide(IdlePolicy(Action.OFF), IDLE, None, now=NOW).step is Step.NOTHING
    assert decide(IdlePolicy(Action.OFF), IDLE, SECOND, now=NOW).step is Step.CLOSE
    assert decide(POLICY, IDLE, SECOND, now=NOW, exempt=True).step is Step.CLOSE


@given(st.lists(st.tuples(st.integers(0, 100), st.sampled_from(list(State))), min_size=1, max_size=60))
def test_nothing_is_taken_without_two_warnings_and_two_gaps_and_never_while_unknown(
    steps: list[tuple[int, State]],
) -> None:
    now, case, warned = NOW, None, []
    for minutes, state in steps:
        now += 60 * minutes
        done = decide(POLICY, Verdict(state, now - 2 * HOUR), case, now=now).step
        if done in (Step.OPEN, Step.WARN_AGAIN, Step.RECLAIM):
            assert state is State.IDLE
        if done is Step.OPEN:
            case, warned = Case(now - 2 * HOUR, now), [now]
        elif done is Step.WARN_AGAIN:
            assert case is not None
            assert now - warned[-1] >= POLICY.gap
            case, warned = Case(case.since, case.first_warned_at, now), [*warned, now]
        elif done is Step.CLOSE:
            case, warned = None, []
        elif done is Step.RECLAIM:
            assert len(warned) == 2
            assert now - warned[-1] >= POLICY.gap
            break


def test_the_idle_rate_leaves_out_what_nobody_knows() -> None:
    found = [Verdict(State.IDLE), Verdict(State.BUSY), Verdict(State.BUSY), Verdict(State.UNKNOWN), Verdict(State.BUSY)]
    assert idle_rate(found) == 25.0
    assert idle_rate([Verdict(State.UNKNOWN)]) is None
