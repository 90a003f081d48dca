"""Tenants with what they used, their quotas, and what is offered, as the rules see it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from pools.models import PriorityClass, Project, Quota, SharingMode, Spec, Tenant
from pools.rules import demand, tenancy
from pools.rules.fleet import Mode
from pools.selectors.frozen.fleet import name_of
from pools.selectors.quotas import use_of

# What is left of the use of a span after decay: the integral of 0.5 ** ((now - t) / half-life) over it,
# half-life / ln 2 * (0.5 ** ((now - end) / half-life) - 0.5 ** ((now - start) / half-life)), times its cards.
_USAGE = """
SELECT tenant_id, SUM((upper(share) - lower(share)) / 1000.0 * %(half)s / ln(2.0::float8) * (
           power(0.5::float8, LEAST(EXTRACT(epoch FROM %(now)s - LEAST(COALESCE(upper(span), %(now)s), %(now)s))::float8
                                    / %(half)s, 1000))
         - power(0.5::float8, LEAST(EXTRACT(epoch FROM %(now)s - lower(span))::float8 / %(half)s, 1000))))
  FROM pools_allocation
 WHERE tenant_id IS NOT NULL AND lower(span) < %(now)s
   AND (upper_inf(span) OR upper(span) > %(now)s - make_interval(secs => %(half)s * 8))
 GROUP BY tenant_id
"""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Specs, withdrawn ones too, and priority classes."""

    specs: list[demand.Spec]
    priorities: list[demand.PriorityClass]


def catalogue() -> Catalogue:
    """What can be asked for. Three queries."""
    specs = [
        demand.Spec(
            id=row.pk,
            name=row.name,
            models=frozenset(name_of(model.name, "") for model in row.card_models.all()),
            cards=row.cards,
            mode=Mode(row.mode),
            shares=row.shares_per_card if row.mode in (SharingMode.TIME_SLICE, SharingMode.MPS) else 1,
            profile=row.profile,
            cpu=row.cpu_cores or 0.0,
            memory=row.memory or 0,
            near=demand.Near(row.near),
            price=None if row.price is None else float(row.price),
            offered=row.active,
        )
        for row in Spec.objects.prefetch_related("card_models").order_by("id")
    ]
    priorities = [
        demand.PriorityClass(
            row.pk, row.value, row.name, row.preemptible, row.may_preempt, row.minimum_run, row.grace,
            float(row.price_factor),
        )
        for row in PriorityClass.objects.order_by("id")
    ]  # fmt: skip
    return Catalogue([spec for spec in specs if spec.models], priorities)


def parties(now: datetime, *, half_life: int) -> tuple[list[tenancy.Tenant], list[tenancy.Project]]:
    """All tenants with their decayed card-seconds, and all projects. Three queries."""
    with connection.cursor() as cursor:
        cursor.execute(_USAGE, {"now": now, "half": float(half_life)})
        usage: dict[Any, float] = {tenant: max(0.0, float(used)) for tenant, used in cursor.fetchall()}
    tenants = [
        tenancy.Tenant(key, name, cohort or None, weight, usage.get(key, 0.0))
        for key, name, cohort, weight in Tenant.objects.order_by("id").values_list("pk", "name", "cohort", "weight")
    ]
    projects = [tenancy.Project(*row) for row in Project.objects.order_by("id").values_list("pk", "tenant", "name")]
    return tenants, projects


def limits(now: datetime) -> list[tenancy.Quota]:
    """All quotas with what their periods recorded. Five queries."""
    rows = list(Quota.objects.prefetch_related("limits__model").order_by("id"))
    used = use_of(rows, now=now)
    found = []
    for row in rows:
        for one in used[row.pk]:
            limit = one.limit
            start, end = one.period if one.period is not None else (None, None)
            found.append(
                tenancy.Quota(
                    holder=row.project_id or row.tenant_id,
                    resource=tenancy.Resource(limit.resource),
                    nominal=float(limit.nominal),
                    borrowing=None if limit.borrowing is None else float(limit.borrowing),
                    lending=None if limit.lending is None else float(limit.lending),
                    model=None if limit.model is None else name_of(limit.model.name, ""),
                    period_start=None if start is None else int(start.timestamp()),
                    period_end=None if end is None else int(end.timestamp()),
                    used=float(one.used),
                )
            )
    return found
