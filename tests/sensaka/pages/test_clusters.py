"""Pages of clusters and their timeline: right values, what is out of reach (P11, P12)."""

import itertools
from datetime import timedelta

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from inventory.models import ClusterConnection, Job, JournalKind, Node, SchedulerNode
from inventory.rules.job_words import clock
from inventory.services.journal import Note, write_entries
from sensaka.live import attention, snapshots
from sensaka.live.topics import Topic
from tests.sensaka.pages import seed, work_seed
from tests.sensaka.pages.work_reading import html, queries, shown


def test_the_list_tells_reached_lost_and_bare_clusters_apart(work: work_seed.Work, steering: Client) -> None:
    page = html(steering, reverse("clusters"))
    cells = dict(snapshots.snapshot(Topic("clusters")))
    central, regional, edge = (work.clusters[name].pk for name in ("central", "regional", "edge"))
    assert [cells[f"cluster.{key}.condition"].text for key in (central, regional, edge)] == [
        "Read",
        "Out of reach",
        "Not connected",
    ]
    assert "connection refused at k8s.example.org:6443" in page
    assert cells[f"cluster.{regional}.running"].state == "stale"
    assert cells[f"cluster.{central}.running"].state == ""
    running = Job.objects.filter(cluster=central, open=True).exclude(state="pending").count()
    assert (cells[f"cluster.{central}.running"].text, cells[f"cluster.{central}.waiting"].text) == (str(running), "4")
    assert cells[f"cluster.{central}.cordoned"].text == "2"
    assert cells[f"cluster.{central}.installed"].text == "32"
    assert f"cluster.{edge}.running" not in cells  # nothing is known of its jobs: not zero
    assert f"{reverse('jobs')}?cluster={central}&amp;state=running" in page
    assert len(shown(steering, cluster=str(central), state="running")) == running
    assert len(shown(steering, cluster=str(central), state="waiting")) == 4


def test_schedulers_are_among_the_collectors_and_can_be_read_now(work: work_seed.Work, steering: Client) -> None:
    page = html(steering, reverse("collectors") + "?kind=scheduler")
    central, regional = work.connections["central"], work.connections["regional"]
    cells = dict(snapshots.snapshot(Topic("collectors")))
    assert cells[f"collector.{central.pk}.result"].text == "Read"
    assert cells[f"collector.{regional.pk}.error"].text == "connection refused at k8s.example.org:6443"
    for text in ("Slurm of ", "Kubernetes of ", reverse("cluster", args=[central.cluster_id])):
        assert text in page, text
    assert central.jwt_key not in page
    assert "bmc" not in page.split("<tbody>")[1].split("</tbody>")[0].lower()
    ClusterConnection.objects.update(due_at=timezone.now() + timedelta(hours=1))
    steering.post(reverse("collector-act", args=["scheduler", central.pk, "read"]))
    steering.post(reverse("collector-act", args=["scheduler", central.pk, "interval"]), {"interval": "45"})
    central.refresh_from_db()
    assert (central.due_at <= timezone.now(), central.interval) == (True, 45)
    assert steering.post(reverse("collector-delete", args=["scheduler", central.pk])).status_code == 404


def test_the_journal_of_a_cluster_is_its_own_first(work: work_seed.Work, steering: Client) -> None:
    cluster = work.clusters["central"]
    node = Node.objects.filter(cluster=cluster).first()
    assert node is not None
    about_card = Note(JournalKind.CARD_VANISHED, "A card has vanished.", timezone.now(), node.pk, None, "agent")
    told = Note(JournalKind.CLUSTER_LOST, "Slurm does not answer.", timezone.now(), cluster=cluster.pk)
    write_entries(notes=[about_card, told])
    part = reverse("cluster-part", args=[cluster.pk, "journal"])
    for address, both in ((part, False), (f"{part}?of=nodes", True), (reverse("cluster", args=[cluster.pk]), False)):
        page = html(steering, address)
        assert "Slurm does not answer." in page
        assert ("A card has vanished." in page) is both


def test_without_a_cluster_the_list_says_what_to_do(db: None, client: Client) -> None:
    snapshots.forget()
    people = seed.people()
    client.force_login(people["operator"])
    assert "Connect a cluster" in html(client, reverse("clusters"))
    assert "Jobs appear when a cluster is connected" in html(client, reverse("jobs"))
    client.force_login(people["auditor"])
    page = html(client, reverse("clusters"))
    assert reverse("cluster-connect") not in page
    assert "An operator has to do this." in page


