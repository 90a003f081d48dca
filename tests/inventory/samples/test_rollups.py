"""Rollups in SQL against the rule in Python; late samples; repeatability (U1, U4)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inventory.models import BusyThreshold
from inventory.observations import CardValues
from inventory.rules.activity import SOURCE_CODES, SOURCES, Reading, integrate
from inventory.services.rollups import roll_up, roll_up_span
from inventory.services.samples import Sample, write_samples
from tests.inventory.samples.fleet import enrolled, whole_hour

pytestmark = pytest.mark.django_db


def rows(table: str, series: int, columns: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM {table} WHERE series = %s ORDER BY bucket", [series])
        return cursor.fetchall()


def set_watermark(moment: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE inventory_rollup_state SET claimed = %s, done = %s", [moment, moment])


def readings(samples: Sequence[Sample]) -> list[Reading]:
    return [
        Reading(
            int(sample.sampled_at.timestamp()),
            SOURCE_CODES[sample.source],
            sample.interval,
            sample.values.utilization if sample.values.sm_activity is None else sample.values.sm_activity,
        )
        for sample in samples
    ]


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[int, str, int, float | None, float | None]]:
    count = draw(st.integers(1, 60))
    return [
        (
            # times cluster on 5-minute bounds, where mistakes would show
            draw(st.one_of(st.integers(-3700, 3700), st.sampled_from([-30, -1, 0, 1, 270, 299, 300, 301, 3570, 3599]))),
            draw(st.sampled_from(SOURCES)),
            draw(st.sampled_from([1, 10, 30, 100, 300, 1200])),
            draw(st.sampled_from([None, 0.0, 4.0, 5.0, 5.5, 100.0])),
            draw(st.sampled_from([None, 0.0, 5.0, 70.0])),
        )
        for _ in range(count)
    ]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches(), st.integers(1, 3))
def test_the_sql_counts_as_the_rule_does(
    db: None, drawn: list[tuple[int, str, int, float | None, float | None]], parts: int
) -> None:
    """Random samples of several sources with gaps and duplicates, written in several batches, in any order."""
    hour = whole_hour()
    with transaction.atomic():
        card, other = enrolled(cards=2).cards
        samples = [
            Sample(card.series, hour + timedelta(seconds=second), source, interval, CardValues(
                utilization=utilization, sm_activity=sm_activity, power=None if utilization is None else utilization * 7
            ))
            for second, source, interval, utilization, sm_activity in drawn
        ]  # fmt: skip
        for part in range(parts):
            write_samples(samples[part::parts])
        write_samples([Sample(other.series, hour, "agent", 10, CardValues(utilization=50.0))])
        roll_up_span(start=hour, end=hour + timedelta(hours=1))
        # of two with the same key the first that was written counts
        known = readings([sample for part in range(parts) for sample in samples[part::parts]])
        start = int(hour.timestamp())
        found = {
            int(bucket.timestamp()): (busy, idle, unknown)
            for bucket, busy, idle, unknown in rows(
                "inventory_rollup_5m", card.series, "bucket, busy_s, idle_s, unknown_s"
            )
        }
        for bucket in range(start, start + 3600, 300):
            expected = integrate(known, start=bucket, end=bucket + 300, threshold=5)
            assert found.get(bucket, (0, 0, 300)) == (expected.busy, expected.idle, expected.unknown)
        whole = integrate(known, start=start, end=start + 3600, threshold=5)
        hourly = rows("inventory_rollup_1h", card.series, "busy_s, idle_s, unknown_s")
        assert (hourly or [(0, 0, 3600)]) == [(whole.busy, whole.idle, whole.unknown)]
        for low, mean, high in rows("inventory_rollup_5m", card.series, "power_min, power_mean, power_max"):
            assert (low is None) == (mean is None) == (high is None)
            assert low is None or low - 1e-3 <= mean <= high + 1e-3
        transaction.set_rollback(True)


def test_figures_of_a_bucket() -> None:
    """Mean by time, first, last and growth of a counter over a reset, all throttle reasons, the last XID."""
    hour = whole_hour()
    (card,) = enrolled(cards=1).cards
    given_values = [
        (0, CardValues(utilization=0.0, energy=100.0, power=100.0, throttle_reasons=1, memory_used=80_000_000_000)),
        (10, CardValues(utilization=50.0, energy=150.0, power=200.0, throttle_reasons=4, xid=31)),
        (40, CardValues(utilization=50.0, energy=20.0, power=400.0, xid=79)),
    ]
    write_samples([Sample(card.series, hour + timedelta(seconds=at), "agent", 10, value) for at, value in given_values])
    roll_up_span(start=hour, end=hour + timedelta(hours=1))
    columns = (
        "power_min, power_mean, power_max, energy_first, energy_last, energy_growth, throttle_reasons, xid,"
        " samples, busy_s, idle_s, unknown_s, held_s, threshold, memory_used_mean, temperature_mean"
    )
    # power holds 10 s, 30 s, 30 s
    mean = pytest.approx((100 * 10 + 200 * 30 + 400 * 30) / 70)
    expected = [100, mean, 400, 100, 20, 70, 5, 79, 3, 60, 10]
    ((*figures, unknown, held, threshold, memory, temperature),) = rows("inventory_rollup_5m", card.series, columns)
    assert figures == expected
    assert (unknown, held, threshold, memory, temperature) == (230, 70, 5.0, pytest.approx(8e10), None)
    ((*figures, unknown, held, threshold, memory, temperature),) = rows("inventory_rollup_1h", card.series, columns)
    assert figures == expected
    assert (unknown, held, threshold, memory, temperature) == (3530, 70, 5.0, pytest.approx(8e10), None)


def test_growth_adds_up_over_buckets_and_hours() -> None:
    """A counter's increments belong to the bucket of the later sample, so that sums lose nothing between buckets."""
    hour = whole_hour()
    (card,) = enrolled(cards=1).cards
    write_samples(
        [
            Sample(card.series, hour + timedelta(seconds=second), "agent", 10, CardValues(energy=100.0 + second))
            for second in range(-10, 3600, 10)
        ]
    )
    roll_up_span(start=hour, end=hour + timedelta(hours=1))
    assert sum(growth for (growth,) in rows("inventory_rollup_5m", card.series, "energy_growth")) == 3600  # type: ignore[misc]
    assert rows("inventory_rollup_1h", card.series, "energy_first, energy_last, energy_growth") == [(100, 3690, 3600)]


