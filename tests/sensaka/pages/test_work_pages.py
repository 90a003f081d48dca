"""Pages of clusters, jobs and cordons: right values, filters, a fixed number of queries, who sees what (I7, P13)."""

import itertools
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection as database
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from inventory.models import ClusterConnection, Cordon, Job, JobCard, JobNode, SchedulerNode
from inventory.rules.job_words import clock, exit_words, reason_words
from sensaka.cockpit import cordon_acts, job_acts
from sensaka.live import attention, snapshots
from sensaka.live.topics import Topic, parse
from tests.sensaka.pages import seed, work_seed


@pytest.fixture
def work(db: None) -> work_seed.Work:
    snapshots.forget()
    return work_seed.build(seed.build(nodes_a_rack=2))


@pytest.fixture
def operator(work: work_seed.Work, client: Client) -> Client:
    client.force_login(work.made.users["operator"])
    return client


def shown(client: Client, **query: str) -> list[str]:
    return [job.job_id for job in client.get(reverse("jobs"), query).context["jobs"]]


def html(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return answer.content.decode()


# -- clusters ----------------------------------------------------------------------------------------------------------


def test_the_list_tells_reached_lost_and_bare_clusters_apart(work: work_seed.Work, operator: Client) -> None:
    page = html(operator, reverse("clusters"))
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
    assert len(shown(operator, cluster=str(central), state="running")) == running
    assert len(shown(operator, cluster=str(central), state="waiting")) == 4


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
    work: work_seed.Work, operator: Client
) -> None:
    page = html(operator, reverse("cluster", args=[work.clusters["central"].pk]))
    for text in (
        "24.11.5", "v0.0.42", "http://slurm.example.org:6820", "slurmrestd has no such call", "by slurmrestd",
        "login01", "no node of ours", "old07", "Gone", "workshop", "kernel update, ask Reto", "Fan 3 rattles",
        "Jobs of higher priority are ahead of it.",
    ):  # fmt: skip
        assert text in page, text
    row = work.connections["central"]
    assert row.jwt_key not in page
    assert row.jwt_key not in html(operator, reverse("connection-edit", args=[row.cluster_id]))


def test_a_cluster_out_of_reach_keeps_its_facts_and_dates_them(work: work_seed.Work, operator: Client) -> None:
    cluster = work.clusters["regional"]
    page = html(operator, reverse("cluster", args=[cluster.pk]))
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


def test_the_nodes_of_a_cluster_are_found_and_paged(work: work_seed.Work, operator: Client) -> None:
    connection = work.connections["central"]
    SchedulerNode.objects.bulk_create(
        SchedulerNode(connection=connection, name=f"x{number:03d}", seen_at=work.now) for number in range(120)
    )
    address = reverse("cluster-part", args=[connection.cluster_id, "nodes"])
    assert "Page 1 of 2, 126 nodes" in html(operator, address)
    found = operator.get(address, {"q": "x11"}).context["page"].object_list
    assert [row.name for row in found] == [f"x11{number}" for number in range(10)]
    assert operator.get(reverse("cluster-part", args=[connection.cluster_id, "nothing"])).status_code == 404


# -- the timeline ------------------------------------------------------------------------------------------------------


def test_the_timeline_tells_each_run_once_and_packs_overlaps(work: work_seed.Work, operator: Client) -> None:
    address = reverse("cluster-timeline", args=[work.clusters["central"].pk])
    body = operator.get(address, {"span": "24h", "by": "node"}).json()
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


def test_the_timeline_by_card_says_what_it_can_not_draw(work: work_seed.Work, operator: Client) -> None:
    address = reverse("cluster-timeline", args=[work.clusters["central"].pk])
    body = operator.get(address, {"span": "24h", "by": "card"}).json()
    assert len(body["lanes"]) == 32
    assert str(work.jobs["90231"].pk) not in {job["id"] for job in body["jobs"]}
    assert body["unknown"] == 1
    earlier = operator.get(address, {"span": "6h", "end": (work.now - timedelta(days=9)).isoformat()}).json()
    assert (earlier["jobs"], earlier["end"] - earlier["start"]) == ([], 6 * 3600)


