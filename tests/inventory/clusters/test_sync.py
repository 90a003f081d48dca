"""A whole round against the fake scheduler: nodes, runs, cards, ends, outages."""

from datetime import timedelta

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from inventory.drivers.clusters.readings import JobState
from inventory.models import JobNode, Node, SchedulerNode, SchedulerQueue
from tests.inventory.clusters.building import T0, Opener, add_cards, journal, new_lab

pytestmark = pytest.mark.django_db


def test_nodes_of_the_scheduler_become_our_nodes(opener: Opener) -> None:
    lab = new_lab(opener)
    connection = lab.sync()
    nodes = Node.objects.order_by("name")
    assert [(node.name, node.state, node.cluster_id, node.labels) for node in nodes] == [
        (name, "active", lab.cluster.id, {"found-by": "slurm ada"}) for name in ("n1", "n2")
    ]
    rows = SchedulerNode.objects.order_by("name")
    assert [row.node_id for row in rows] == [node.id for node in nodes]
    assert rows[0].accelerators == [{"kind": "card", "type": "a100", "total": 4, "used": 0}]
    assert SchedulerQueue.objects.get().nodes == ["n1", "n2"]
    assert (connection.version, connection.error_kind, connection.nodes_read_at) == ("1", "", lab.clock.now)
    assert journal("node_enrolled") == [
        f"Node {name} was found in cluster ada at site Basel and is in service." for name in ("n1", "n2")
    ]


def test_a_run_from_its_submission_to_its_end(opener: Opener) -> None:
    lab = new_lab(opener)
    lab.sync()
    cards = add_cards(lab.node("n1"))
    big = lab.submit("big", cards=3, nodes=("n1",))
    small = lab.submit("small", cards=2, nodes=("n1",))
    lab.sync()
    first, second = lab.runs()
    assert (first.name, first.state, first.user, first.cards, first.cards_known) == ("big", "running", "ada", 3, True)
    assert (second.state, second.started_at, second.cards_known) == ("pending", None, None)
    assert lab.cards(big.key) == [("n1", minor, "scheduler") for minor in (0, 1, 2)]
    # minor 0 is the card in the last slot: the number, never the order
    assert {row.card_id for row in first.held_cards.all()} == {card.id for card in cards[1:]}
    assert [node.name for node in first.nodes.all()] == ["n1"]
    assert first.gpu_seconds(lab.clock.now) == 30
    lab.clock.pass_(50)
    lab.fake.scheduler.end(big, JobState.COMPLETED, 0)
    lab.sync()
    first, second = lab.runs()
    assert (first.state, first.open, first.exit_code) == ("completed", False, 0)
    assert first.ended_at == T0 + timedelta(seconds=70)
    assert first.final_gpu_seconds == 3 * 60
    assert first.accounted_at == lab.clock.now
    assert lab.cards(big.key) == [("n1", minor, "scheduler") for minor in (0, 1, 2)]
    assert (second.state, lab.cards(small.key)) == ("running", [("n1", 0, "scheduler"), ("n1", 1, "scheduler")])


def test_a_repeated_sync_changes_and_writes_nothing(opener: Opener) -> None:
    lab = new_lab(opener)
    lab.submit(cards=2)
    lab.submit(cards=2, held=True)
    lab.sync()
    add_cards(lab.node("n1"))
    lab.sync()
    lab.sync()
    with CaptureQueriesContext(database) as seen:
        lab.sync(0)
    writes = [query["sql"] for query in seen if not query["sql"].startswith(("SELECT", "SAVEPOINT", "RELEASE"))]
    assert len(writes) == 1
    assert writes[0].startswith('UPDATE "inventory_clusterconnection"')


def test_suspended_time_counts_for_nobody(opener: Opener) -> None:
    lab = new_lab(opener)
    run = lab.submit(cards=2)
    lab.sync()
    lab.fake.scheduler.suspend(run)
    lab.sync()
    assert lab.runs()[0].state == "suspended"
    lab.clock.pass_(30)
    lab.fake.scheduler.resume(run)
    lab.clock.pass_(20)
    lab.fake.scheduler.end(run, JobState.FAILED, 1)
    lab.sync()
    (row,) = lab.runs()
    assert (row.state, row.suspended, row.final_gpu_seconds) == ("failed", 40, 2 * 30)


