"""How much of each quota is used: cards and memory now, GPU-hours and tokens in the period, storage."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import connection
from django.utils import timezone

from pools.models import Period, Quota, QuotaLimit, Resource

# One row a quota and card model: thousandths held now, thousandths x bytes held now, thousandth-seconds in the period.
_LEDGER = """
SELECT quota.id, card.model_id,
       COALESCE(SUM(share.width) FILTER (WHERE allocation.span @> %(now)s), 0),
       COALESCE(SUM(share.width * COALESCE(card.memory_total, model.memory, 0))
                FILTER (WHERE allocation.span @> %(now)s), 0),
       SUM(share.width * (FLOOR(EXTRACT(epoch FROM LEAST(COALESCE(upper(allocation.span), %(now)s), %(now)s)))::bigint
           - FLOOR(EXTRACT(epoch FROM GREATEST(lower(allocation.span), period.start)))::bigint))
  FROM pools_quota quota
  JOIN unnest(%(quotas)s::uuid[], %(starts)s::timestamptz[]) AS period(quota, start) ON period.quota = quota.id
  JOIN pools_allocation allocation ON allocation.tenant_id = quota.tenant_id
   AND (quota.project_id IS NULL OR allocation.project_id = quota.project_id)
   AND allocation.span && tstzrange(period.start, %(now)s, '[]')
  JOIN inventory_card card ON card.id = allocation.card_id
  LEFT JOIN inventory_cardmodel model ON model.id = card.model_id
 CROSS JOIN LATERAL (SELECT upper(allocation.share) - lower(allocation.share) AS width) share
 GROUP BY quota.id, card.model_id
"""
_TOKENS = """
SELECT quota.id, SUM(record.amount)
  FROM pools_quota quota
  JOIN unnest(%(quotas)s::uuid[], %(starts)s::timestamptz[]) AS period(quota, start) ON period.quota = quota.id
  JOIN pools_usagerecord record ON record.tenant_id = quota.tenant_id AND record.kind = 'tokens'
   AND (quota.project_id IS NULL OR record.project_id = quota.project_id)
   AND record.at >= period.start AND record.at <= %(now)s
 GROUP BY quota.id
"""
_STORAGE = """
SELECT quota.id, SUM(newest.amount)
  FROM pools_quota quota
  JOIN (SELECT DISTINCT ON (tenant_id, project_id, source, subject) tenant_id, project_id, amount
          FROM pools_usagerecord WHERE kind = 'storage' AND at <= %(now)s
         ORDER BY tenant_id, project_id, source, subject, at DESC, id DESC) newest
    ON newest.tenant_id = quota.tenant_id AND (quota.project_id IS NULL OR newest.project_id = quota.project_id)
 WHERE quota.id = ANY(%(quotas)s::uuid[])
 GROUP BY quota.id
"""


def period_of(period: str, zone: str, now: datetime) -> tuple[datetime, datetime]:
    """The calendar period around `now` in a time zone, as [start, end) in UTC."""
    start, end = _local_period(period, now.astimezone(ZoneInfo(zone)))
    return start.astimezone(UTC), end.astimezone(UTC)


def _local_period(period: str, local: datetime) -> tuple[datetime, datetime]:
    """Midnights by the wall clock: arithmetic on aware times of one zone keeps it, whatever the clocks do."""
    day = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    match period:
        case Period.DAY:
            return day, day + timedelta(days=1)
        case Period.WEEK:
            start = day - timedelta(days=day.weekday())
            return start, start + timedelta(days=7)
        case Period.MONTH:
            start, months = day.replace(day=1), 1
        case Period.QUARTER:
            start, months = day.replace(day=1, month=(day.month - 1) // 3 * 3 + 1), 3
        case _:
            start, months = day.replace(day=1, month=1), 12
    later = start.month - 1 + months
    return start, start.replace(year=start.year + later // 12, month=later % 12 + 1)


@dataclass(frozen=True, slots=True)
class Used:
    """A limit and how much of it is used, in the unit of its resource."""

    limit: QuotaLimit
    used: Decimal
    period: tuple[datetime, datetime] | None

    @property
    def percent(self) -> float | None:
        """Of the nominal amount; None where that is 0."""
        return float(100 * self.used / self.limit.nominal) if self.limit.nominal else None

    @property
    def borrowed(self) -> Decimal:
        """What is used beyond the nominal amount."""
        return max(Decimal(0), self.used - self.limit.nominal)


_TIMED = frozenset({Resource.HOURS.value, Resource.TOKENS.value})


def use_of(quotas: Iterable[Quota], *, now: datetime | None = None) -> dict[UUID, list[Used]]:
    """The limits of each quota with their use. Three queries, for quotas with `limits` prefetched."""
    now = now or timezone.now()
    rows = list(quotas)
    periods = {row.pk: period_of(row.period, row.time_zone, now) for row in rows}
    numbers = _numbers(periods, now) if rows else _Numbers({}, {}, {})
    return {
        row.pk: [
            Used(limit, numbers.of(limit), periods[row.pk] if limit.resource in _TIMED else None)
            for limit in row.limits.all()
        ]
        for row in rows
    }


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What the queries gave: by quota and model from the ledger, by quota from the records."""

    ledger: Mapping[UUID, Mapping[UUID | None, tuple[int, int, int]]]
    tokens: Mapping[UUID, int]
    storage: Mapping[UUID, int]

    def of(self, limit: QuotaLimit) -> Decimal:
        """The use of one limit, in its unit."""
        if limit.resource == Resource.TOKENS:
            return Decimal(self.tokens.get(limit.quota_id, 0))
        if limit.resource == Resource.STORAGE:
            return Decimal(self.storage.get(limit.quota_id, 0))
        models = self.ledger.get(limit.quota_id, {})
        rows = [row for model, row in models.items() if limit.model_id in (None, model)]
        match limit.resource:
            case Resource.CARDS:
                return Decimal(sum(row[0] for row in rows)) / 1000
            case Resource.MEMORY:
                return Decimal(sum(row[1] for row in rows)) / 1000
            case _:
                return Decimal(sum(row[2] for row in rows)) / 1000 / 3600


def _numbers(periods: Mapping[UUID, tuple[datetime, datetime]], now: datetime) -> _Numbers:
    values: dict[str, Any] = {
        "now": now, "quotas": list(periods), "starts": [start for start, _end in periods.values()],
    }  # fmt: skip
    ledger: dict[UUID, dict[UUID | None, tuple[int, int, int]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_LEDGER, values)
        for quota, model, cards, memory, seconds in cursor.fetchall():
            ledger.setdefault(quota, {})[model] = (int(cards), int(memory), int(seconds))
        cursor.execute(_TOKENS, values)
        tokens = {quota: int(amount) for quota, amount in cursor.fetchall()}
        cursor.execute(_STORAGE, values)
        storage = {quota: int(amount) for quota, amount in cursor.fetchall()}
    return _Numbers(ledger, tokens, storage)