def test_the_timeline_of_many_cards_is_small_and_costs_few_queries(work: work_seed.Work, operator: Client) -> None:
    address = reverse("cluster-timeline", args=[work.clusters["central"].pk])
    few = queries(operator, f"{address}?by=card")
    work_seed._ended(work, 60)
    assert queries(operator, f"{address}?by=card") == few
    assert len(operator.get(address, {"by": "card"}).content) < 60_000


# -- jobs --------------------------------------------------------------------------------------------------------------


def test_filters_leave_the_right_jobs(work: work_seed.Work, operator: Client) -> None:
    node, card = work.made.nodes["a01-gpu01"], work.cards_of("a01-gpu01")[3]
    assert shown(operator, node=str(node.pk), state="running") == ["90214", "90233", "90210"]
    assert shown(operator, node="A01-GPU01", state="running") == ["90214", "90233", "90210"]
    assert shown(operator, card=str(card.pk), state="open") == ["90214"]
    assert shown(operator, cards="unknown") == ["90231"]
    assert shown(operator, user="petra", state="open") == ["90231"]
    assert shown(operator, account="graphics") == ["90231"]
    assert shown(operator, queue="debug") == []
    assert shown(operator, state="timeout") == ["90101"]
    assert shown(operator, q="sweep", state="waiting") == ["90220_4"]
    assert set(shown(operator, q="90250")) == {"90250"}
    assert "90120" not in shown(operator, span="1h")
    since, until = work.now - timedelta(hours=6.5), work.now - timedelta(hours=5.8)
    assert "90120" in shown(operator, since=since.isoformat(), until=until.isoformat())


@pytest.mark.parametrize(
    "query",
    [
        {"node": "no-such-node"}, {"node": str(seed.missing_id())}, {"card": "nonsense"}, {"cluster": "nonsense"},
    ],
)  # fmt: skip
def test_what_is_not_there_has_no_jobs(work: work_seed.Work, operator: Client, query: dict[str, str]) -> None:
    """A node that is misspelt must not show the jobs of all nodes."""
    assert shown(operator, **query) == []


def test_unreadable_filters_are_left_out(work: work_seed.Work, operator: Client) -> None:
    everything = shown(operator)
    for query in ({"state": "odd"}, {"span": "9y"}, {"since": "yesterday"}, {"before": "x_y"}, {"cards": "maybe"}):
        assert shown(operator, **query) == everything
    assert operator.get(reverse("jobs"), {"q": "a\x00b", "user": "\x00"}).status_code == 200


def test_pages_of_jobs_follow_one_another_without_gap_or_repetition(work: work_seed.Work, operator: Client) -> None:
    work_seed._ended(work, 70)
    seen: list[Any] = []
    query: dict[str, str] = {}
    for _ in range(10):
        context = operator.get(reverse("jobs"), query).context
        seen += [job.pk for job in context["jobs"]]
        if not context["older"]:
            break
        query = {"before": context["older"]}
    assert len(seen) == len(set(seen)) == Job.objects.count()


def test_a_link_s_filters_are_chips_that_can_be_taken_off(work: work_seed.Work, operator: Client) -> None:
    card = work.cards_of("a01-gpu01")[0]
    answer = operator.get(reverse("jobs"), {"card": str(card.pk), "state": "open", "before": "2020-01-01_x"})
    (chip, address), *rest = answer.context["chips"]
    assert (chip.text, rest) == (f"Card {card.slot} on a01-gpu01", [])
    assert address == f"{reverse('jobs')}?state=open"


