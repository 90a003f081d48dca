"""What a sync costs: the same few queries for any number of runs and nodes."""

import asyncio
import time

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from inventory.drivers.clusters.capabilities import JobSpec
from inventory.drivers.clusters.readings import CardBinding, CardKind, JobState
from inventory.drivers.fake.scheduler import FakeRun
from inventory.models import Card, ClusterConnection, Job, JobCard, Node
from inventory.services.clusters import reading, syncing
from tests.inventory.clusters.building import T0, Lab, Opener, new_lab

pytestmark = pytest.mark.django_db


def fill(lab: Lab, runs: int, *, nodes: int, cards: int = 8) -> None:
    """Runs of one card each, spread over the nodes; the fake's own placing would take long for thousands."""
    first = len(lab.fake.scheduler.runs)
    names = list(lab.fake.scheduler.nodes)
    for number in range(first, first + runs):
        spec = JobSpec(name=f"job {number}", script="x", mark="", working_directory="/srv", user=f"u{number % 50}")
        run = FakeRun(str(number + 1), spec, T0)
        place = number - first
        if place < nodes * cards:
            run.state, run.started_at = JobState.RUNNING, T0
            index = place // nodes
            run.bindings = [CardBinding(node=names[place % nodes], kind=CardKind.CARD, count=1, indices=(index,))]
        lab.fake.scheduler.runs.append(run)


def put_cards(lab: Lab, cards: int = 8) -> None:
    Node.objects.update(read_at=T0)
    Card.objects.bulk_create(
        Card(node=node, minor=minor, slot=str(minor), uuid=f"GPU-{node.pk}-{minor}", first_seen_at=T0, state_since=T0)
        for node in Node.objects.filter(cluster=lab.cluster)
        for minor in range(cards)
    )


def stored(lab: Lab) -> tuple[int, float]:
    """Queries and CPU seconds of storing one visit."""
    lab.clock.pass_(10)
    row = ClusterConnection.objects.get(pk=lab.connection.pk)
    (job,) = syncing.sync_jobs([row], now=lab.clock.now)
    answer = asyncio.run(reading.read_cluster(job))
    start = time.process_time()
    with CaptureQueriesContext(database) as seen:
        (job,) = syncing.sync_jobs([row], now=lab.clock.now)
        syncing.store(job, answer)
    return len(seen), time.process_time() - start


def test_queries_do_not_grow_with_runs_or_nodes(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for name, nodes, runs in (("small", 2, 10), ("large", 20, 400)):
        lab = new_lab(opener, name=name, nodes=nodes, cards=8)
        monkeypatch.setattr(lab.fake.scheduler, "schedule", lambda: None)
        lab.sync()
        put_cards(lab)
        fill(lab, runs, nodes=nodes)
        first, _ = stored(lab)
        again, _ = stored(lab)
        for run in lab.fake.scheduler.runs[: runs // 2]:
            run.state, run.ended_at = JobState.COMPLETED, lab.clock.now
        ended, _ = stored(lab)
        counts.append((first, again, ended))
    assert counts[0] == counts[1]


@pytest.mark.slow
def test_five_hundred_nodes_and_five_thousand_runs(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prints what a visit costs; asserts what it writes and how many queries it takes, not the time."""
    lab = new_lab(opener, nodes=500, cards=8)
    monkeypatch.setattr(lab.fake.scheduler, "schedule", lambda: None)
    monkeypatch.setattr(lab.fake.scheduler, "used", lambda name: set())
    lab.sync()
    put_cards(lab)
    fill(lab, 5000, nodes=500)
    first = stored(lab)
    assert (Job.objects.count(), JobCard.objects.filter(card__isnull=False).count()) == (5000, 4000)
    again = stored(lab)
    for run in lab.fake.scheduler.runs[:200]:
        run.state, run.ended_at = JobState.COMPLETED, lab.clock.now
    churn = stored(lab)
    print(f"all new {first}, nothing new {again}, 200 of 5000 ended {churn} (queries, CPU s of storing)")
    assert again[0] <= first[0] <= 60
    assert Job.objects.filter(open=False).count() == 200
