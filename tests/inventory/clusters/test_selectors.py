"""Selectors of clusters, jobs and cordons: right rows in a fixed number of queries."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from inventory.models import (
    Card,
    Cluster,
    ClusterConnection,
    Cordon,
    Job,
    JobCard,
    JobNode,
    JournalKind,
    Node,
    SchedulerNode,
    Site,
)
from inventory.selectors.clusters import cluster_detail, cluster_rows
from inventory.selectors.cordons import before_cordon, cordoned_nodes, running_by_node
from inventory.selectors.jobs import JobFilter, filtered_jobs, job_detail, job_page, jobs_of_card, jobs_of_node
from inventory.selectors.timeline import timeline
from inventory.services.journal import Note, write_entries

pytestmark = pytest.mark.django_db
T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return T0 + timedelta(minutes=minutes)


class Lab:
    """A cluster with two nodes of two cards."""

    def __init__(self) -> None:
        self.site = Site.objects.create(name="Basel")
        self.cluster = Cluster.objects.create(site=self.site, name="ada", scheduler="slurm")
        self.connection = ClusterConnection.objects.create(
            cluster=self.cluster, scheduler="slurm", address="http://n", token="secret", nodes_read_at=at(60),
            jobs_read_at=at(61), succeeded_at=at(61),
        )  # fmt: skip
        self.nodes = [Node.objects.create(site=self.site, cluster=self.cluster, name=f"n{i}") for i in (1, 2)]
        self.cards = [
            Card.objects.create(node=node, slot=str(slot), minor=slot, first_seen_at=T0, state_since=T0)
            for node in self.nodes
            for slot in (0, 1)
        ]
        for node in self.nodes:
            SchedulerNode.objects.create(connection=self.connection, node=node, name=node.name, seen_at=T0)

    def run(self, number: int, *cards: int, nodes: tuple[int, ...] = (0,), **fields: Any) -> Job:
        facts = {"submitted_at": at(number), "seen_at": at(number), "name": f"job {number}", **fields}
        job = Job.objects.create(cluster=self.cluster, key=f"{number}-1", job_id=str(number), **facts)
        JobNode.objects.bulk_create(JobNode(job=job, node=self.nodes[index]) for index in nodes)
        JobCard.objects.bulk_create(
            JobCard(job=job, node=self.cards[index].node, card=self.cards[index]) for index in cards
        )
        return job


@pytest.fixture
def lab() -> Lab:
    return Lab()


def test_filters_and_pages(lab: Lab) -> None:
    first = lab.run(1, 0, state="completed", open=False, started_at=at(2), ended_at=at(10), user="ada", cards=1)
    second = lab.run(2, 2, nodes=(1,), state="running", started_at=at(5), account="chem", cards=1, cards_known=True)
    third = lab.run(3, nodes=(), state="pending", user="ada")
    lost = lab.run(4, 3, nodes=(1,), state="unknown", open=False, started_at=at(5), lost_at=at(30), seen_at=at(29))

    def ids(**wanted: Any) -> set[str]:
        return {job.job_id for job in filtered_jobs(JobFilter(**wanted))}

    assert ids() == {"1", "2", "3", "4"}
    assert ids(open=True) == {"2", "3"}
    assert ids(states=("running",)) == {"2"}
    assert ids(user="ada") == {"1", "3"}
    assert ids(account="chem") == {"2"}
    assert ids(node=lab.nodes[1].id) == {"2", "4"}
    assert ids(card=lab.cards[0].id) == {"1"}
    assert ids(cards="known") == {"2"}
    assert ids(since=at(11)) == {"2", "3", "4"}
    assert ids(since=at(31)) == {"2", "3"}
    assert ids(until=at(2)) == {"1"}
    assert ids(text="JOB 3") == {"3"}
    page = job_page(JobFilter(), limit=2)
    assert page == [lost, third]
    assert job_page(JobFilter(), before=(third.submitted_at, third.id)) == [second, first]
    assert jobs_of_node(lab.nodes[1].id) == [second, lost]
    assert jobs_of_card(lab.cards[0].id) == [first]


def test_lists_do_not_ask_for_each_job(lab: Lab) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            database,
        ) as seen:
            for job in job_page(JobFilter()):
                assert all(one.card.node_id for one in job.cards_held)  # type: ignore[attr-defined]
                assert {node.name for node in job.nodes.all()} <= {"n1", "n2"}
                assert job.cluster.site.name == "Basel"
        return len(seen)

    lab.run(1, 0, state="running")
    few = queries()
    for number in range(2, 12):
        lab.run(number, 0, 1, nodes=(0, 1), state="running")
    assert queries() == few == 3


def test_a_clusters_journal_is_its_own_unless_that_of_its_nodes_is_asked_for(lab: Lab) -> None:
    of_card = Note(JournalKind.CARD_VANISHED, "A card vanished.", at(2), lab.nodes[0].id, lab.cards[0].id, "agent")
    of_node = Note(JournalKind.NODE_CORDONED, "n1 was cordoned.", at(1), lab.nodes[0].id, cluster=lab.cluster.id)
    lost = Note(JournalKind.CLUSTER_LOST, "Slurm is lost.", at(0), cluster=lab.cluster.id)
    write_entries(notes=[of_card, of_node, lost])
    own = [entry.text for entry in cluster_detail(lab.cluster.id).journal]
    assert own == ["n1 was cordoned.", "Slurm is lost."]
    every = [entry.text for entry in cluster_detail(lab.cluster.id, with_nodes=True).journal]
    assert every == ["A card vanished.", *own]


def test_one_job_with_its_other_runs(lab: Lab) -> None:
    run = lab.run(1, 0, state="requeued", open=False)
    again = Job.objects.create(
        cluster=lab.cluster, key="1-2", job_id="1", state="running", submitted_at=at(9), seen_at=at(9)
    )
    lab.run(2, 0, state="running")
    assert job_detail(run.id).others == [again]
    assert [one.card for one in job_detail(run.id).job.cards_held] == [lab.cards[0]]  # type: ignore[attr-defined]


def test_lanes_of_nodes_and_cards_are_cut_to_the_span(lab: Lab) -> None:
    done = lab.run(1, 0, 1, state="completed", open=False, started_at=at(2), ended_at=at(10))
    runs = lab.run(2, 1, state="running", started_at=at(12))
    lab.run(3, 2, nodes=(1,), state="completed", open=False, started_at=at(1), ended_at=at(3))
    lost = lab.run(4, 3, nodes=(1,), state="unknown", open=False, started_at=at(4), lost_at=at(30), seen_at=at(8))
    picture = timeline(cluster=lab.cluster.id, start=at(5), end=at(20))
    assert [(lane.name, [run.job for run in lane.runs]) for lane in picture.lanes] == [
        ("n1", [done.id, runs.id]),
        ("n2", [lost.id]),
    ]
    spans = [(run.start, run.end, run.over) for lane in picture.lanes for run in lane.runs]
    assert spans == [(at(5), at(10), True), (at(12), at(20), False), (at(5), at(8), True)]
    by_card = timeline(cluster=lab.cluster.id, start=at(5), end=at(20), by="card")
    assert [(lane.id, [run.job for run in lane.runs]) for lane in by_card.lanes] == [
        (lab.cards[0].id, [done.id]),
        (lab.cards[1].id, [done.id, runs.id]),
        (lab.cards[2].id, []),
        (lab.cards[3].id, [lost.id]),
    ]
    one = timeline(cluster=lab.cluster.id, start=at(5), end=at(20), nodes=[lab.nodes[1].id])
    assert [lane.name for lane in one.lanes] == ["n2"]
    with pytest.raises(ValueError, match="by is"):
        timeline(cluster=lab.cluster.id, start=at(0), end=at(1), by="rack")


def test_what_a_person_sees_before_a_drain(lab: Lab) -> None:
    small = lab.run(1, 0, state="running", cards=1, started_at=at(2))
    large = lab.run(2, 2, 3, nodes=(0, 1), state="suspended", cards=3, started_at=at(3))
    lab.run(3, state="completed", open=False)
    cordon = Cordon.objects.create(
        node=lab.nodes[0], cluster=lab.cluster, ours=False, reason="disk", reason_by="root", requested_at=at(5)
    )
    shown = before_cordon(lab.nodes[0].id)
    assert (shown.running, shown.foreign, shown.ours) == ([large, small], cordon, None)
    assert shown.facts_at == at(61)
    assert [row.name for row in shown.scheduled_as] == ["n1"]
    assert cordoned_nodes() == {lab.nodes[0].id}
    by_node = running_by_node([node.id for node in lab.nodes])
    assert by_node == {lab.nodes[0].id: [large, small], lab.nodes[1].id: [large]}


def test_clusters_with_their_condition_and_numbers(lab: Lab) -> None:
    lab.run(1, 0, state="running")
    lab.run(2, state="pending")
    Cordon.objects.create(node=lab.nodes[0], cluster=lab.cluster, ours=True, mark="m", requested_at=at(5))
    Cluster.objects.create(site=lab.site, name="bare")
    rows = {row.cluster.name: row for row in cluster_rows(now=at(61.2))}
    assert rows["bare"].condition == "none"
    row = rows["ada"]
    assert (row.condition, row.nodes, row.running, row.waiting, row.cordoned) == ("well", 2, 1, 1, 1)
    assert row.facts_at == at(60)
    assert {row.cluster.name: row.condition for row in cluster_rows(now=at(90))}["ada"] == "late"
    ClusterConnection.objects.update(error_kind="unreachable", error_detail="connection refused")
    lost = cluster_detail(lab.cluster.id)
    assert (lost.condition, lost.reason, lost.facts_at) == ("lost", "connection refused", at(60))
    assert [node.name for node in lost.nodes] == ["n1", "n2"]
    assert lost.jobs == {"running": 1, "pending": 1}
    assert "token" in lost.connection.get_deferred_fields()  # type: ignore[union-attr]
