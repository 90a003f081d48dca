"""Idle cards over the small fleet of the pages' tests: warned once and asking, suggested, unknown, over, spared."""

from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from inventory.models import Job
from pools.models import Allocation, IdleCase, IdleExemption, Project, Reclaim
from sensaka.identity.models import User

GIB = 1024**3


def build(projects: dict[str, Project], member: User) -> dict[str, UUID]:
    """Cases of what the projects hold already; the ids of two of them."""
    asks = _case(_job(projects["Segmentation"], "member", "70411", 2), hours=5, warned=1, memory=61 * GIB, processes=2)
    now = timezone.now()
    IdleCase.objects.filter(pk=asks.pk).update(
        extension_asked_at=now - timedelta(minutes=20), extension_asked_by=member, extension_seconds=4 * 3600,
        justification="The next batch of images arrives at noon; loading the model takes an hour.",
    )  # fmt: skip
    suggested = _case(
        _job(projects["Pre-training"], "rosa", "70398", 2), hours=9, warned=2, memory=4 * GIB, processes=1
    )
    since = f"{suggested.since:%Y-%m-%d %H:%M} UTC"
    reason = f"warned twice and still idle since {since}, 4.0 GiB of memory held, 99 % of the time known"
    Reclaim.objects.create(allocation=suggested.allocation, case=suggested, source="policy", reason=reason)
    nobody = Allocation.objects.get(tenant=None)
    _case([nobody], hours=3, warned=1, memory=0, processes=0)
    over = _case(_job(projects["Tracking"], "member", "70377", 2), hours=7, warned=1, memory=None, processes=0)
    IdleCase.objects.filter(pk=over.pk).update(state="busy", closed_at=now - timedelta(hours=1))
    IdleExemption.objects.create(
        project=projects["Tracking"], reason="Live demonstration at the open day", until=now + timedelta(days=3)
    )
    return {"idle_asks": asks.pk, "idle_suggested": suggested.pk}


def _job(project: Project, user: str, number: str, cards: int) -> list[Allocation]:
    """The last of what a project holds becomes a job's that its cluster's users started."""
    held = list(Allocation.objects.filter(project=project, request=None).select_related("node").order_by("-id")[:cards])
    cluster = held[0].node.cluster
    assert cluster is not None
    begun = min(row.span.lower for row in held)
    job = Job.objects.create(
        cluster=cluster, key=f"{number}.1", job_id=number, name="notebook", user=user, state="running", cards=cards,
        cards_known=True, submitted_at=begun, started_at=begun, seen_at=timezone.now(),
    )  # fmt: skip
    Allocation.objects.filter(pk__in=[row.pk for row in held]).update(job=job)
    return held


def _case(held: list[Allocation], *, hours: float, warned: int, memory: int | None, processes: int) -> IdleCase:
    now = timezone.now()
    return IdleCase.objects.create(
        allocation=held[-1], cards=len(held), since=now - timedelta(hours=hours), highest_activity=0.4, coverage=98.6,
        memory_held=memory, processes=processes, first_warned_at=now - timedelta(hours=hours - 2),
        second_warned_at=now - timedelta(hours=hours - 2.5) if warned == 2 else None,
    )  # fmt: skip
