"""What schedulers told and nobody needs any more: runs past their retention, nodes that are long gone."""

from datetime import datetime

from django.conf import settings
from django.db.models.functions import Coalesce
from django.utils import timezone

from inventory.models import Job, SchedulerNode
from inventory.services.partitions import raw_needed_since

_AT_ONCE = 2_000  # runs in one statement: a short lock each time
_MOST = 100_000  # runs in one call; what is left is for the next


def forget_old_runs(*, now: datetime | None = None) -> int:
    """Deletes runs that ended longer ago than `JOB_RETENTION`, with their nodes and cards. Returns how many.

    A run that is open stays whatever its age, and so does one from a time that is not accounted for yet.
    """
    moment = now or timezone.now()
    keep_from = min(moment - settings.JOB_RETENTION, raw_needed_since() or moment)
    over = Job.objects.filter(open=False).annotate(end=Coalesce("ended_at", "lost_at", "seen_at"))
    old = over.filter(end__lt=keep_from).order_by().values_list("pk", flat=True)
    dropped = 0
    while dropped < _MOST and (keys := list(old[:_AT_ONCE])):
        Job.objects.filter(pk__in=keys).delete()
        dropped += len(keys)
    return dropped


def forget_gone_nodes(*, now: datetime | None = None) -> int:
    """Deletes what schedulers said of nodes that they no longer list; our nodes stay. Returns how many."""
    keep_from = (now or timezone.now()) - settings.GONE_SCHEDULER_NODE_RETENTION
    dropped, _ = SchedulerNode.objects.filter(gone_at__lt=keep_from).delete()
    return dropped
