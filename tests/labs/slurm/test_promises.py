"""Requests on a real Slurm: from the queue to real jobs on the planned nodes and back, and the ledger against `sacct`.

P4 P5 P7 P8 P9 P11 P14.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from inventory.models import Card, CardModel, ClusterConnection, Job, Node
from inventory.services.clusters.opening import Access
from pools.models import (
    Allocation,
    ClusterMode,
    MappingRule,
    Pool,
    PoolMember,
    PriorityClass,
    Project,
    Request,
    RequestEvent,
    Spec,
    Tenant,
)
from pools.selectors.reasons import told
from pools.services.admission import admit
from pools.services.launching.carrying_out import carry_out_due
from pools.services.ledger.recording import record
from tests.labs.slurm.lab import SlurmLab
from tests.labs.slurm.stored import access, accounted, put_cards, sync, synced_until, told_cards

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.xdist_group("slurm"), pytest.mark.django_db]
NODES = ("h100-001", "h100-002")


@dataclass
class Site:
    """A pool of two nodes with eight cards each in a managed Slurm, and one tenant."""

    lab: SlurmLab
    connection: ClusterConnection
    pool: Pool
    project: Project
    normal: PriorityClass
    urgent: PriorityClass

    def spec(self, cards: int) -> Spec:
        spec = Spec.objects.create(name=f"{cards} x H100", cards=cards)
        spec.card_models.add(CardModel.objects.get(slug="h100"))
        spec.pools.add(self.pool)
        return spec

    def ask(self, spec: Spec, count: int, script: str, **fields: Any) -> Request:
        now = timezone.now()
        base: dict[str, Any] = {
            "project": self.project, "spec": spec, "pool": self.pool, "priority": self.normal, "launch": "script",
            "script": f"#!/bin/sh\n{script}\n", "time_limit": 600, "state": "queued", "state_since": now,
            "submitted_at": now, "waited_since": now, "count": count,
        }  # fmt: skip
        return Request.objects.create(**(base | fields))

    def turn(self) -> None:
        """What the clock does between two readings of the cluster."""
        record()
        admit(self.pool)
        Request.objects.update(leased_until=None)
        carry_out_due()

    def until(self, what: str, reached: Callable[[], bool], seconds: float = 60) -> None:
        def turned() -> bool:
            self.turn()
            return reached()

        synced_until(self.connection, what, turned, seconds)

    def in_state(self, request: Request, state: str, seconds: float = 60) -> None:
        self.until(f"{request} is {state}", lambda: Request.objects.get(pk=request.pk).state == state, seconds)
        request.refresh_from_db()


@pytest.fixture
def site(quiet: SlurmLab, connected: Callable[[Access], ClusterConnection]) -> Site:
    connection = connected(access(quiet))
    sync(connection)
    Node.objects.update(state="active")
    put_cards("h100")
    model = CardModel.objects.create(slug="h100", vendor="NVIDIA", name="H100 80GB")
    Card.objects.update(model=model)
    ClusterMode.objects.create(
        cluster=connection.cluster, mode="managed", working_directory=str(quiet.folder / "work")
    )  # fmt: skip
    pool = Pool.objects.create(name="Training")
    for name in NODES:
        PoolMember.objects.create(pool=pool, node=Node.objects.get(name=name))
    tenant = Tenant.objects.create(name="Red", slug="red")
    project = Project.objects.create(tenant=tenant, name="Main", slug="main")
    MappingRule.objects.create(
        cluster=connection.cluster, kind="account", value="research", tenant=tenant, project=project
    )
    normal = PriorityClass.objects.create(name="normal", value=10, default=True, preemptible=True, grace=1)
    urgent = PriorityClass.objects.create(name="urgent", value=100)
    return Site(quiet, connection, pool, project, normal, urgent)


def held(job: Job) -> dict[str, tuple[int, ...]]:
    """By node, the minor numbers of what the ledger says that a job holds now."""
    found: dict[str, list[int]] = {}
    rows = Allocation.objects.filter(job=job, span__endswith=None).select_related("node", "card")
    for row in rows.order_by("card__minor"):
        found.setdefault(row.node.name, []).append(row.card.minor)  # type: ignore[arg-type]
    return {node: tuple(minors) for node, minors in found.items()}


def spans_agree_with_sacct(lab: SlurmLab) -> None:
    """Every run's seconds on cards, job by job, as Slurm's accounting has them."""
    ours: dict[tuple[str, int, int], int] = {}
    for row in Allocation.objects.filter(span__endswith__isnull=False).select_related("job"):
        assert row.job is not None
        assert row.job.started_at is not None
        key = (row.job.job_id, int(row.job.started_at.timestamp()), row.job.cards)
        width = int((row.span.upper - row.span.lower).total_seconds())
        ours[key] = ours.get(key, 0) + (0 if row.suspended else width)
    mine = {number for number, *_ in ours}
    theirs = {
        (run.number, run.started, run.cards): run.elapsed * run.cards
        for run in accounted(lab)
        if run.number in mine and run.started is not None and run.ended is not None and run.elapsed and run.cards
    }
    assert ours == theirs


def test_a_gang_waits_for_a_plain_job_starts_on_the_planned_nodes_and_completes(site: Site) -> None:
    number = site.lab.submit("-A", "research", "-w", NODES[0], "--gres=gpu:3", "-t", "5")
    site.until("in the ledger", lambda: Allocation.objects.filter(job__job_id=number).exists())
    plain = Job.objects.get(job_id=number)
    assert held(plain) == told_cards(site.lab, number)
    rows = Allocation.objects.filter(job=plain)
    assert {(row.tenant, row.project, row.source, row.pool) for row in rows} == {
        (site.project.tenant, site.project, "observed", site.pool)
    }
    request = site.ask(site.spec(8), 2, "sleep 3", name="gang")
    site.turn()
    request.refresh_from_db()
    assert request.state == "queued"
    reasons = {one.code: one for one in told(request.reasons)}
    assert reasons["GANG_INCOMPLETE"].detail.startswith("1 of 2 units would fit now and all must start together")
    assert all(one.unblock for one in reasons.values())
    assert request.expected_start is not None
    site.lab.run("scancel", number)
    site.in_state(request, "running")
    job = Job.objects.get(comment=request.mark)
    assert held(job) == told_cards(site.lab, job.job_id) == {name: tuple(range(8)) for name in NODES}
    assert (job.account, sorted(job.node_names)) == ("research", list(NODES))
    site.in_state(request, "completed")
    site.until("accounted", lambda: not Job.objects.filter(accounted_at=None).exists())
    assert [one.event for one in RequestEvent.objects.filter(request=request).order_by("id")] == [
        "admit", "submitted", "launch", "complete",
    ]  # fmt: skip
    spans_agree_with_sacct(site.lab)


def test_how_real_work_ends_and_that_the_ledger_agrees_with_sacct(site: Site) -> None:
    """By its time limit, by scancel, by an error, and by a higher class after signal and grace; unevenly spread."""
    small = site.spec(1)
    limited = site.ask(small, 1, "sleep 600", time_limit=60, name="limited")
    cancelled = site.ask(small, 2, "sleep 600", name="cancelled")
    broken = site.ask(small, 1, "sleep 1; exit 7", name="broken")
    site.in_state(cancelled, "running")
    site.lab.run("scancel", cancelled.job_reference)
    site.in_state(cancelled, "cancelled")
    site.in_state(broken, "failed")
    assert broken.outcome == "failed (exit code 7)"

    low = site.ask(small, 14, "trap '' TERM; sleep 600", name="low")
    site.in_state(low, "running")
    assert Allocation.objects.filter(request=low, span__endswith=None).count() == 14
    job = Job.objects.get(comment=low.mark)
    assert held(job) == told_cards(site.lab, job.job_id)
    high = site.ask(small, 12, "sleep 2", name="high", priority=site.urgent)
    site.in_state(high, "running")
    low.refresh_from_db()
    assert low.preempted == 1
    site.in_state(high, "completed")
    site.in_state(low, "running")
    assert low.attempt == 2
    assert Allocation.objects.filter(request=low, span__endswith=None).count() == 14

    site.in_state(limited, "timed_out", 120)
    assert limited.ended_at is not None
    assert limited.started_at is not None
    assert limited.ended_at - limited.started_at < timedelta(seconds=110)
    site.lab.run("scancel", low.job_reference)
    site.in_state(low, "cancelled")
    site.until("accounted", lambda: not Job.objects.filter(accounted_at=None).exists())
    record()
    assert not Allocation.objects.filter(span__endswith=None).exists()
    spans_agree_with_sacct(site.lab)
