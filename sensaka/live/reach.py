"""Which clusters are not being read at present: what is said of their runs is as old as their last reading."""

from datetime import datetime
from uuid import UUID

from django.utils import timezone

from inventory.models import ClusterConnection
from inventory.selectors.clusters import condition_of
from sensaka.live.fleet import Shared

_STALE = frozenset({"lost", "late", "off"})


def _unread() -> dict[UUID, datetime]:
    now = timezone.now()
    rows = ClusterConnection.objects.only(
        "cluster", "enabled", "error_kind", "error_detail", "succeeded_at", "interval", "failures", "reason",
        "jobs_read_at",
    )  # fmt: skip
    return {
        row.cluster_id: row.jobs_read_at
        for row in rows
        if row.jobs_read_at is not None and condition_of(row, now=now)[0] in _STALE
    }


_shared: Shared[dict[UUID, datetime]] = Shared(_unread, keep=1.0)


def facts_of(cluster: UUID) -> datetime | None:
    """When the runs of a cluster that is not being read were last read; None while it is read."""
    return _shared.get().get(cluster)


def forget() -> None:
    """Look anew at the next call."""
    _shared.forget()
