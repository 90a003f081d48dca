"""Quotas and their limits."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from pools.models import Quota, QuotaLimit
from pools.selectors.access import require_operator
from pools.services.catalogue import checked, remove, store, tell
from pools.services.tenants import known_time_zone
from sensaka.identity.models import User
from sensaka.kernel.errors import InvalidInput

_LIMIT_FIELDS = frozenset({"resource", "model", "nominal", "borrowing", "lending"})


def save_quota(
    quota: Quota | None, *, values: Mapping[str, Any], limits: Sequence[Mapping[str, Any]] | None = None,
    actor: User | None,
) -> Quota:  # fmt: skip
    """A new quota record, or a changed one. `limits`, when given, replace all of its lines.

    Raises InvalidInput with the field, for a project of another tenant, and for a limit given twice.
    """
    require_operator(actor)
    row = quota or Quota()
    tenant, project = values.get("tenant", getattr(row, "tenant", None)), values.get("project", row.project)
    if tenant is not None and project is not None and project.tenant_id != tenant.pk:
        raise InvalidInput(f"{project} is not a project of {tenant}", field="project")
    if "time_zone" in values:
        known_time_zone(values["time_zone"])
    with transaction.atomic():
        store(row, values=values, actor=actor)
        if limits is not None:
            _replace_limits(row, limits, actor)
    return row


def _replace_limits(quota: Quota, limits: Sequence[Mapping[str, Any]], actor: User | None) -> None:
    rows = [QuotaLimit(quota=quota, **{name: line[name] for name in _LIMIT_FIELDS & line.keys()}) for line in limits]
    seen: set[tuple[str, object]] = set()
    for row in rows:
        if (row.resource, row.model_id) in seen:
            raise InvalidInput(f"{row.get_resource_display()} is limited twice", field="limits")
        seen.add((row.resource, row.model_id))
    before = {str(row) for row in quota.limits.select_related("model")}
    quota.limits.all().delete()
    for row in rows:
        checked(row)
    QuotaLimit.objects.bulk_create(rows)
    if before != {str(row) for row in rows}:
        tell(quota, f"{quota} now limits: {'; '.join(sorted(map(str, rows))) or 'nothing'}.", actor)


def remove_quota(quota: Quota, *, actor: User | None) -> None:
    """Deletes a quota: its holder is limited by nothing of its own any more."""
    require_operator(actor)
    remove(quota, actor=actor)
