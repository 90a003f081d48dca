"""Who is read when: what is due, once, and what a driver that breaks leaves behind."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import OperationalError
from django.utils import timezone

from inventory.drivers.clusters.capabilities import ClusterDescription
from inventory.drivers.clusters.readings import NodesReading
from inventory.drivers.fake.scheduler import FakeNode
from inventory.models import Cluster, ClusterConnection, Site
from inventory.services.clusters import connections, syncing
from inventory.services.clusters.cordoning import cordon, uncordon
from inventory.services.clusters.opening import Access, slurm_token
from inventory.signals import jobs_changed
from inventory.tasks import clusters as tasks
from sensaka.kernel.errors import Conflict, InvalidInput
from tests.inventory.clusters.building import Opener, new_lab

pytestmark = pytest.mark.django_db


def test_what_is_due_is_read_once(opener: Opener) -> None:
    first, second = new_lab(opener, name="ada"), new_lab(opener, name="bob")
    off = new_lab(opener, name="off")
    ClusterConnection.objects.filter(pk=off.connection.pk).update(enabled=False)
    assert syncing.sync_due_clusters(seconds=5).read == 2
    assert syncing.sync_due_clusters(seconds=5).read == 0
    read = ClusterConnection.objects.exclude(succeeded_at=None).values_list("cluster__name", flat=True)
    assert sorted(read) == ["ada", "bob"]
    assert {first.cluster.name, second.cluster.name} == set(read)
    rows = ClusterConnection.objects.filter(enabled=True)
    assert all(row.leased_until is None and row.due_at > timezone.now() for row in rows)
    tasks.sync_clusters()
    tasks.carry_out_cordons()


def test_a_leased_cluster_is_left_to_who_has_it(opener: Opener) -> None:
    lab = new_lab(opener)
    ClusterConnection.objects.update(leased_until=timezone.now() + timedelta(seconds=30))
    assert syncing.sync_due_clusters(seconds=5).read == 0
    ClusterConnection.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert syncing.sync_due_clusters(seconds=5).read == 1
    assert lab.cluster.name == "ada"


def test_a_driver_that_breaks_is_a_state_with_a_reason(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = new_lab(opener)

    async def broken(*, deadline: float) -> ClusterDescription:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(lab.fake, "describe", broken)
    assert syncing.sync_due_clusters(seconds=5).read == 1
    row = ClusterConnection.objects.get()
    assert (row.error_kind, row.error_detail) == ("unknown", "its answer could not be read or stored; see the log")
    assert row.leased_until is None


def test_what_one_cluster_answers_ends_the_round_for_no_other(opener: Opener) -> None:
    """The database refuses a name of the first one's: that is its own fault, and it is told so."""
    first, second = new_lab(opener, name="ada"), new_lab(opener, name="bob")
    first.fake.scheduler.nodes["n3"] = FakeNode("n" * 300, "a100", 4)
    first.submit()
    second.submit()
    tally = syncing.sync_due_clusters(seconds=5)
    assert (tally.read, tally.broken) == (2, 1)
    row = ClusterConnection.objects.get(pk=first.connection.pk)
    assert (row.error_kind, row.error_detail) == ("unknown", "its answer could not be read or stored; see the log")
    assert row.leased_until is None
    assert row.due_at > timezone.now()
    assert first.runs() == []
    assert [run.name for run in second.runs()] == ["train"]
    assert ClusterConnection.objects.get(pk=second.connection.pk).error_kind == ""


