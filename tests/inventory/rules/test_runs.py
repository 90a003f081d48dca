"""One run from the scheduler's memory and its accounting."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.rules.jobs import ENDED, JobState, gpu_seconds
from inventory.rules.runs import GRACE, Absence, absence, merged

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def test_accounting_wins_on_times_and_end() -> None:
    live = {"state": JobState.COMPLETED, "started_at": at(11), "ended_at": at(61), "exit_code": 0, "user": "ada"}
    run = {"state": JobState.TIMEOUT, "started_at": at(10), "ended_at": at(60), "exit_code": 1, "suspended": 5}
    assert merged(None, live, run) == {**live, **run, "held": False}


def test_accounting_that_lags_takes_nothing_back() -> None:
    live = {"state": JobState.CANCELLED, "ended_at": at(60)}
    lagging = {"state": JobState.RUNNING, "started_at": at(10), "ended_at": None}
    facts = merged(None, live, lagging)
    assert (facts["state"], facts["ended_at"], facts["started_at"]) == (JobState.CANCELLED, at(60), at(10))


def test_what_is_over_stays_over() -> None:
    before = {"state": JobState.FAILED, "ended_at": at(9), "reason": "", "cards": 2}
    assert merged(before, {"state": JobState.RUNNING, "reason": "x", "cards": 1}, None)["state"] is JobState.FAILED
    assert merged(before, None, {"state": JobState.RUNNING, "cards": 0})["cards"] == 2


def test_the_scheduler_knows_better_while_it_lives() -> None:
    before = {"state": JobState.PENDING, "reason": "Resources", "held": True}
    live = {"state": JobState.SUSPENDED, "reason": "", "held": False}
    facts = merged(before, live, {"state": JobState.RUNNING, "reason": ""})
    assert (facts["state"], facts["reason"], facts["held"]) == (JobState.SUSPENDED, "", False)


def test_a_run_that_only_the_accounting_knows() -> None:
    facts = merged({"state": JobState.PENDING}, None, {"state": JobState.RUNNING, "started_at": at(3)})
    assert (facts["state"], facts["started_at"]) == (JobState.RUNNING, at(3))


def test_empty_takes_nothing_away() -> None:
    before = {"state": JobState.RUNNING, "user": "ada", "node_names": ["n1"], "cards": 4, "exit_code": None}
    facts = merged(
        before, {"state": JobState.COMPLETING, "user": "", "node_names": [], "cards": 0, "exit_code": 0}, None
    )
    assert facts["user"] == "ada"
    assert facts["node_names"] == ["n1"]
    assert (facts["cards"], facts["exit_code"]) == (4, 0)


_FACTS = st.fixed_dictionaries(
    {"state": st.sampled_from(JobState), "cards": st.integers(0, 8), "user": st.sampled_from(["", "ada"])}
)


@given(before=st.none() | _FACTS, live=st.none() | _FACTS, run=_FACTS)
def test_a_repeat_changes_nothing(before: dict[str, Any] | None, live: dict[str, Any] | None, run: Any) -> None:
    once = merged(before, live, run)
    assert merged(once, live, run) == once


@given(before=_FACTS, live=st.none() | _FACTS, run=st.none() | _FACTS)
def test_no_run_comes_back_from_its_end(before: Any, live: Any, run: Any) -> None:
    if before["state"] in ENDED:
        assert merged(before, live, run)["state"] in ENDED


@pytest.mark.parametrize(
    ("missing", "accounting", "read", "means"),
    [
        (None, False, False, Absence.LOST),
        (None, True, True, Absence.MISSING),
        (at(0), True, True, Absence.MISSING),
        (at(1) - GRACE, True, True, Absence.LOST),
        (at(1) - GRACE, True, False, Absence.MISSING),
    ],
)
def test_absence(missing: datetime | None, accounting: bool, read: bool, means: Absence) -> None:
    assert absence(missing_since=missing, at=at(1), accounting=accounting, accounting_read=read) is means


def test_seconds_of_cards() -> None:
    assert gpu_seconds(cards=4, started_at=at(0), until=at(100), suspended=30) == 280
    assert gpu_seconds(cards=4, started_at=at(0), until=at(100), suspended=None) == 400
    assert gpu_seconds(cards=0, started_at=at(0), until=at(100), suspended=None) == 0
    assert gpu_seconds(cards=4, started_at=None, until=at(100), suspended=None) is None
    assert gpu_seconds(cards=4, started_at=at(0), until=None, suspended=None) is None
    assert gpu_seconds(cards=4, started_at=at(10), until=at(0), suspended=None) == 0
