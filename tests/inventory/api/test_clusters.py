"""Clusters, jobs and cordons over REST: secrets, filters, acts, idempotence, roles."""

from typing import Any

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from inventory.models import ClusterConnection, Cordon, Job, JournalEntry
from inventory.services.clusters import opening
from tests.inventory.clusters.building import Lab, Opener, add_cards, new_lab

SECRET = "not-to-be-seen"


@pytest.fixture
def opener(monkeypatch: pytest.MonkeyPatch) -> Opener:
    found = Opener()
    monkeypatch.setattr(opening, "open_driver", found)
    return found


@pytest.fixture
def lab(db: None, opener: Opener) -> Lab:
    found = new_lab(opener)
    found.clock.now = timezone.now().replace(microsecond=0)
    found.sync(0)
    add_cards(found.node("n1"), read_at=found.clock.now)
    return found


def body(lab: Lab, **fields: Any) -> dict[str, Any]:
    return {"scheduler": "slurm", "address": "http://slurm:6820", "username": "root", "token": SECRET, **fields}


def test_a_scheduler_is_tried_connected_changed_and_removed(operator: APIClient, lab: Lab, opener: Opener) -> None:
    opener.fakes["http://slurm:6820"] = lab.fake
    ClusterConnection.objects.all().delete()
    address = f"/api/v1/clusters/{lab.cluster.id}/connection/"
    assert operator.get(address).status_code == 404
    tried = operator.post(f"{address}test/", body(lab))
    assert (tried.status_code, tried.json()["reached"], tried.json()["nodes"], tried.json()["cards"]) == (
        200,
        True,
        2,
        8,
    )
    assert ClusterConnection.objects.count() == 0
    made = operator.post(address, body(lab))
    assert (made.status_code, made.json()["condition"]) == (201, "new")
    assert operator.post(address, body(lab)).status_code == 409
    shown = operator.get(address)
    assert SECRET not in shown.content.decode()
    assert SECRET not in str(list(JournalEntry.objects.values()))
    assert operator.get(f"/api/v1/clusters/{lab.cluster.id}/").json()["scheduler"] == "slurm"
    changed = operator.patch(address, {"interval": 30, "username": "slurm"})
    assert (changed.status_code, changed.json()["interval"], changed.json()["username"]) == (200, 30, "slurm")
    assert ClusterConnection.objects.get().token == SECRET
    with database.cursor() as cursor:
        cursor.execute("SELECT token FROM inventory_clusterconnection")
        assert SECRET not in cursor.fetchone()[0]
    assert operator.post(f"{address}read/").status_code == 202
    assert operator.delete(address).status_code == 204
    assert operator.get(f"/api/v1/clusters/{lab.cluster.id}/").json()["scheduler"] == ""


