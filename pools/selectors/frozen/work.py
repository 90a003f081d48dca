"""What waits and what runs, as the rules see it, and what keeps it from starting."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from inventory.models import Node
from pools.models import Allocation, Hold, MaintenanceWindow, Pool, Request, Tenant
from pools.rules import demand as rules
from pools.rules import fleet

_REQUEST = (
    "id", "project__tenant", "project", "pool", "spec", "priority", "submitted_at", "time_limit", "count", "near",
    "waited_since", "not_before", "model", "boost", "preempted", "name", "spec__name",
)  # fmt: skip


def seconds(moment: datetime | None) -> int | None:
    """Whole UTC seconds since 1970."""
    return None if moment is None else int(moment.timestamp())


WINDOW = 2000
"""Requests that one pass decides about; with more in the queue, all of them are looked at now and then."""

_OF_ONE = 200
"""Of one tenant and class, in a window: those behind them come in a later pass."""


def waiting_in(pool: Pool, *, specs: Collection[Any]) -> list[rules.Request]:
    """The queued requests of a pool, of known specs. One query."""
    return _requests(_queued(pool), specs)


def head_of(
    pool: Pool, now: datetime, *, specs: Collection[Any], most: int = WINDOW, also: Collection[Any] = ()
) -> list[rules.Request] | None:  # fmt: skip
    """The first `most` of a queue that nothing holds back, and `also`; None where the queue has no more than that.

    By an operator's order and class, of equal ones the tenants in turn, each by the time that it waits: who
    comes first of them the rules decide. Three queries.
    """
    if not _queued(pool)[most : most + 1].exists():
        return None
    held = Hold.objects.filter(Q(until=None) | Q(until__gt=now), lifted_at=None)
    turn = Window(
        RowNumber(), partition_by=[F("boost"), F("priority"), F("project__tenant")], order_by=["waited_since", "id"]
    )
    free = (
        _queued(pool)
        .filter(Q(not_before=None) | Q(not_before__lte=now), held=False, project__tenant__active=True)
        .exclude(pk__in=held.filter(request__isnull=False).values("request"))
        .exclude(project__in=held.filter(project__isnull=False).values("project"))
        .exclude(project__tenant__in=held.filter(tenant__isnull=False).values("tenant"))
        .annotate(turn=turn)
        .filter(turn__lte=_OF_ONE)
        .order_by("-boost", "-priority__value", "turn", "waited_since", "id")[:most]
    )
    found = {one.id: one for one in _requests(free, specs)}
    if also:
        found |= {one.id: one for one in _requests(_queued(pool).filter(pk__in=also), specs)}
    return list(found.values())


def _queued(pool: Pool) -> QuerySet[Request]:
    return Request.objects.filter(pool=pool, state="queued").order_by()


def _requests(rows: QuerySet[Request], specs: Collection[Any]) -> list[rules.Request]:
    return [
        rules.Request(
            key, tenant, project, in_pool, spec, priority, int(submitted.timestamp()), limit, count,
            rules.Near(near) if near else None, seconds(since), seconds(not_before), model, boost, preempted,
            name or f"{count} x {offered}",
        )
        for key, tenant, project, in_pool, spec, priority, submitted, limit, count, near, since, not_before, model,
        boost, preempted, name, offered in rows.values_list(*_REQUEST).iterator(chunk_size=10_000)
        if spec in specs
    ]  # fmt: skip


_HELD = (
    "card", "node", "share", "span", "ends_at", "request", "job", "unit", "spec", "priority", "tenant", "project",
    "request__name", "request__checkpoint_at", "request__signalled_at", "request__leaves_at", "request__preempted",
    "request__count", "spec__name", "job__job_id", "spec__cpu_cores", "spec__memory",
)  # fmt: skip


def running_now(now: datetime) -> list[rules.Running]:
    """All open allocations, by request or by job. One query."""
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in Allocation.objects.filter(span__upper_inf=True).order_by("unit", "id").values(*_HELD):
        groups[row["request"] or row["job"] or ("card", row["card"])].append(row)
    return [_running(key, rows) for key, rows in groups.items()]


def _running(key: Any, rows: Sequence[dict[str, Any]]) -> rules.Running:
    first = rows[0]
    hosts: dict[Any, tuple[float, int]] = {}
    if first["spec"] is not None:
        for _unit, node in sorted({(row["unit"], row["node"]) for row in rows}, key=str):
            cores, memory = hosts.get(node, (0.0, 0))
            hosts[node] = cores + (first["spec__cpu_cores"] or 0.0), memory + (first["spec__memory"] or 0)
    # who gives way to a job that was seen is on its way out as well
    told = first["request__signalled_at"] or first["request__leaves_at"]
    return rules.Running(
        id=key,
        tenant=first["tenant"],
        project=first["project"],
        units=tuple(rules.Unit(row["card"], row["share"].lower, row["share"].upper) for row in rows),
        started_at=min(int(row["span"].lower.timestamp()) for row in rows),
        ends_at=seconds(first["ends_at"]),
        request=first["request"],
        spec=first["spec"],
        priority=first["priority"],
        name=_name(first),
        hosts=hosts,
        checkpoint_at=seconds(first["request__checkpoint_at"]),
        signalled_at=seconds(told),
        preempted=first["request__preempted"] or 0,
    )


def _name(row: dict[str, Any]) -> str:
    if row["request"] is not None:
        return row["request__name"] or f"{row['request__count']} x {row['spec__name']}"
    return f"job {row['job__job_id']}" if row["job__job_id"] else ""


def holds_on(pool: Pool, now: datetime) -> list[rules.Hold]:
    """What people and policies put on hold: by a hold, by the request's own mark, by a tenant that is closed."""
    open_ = Hold.objects.filter(Q(until=None) | Q(until__gt=now), lifted_at=None)
    found = []
    for key, tenant, project, request, own, reason, source, until in open_.order_by("id").values_list(
        "id", "tenant", "project", "request", "pool", "reason", "source", "until"
    ):
        scope, target = next(
            (scope, target)
            for scope, target in zip(rules.Scope, (tenant, project, request, own), strict=True)
            if target is not None
        )
        found.append(rules.Hold(key, scope, target, reason, source, seconds(until)))
    held = Request.objects.filter(pool=pool, state="queued", held=True).order_by("id")
    found += [rules.Hold(key, rules.Scope.REQUEST, key, "", "its owner") for key in held.values_list("pk", flat=True)]
    closed = Tenant.objects.filter(active=False).order_by("id").values_list("pk", flat=True)
    found += [rules.Hold(key, rules.Scope.TENANT, key, "the tenant is not active", "an operator") for key in closed]
    return found


def maintenance_on(now: datetime, nodes: Sequence[fleet.Node]) -> list[fleet.Maintenance]:
    """Windows ahead with the nodes that they need. Two queries."""
    windows = list(MaintenanceWindow.objects.filter(ends_at__gt=now, cancelled_at=None).order_by("starts_at", "id"))
    if not windows:
        return []
    sites: dict[Any, UUID] = dict(Node.objects.filter(pk__in=[node.id for node in nodes]).values_list("pk", "site"))

    def needed(window: MaintenanceWindow, node: fleet.Node) -> bool:
        return (
            node.id == window.node_id
            or (window.rack_id is not None and node.rack == window.rack_id)
            or (window.cluster_id is not None and node.cluster == window.cluster_id)
            or (window.site_id is not None and sites.get(node.id) == window.site_id)
        )

    return [
        fleet.Maintenance(
            window.pk, frozenset(node.id for node in nodes if needed(window, node)),
            int(window.starts_at.timestamp()), int(window.ends_at.timestamp()), window.name,
        )
        for window in windows
    ]  # fmt: skip
