"""The writer that tasks use, partitions, current values and history (U1, U4, U7)."""

import math
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings
from django.db import connection

from inventory.models import BusyThreshold
from inventory.observations import CardValues
from inventory.selectors.samples import current_samples, history
from inventory.services import partitions
from inventory.services.rollups import roll_up
from inventory.services.samples import Sample, write_samples
from inventory.signals import samples_stored
from sensaka.kernel.errors import InvalidInput
from tests.inventory.samples.fleet import enrolled
from tests.inventory.samples.test_rollups import set_watermark

pytestmark = pytest.mark.django_db


def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def one(series: int, ago: float, source: str = "agent", interval: int = 10, **values: float) -> Sample:
    return Sample(series, now() - timedelta(seconds=ago), source, interval, CardValues(**values))  # type: ignore[arg-type]


def test_samples_are_stored_once_and_refused_by_name() -> None:
    (card,) = enrolled(cards=1).cards
    samples = [
        one(card.series, 10, utilization=5),
        one(card.series, -120, utilization=5),
        one(card.series, 15 * 86_400, utilization=5),
        one(card.series, 20, interval=0, utilization=5),
        one(card.series, 30, utilization=500),
        one(card.series, 40, power=math.inf),
        one(card.series, 10, utilization=9),
    ]
    result = write_samples(samples)
    assert (result.stored, result.repeated) == (1, 1)
    assert [(one.index, one.reason) for one in result.refused] == [
        (1, "future"), (2, "too_old"), (3, "interval"), (4, "values"), (5, "values"),
    ]  # fmt: skip
    assert current_samples([card.series])[card.series].values == CardValues(utilization=5)
    assert write_samples(samples[:1]).repeated == 1


@pytest.mark.parametrize("wrong", [{"source": "oracle"}, {"sampled_at": datetime(2026, 1, 1)}])  # noqa: DTZ001
def test_a_programming_error_is_no_refusal(wrong: dict[str, object]) -> None:
    given = {"series": 1, "sampled_at": now(), "source": "agent", "interval": 10, "values": CardValues()} | wrong
    with pytest.raises(ValueError, match="sample 0"):
        write_samples([Sample(**given)])  # type: ignore[arg-type]


def test_listeners_hear_of_stored_samples_after_the_commit(django_capture_on_commit_callbacks: object) -> None:
    (card,) = enrolled(cards=1).cards
    heard: list[object] = []

    def hear(**kwargs: object) -> None:
        heard.append(kwargs["sender"])

    samples_stored.connect(hear)
    try:
        with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
            write_samples([one(card.series, 10, utilization=5)])
            assert heard == []
    finally:
        samples_stored.disconnect(hear)
    assert heard == [write_samples]


def test_a_missing_partition_is_made_when_a_sample_needs_it() -> None:
    (card,) = enrolled(cards=1).cards
    day = (now() - timedelta(days=5)).date()
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE inventory_sample_{day:%Y%m%d}")
    assert write_samples([one(card.series, 5 * 86_400, utilization=5)]).stored == 1
    assert day in partitions.sample_days()


def test_days_are_kept_for_their_time_and_for_whoever_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    today = now()
    later = today + timedelta(days=10)
    monkeypatch.setattr(partitions, "_needs", [])
    assert partitions.raw_needed_since() is None
    assert partitions.make_partitions(now=later) >= 10
    set_watermark(later)
    needed = later - settings.RAW_RETENTION - timedelta(days=3)
    partitions.register_raw_need(lambda: needed)
    dropped = partitions.drop_old_partitions(now=later)
    assert dropped
    assert max(dropped) < needed.date()
    assert needed.date() in partitions.sample_days()
    monkeypatch.setattr(partitions, "_needs", [])
    assert needed.date() in partitions.drop_old_partitions(now=later)
    assert partitions.sample_days()[0] == (later - settings.RAW_RETENTION).date()
    assert partitions.make_partitions(now=later) == 0


def test_rollups_are_dropped_by_month_and_year_when_their_time_is_over() -> None:
    """A partition goes when its last row is past the retention, not its first."""
    today = now()
    month = (today - settings.ROLLUP_RETENTION).date()
    year = (today - settings.HOURLY_RETENTION).date()
    for day in (month, month - timedelta(days=62)):
        partitions.add_rollup_month(day=day)
    for step in (0, 366, 732):
        partitions.add_rollup_year(day=year - timedelta(days=step))
    old_month, old_year = month - timedelta(days=62), year - timedelta(days=732)
    dropped = partitions.drop_old_rollups(now=today)
    assert f"inventory_rollup_5m_{old_month:%Y%m}" in dropped
    assert f"inventory_rollup_1h_{old_year:%Y}" in dropped
    assert f"inventory_rollup_5m_{month:%Y%m}" not in dropped
    assert f"inventory_rollup_1h_{year:%Y}" not in dropped
    assert partitions.drop_old_rollups(now=today) == []
    assert not partitions.add_rollup_month(day=today.date())
    assert not partitions.add_rollup_year(day=year)


