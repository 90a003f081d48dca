"""The whole way on a Kubernetes stand-in over HTTP: connect by kubeconfig, follow, attribute, lose, rename, drain."""

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest
from django.utils import timezone

from inventory.drivers.fake.kubernetes import KubernetesServer
from inventory.drivers.fake.kubernetes.cluster import add_node, add_pod, cordon_by_hand, delete_pod_by_hand
from inventory.drivers.fake.kubernetes.scheduling import NODES
from inventory.models import (
    Card,
    Cluster,
    ClusterConnection,
    Cordon,
    Job,
    JobCard,
    Node,
    ProcessBinding,
    SchedulerNode,
    Site,
)
from inventory.services.clusters import carrying_out, connections, reading, syncing
from inventory.services.clusters.cordoning import drain, uncordon
from inventory.services.clusters.opening import Access
from sensaka.kernel.errors import InvalidInput
from tests.contracts.clusters.kubernetes import (
    TAINT,
    driver_for,
    job_of,
    our_token,
    pod_body,
    small_cluster,
    uuids,
)

pytestmark = pytest.mark.django_db
UUIDS = {"gpu-1": "4c4c4544-0051-3010-8052-b4c04f4e3232", "gpu-2": "4c4c4544-0051-3010-8052-b4c04f4e3233"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesServer]:
    monkeypatch.setattr(reading, "_FOLLOWED", 1.0)
    with small_cluster() as found:
        for name, uuid in UUIDS.items():
            with found.store.lock:
                value = found.store.entry(NODES, "", name).value
                info = {**value["status"]["nodeInfo"], "systemUUID": uuid}
                found.store.replace(NODES, {**value, "status": {**value["status"], "nodeInfo": info}})
        yield found


@pytest.fixture
def connection(server: KubernetesServer) -> ClusterConnection:
    cluster = Cluster.objects.create(site=Site.objects.create(name="Basel"), name="kube")
    access = Access("kubernetes", kubeconfig=server.kubeconfig(our_token(server)))
    return connections.connect(cluster=cluster, access=access, actor=None)


def sync(connection: ClusterConnection) -> ClusterConnection:
    row = ClusterConnection.objects.get(pk=connection.pk)
    for job in syncing.sync_jobs([row], now=timezone.now()):
        syncing.store(job, asyncio.run(reading.read_cluster(job)))
    row.refresh_from_db()
    return row


