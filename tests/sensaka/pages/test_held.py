"""Jobs and cordons on the pages of nodes and cards, live cells, queries and rights (I7, H6, X3)."""

import json
import re

import pytest
from django.test import Client
from django.urls import reverse

from inventory.models import ClusterConnection, Cordon, Job
from sensaka.cockpit import cordon_acts
from sensaka.live import snapshots
from sensaka.live.topics import Topic, parse
from tests.sensaka.pages import seed, work_seed
from tests.sensaka.pages.work_reading import html, queries, shown


def test_a_node_shows_its_jobs_and_whose_cordon_it_has(work: work_seed.Work, steering: Client) -> None:
    theirs = work.cordons["theirs"].node
    page = html(steering, reverse("node", args=[theirs.pk]))
    jobs = page.split('id="jobs-title"')[1].split("processes-title")[0]
    assert jobs.index("90214") < jobs.index("90105")  # what runs stands before what ran
    cordon = page.split('id="cordon-title"')[1].split("facts-title")[0]
    assert "kernel update, ask Reto" in cordon
    assert "Sensaka never lifts somebody else" in cordon
    assert reverse("cordon-act", args=[theirs.pk, "return"]) not in page
    ours = work.cordons["ours"].node
    assert reverse("cordon-act", args=[ours.pk, "return"]) in html(steering, reverse("node", args=[ours.pk]))
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


def test_a_card_shows_who_holds_it_and_that_its_node_is_out(work: work_seed.Work, steering: Client) -> None:
    page = html(steering, reverse("card", args=[work.cards_of("a01-gpu01")[0].pk]))
    jobs = page.split('id="jobs-title"')[1].split("processes-title")[0]
    assert "90210" in jobs
    assert "90214" not in jobs
    assert "Its node is cordoned" in jobs


def test_the_overview_counts_jobs_and_the_numbers_lead_to_them(work: work_seed.Work, steering: Client) -> None:
    page = html(steering, reverse("overview"))
    cells = dict(snapshots.snapshot(Topic("fleet")))
    assert f'href="{reverse("jobs")}?state=running"' in page
    assert cells["jobs.running"].text == str(len(shown(steering, state="running")))
    assert cells["jobs.waiting"].text == str(len(shown(steering, state="waiting"))) == "4"


@pytest.mark.parametrize(
    ("query", "found"),
    [("90214", "90214 pretrain-vit-l"), ("finetune", "90210"), ("petra", "90231 render"), ("regional-c", "cluster at")],
)
def test_search_finds_jobs_and_clusters(work: work_seed.Work, steering: Client, query: str, found: str) -> None:
    assert found in html(steering, f"{reverse('search')}?q={query}")


def test_cordons_now_and_before(work: work_seed.Work, steering: Client) -> None:
    page = html(steering, reverse("cordons"))
    now, before = page.split('id="past-title"')
    assert "Fan 3 rattles" in now
    assert "3 jobs still run there, on 6 cards" in now
    assert "Riser swapped" in before
    assert "Lifted by Sensaka" in before
    assert now.count("Return<") == 1  # ours only
    only = html(steering, f"{reverse('cordons')}?cluster={work.clusters['regional'].pk}")
    assert "No node is taken out of scheduling" in only


def test_every_live_cell_of_these_pages_is_in_its_snapshot(work: work_seed.Work, steering: Client) -> None:
    central = work.clusters["central"].pk
    job = work.jobs["90214"].pk
    pages = {
        reverse("clusters"): Topic("clusters"),
        reverse("cluster", args=[central]): Topic("cluster", central),
        reverse("job", args=[job]): Topic("job", job),
        reverse("cordons"): Topic("clusters"),
    }
    listed = steering.get(reverse("jobs"))
    pages[reverse("jobs")] = listed.context["topic"]
    for address, topic in pages.items():
        page = html(steering, address)
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


def test_queries_do_not_grow_with_rows(work: work_seed.Work, steering: Client) -> None:
    node, card = work.made.nodes["a01-gpu01"], work.cards_of("a01-gpu01")[0]
    central = work.clusters["central"].pk
    addresses = [
        reverse("clusters"), reverse("cluster", args=[central]), reverse("jobs"), reverse("cordons"),
        reverse("node", args=[node.pk]), reverse("card", args=[card.pk]), reverse("overview"),
        reverse("job", args=[work.jobs["90214"].pk]), reverse("cordon-act", args=[node.pk, "drain"]),
        f"{reverse('search')}?q=9",
    ]  # fmt: skip
    # what the process keeps for a second may save a query in one round and not in another
    few = {address: max(queries(steering, address) for _ in range(2)) for address in addresses}
    for number in range(6):
        on = {"a01-gpu01": (number,), "a02-gpu01": (number, number + 1)}
        work.run(f"9{number}000", on=on, ago=number)
        work.run(f"9{number}001", on={"a01-gpu01": (0,)}, state="completed", open=False, ended_at=work.now)
        work.run(f"9{number}002", state="pending", ago=number)
    for number, node in enumerate(work.made.nodes.values()):
        if not node.cordons.filter(lifted_at=None).exists():
            Cordon.objects.create(node=node, cluster_id=central, ours=True, mark=f"m{number}", requested_at=work.now)
    many = {address: min(queries(steering, address) for _ in range(2)) for address in addresses}
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


def test_what_is_not_there_is_not_found(work: work_seed.Work, steering: Client) -> None:
    nobody = seed.missing_id()
    for address in (
        reverse("cluster", args=[nobody]), reverse("job", args=[nobody]), reverse("cluster-timeline", args=[nobody]),
        reverse("job-part", args=[work.jobs["90214"].pk, "nothing"]), reverse("cordon-act", args=[nobody, "drain"]),
        reverse("cordon-act", args=[work.cordons["ours"].node_id, "melt"]),
        reverse("job-act", args=[work.jobs["90214"].pk, "melt"]),
        reverse("connection-edit", args=[work.clusters["edge"].pk]),
    ):  # fmt: skip
        assert steering.get(address).status_code == 404, address
