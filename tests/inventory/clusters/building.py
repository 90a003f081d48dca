"""A fake scheduler whose clock a test moves, and the sync of its cluster, without a network or a broker."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from inventory.drivers.clusters.capabilities import ClusterDriver, JobSpec
from inventory.drivers.fake.cluster import FakeCluster
from inventory.drivers.fake.scheduler import FakeNode, FakeRun
from inventory.models import Card, Cluster, ClusterConnection, Job, JobCard, JournalEntry, Node, Site
from inventory.services.clusters import opening, reading, syncing
from inventory.services.clusters.opening import Access

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Clock:
    """A time that stands until it is moved."""

    def __init__(self) -> None:
        self.now = T0

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass
class Lab:
    """One cluster of ours and the fake scheduler behind it."""

    fake: FakeCluster
    clock: Clock
    connection: ClusterConnection

    @property
    def cluster(self) -> Cluster:
        return self.connection.cluster

    def submit(self, name: str = "train", **fields: Any) -> FakeRun:
        facts: dict[str, Any] = {"script": "#!/bin/sh", "mark": "", "working_directory": "/srv", "user": "ada"}
        return self.fake.scheduler.submit(JobSpec(name=name, **facts | fields))

    def sync(self, seconds: float = 10) -> ClusterConnection:
        """One round, some time after the last."""
        self.clock.pass_(seconds)
        row = ClusterConnection.objects.get(pk=self.connection.pk)
        for job in syncing.sync_jobs([row], now=self.clock.now):
            syncing.store(job, asyncio.run(reading.read_cluster(job)))
        self.connection = ClusterConnection.objects.select_related("cluster__site").get(pk=row.pk)
        return self.connection

    def runs(self, **filters: Any) -> list[Job]:
        return list(Job.objects.filter(cluster=self.cluster, **filters).order_by("submitted_at", "id"))

    def cards(self, key: str) -> list[tuple[str, int | None, str]]:
        rows = JobCard.objects.filter(job__cluster=self.cluster, job__key=key).select_related("node", "card")
        found = [(row.node.name, row.card.minor if row.card else None, row.source) for row in rows]
        return sorted(found, key=lambda one: (one[0], -1 if one[1] is None else one[1], one[2]))

    def node(self, name: str) -> Node:
        return Node.objects.get(cluster=self.cluster, name=name)


class Opener:
    """Takes the place of opening a driver: the connection's address names the fake."""

    def __init__(self) -> None:
        self.fakes: dict[str, ClusterDriver] = {}

    def __call__(self, access: Access) -> ClusterDriver:
        return self.fakes[access.address]


NewLab = Callable[..., Lab]


def new_lab(opener: Opener, *, nodes: int = 2, cards: int = 4, name: str = "ada", scheduler: str = "slurm") -> Lab:
    """A cluster with nodes n1, n2 ... at one site, connected and not read yet."""
    clock = Clock()
    fake = FakeCluster([FakeNode(f"n{i + 1}", "a100", cards) for i in range(nodes)], name=name, clock=clock)
    opener.fakes[f"fake:{name}"] = fake
    site, _ = Site.objects.get_or_create(name="Basel")
    cluster = Cluster.objects.create(site=site, name=name, scheduler=scheduler)
    connection = ClusterConnection.objects.create(cluster=cluster, scheduler=scheduler, address=f"fake:{name}")
    return Lab(fake, clock, connection)


def add_cards(node: Node, count: int = 4, *, read_at: datetime = T0) -> list[Card]:
    """Cards as an agent read them: minor numbers run against the order of the slots."""
    Node.objects.filter(pk=node.pk).update(read_at=read_at)
    return [
        Card.objects.create(
            node=node, slot=str(slot), minor=count - 1 - slot, uuid=f"GPU-{node.pk}-{slot}", first_seen_at=T0,
            state_since=T0,
        )
        for slot in range(count)
    ]  # fmt: skip


def journal(kind: str) -> list[str]:
    """The journal's sentences of one kind, oldest first."""
    return list(JournalEntry.objects.filter(kind=kind).order_by("at", "id").values_list("text", flat=True))


@pytest.fixture
def opener(monkeypatch: pytest.MonkeyPatch) -> Opener:
    found = Opener()
    monkeypatch.setattr(opening, "open_driver", found)
    return found
