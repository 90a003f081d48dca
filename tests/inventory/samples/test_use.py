"""Seconds of many spans, from rollups and raw samples together, against the rule in Python (U1, U4)."""

from datetime import datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inventory.models import BusyThreshold
from inventory.observations import CardValues
from inventory.rules.activity import integrate
from inventory.selectors.use import Span, Use, last_busy, use_over
from inventory.services.rollups import roll_up, roll_up_span
from inventory.services.samples import Sample, write_samples
from tests.inventory.samples.fleet import enrolled, whole_hour
from tests.inventory.samples.test_rollups import batches, readings, set_watermark

pytestmark = pytest.mark.django_db

Drawn = list[tuple[int, str, int, float | None, float | None]]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches(),
    st.sampled_from([-3600, 0, 1200, 3600]),
    st.lists(st.tuples(st.integers(-3600, 3600), st.integers(0, 3600)), min_size=1, max_size=4),
)
def test_spans_add_up_as_the_rule_says(db: None, drawn: Drawn, done: int, spans: list[tuple[int, int]]) -> None:
    """Whatever was rolled up so far, and wherever the spans begin and end."""
    hour = whole_hour()
    base = int(hour.timestamp())
    with transaction.atomic():
        card, other = enrolled(cards=2).cards
        BusyThreshold.objects.create(activity=5.5)
        samples = {
            (second, source): Sample(
                card.series, hour + timedelta(seconds=second), source, interval,
                CardValues(utilization=utilization, sm_activity=sm_activity),
            )
            for second, source, interval, utilization, sm_activity in drawn
        }  # fmt: skip
        write_samples(list(samples.values()))
        set_watermark(hour + timedelta(seconds=done))
        if done > -3600:
            roll_up_span(start=hour - timedelta(hours=1), end=hour + timedelta(seconds=done))
        wanted = [Span(card.series, base + low, base + low + length) for low, length in spans]
        found = use_over([*wanted, Span(other.series, base, base + 3600)])
        assert found[-1] == Use(unknown=3600)
        for span, use in zip(wanted, found, strict=False):
            expected = integrate(readings(list(samples.values())), start=span.start, end=span.end, threshold=5.5)
            assert (use.busy, use.idle, use.unknown) == (expected.busy, expected.idle, expected.unknown)
            if use.busy or use.idle:
                assert use.highest is not None
        transaction.set_rollback(True)


def level(series: int, start: datetime, minutes: int, activity: float) -> list[Sample]:
    return [
        Sample(series, start + timedelta(minutes=minute), "agent", 60, CardValues(utilization=activity))
        for minute in range(minutes)
    ]


def test_days_are_read_from_hours_and_cost_no_more(db: None) -> None:
    start = whole_hour() - timedelta(days=2)
    base = int(start.timestamp())
    fleet = enrolled(cards=3)
    busy, idle, silent = (card.series for card in fleet.cards)
    # half an hour busy at the very beginning; then idle, with one hour of which nothing is known
    write_samples(level(busy, start, 30, 80.0) + level(busy, start + timedelta(minutes=30), 40 * 60, 1.0))
    write_samples(level(idle, start, 20 * 60, 1.0) + level(idle, start + timedelta(hours=21), 15 * 60, 2.0))
    set_watermark(start)
    while roll_up(now=start + timedelta(hours=38)).done < start + timedelta(hours=37, minutes=50):
        pass
    spans = [Span(series, base + 60, base + 36 * 3600) for series in (busy, idle, silent)]
    with CaptureQueriesContext(connection) as caught:
        found = use_over(spans)
    assert found[0] == Use(1740, 36 * 3600 - 1800, 0, 80.0)
    # a sample holds for three intervals, so the hour without any is unknown but for two minutes
    assert found[1] == Use(0, 36 * 3600 - 60 - 3600 + 120, 3600 - 120, 2.0)
    assert found[2] == Use(0, 0, 36 * 3600 - 60)
    assert len(caught) == 4
    with CaptureQueriesContext(connection) as caught:
        use_over(spans * 20)
    assert len(caught) == 4
    quick = use_over([*spans, Span(busy, base + 1200, base + 4 * 3600 + 60)], until_busy=True)
    assert quick[1:3] == found[1:], "what is not busy is told in full"
    assert quick[0].busy
    assert quick[3].busy == 600, "hours and buckets alone"
    assert last_busy(spans) == [base + 1800, None, None]


def test_nothing_is_asked_nothing_is_found(db: None) -> None:
    assert use_over([]) == []
    assert last_busy([]) == []