def test_a_job_tells_times_reason_places_and_gpu_time(work: work_seed.Work, operator: Client) -> None:
    job = work.jobs["90214"]
    page = html(operator, reverse("job", args=[job.pk]))
    for card in (*work.cards_of("a01-gpu01")[3:5], *work.cards_of("a01-gpu02")[:2]):
        assert reverse("card", args=[card.pk]) in page
    cells = dict(snapshots.snapshot(Topic("job", job.pk)))
    assert cells["job.waited"].text == "00:05:00"
    assert job.started_at is not None
    hours = (work.now - job.started_at).total_seconds() * 4 / 3600
    assert abs(float(cells["job.gpu"].text.split("\u202f")[0]) - hours) < 0.2
    over = html(operator, reverse("job", args=[work.jobs["90104"].pk]))
    assert "Ended by SIGKILL (9)" in over
    assert "It used more memory than it asked for." in over
    steps = html(operator, reverse("job", args=[work.jobs["90120"].pk]))
    assert "train.py" in steps
    assert "Exit code 0: well" in steps


def test_cards_that_are_unknown_are_said_to_be_and_lost_runs_too(work: work_seed.Work, operator: Client) -> None:
    page = html(operator, reverse("job", args=[work.jobs["90231"].pk]))
    assert "Cards unknown." in page
    assert "The scheduler says 2 cards, but not which." in page
    assert "They are not guessed." in page
    assert reverse("card", args=[work.cards_of("a01-gpu02")[5].pk]) not in page
    lost = html(operator, reverse("job", args=[work.jobs["90111"].pk]))
    assert "This run was lost" in lost
    assert "Cards unknown (2)" in html(operator, f"{reverse('jobs')}?cards=unknown")


def test_requeues_stand_beside_one_another(work: work_seed.Work, operator: Client) -> None:
    first, second = Job.objects.filter(job_id="90250").order_by("submitted_at")
    page = html(operator, reverse("job", args=[second.pk]))
    assert reverse("job", args=[first.pk]) in page
    assert "same job" in page
    assert "Requeued" in page


def test_what_a_card_did_while_the_job_ran(work: work_seed.Work, operator: Client) -> None:
    """Gaps are null; busy, idle and unknown add up to the time that it ran."""
    job = work.jobs["90210"]
    held = JobCard.objects.get(job=job)
    body = operator.get(reverse("job-history", args=[job.pk]), {"held": str(held.pk)}).json()
    assert job.started_at is not None
    assert body["start"] == int(job.started_at.timestamp())
    ran = body["end"] - body["start"]
    assert abs(body["busy"] + body["idle"] + body["unknown"] - ran) <= body["resolution"]
    assert None in body["activity"]  # samples cover the last hour only
    assert any(value for value in body["activity"] if value is not None)
    assert body["busy"] > 3000
    other = reverse("job-history", args=[work.jobs["90214"].pk])
    assert operator.get(other, {"held": str(held.pk)}).status_code == 404


@async_to_sync
async def loaded(client: AsyncClient, work: work_seed.Work, **query: str) -> list[str]:
    """The lines of the file, as the ASGI server that runs the product sends them."""
    await client.aforce_login(work.made.users["operator"])
    answer: Any = await client.get(reverse("jobs-csv"), query)
    return b"".join([piece async for piece in answer.streaming_content]).decode().splitlines()


def test_jobs_as_a_file_are_the_rows_of_the_filters(work: work_seed.Work, async_client: AsyncClient) -> None:
    lines = loaded(async_client, work, user="petra", state="open")
    assert [line.split(",")[3] for line in lines] == ["job_id", "90231"]
    row = dict(zip(lines[0].split(","), lines[1].split(","), strict=True))
    assert (row["cards"], row["cards_known"], row["cards_held"], row["nodes"]) == ("2", "no", "", "a01-gpu02")


def test_acts_follow_state_and_capability(work: work_seed.Work) -> None:
    def acts(job_id: str) -> dict[str, str]:
        job = Job.objects.select_related("cluster__connection").get(pk=work.jobs[job_id].pk)
        return {act.name: act.why_not for act in job_acts.possible(job)}

    assert set(acts("90214")) == {"suspend", "signal", "requeue", "cancel"}
    assert acts("90214")["suspend"].startswith("slurmrestd has no such call")
    assert acts("90214")["cancel"] == ""
    assert set(acts("90240")) == {"hold", "cancel"}
    assert set(acts("90242")) == {"release", "cancel"}
    assert acts("90101") == {}
    ClusterConnection.objects.filter(pk=work.connections["central"].pk).update(enabled=False)
    assert acts("90240") == dict.fromkeys(("hold", "cancel"), "The connection to its cluster is switched off.")


