"""What a card did while a run held it: its activity with gaps, and how much of the time was busy."""

from typing import Any

from django.utils import timezone

from inventory.models import JobCard
from inventory.selectors.samples import history

_FIELDS = ("sm_activity", "utilization", "memory_used", "power")
_POINTS = 300


def job_history(held: JobCard) -> dict[str, Any]:
    """One card or slice of a run, from its start to its end or now. Empty for one that has not started.

    Activity is SM activity where it is known and GPU utilization else; what is not known is null.
    """
    job = held.job
    if job.started_at is None or held.card is None:
        return {"times": [], "start": None, "end": None}
    end = job.ended_at or (timezone.now() if job.open else job.seen_at)
    series = held.slice.series if held.slice is not None else held.card.series
    found = history(series, start=job.started_at, end=max(end, job.started_at), fields=list(_FIELDS), points=_POINTS)
    better, worse = (found.fields[name]["mean"] for name in _FIELDS[:2])
    return {
        "start": int(job.started_at.timestamp()),
        "end": int(end.timestamp()),
        "resolution": found.resolution_seconds,
        "times": found.times,
        "activity": [one if one is not None else other for one, other in zip(better, worse, strict=True)],
        "memory": found.fields["memory_used"]["mean"],
        "busy": sum(found.busy),
        "idle": sum(found.idle),
        "unknown": sum(found.unknown),
    }