def test_an_old_hour_is_shown_from_hours_when_its_5_minutes_are_gone() -> None:
    end = now() - settings.ROLLUP_RETENTION
    found = history(1, start=end - timedelta(hours=1), end=end, fields=["power"], points=60)
    assert (found.source_table, found.resolution_seconds) == ("1h", 3600)


def test_no_day_is_dropped_before_it_is_rolled_up() -> None:
    later = now() + timedelta(days=10)
    set_watermark(now() - timedelta(days=30))
    assert partitions.drop_old_partitions(now=later) == []


def test_the_current_sample_is_the_best_fresh_one() -> None:
    """DESIGN 3: agent, exporter, BMC; a stale agent does not hide a fresh BMC; unknown is not zero."""
    a, b, c, d = enrolled(cards=4).cards
    write_samples([
        one(a.series, 5, utilization=50, sm_activity=20), one(a.series, 2, "bmc", 60, power=300),
        one(b.series, 500, utilization=50), one(b.series, 20, "bmc", 60, power=300),
        one(c.series, 2 * 86_400, utilization=50), one(c.series, 3 * 86_400, "exporter", utilization=10),
    ])  # fmt: skip
    found = current_samples()
    assert (found[a.series].source, found[a.series].activity, found[a.series].activity_source) == (
        "agent", 20, "sm_activity",
    )  # fmt: skip
    assert (found[b.series].source, found[b.series].activity, found[b.series].fresh(now())) == ("bmc", None, True)
    assert (found[c.series].source, found[c.series].activity_source) == ("agent", "utilization")
    assert not found[c.series].fresh(now())
    assert d.series not in found


def test_a_chart_of_an_hour_comes_from_raw_samples_with_gaps() -> None:
    (card,) = enrolled(cards=1).cards
    end = now()
    start = end - timedelta(minutes=10)
    write_samples([
        Sample(card.series, start + timedelta(seconds=s), "agent", 10, CardValues(utilization=50.0, energy=float(s)))
        for s in range(0, 600, 10) if not 200 <= s < 300
    ])  # fmt: skip
    found = history(card.series, start=start, end=end, fields=["utilization", "energy", "power"], points=600)
    assert (found.resolution_seconds, found.source_table) == (10, "raw")
    gaps = [time for time, value in zip(found.times, found.fields["utilization"]["mean"], strict=True) if value is None]
    # the sample at 190 s holds for 30 s, so the gap is from 220 to 300
    assert all(start.timestamp() + 210 <= time <= start.timestamp() + 300 for time in gaps if time >= start.timestamp())
    assert len(gaps) in (7, 8, 9)
    assert set(found.fields["power"]["mean"]) == {None}
    assert sum(found.busy) + sum(found.idle) + sum(found.unknown) == int(end.timestamp()) - found.times[0]
    assert sum(found.busy) == 600 - 80
    assert found.fields["utilization"]["max"][-1] == 50
    assert sum(value or 0 for value in found.fields["energy"]["growth"]) == 590 - 110


@pytest.mark.parametrize(
    ("days", "table", "step"), [(1, "5m", 300), (9, "5m", 1800), (60, "1h", 10_800), (730, "1h", 172_800)]
)
def test_longer_charts_come_from_rollups_and_reach_up_to_now(days: int, table: str, step: int) -> None:
    """U1: one hour to two years; the same seconds whatever they are read from."""
    (card,) = enrolled(cards=1).cards
    BusyThreshold.objects.create(activity=10)
    end = now()
    first = end - timedelta(hours=5)
    set_watermark((first - timedelta(hours=2)).replace(minute=0, second=0))
    write_samples([
        Sample(card.series, first + timedelta(seconds=s), "agent", 300, CardValues(utilization=s % 40, power=100.0))
        for s in range(0, 5 * 3600, 300)
    ])  # fmt: skip
    roll_up(now=end)
    found = history(card.series, start=end - timedelta(days=days), end=end, fields=["power", "xid"], points=600)
    assert (found.source_table, found.resolution_seconds) == (table, step)
    assert sum(found.busy) + sum(found.idle) == 5 * 3600
    assert sum(found.busy) + sum(found.idle) + sum(found.unknown) == int(end.timestamp()) - found.times[0]
    assert found.fields["power"]["mean"][-1] == pytest.approx(100)
    assert found.fields["power"]["mean"][0] is None
    assert len(found.times) <= 700


def test_a_history_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nonsense"):
        history(1, start=now() - timedelta(hours=1), end=now(), fields=["nonsense"])
    with pytest.raises(InvalidInput, match="start"):
        history(1, start=now(), end=now(), fields=["power"])