# -- nodes, cards, overview, search ------------------------------------------------------------------------------------


def test_a_node_shows_its_jobs_and_whose_cordon_it_has(work: work_seed.Work, operator: Client) -> None:
    theirs = work.cordons["theirs"].node
    page = html(operator, reverse("node", args=[theirs.pk]))
    jobs = page.split('id="jobs-title"')[1].split("processes-title")[0]
    assert jobs.index("90214") < jobs.index("90105")  # what runs stands before what ran
    cordon = page.split('id="cordon-title"')[1].split("facts-title")[0]
    assert "kernel update, ask Reto" in cordon
    assert "Sensaka never lifts somebody else" in cordon
    assert reverse("cordon-act", args=[theirs.pk, "return"]) not in page
    ours = work.cordons["ours"].node
    assert reverse("cordon-act", args=[ours.pk, "return"]) in html(operator, reverse("node", args=[ours.pk]))
    cells = dict(snapshots.snapshot(Topic("nodes", ids=(theirs.pk, work.made.nodes["e01-gpu01"].pk))))
    assert cells[f"node.{theirs.pk}.cordon"].text == "Cordoned"
    assert cells[f"node.{work.made.nodes['e01-gpu01'].pk}.cordon"].text == ""


@pytest.mark.parametrize(
    ("cordons", "offered"),
    [
        ([], ["cordon", "drain"]),
        ([Cordon(ours=False)], ["cordon", "drain"]),
        ([Cordon(ours=True, purpose="operator")], ["drain", "return"]),
        ([Cordon(ours=True, purpose="operator", drain=True)], ["return"]),
        ([Cordon(ours=True, purpose="health")], ["return"]),
    ],
)
def test_which_acts_a_node_is_offered(cordons: list[Cordon], offered: list[str]) -> None:
    assert [act.name for act in cordon_acts.possible(cordons)] == offered


def test_a_card_shows_who_holds_it_and_that_its_node_is_out(work: work_seed.Work, operator: Client) -> None:
    page = html(operator, reverse("card", args=[work.cards_of("a01-gpu01")[0].pk]))
    jobs = page.split('id="jobs-title"')[1].split("processes-title")[0]
    assert "90210" in jobs
    assert "90214" not in jobs
    assert "Its node is cordoned" in jobs


def test_the_overview_counts_jobs_and_the_numbers_lead_to_them(work: work_seed.Work, operator: Client) -> None:
    page = html(operator, reverse("overview"))
    cells = dict(snapshots.snapshot(Topic("fleet")))
    assert f'href="{reverse("jobs")}?state=running"' in page
    assert cells["jobs.running"].text == str(len(shown(operator, state="running")))
    assert cells["jobs.waiting"].text == str(len(shown(operator, state="waiting"))) == "4"


@pytest.mark.parametrize(
    ("query", "found"),
    [("90214", "90214 pretrain-vit-l"), ("finetune", "90210"), ("petra", "90231 render"), ("regional-c", "cluster at")],
)
def test_search_finds_jobs_and_clusters(work: work_seed.Work, operator: Client, query: str, found: str) -> None:
    assert found in html(operator, f"{reverse('search')}?q={query}")


def test_cordons_now_and_before(work: work_seed.Work, operator: Client) -> None:
    page = html(operator, reverse("cordons"))
    now, before = page.split('id="past-title"')
    assert "Fan 3 rattles" in now
    assert "3 jobs still run there, on 6 cards" in now
    assert "Riser swapped" in before
    assert "Lifted by Sensaka" in before
    assert now.count("Return<") == 1  # ours only
    only = html(operator, f"{reverse('cordons')}?cluster={work.clusters['regional'].pk}")
    assert "No node is taken out of scheduling" in only