def test_who_was_in_the_way_of_others_is_stored_after_all(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    lab, plain, told = new_lab(opener), syncing.record_nodes, list[str]()

    def once_in_the_way(*args: Any) -> Any:
        told.append("asked")
        if len(told) == 1:
            raise OperationalError("deadlock detected") from psycopg.errors.DeadlockDetected()
        return plain(*args)

    monkeypatch.setattr(syncing, "record_nodes", once_in_the_way)
    tally = syncing.sync_due_clusters(seconds=5)
    assert (tally.read, tally.broken, len(told)) == (1, 0, 2)
    assert lab.node("n1").state == "active"


def test_a_database_in_trouble_ends_the_round(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    new_lab(opener)

    def full(*_: Any) -> Any:
        raise OperationalError("no space left on device") from psycopg.errors.DiskFull()

    monkeypatch.setattr(syncing, "record_nodes", full)
    with pytest.raises(OperationalError, match="no space"):
        syncing.sync_due_clusters(seconds=5)
    row = ClusterConnection.objects.get()
    assert row.error_kind == ""
    assert row.leased_until is not None


def test_settings_that_no_longer_work_are_a_state(db: None) -> None:
    cluster = Cluster.objects.create(site=Site.objects.create(name="Basel"), name="ada")
    ClusterConnection.objects.create(cluster=cluster, scheduler="kubernetes", kubeconfig="not a kubeconfig")
    syncing.sync_due_clusters(seconds=5)
    row = ClusterConnection.objects.get()
    assert row.error_kind == "not_supported"
    assert row.error_detail.startswith("this connection can't be used")


def test_an_incomplete_reading_of_nodes_removes_nobody(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = new_lab(opener)
    lab.sync()
    plain = lab.fake.read_nodes

    async def partly(*, deadline: float) -> NodesReading:
        reading = await plain(deadline=deadline)
        return NodesReading(observed_at=reading.observed_at, complete=False, nodes=reading.nodes[:1])

    monkeypatch.setattr(lab.fake, "read_nodes", partly)
    before = lab.connection.nodes_read_at
    row = lab.sync()
    assert row.nodes.filter(gone_at=None).count() == 2
    assert row.nodes_read_at == before


def test_listeners_hear_of_changes_and_of_nothing_else(opener: Opener) -> None:
    lab = new_lab(opener)
    heard: list[Any] = []

    def hear(cluster: Any, **_: Any) -> None:
        heard.append(cluster)

    jobs_changed.connect(hear)
    try:
        lab.submit(cards=1)
        lab.sync()
        assert heard == [lab.cluster.pk]
        lab.sync()
        lab.sync()
        assert heard == [lab.cluster.pk]
        lab.fake.out_of_reach = "gone"
        lab.sync()
        lab.sync()
        assert len(heard) == 2  # out of reach is told once
    finally:
        jobs_changed.disconnect(hear)


def test_a_token_is_made_as_slurm_reads_it() -> None:
    token = slurm_token("MDEyMzQ1Njc4OWFiY2RlZg==", user="root", now=1_700_000_000)
    head, claims, signature = token.split(".")
    assert head == "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
    assert claims == "eyJleHAiOjE3MDAwMDM2MDAsImlhdCI6MTcwMDAwMDAwMCwic3VuIjoicm9vdCJ9"
    assert len(signature) == 43
    with pytest.raises(InvalidInput, match="at least 16 bytes"):
        slurm_token("c2hvcnQ=", user="root", now=0)


def test_secrets_are_in_no_repr() -> None:
    access = Access("slurm", "http://x", token="word", jwt_key="word", kubeconfig="word", tls_authority="word")
    assert "word" not in repr(access)


def test_a_kubeconfig_that_is_no_yaml_is_not_quoted() -> None:
    broken = "users:\n- token: 'word-of-honour\n  x: ["
    with pytest.raises(InvalidInput, match=r"no YAML \(line 3\)") as refused:
        connections.usable(Access("kubernetes", kubeconfig=broken))
    assert "word" not in str(refused.value)


def test_a_cluster_with_a_cordon_of_ours_is_not_disconnected(opener: Opener) -> None:
    lab = new_lab(opener)
    lab.clock.now = timezone.now().replace(microsecond=0)
    lab.sync(0)
    cordon(node=lab.node("n1"), reason="test", actor=None)
    with pytest.raises(Conflict, match="return the nodes that are taken out first: n1"):
        connections.disconnect(connection=lab.connection, actor=None)
    uncordon(node=lab.node("n1"), actor=None)
    connections.disconnect(connection=lab.connection, actor=None)
    assert ClusterConnection.objects.count() == 0
    assert lab.node("n1").state == "active"
