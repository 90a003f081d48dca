"""How much of a quota is used (P4), to the second and by the quota's own calendar."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from inventory.models import Card
from pools.models import Quota, QuotaLimit, Resource, UsageRecord
from pools.selectors.quotas import period_of, use_of
from tests.pools.building import Team, World, allocation, card_model, node

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def quota(team: Team, *limits: tuple[str, int], project: bool = False, **fields: Any) -> Quota:
    row = Quota.objects.create(tenant=team.tenant, project=team.project if project else None, **fields)
    for resource, nominal in limits:
        QuotaLimit.objects.create(quota=row, resource=resource, nominal=nominal)
    return row


def used(row: Quota, now: datetime = NOW) -> dict[str, Decimal]:
    return {one.limit.resource: one.used for one in use_of([row], now=now)[row.pk]}


def test_cards_and_memory_are_counted_now_shares_as_fractions(place: World) -> None:
    row = quota(place.red, ("cards", 4), ("memory", 10**12))
    hour_ago = NOW - timedelta(hours=1)
    allocation(place.cards[0], place.red, span=(hour_ago, None))
    allocation(place.cards[1], place.red, span=(hour_ago, None), share=(250, 500))
    allocation(place.cards[1], place.blue, span=(hour_ago, None), share=(0, 250))
    allocation(place.cards[2], place.red, span=(hour_ago, NOW))
    assert used(row) == {"cards": Decimal("1.25"), "memory": Decimal(100 * 2**30)}


def test_hours_are_those_inside_the_period(place: World) -> None:
    row = quota(place.red, ("hours", 100), period="day")
    midnight = NOW.replace(hour=0)
    allocation(place.cards[0], place.red, span=(midnight - timedelta(hours=5), midnight + timedelta(hours=2)))
    allocation(place.cards[1], place.red, span=(NOW - timedelta(seconds=1800), None))
    allocation(place.cards[2], place.red, span=(midnight - timedelta(hours=5), midnight))
    assert used(row) == {"hours": Decimal("2.5")}


def test_a_limit_of_one_model_counts_that_model(place: World) -> None:
    other = card_model("A100 80GB")
    node("other", cluster=place.cluster, cards=1, model=other)
    row = quota(place.red)
    for model in (place.model, other, None):
        QuotaLimit.objects.create(quota=row, resource=Resource.CARDS, model=model, nominal=1)
    for card in (*place.cards[:2], Card.objects.get(model=other)):
        allocation(card, place.red, span=(NOW - timedelta(hours=1), None))
    found = {one.limit.model_id: one.used for one in use_of([row], now=NOW)[row.pk]}
    assert found == {place.model.pk: 2, other.pk: 1, None: 3}


def test_tokens_add_up_and_of_storage_the_newest_counts(place: World) -> None:
    row = quota(place.red, ("tokens", 1000), ("storage", 1000))
    for number, (kind, subject, amount, hours) in enumerate(
        [
            ("tokens", "llama", 5, 1), ("tokens", "llama", 7, 2), ("tokens", "llama", 100, 24 * 40),
            ("storage", "a", 10, 30), ("storage", "a", 40, 1), ("storage", "b", 3, 24 * 40),
        ]
    ):  # fmt: skip
        UsageRecord.objects.create(
            tenant=place.red.tenant, kind=kind, subject=subject, amount=amount, at=NOW - timedelta(hours=hours),
            source="meter", key=str(number),
        )  # fmt: skip
    assert used(row) == {"tokens": 12, "storage": 43}


def test_a_project_counts_its_own(place: World) -> None:
    whole, part = quota(place.red, ("cards", 4)), quota(place.red, ("cards", 1), project=True)
    hour_ago = NOW - timedelta(hours=1)
    allocation(place.cards[0], place.red, span=(hour_ago, None))
    allocation(place.cards[1], None, tenant=place.red.tenant, span=(hour_ago, None))
    assert (used(whole)["cards"], used(part)["cards"]) == (2, 1)


def test_what_is_over_the_nominal_amount_is_borrowed(place: World) -> None:
    row = quota(place.red, ("cards", 1))
    for card in place.cards[:3]:
        allocation(card, place.red, span=(NOW - timedelta(hours=1), None))
    (line,) = use_of([row], now=NOW)[row.pk]
    assert (line.borrowed, line.percent) == (2, 300.0)


@pytest.mark.parametrize(
    ("period", "zone", "now", "start", "end"),
    [
        ("day", "UTC", "2026-11-30T12:00", "2026-11-30T00:00", "2026-12-01T00:00"),
        ("day", "Europe/Zurich", "2026-03-29T12:00", "2026-03-28T23:00", "2026-03-29T22:00"),
        ("day", "Europe/Zurich", "2026-10-25T12:00", "2026-10-24T22:00", "2026-10-25T23:00"),
        ("week", "UTC", "2026-12-02T12:00", "2026-11-30T00:00", "2026-12-07T00:00"),
        ("week", "Europe/Zurich", "2026-03-29T21:59", "2026-03-22T23:00", "2026-03-29T22:00"),
        ("month", "UTC", "2026-12-31T23:59", "2026-12-01T00:00", "2027-01-01T00:00"),
        ("month", "Pacific/Auckland", "2026-11-30T12:00", "2026-11-30T11:00", "2026-12-31T11:00"),
        ("quarter", "UTC", "2026-11-30T12:00", "2026-10-01T00:00", "2027-01-01T00:00"),
        ("year", "UTC", "2026-11-30T12:00", "2026-01-01T00:00", "2027-01-01T00:00"),
    ],
)
def test_periods_follow_the_calendar_of_the_zone(period: str, zone: str, now: str, start: str, end: str) -> None:
    found = period_of(period, zone, datetime.fromisoformat(now).replace(tzinfo=UTC))
    assert [one.astimezone(UTC).strftime("%Y-%m-%dT%H:%M") for one in found] == [start, end]


def test_any_number_of_quotas_costs_three_queries(place: World) -> None:
    for team in (place.red, place.blue):
        quota(team, ("cards", 1), ("hours", 1), ("tokens", 1))
        quota(team, ("cards", 1), project=True)
    rows = list(Quota.objects.prefetch_related("limits"))
    with CaptureQueriesContext(connection) as queries:
        assert len(use_of(rows)) == 4
    assert len(queries) == 3