# -- live, queries, rights ---------------------------------------------------------------------------------------------


def test_every_live_cell_of_these_pages_is_in_its_snapshot(work: work_seed.Work, operator: Client) -> None:
    central = work.clusters["central"].pk
    job = work.jobs["90214"].pk
    pages = {
        reverse("clusters"): Topic("clusters"),
        reverse("cluster", args=[central]): Topic("cluster", central),
        reverse("job", args=[job]): Topic("job", job),
        reverse("cordons"): Topic("clusters"),
    }
    listed = operator.get(reverse("jobs"))
    pages[reverse("jobs")] = listed.context["topic"]
    for address, topic in pages.items():
        page = html(operator, address)
        assert f'data-topic="{topic}"' in page, address
        assert parse(str(topic)) == topic
        wanted = set(re.findall(r'data-live(?:-fill|-refresh)?="([^"]+)"', page))
        assert wanted
        assert wanted <= set(snapshots.snapshot(topic)), (address, wanted - set(snapshots.snapshot(topic)))


def test_a_job_that_moves_changes_the_version_of_the_list(work: work_seed.Work) -> None:
    job = work.jobs["90241"]
    topic = Topic("jobs", ids=(job.pk,))
    before = snapshots.snapshot(topic)
    assert snapshots.snapshot(topic)["jobs.version"] == before["jobs.version"]
    Job.objects.filter(pk=job.pk).update(state="running", started_at=work.now, node_names=["a02-gpu01"])
    moved = snapshots.snapshot(topic)
    assert moved["jobs.version"] != before["jobs.version"]
    assert moved[f"job.{job.pk}.state"].text == "Running"
    work.run("99999", state="pending", ago=0)
    assert snapshots.snapshot(topic)["jobs.version"] != moved["jobs.version"]


def queries(client: Client, address: str) -> int:
    snapshots.forget()
    with CaptureQueriesContext(database) as found:
        assert client.get(address).status_code == 200
    return len(found)


def test_queries_do_not_grow_with_rows(work: work_seed.Work, operator: Client) -> None:
    node, card = work.made.nodes["a01-gpu01"], work.cards_of("a01-gpu01")[0]
    central = work.clusters["central"].pk
    addresses = [
        reverse("clusters"), reverse("cluster", args=[central]), reverse("jobs"), reverse("cordons"),
        reverse("node", args=[node.pk]), reverse("card", args=[card.pk]), reverse("overview"),
        reverse("job", args=[work.jobs["90214"].pk]), reverse("cordon-act", args=[node.pk, "drain"]),
        f"{reverse('search')}?q=9",
    ]  # fmt: skip
    # what the process keeps for a second may save a query in one round and not in another
    few = {address: max(queries(operator, address) for _ in range(2)) for address in addresses}
    for number in range(6):
        on = {"a01-gpu01": (number,), "a02-gpu01": (number, number + 1)}
        work.run(f"9{number}000", on=on, ago=number)
        work.run(f"9{number}001", on={"a01-gpu01": (0,)}, state="completed", open=False, ended_at=work.now)
        work.run(f"9{number}002", state="pending", ago=number)
    for number, node in enumerate(work.made.nodes.values()):
        if not node.cordons.filter(lifted_at=None).exists():
            Cordon.objects.create(node=node, cluster_id=central, ours=True, mark=f"m{number}", requested_at=work.now)
    many = {address: min(queries(operator, address) for _ in range(2)) for address in addresses}
    grown = {key: (few[key], many[key]) for key in few if many[key] > few[key]}
    assert not grown, json.dumps(grown)