def test_a_cluster_shows_connection_capabilities_queues_and_unknown_nodes(
    work: work_seed.Work, steering: Client
) -> None:
    page = html(steering, reverse("cluster", args=[work.clusters["central"].pk]))
    for text in (
        "24.11.5", "v0.0.42", "http://slurm.example.org:6820", "slurmrestd has no such call", "by slurmrestd",
        "login01", "no node of ours", "old07", "Gone", "workshop", "kernel update, ask Reto", "Fan 3 rattles",
        "Jobs of higher priority are ahead of it.",
    ):  # fmt: skip
        assert text in page, text
    row = work.connections["central"]
    assert row.jwt_key not in page
    assert row.jwt_key not in html(steering, reverse("connection-edit", args=[row.cluster_id]))


def test_a_cluster_out_of_reach_keeps_its_facts_and_dates_them(work: work_seed.Work, steering: Client) -> None:
    cluster = work.clusters["regional"]
    page = html(steering, reverse("cluster", args=[cluster.pk]))
    assert "is-past" in page
    assert "What is shown below are the facts of" in page
    read = work.connections["regional"].jobs_read_at
    assert read is not None
    assert read.strftime("%Y-%m-%dT%H:%M:%SZ") in page
    job = work.jobs["vision/train-7/pod/train-7-0"]
    cells = dict(snapshots.snapshot(Topic("job", job.pk)))
    assert cells["job.state"].text == "Running when last read"
    assert job.started_at is not None
    assert cells["job.ran"].text == clock((read - job.started_at).total_seconds())  # it does not go on by itself
    items = [item for item in attention.items() if "regional-cluster" in item.text]
    assert [(item.level, item.url) for item in items] == [("bad", reverse("cluster", args=[cluster.pk]))]


def test_the_nodes_of_a_cluster_are_found_and_paged(work: work_seed.Work, steering: Client) -> None:
    connection = work.connections["central"]
    SchedulerNode.objects.bulk_create(
        SchedulerNode(connection=connection, name=f"x{number:03d}", seen_at=work.now) for number in range(120)
    )
    address = reverse("cluster-part", args=[connection.cluster_id, "nodes"])
    assert "Page 1 of 2, 126 nodes" in html(steering, address)
    found = steering.get(address, {"q": "x11"}).context["page"].object_list
    assert [row.name for row in found] == [f"x11{number}" for number in range(10)]
    assert steering.get(reverse("cluster-part", args=[connection.cluster_id, "nothing"])).status_code == 404


def test_the_timeline_tells_each_run_once_and_packs_overlaps(work: work_seed.Work, steering: Client) -> None:
    address = reverse("cluster-timeline", args=[work.clusters["central"].pk])
    body = steering.get(address, {"span": "24h", "by": "node"}).json()
    places = {job["id"]: number for number, job in enumerate(body["jobs"])}
    assert len(places) == len(body["jobs"])
    wide = places[str(work.jobs["90214"].pk)]
    lanes = [lane["name"] for lane in body["lanes"] if any(bar[0] == wide for bar in lane["bars"])]
    assert lanes == ["a01-gpu01", "a01-gpu02"]
    for lane in body["lanes"]:
        for row in range(lane["rows"]):
            bars = sorted(bar[1:3] for bar in lane["bars"] if bar[3] == row)
            assert all(one[1] <= other[0] for one, other in itertools.pairwise(bars)), lane["name"]
    assert {bar[3] for lane in body["lanes"] for bar in lane["bars"]} <= set(range(12))


def test_the_timeline_by_card_says_what_it_can_not_draw(work: work_seed.Work, steering: Client) -> None:
    address = reverse("cluster-timeline", args=[work.clusters["central"].pk])
    body = steering.get(address, {"span": "24h", "by": "card"}).json()
    assert len(body["lanes"]) == 32
    assert str(work.jobs["90231"].pk) not in {job["id"] for job in body["jobs"]}
    assert body["unknown"] == 1
    earlier = steering.get(address, {"span": "6h", "end": (work.now - timedelta(days=9)).isoformat()}).json()
    assert (earlier["jobs"], earlier["end"] - earlier["start"]) == ([], 6 * 3600)


def test_the_timeline_of_many_cards_is_small_and_costs_few_queries(work: work_seed.Work, steering: Client) -> None:
    address = reverse("cluster-timeline", args=[work.clusters["central"].pk])
    few = queries(steering, f"{address}?by=card")
    work_seed._ended(work, 60)
    assert queries(steering, f"{address}?by=card") == few
    assert len(steering.get(address, {"by": "card"}).content) < 60_000