def synced_until(connection: ClusterConnection, reached: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while True:
        row = sync(connection)
        if reached():
            return
        assert time.monotonic() < end, (row.error_detail, row.failures, list(Job.objects.values("name", "state")))


def running(name: str) -> bool:
    return Job.objects.filter(name=name, state="running").exists()


def test_what_it_is_and_has(server: KubernetesServer, connection: ClusterConnection) -> None:
    row = sync(connection)
    assert (row.error_kind, row.failures, row.version) == ("", [], row.version)
    assert row.version.startswith("v1.36")
    assert {(node.name, node.system_uuid, node.state) for node in Node.objects.all()} == {
        (name, uuid, "active") for name, uuid in UUIDS.items()
    }
    first = SchedulerNode.objects.get(name="gpu-1")
    assert [(one["resource"], one["total"]) for one in first.accelerators] == [("nvidia.com/gpu", 8)]
    with pytest.raises(InvalidInput):
        connections.usable(Access("kubernetes", kubeconfig="apiVersion: v1"))


def test_pods_are_followed_and_their_cards_told_by_agents(
    server: KubernetesServer, connection: ClusterConnection
) -> None:
    add_pod(server, "team-a", pod_body("shell", cards=2))
    synced_until(connection, lambda: running("shell"))
    job = Job.objects.get(name="shell")
    node = job.nodes.get()
    assert (job.account, job.cards, job.cards_known, job.open) == ("team-a", 2, False, True)
    assert ClusterConnection.objects.get().follow_cursor
    now = timezone.now()
    for place, uuid in enumerate(uuids(node.name)):
        Card.objects.create(node=node, slot=str(place), minor=place, uuid=uuid, first_seen_at=now, state_since=now)
    for card in Card.objects.order_by("slot")[3:5]:
        ProcessBinding.objects.create(
            node=node, card=card, pid=0, pod_uid=job.key, owner=str(card.pk), first_seen_at=now, seen_at=now
        )
    sync(connection)  # the watch tells nothing new of the pod, its node's agent does
    job.refresh_from_db()
    assert (job.cards_known, job.cards_reason) == (True, "")
    held = JobCard.objects.filter(job=job).order_by("card__slot")
    assert [(one.card.slot, one.source) for one in held if one.card] == [("3", "pod_resources"), ("4", "pod_resources")]
    delete_pod_by_hand(server, "team-a", "shell")
    add_pod(server, "team-a", pod_body("other", cards=1))
    synced_until(connection, lambda: not Job.objects.get(pk=job.pk).open)
    assert running("other")


def test_a_pod_deleted_during_an_outage_is_lost(server: KubernetesServer, connection: ClusterConnection) -> None:
    add_pod(server, "team-a", pod_body("shell", cards=1))
    synced_until(connection, lambda: running("shell"))
    last = ClusterConnection.objects.get().jobs_read_at
    server.go_away()
    lost = sync(connection)
    assert lost.error_kind == "unreachable"
    assert (running("shell"), lost.jobs_read_at) == (True, last)
    delete_pod_by_hand(server, "team-a", "shell")
    time.sleep(1)
    server.store.forget()  # the history is compacted: the watch can't go on from where it stood
    server.come_back()
    synced_until(connection, lambda: not Job.objects.get(name="shell").open)
    job = Job.objects.get(name="shell")
    assert (job.state, job.ended_at, job.seen_at) == ("unknown", None, last)
    assert job.lost_at is not None


def test_a_job_that_waited_without_pods_is_not_lost_when_they_come(
    server: KubernetesServer, connection: ClusterConnection
) -> None:
    async def start(held: bool, job_id: str = "") -> str:
        driver = driver_for(server)
        act = driver.release(job_id, deadline=30) if job_id else driver.submit(job_of(held=held), deadline=30)
        result = await act
        await driver.close()
        assert result.ok, result
        return job_id or result.reference

    job_id = asyncio.run(start(held=True))
    synced_until(connection, lambda: Job.objects.filter(job_id=job_id, raw_state="Suspended", open=True).exists())
    waiting = Job.objects.get(job_id=job_id)
    asyncio.run(start(held=False, job_id=job_id))
    synced_until(connection, lambda: Job.objects.filter(job_id=job_id, state="running").exists())
    synced_until(connection, lambda: not Job.objects.filter(pk=waiting.pk).exists())
    assert set(Job.objects.filter(job_id=job_id).values_list("open", "lost_at")) == {(True, None)}


def test_a_node_renamed_is_followed_by_its_system_uuid(server: KubernetesServer, connection: ClusterConnection) -> None:
    sync(connection)
    before = Node.objects.get(name="gpu-1")
    server.store.remove(NODES, "", "gpu-1")
    add_node(server, "h100-a", {"nvidia.com/gpu": uuids("gpu-1")}, taints=[TAINT], system_uuid=UUIDS["gpu-1"])
    sync(connection)
    assert SchedulerNode.objects.get(name="h100-a").node_id == before.pk
    assert SchedulerNode.objects.get(name="gpu-1").gone_at is not None
    assert Node.objects.get(pk=before.pk).name == "h100-a"
    assert Node.objects.count() == 2


def test_a_drain_evicts_and_somebody_elses_cordon_stays(
    server: KubernetesServer, connection: ClusterConnection
) -> None:
    cordon_by_hand(server, "gpu-2")
    sync(connection)
    foreign = Cordon.objects.get()
    assert (foreign.ours, foreign.node.name) == (False, "gpu-2")
    node = Node.objects.get(name="gpu-1")
    row = drain(node=node, reason="firmware", actor=None)
    assert (row.state, row.last_error) == ("applied", "")
    Cordon.objects.update(attempted_at=None)
    carrying_out.carry_out_due()
    node.refresh_from_db()
    assert (node.state, Cordon.objects.get(ours=True).drained_at is not None) == ("maintenance", True)
    sync(connection)
    assert Cordon.objects.get(ours=True).lifted_at is None
    lifted = uncordon(node=node, actor=None)
    assert lifted is not None
    assert (lifted.lifted_by, Node.objects.get(pk=node.pk).state) == ("us", "active")
    sync(connection)
    assert Cordon.objects.filter(lifted_at=None).get() == foreign
    assert JobCard.objects.count() == 0