def test_auditors_see_everything_and_can_do_nothing(work: work_seed.Work, client: Client) -> None:
    client.force_login(work.made.users["auditor"])
    node, job, central = work.cordons["ours"].node, work.jobs["90214"], work.clusters["central"]
    pages = [
        reverse("clusters"), reverse("cluster", args=[central.pk]), reverse("jobs"), reverse("cordons"),
        reverse("job", args=[job.pk]), reverse("node", args=[node.pk]),
        *(reverse("cluster-part", args=[central.pk, part]) for part in
          ("connection", "jobs", "nodes", "queues", "cordons", "journal")),
        *(reverse("job-part", args=[job.pk, part]) for part in ("facts", "runs", "acts")),
    ]  # fmt: skip
    for address in pages:
        page = html(client, address)
        assert not re.search(r"/jobs/[0-9a-f-]+/acts/", page), address
        assert not re.search(r"/cordons/[0-9a-f-]+/", page), address
        assert not re.search(r"/clusters/[0-9a-f-]+/connection/", page), address
    forbidden = [
        reverse("cluster-connect"), reverse("connection-edit", args=[central.pk]),
        reverse("connection-delete", args=[central.pk]), reverse("connection-act", args=[central.pk, "disable"]),
        reverse("cordon-act", args=[node.pk, "return"]), reverse("job-act", args=[job.pk, "cancel"]),
    ]  # fmt: skip
    for address in forbidden:
        assert client.get(address).status_code == 403, address
        assert client.post(address, {"reason": "x"}).status_code == 403, address
    assert ClusterConnection.objects.get(cluster=central).enabled
    client.force_login(work.made.users["member"])
    for address in pages:
        answer = client.get(address)
        assert answer.status_code == 403, address
        assert b"90214" not in answer.content


def test_what_is_not_there_is_not_found(work: work_seed.Work, operator: Client) -> None:
    nobody = seed.missing_id()
    for address in (
        reverse("cluster", args=[nobody]), reverse("job", args=[nobody]), reverse("cluster-timeline", args=[nobody]),
        reverse("job-part", args=[work.jobs["90214"].pk, "nothing"]), reverse("cordon-act", args=[nobody, "drain"]),
        reverse("cordon-act", args=[work.cordons["ours"].node_id, "melt"]),
        reverse("job-act", args=[work.jobs["90214"].pk, "melt"]),
        reverse("connection-edit", args=[work.clusters["edge"].pk]),
    ):  # fmt: skip
        assert operator.get(address).status_code == 404, address


# -- words -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheduler", "reason", "words"),
    [
        ("slurm", "None", ""),
        ("slurm", "Priority", "Jobs of higher priority are ahead of it."),
        ("slurm", "ReqNodeNotAvail, May be reserved", "A node that it needs is not available: May be reserved."),
        ("slurm", "QOSMaxGRESPerUser", "A limit of its quality of service is reached (QOSMaxGRESPerUser)."),
        ("slurm", "AssocGrpGRES", "A limit of its account is reached (AssocGrpGRES)."),
        ("slurm", "SomethingNew", "SomethingNew"),
        ("kubernetes", "Unschedulable: 0/3 nodes are available", "No node has room for it now."),
        ("kubernetes", "Priority", "Priority"),
    ],
)  # fmt: skip
def test_reasons_are_sentences_where_they_are_known(scheduler: str, reason: str, words: str) -> None:
    assert reason_words(scheduler, reason) == words


def test_ends_and_lengths_in_words() -> None:
    assert exit_words(None, None) == ""
    assert exit_words(0, None) == "Exit code 0: well"
    assert exit_words(137, None) == "Exit code 137: ended by SIGKILL"
    assert exit_words(0, 15) == "Ended by SIGTERM (15)"
    assert exit_words(200, None) == "Exit code 200"
    assert [clock(value) for value in (None, 59, 3600, 90061)] == ["", "00:00:59", "01:00:00", "1-01:01:01"]


def test_places_of_a_job_are_its_nodes_with_and_without_cards(work: work_seed.Work, operator: Client) -> None:
    job = work.jobs["90214"]
    JobNode.objects.create(job=job, node=work.made.nodes["a02-gpu01"])
    page = html(operator, reverse("job-part", args=[job.pk, "facts"]))
    assert page.index("a01-gpu01") < page.index("a01-gpu02") < page.index("a02-gpu01")
    assert "no cards" in page