@pytest.mark.parametrize(
    "fields",
    [
        {"address": "ftp://slurm"},
        {"address": "http://user:word@slurm:6820"},
        {"address": "unix:relative"},
        {"address": "http://169.254.169.254/"},
        {"token": ""},
        {"jwt_key": "no base64!"},
        {"scheduler": "kubernetes", "kubeconfig": "x"},
        {"slurm_conf": "slurm.conf"},
        {"tls_authority": "no pem"},
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(operator: APIClient, lab: Lab, fields: dict[str, str]) -> None:
    ClusterConnection.objects.all().delete()
    answer = operator.post(f"/api/v1/clusters/{lab.cluster.id}/connection/", body(lab, **fields))
    assert answer.status_code == 422
    assert SECRET not in answer.content.decode()


def test_jobs_are_filtered_and_carry_their_cards(operator: APIClient, lab: Lab) -> None:
    lab.submit("one", cards=2, nodes=("n1",), account="chem")
    lab.submit("two", cards=1, user="bob", held=True)
    lab.sync()
    (first,) = operator.get("/api/v1/jobs/?state=running").json()["results"]
    assert (first["name"], first["account"], first["cards_known"]) == ("one", "chem", True)
    assert [card["index"] for card in first["held_cards"]] == [0, 1]
    assert first["nodes"] == [str(lab.node("n1").id)]

    def names(query: str) -> list[str]:
        return [row["name"] for row in operator.get(f"/api/v1/jobs/?{query}").json()["results"]]

    card = first["held_cards"][0]["card"]
    assert names("user=bob") == ["two"]
    assert names("account=chem") == ["one"]
    assert names(f"node={lab.node('n1').id}") == ["one"]
    assert names(f"card={card}") == ["one"]
    assert sorted(names(f"cluster={lab.cluster.id}&state=running&state=pending")) == ["one", "two"]
    assert names("until=2020-01-01T00:00:00Z") == []
    assert sorted(names("open=true&since=2020-01-01T00:00:00Z")) == ["one", "two"]
    assert operator.get("/api/v1/jobs/?state=nonsense").status_code == 400
    timeline = operator.get(f"/api/v1/clusters/{lab.cluster.id}/timeline/?by=card").json()
    assert sum(bool(lane["runs"]) for lane in timeline["lanes"]) == 2
    assert len(operator.get(f"/api/v1/clusters/{lab.cluster.id}/scheduler-nodes/").json()["results"]) == 2
    assert operator.get(f"/api/v1/clusters/{lab.cluster.id}/queues/").json()["results"][0]["name"] == "default"


def test_lists_of_jobs_do_not_ask_for_each(operator: APIClient, lab: Lab) -> None:
    counts = []
    for number in (1, 4):
        for _ in range(number):
            lab.submit(cards=1)
        lab.sync()
        with CaptureQueriesContext(database) as queries:
            assert operator.get("/api/v1/jobs/").status_code == 200
        counts.append(len(queries))
    assert counts == [3, 3]


def test_operators_steer_jobs_with_a_reason(operator: APIClient, lab: Lab) -> None:
    run = lab.submit("one", cards=2)
    lab.sync()
    address = f"/api/v1/jobs/{lab.runs()[0].id}/"
    assert operator.post(f"{address}cancel/", {}).status_code == 400
    assert operator.post(f"{address}hold/", {"reason": "test"}).status_code == 409
    assert operator.post(f"{address}signal/", {"reason": "test", "signal": "NONSENSE"}).status_code == 400
    assert operator.post(f"{address}suspend/", {"reason": "test"}).json()["outcome"] == "done"
    assert run.state == "suspended"
    done = operator.post(f"{address}cancel/", {"reason": "no budget"})
    assert (done.status_code, run.state) == (200, "cancelled")
    lab.sync()
    assert operator.post(f"{address}cancel/", {"reason": "again"}).status_code == 409
    texts = JournalEntry.objects.filter(kind="job_act", actor__username="operator").values_list("text", flat=True)
    assert "Job 1 of cluster ada was cancelled: no budget." in texts


def test_nodes_are_taken_out_and_returned(operator: APIClient, lab: Lab) -> None:
    node = lab.node("n1")
    address = f"/api/v1/nodes/{node.id}/"
    headers = {"Idempotency-Key": "one"}
    first = operator.post(f"{address}drain/", {"reason": "fan", "purpose": "maintenance"}, headers=headers)
    assert (first.status_code, first.json()["state"], first.json()["drain"]) == (200, "applied", True)
    again = operator.post(f"{address}drain/", {"reason": "fan", "purpose": "maintenance"}, headers=headers)
    assert (again.json(), again["Idempotent-Replay"]) == (first.json(), "true")
    assert operator.post(f"{address}cordon/", {"reason": "x"}).status_code == 409
    assert operator.post(f"{address}cordon/", {}).status_code == 400
    assert [row["id"] for row in operator.get("/api/v1/cordons/?open=true").json()["results"]] == [first.json()["id"]]
    assert operator.post(f"{address}uncordon/", {"reason": "done"}).json()["lifted_by"] == "us"
    assert operator.post(f"{address}uncordon/", {}).status_code == 204
    assert operator.get("/api/v1/cordons/?open=true").json()["results"] == []
    lab.fake.scheduler.nodes["n2"].cordoned, lab.fake.scheduler.nodes["n2"].reason = True, "theirs"
    lab.sync()
    assert operator.post(f"/api/v1/nodes/{lab.node('n2').id}/uncordon/", {}).status_code == 409


def test_auditors_look_and_members_see_nothing(auditor: APIClient, member: APIClient, lab: Lab) -> None:
    lab.submit(cards=1)
    lab.sync()
    job, node, cluster = lab.runs()[0].id, lab.node("n1").id, lab.cluster.id
    for path in (
        "/api/v1/jobs/",
        f"/api/v1/jobs/{job}/",
        "/api/v1/cordons/",
        f"/api/v1/clusters/{cluster}/connection/",
    ):
        assert (auditor.get(path).status_code, member.get(path).status_code) == (200, 403)
    acts = [f"jobs/{job}/cancel", f"nodes/{node}/cordon", f"clusters/{cluster}/connection/read"]
    for act in acts:
        for client in (auditor, member):
            assert client.post(f"/api/v1/{act}/", {"reason": "x"}).status_code == 403
    assert (Cordon.objects.count(), Job.objects.get().state) == (0, "running")
