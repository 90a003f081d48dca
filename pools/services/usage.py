"""Recorded usage: tokens and storage as collectors push them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from pools.models import Project, Tenant, UsageKind, UsageRecord
from pools.selectors.access import require_operator
from pools.signals import usage_recorded
from sensaka.identity.models import User
from sensaka.kernel.errors import InvalidInput

MOST = 1000  # records in one push
_AHEAD = timedelta(minutes=5)  # clocks may differ by this much


@dataclass(frozen=True, slots=True)
class UsageLine:
    """One record: `amount` tokens used up to `at`, or bytes stored at `at`. `key` identifies it at its source."""

    key: str
    tenant: UUID
    project: UUID | None
    kind: str
    subject: str
    amount: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Recorded:
    """How many were new, and how many were known before."""

    stored: int
    repeated: int


def record_usage(*, source: str, lines: Sequence[UsageLine], actor: User | None) -> Recorded:
    """Stores records; one that was sent before (same source and key) stays as it was first told.

    Three queries for any number. Raises InvalidInput naming the first record that can't be used; nothing
    is stored then.
    """
    require_operator(actor)
    if not lines or len(lines) > MOST:
        raise InvalidInput(f"send 1 to {MOST} records at once", field="records")
    _check(lines)
    rows = [
        UsageRecord(
            source=source, key=line.key, tenant_id=line.tenant, project_id=line.project, kind=line.kind,
            subject=line.subject, amount=line.amount, at=line.at,
        )
        for line in {line.key: line for line in lines}.values()
    ]  # fmt: skip
    keys = [row.key for row in rows]
    with transaction.atomic():
        known = UsageRecord.objects.filter(source=source, key__in=keys).count()
        UsageRecord.objects.bulk_create(rows, ignore_conflicts=True)
        tenants = sorted({line.tenant for line in lines})
        transaction.on_commit(partial(usage_recorded.send, sender=UsageRecord, tenants=tenants))
    return Recorded(len(rows) - known, len(lines) - len(rows) + known)


def _check(lines: Sequence[UsageLine]) -> None:
    tenants = set(Tenant.objects.filter(pk__in={line.tenant for line in lines}).values_list("pk", flat=True))
    wanted = {line.project for line in lines if line.project is not None}
    projects = dict(Project.objects.filter(pk__in=wanted).values_list("pk", "tenant"))
    latest = timezone.now() + _AHEAD
    for number, line in enumerate(lines):
        where = f"record {number} ({line.key})"
        if line.kind not in UsageKind.values:
            raise InvalidInput(f"{where}: kind is {' or '.join(UsageKind.values)}", field="records")
        if not 0 <= line.amount < 2**63:
            raise InvalidInput(f"{where}: the amount is 0 or more", field="records")
        if line.at > latest:
            raise InvalidInput(f"{where}: its time lies in the future", field="records")
        if line.tenant not in tenants:
            raise InvalidInput(f"{where}: there is no tenant {line.tenant}", field="records")
        if line.project is not None and projects.get(line.project) != line.tenant:
            raise InvalidInput(f"{where}: the tenant has no project {line.project}", field="records")