def test_requeues_are_runs_apart(opener: Opener) -> None:
    lab = new_lab(opener)
    run = lab.submit(cards=1)
    lab.sync()
    lab.clock.pass_(20)
    lab.fake.scheduler.again(run, JobState.REQUEUED)
    lab.sync()
    first, second = lab.runs()
    assert (first.job_id, first.state, first.final_gpu_seconds) == (second.job_id, "requeued", 30)
    assert (second.state, second.open, second.restarts) == ("running", True, 1)


def test_a_job_id_used_again_after_a_controller_reset_is_another_job(opener: Opener) -> None:
    lab = new_lab(opener)
    old = lab.submit("before", cards=1)
    lab.sync()
    lab.fake.scheduler.end(old, JobState.COMPLETED, 0)
    lab.sync()
    lab.fake.scheduler.runs.clear()  # the controller starts anew, with its numbers from one
    lab.clock.pass_(3600)
    new = lab.submit("after", cards=1)
    lab.sync()
    assert new.job_id == old.job_id
    assert [(row.name, row.job_id, row.state) for row in lab.runs()] == [
        ("before", old.job_id, "completed"),
        ("after", old.job_id, "running"),
    ]


def test_two_clusters_with_the_same_node_names(opener: Opener) -> None:
    ada, bob = new_lab(opener, name="ada"), new_lab(opener, name="bob")
    run = ada.submit("of ada", cards=1, nodes=("n1",))
    ada.sync()
    bob.sync()
    twin = bob.submit("of bob", cards=1, nodes=("n1",))
    bob.sync()
    ada.sync()
    assert {(row.connection.cluster.name, row.name, row.node.cluster.name) for row in SchedulerNode.objects.all()} == {
        (cluster, name, cluster) for cluster in ("ada", "bob") for name in ("n1", "n2")
    }
    assert run.job_id == twin.job_id
    assert [node.cluster.name for node in ada.runs()[0].nodes.all()] == ["ada"]
    assert [node.cluster.name for node in bob.runs()[0].nodes.all()] == ["bob"]


def test_a_node_renamed_stays_the_same_node(opener: Opener) -> None:
    """The agent tells the new host name; the scheduler lists it under the new one, and runs of both are found."""
    lab = new_lab(opener)
    run = lab.submit("before", cards=1, nodes=("n1",))
    lab.sync()
    node = lab.node("n1")
    lab.fake.scheduler.end(run, JobState.COMPLETED, 0)
    lab.sync()
    known = lab.fake.scheduler.nodes.pop("n1")
    known.name = "gpu-01"
    lab.fake.scheduler.nodes["gpu-01"] = known
    Node.objects.filter(pk=node.pk).update(hostname="gpu-01")
    lab.submit("after", cards=1, nodes=("gpu-01",))
    lab.sync()
    names = {row.name: (row.node_id, row.gone_at is None) for row in SchedulerNode.objects.exclude(name="n2")}
    assert names == {"n1": (node.id, False), "gpu-01": (node.id, True)}
    assert Node.objects.count() == 2
    assert set(JobNode.objects.filter(node=node).values_list("job__name", flat=True)) == {"before", "after"}


def test_out_of_reach_is_a_state_and_the_last_facts_stay(opener: Opener) -> None:
    lab = new_lab(opener)
    lab.submit(cards=1)
    read = lab.sync().nodes_read_at
    lab.fake.out_of_reach = "connection refused"
    for _ in range(3):
        connection = lab.sync()
    assert (connection.error_kind, connection.error_detail) == ("unreachable", "connection refused")
    assert (connection.nodes_read_at, connection.jobs_read_at) == (read, read)
    assert [run.state for run in lab.runs()] == ["running"]
    assert SchedulerNode.objects.filter(gone_at=None).count() == 2
    assert journal("cluster_lost") == ["Slurm of cluster ada has not answered 3 times in a row: connection refused."]
    lab.fake.out_of_reach = ""
    assert lab.sync().error_kind == ""
    assert journal("cluster_recovered") == ["Slurm of cluster ada answers again after 3 misses."]
