"""Time integration: U1, U3, U4 (unknown is a state of its own), C-level sums that add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.rules.activity import (
    DEFAULT_THRESHOLD,
    MAX_INTERVAL,
    Reading,
    Seconds,
    activity,
    counted,
    integrate,
    threshold_for,
)

AGENT, EXPORTER, BMC = 1, 2, 3


def at(second: int, value: float | None, *, source: int = AGENT, interval: int = 10) -> Reading:
    return Reading(second, source, interval, value)


CASES = {
    "no sample at all is unknown": ([], (0, 0, 300)),
    "one sample holds three intervals": ([at(0, 50)], (30, 0, 270)),
    "a sample holds until the next one": ([at(0, 50), at(10, 0)], (10, 30, 260)),
    "a hold from before the span counts inside it only": ([at(-20, 50)], (10, 0, 290)),
    "a hold ends at the span": ([at(290, 50)], (10, 0, 290)),
    "the threshold itself is busy": ([at(0, 5)], (30, 0, 270)),
    "just below the threshold is idle": ([at(0, 4.99)], (0, 30, 270)),
    "zero is idle, not unknown": ([at(0, 0)], (0, 30, 270)),
    "a sample without activity covers nothing": ([at(0, None)], (0, 0, 300)),
    "a sample without activity ends the hold before it": ([at(0, 50), at(10, None)], (10, 0, 290)),
    "a gap is unknown": ([at(0, 50), at(100, 50)], (60, 0, 240)),
    "two of one second count once, the first": ([at(0, 50), at(0, 0)], (30, 0, 270)),
    "order of arrival does not matter": ([at(10, 0), at(0, 50)], (10, 30, 260)),
    "the agent goes before the BMC": ([at(0, 50), at(0, 0, source=BMC, interval=60)], (30, 150, 120)),
    "the exporter fills what the agent leaves": (
        [at(0, 50), at(60, 50), at(0, 0, source=EXPORTER, interval=30)],
        (60, 30, 210),
    ),
    "a blind agent leaves the second to the exporter": (
        [at(0, None), at(10, None), at(0, 80, source=EXPORTER)],
        (30, 0, 270),
    ),
    "a longer interval holds longer": ([at(0, 50, interval=60)], (180, 0, 120)),
}


@pytest.mark.parametrize(("readings", "expected"), CASES.values(), ids=CASES.keys())
def test_seconds_of_five_minutes(readings: list[Reading], expected: tuple[int, int, int]) -> None:
    found = integrate(readings, start=0, end=300, threshold=5)
    assert (found.busy, found.idle, found.unknown) == expected


THRESHOLDS = {
    "nothing set": ([], DEFAULT_THRESHOLD),
    "global": ([(None, None, 7)], 7),
    "cluster over global": ([(None, None, 7), (None, "c", 8)], 8),
    "model over cluster": ([("m", None, 9), (None, "c", 8)], 9),
    "model and cluster over all": ([("m", None, 9), ("m", "c", 10), (None, "c", 8), (None, None, 7)], 10),
    "of another model": ([("x", None, 9), ("x", "c", 3)], DEFAULT_THRESHOLD),
}


@pytest.mark.parametrize(("rows", "expected"), THRESHOLDS.values(), ids=THRESHOLDS.keys())
def test_the_most_specific_threshold_wins(rows: list[tuple[str | None, str | None, float]], expected: float) -> None:
    assert threshold_for(rows, model="m", cluster="c") == expected
    assert threshold_for(reversed(rows), model="m", cluster="c") == expected


def test_activity_prefers_sm_activity_and_names_its_source() -> None:
    assert activity(sm_activity=0.0, utilization=90.0) == (0.0, "sm_activity")
    assert activity(sm_activity=None, utilization=90.0) == (90.0, "utilization")
    assert activity(sm_activity=None, utilization=None) == (None, None)


def test_coverage_of_an_empty_span_is_absent() -> None:
    assert Seconds().coverage is None
    assert Seconds(busy=25, idle=25, unknown=50).coverage == 50


def readings() -> st.SearchStrategy[list[Reading]]:
    one = st.builds(
        Reading,
        at=st.integers(-400, 700),
        source=st.sampled_from([AGENT, EXPORTER, BMC]),
        interval=st.sampled_from([1, 5, 10, 30, 60, 120, MAX_INTERVAL]),
        activity=st.sampled_from([None, 0.0, 4.0, 5.0, 100.0]),
    )
    return st.lists(one, max_size=40)


@given(readings(), st.integers(0, 600))
def test_a_span_split_anywhere_adds_up(samples: list[Reading], cut: int) -> None:
    """U3: hours of a span split anywhere add up, and their parts are the whole."""
    whole = integrate(samples, start=0, end=600, threshold=5)
    parts = integrate(samples, start=0, end=cut, threshold=5) + integrate(samples, start=cut, end=600, threshold=5)
    assert whole == parts
    assert whole.total == 600
    assert min(whole.busy, whole.idle, whole.unknown) >= 0


@given(readings())
def test_every_second_belongs_to_the_highest_source_that_covers_it(samples: list[Reading]) -> None:
    """The intervals against the plainest possible count, second by second."""
    expected = [_by_hand(samples, second) for second in range(0, 300)]
    found: list[float | None] = [None] * 300
    for piece in counted(samples):
        for second in range(max(0, piece.start), min(300, piece.end)):
            assert found[second] is None
            found[second] = piece.reading.activity
    assert found == expected


def _by_hand(samples: list[Reading], second: int) -> float | None:
    for source in (AGENT, EXPORTER, BMC):
        past = [sample for sample in samples if sample.source == source and sample.at <= second]
        if not past:
            continue
        newest = max(sample.at for sample in past)
        holder = next(sample for sample in past if sample.at == newest)
        if holder.activity is not None and second < holder.at + 3 * holder.interval:
            return holder.activity
    return None