def test_a_field_comes_from_the_highest_source_that_has_it() -> None:
    hour = whole_hour()
    (card,) = enrolled(cards=1).cards
    write_samples(
        [
            Sample(card.series, hour, "agent", 10, CardValues(utilization=50.0, power=300.0)),
            Sample(card.series, hour, "bmc", 60, CardValues(power=500.0, temperature=61.0)),
        ]
    )
    roll_up_span(start=hour, end=hour + timedelta(hours=1))
    assert rows("inventory_rollup_5m", card.series, "power_mean, temperature_mean, busy_s, samples") == [
        (300, 61, 30, 2)
    ]


def test_the_threshold_of_the_model_decides_what_is_busy() -> None:
    hour = whole_hour()
    (card,) = enrolled(cards=1).cards
    BusyThreshold.objects.create(activity=20)
    write_samples([Sample(card.series, hour, "agent", 10, CardValues(utilization=19.0))])
    roll_up_span(start=hour, end=hour + timedelta(hours=1))
    assert rows("inventory_rollup_5m", card.series, "busy_s, idle_s, threshold") == [(0, 30, 20)]


def test_only_closed_buckets_are_made_and_hours_when_they_are_whole() -> None:
    hour = whole_hour()
    (card,) = enrolled(cards=1).cards
    set_watermark(hour)
    write_samples(
        [
            Sample(card.series, hour + timedelta(seconds=second), "agent", 10, CardValues(utilization=50.0))
            for second in range(0, 3600, 10)
        ]
    )
    made = roll_up(now=hour + timedelta(minutes=12))
    assert made.done == hour + timedelta(minutes=10)
    assert rows("inventory_rollup_5m", card.series, "busy_s") == [(300,), (300,)]
    assert rows("inventory_rollup_1h", card.series, "busy_s") == []
    assert roll_up(now=hour + timedelta(minutes=12)).rows == 0
    made = roll_up(now=hour + timedelta(minutes=60, seconds=30))
    assert made.done == hour + timedelta(hours=1)
    assert rows("inventory_rollup_1h", card.series, "busy_s, unknown_s, samples") == [(3600, 0, 360)]


def test_an_hour_that_was_delivered_late_turns_from_unknown_to_its_true_seconds() -> None:
    """The agent was cut off for an hour and delivers; the hour after it, into which the last hold reaches, too."""
    hour = whole_hour()
    (card,) = enrolled(cards=1).cards
    set_watermark(hour - timedelta(hours=1))
    write_samples([Sample(card.series, hour - timedelta(seconds=10), "agent", 10, CardValues(utilization=50.0))])
    roll_up(now=hour + timedelta(hours=1, minutes=10))
    assert rows("inventory_rollup_1h", card.series, "busy_s, unknown_s") == [(10, 3590), (20, 3580)]
    spooled = [
        Sample(card.series, hour + timedelta(seconds=second), "agent", 10, CardValues(utilization=50.0))
        for second in range(0, 3600, 10)
    ]
    write_samples(spooled[200:])
    write_samples(spooled[:200])
    made = roll_up(now=hour + timedelta(hours=1, minutes=10))
    assert made.late_hours == 2
    assert rows("inventory_rollup_1h", card.series, "busy_s, unknown_s") == [(10, 3590), (3600, 0)]
    assert rows("inventory_rollup_5m", card.series, "busy_s")[-1] == (20,)
    assert roll_up(now=hour + timedelta(hours=1, minutes=10)).late_hours == 0


def test_making_a_bucket_twice_changes_nothing() -> None:
    hour = whole_hour()
    (card,) = enrolled(cards=1).cards
    write_samples([Sample(card.series, hour, "agent", 10, CardValues(utilization=50.0, power=1.1, energy=2.0))])
    assert roll_up_span(start=hour, end=hour + timedelta(hours=1)) == 1
    assert roll_up_span(start=hour, end=hour + timedelta(hours=1)) == 0


def test_a_long_stop_is_caught_up_hour_by_hour() -> None:
    hour = whole_hour(26)
    (card,) = enrolled(cards=1).cards
    set_watermark(hour)
    write_samples(
        [
            Sample(card.series, hour + timedelta(hours=step), "agent", 10, CardValues(utilization=50.0))
            for step in range(24)
        ]
    )
    roll_up(now=hour + timedelta(hours=25))
    assert len(rows("inventory_rollup_1h", card.series, "busy_s")) == 24
    assert roll_up(now=datetime.now(UTC), budget=0).done <= datetime.now(UTC)
