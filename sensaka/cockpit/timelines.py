"""The picture of what ran where: lanes of nodes or cards, in numbers that are short on the wire."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from inventory.models import Job
from inventory.selectors.timeline import Run, timeline
from sensaka.live.words import JOB_TAGS, JOB_WORDS


def picture(cluster: UUID, *, start: datetime, end: datetime, by: str) -> dict[str, Any]:
    """Lanes with their runs as `[index of the run, start, end, row]`, times in seconds from the start of the span.

    A run is told once, however many lanes it lies on. Runs that overlap on a lane lie in rows of it.
    """
    found = timeline(cluster=cluster, start=start, end=end, by=by)
    runs: dict[UUID, int] = {}
    told: list[dict[str, Any]] = []
    lanes = []
    for lane in found.lanes:
        bars = []
        rows: list[datetime] = []
        for run in lane.runs:
            if run.job not in runs:
                runs[run.job] = len(told)
                told.append(_run(run))
            row = next((index for index, free in enumerate(rows) if free <= run.start), len(rows))
            rows[row:] = [run.end, *rows[row + 1 :]]
            bars.append([runs[run.job], *(round((at - start).total_seconds()) for at in (run.start, run.end)), row])
        lanes.append({"id": str(lane.id), "name": lane.name, "rows": max(len(rows), 1), "bars": bars})
    return {
        "start": int(start.timestamp()),
        "end": int(end.timestamp()),
        "now": int(timezone.now().timestamp()),
        "by": by,
        "truncated": found.truncated,
        "unknown": _unknown(cluster, start, end) if by == "card" else 0,
        "jobs": told,
        "lanes": lanes,
    }


def _unknown(cluster: UUID, start: datetime, end: datetime) -> int:
    """Runs of the span whose cards can't be told: they are on no lane of a card."""
    over = Q(open=False, ended_at__lte=start) | Q(open=False, ended_at=None, seen_at__lte=start)
    rows = Job.objects.filter(cluster=cluster, cards_known=False, started_at__lt=end).exclude(over)
    return rows.count()


def _run(run: Run) -> dict[str, Any]:
    word = "Lost" if run.lost else JOB_WORDS.get(run.state, run.state)
    return {
        "id": str(run.job),
        "job": run.job_id,
        "name": run.name,
        "user": run.user,
        "account": run.account,
        "state": word,
        "kind": "unknown" if run.lost else JOB_TAGS.get(run.state, "unknown"),
        "cards": run.cards,
        "known": run.cards_known is not False,
        "over": run.over,
    }
