"""What operators do about clusters, through the pages and against a Slurm that answers over HTTP (I7, P11, H6)."""

import asyncio
import base64
import re
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.db import connection as database
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from inventory.drivers.fake.slurmrestd import Controller, Layout, Node, Partition, SlurmRest, SlurmRestServer, Wish
from inventory.models import Cluster, ClusterConnection, Cordon, Job, JournalEntry, JournalKind
from inventory.services.clusters.syncing import sync_due_clusters
from sensaka.live import snapshots
from tests.sensaka.pages import seed

KEY = b"sixteen bytes or more of a key"
TYPED_KEY = base64.b64encode(KEY).decode()


class Slurm:
    """An emulated slurmrestd in a thread of its own, with two nodes of the seeded fleet."""

    def __init__(self) -> None:
        names = ("a01-gpu01", "a02-gpu01")
        layout = Layout("ada", (Partition("gpu", names),))
        now = int(timezone.now().timestamp())
        self.controller = Controller(layout, [Node(name, hostname=name) for name in names], now=now)
        self.server = SlurmRestServer(SlurmRest(self.controller, key=KEY))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.server.start(), self._loop).result(10)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.server.stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


@pytest.fixture
def slurm() -> Iterator[Slurm]:
    running = Slurm()
    running.start()
    yield running
    running.stop()


@pytest.fixture
def made(db: None) -> seed.Seeded:
    snapshots.forget()
    return seed.build(nodes_a_rack=1)


@pytest.fixture
def operator(made: seed.Seeded, client: Client) -> Client:
    client.force_login(made.users["operator"])
    return client


@pytest.fixture
def central(made: seed.Seeded) -> Cluster:
    return Cluster.objects.get(name="central-cluster")


def typed(slurm: Slurm | None, cluster: Cluster | None, **more: Any) -> dict[str, Any]:
    return {
        "way": "slurm-key",
        "cluster": str(cluster.pk) if cluster else "new",
        "address": slurm.server.url if slurm else "http://127.0.0.1:1",
        "username": "root",
        "jwt_key": TYPED_KEY,
        "interval": "30",
        **more,
    }


def said(answer: HttpResponse) -> list[str]:
    return [str(message) for message in get_messages(answer.wsgi_request)]  # type: ignore[attr-defined]


def sync(cluster: Cluster) -> None:
    ClusterConnection.objects.filter(cluster=cluster).update(due_at=timezone.now() - timedelta(seconds=1))
    sync_due_clusters()
    snapshots.forget()


@pytest.fixture
def connected(slurm: Slurm, operator: Client, central: Cluster) -> Cluster:
    assert operator.post(reverse("cluster-connect"), typed(slurm, central, save="1")).status_code == 302
    slurm.controller.submit(Wish(name="train", user="mira", account="vision", cards=2, limit=90, nodes=("a01-gpu01",)))
    slurm.controller.advance(timezone.now().timestamp())
    sync(central)
    return central


# -- connecting --------------------------------------------------------------------------------------------------------


def test_a_trial_says_what_it_found_and_keeps_nothing(slurm: Slurm, operator: Client, central: Cluster) -> None:
    answer = operator.post(reverse("cluster-connect"), typed(slurm, central, test="1"), headers={"HX-Request": "true"})
    page = answer.content.decode()
    assert "Slurm 24.11.5 answers." in page
    assert "It has 2 nodes with 16 cards." in page
    assert "<html" not in page  # the form alone
    assert slurm.server.url in page
    assert TYPED_KEY not in page
    assert not ClusterConnection.objects.exists()


def test_a_trial_that_fails_says_why_and_keeps_what_was_typed(operator: Client, central: Cluster) -> None:
    page = operator.post(reverse("cluster-connect"), typed(None, central, test="1")).content.decode()
    assert "It was not reached." in page
    assert 'value="http://127.0.0.1:1"' in page
    assert 'value="root"' in page
    assert not ClusterConnection.objects.exists()


def test_connecting_leads_to_the_cluster_and_the_first_reading_fills_it(connected: Cluster, operator: Client) -> None:
    page = operator.get(reverse("cluster", args=[connected.pk])).content.decode()
    for text in ("24.11.5", "a01-gpu01", "train", "mira", "Read"):
        assert text in page, text
    row = ClusterConnection.objects.get(cluster=connected)
    assert (row.jwt_key, row.interval) == (TYPED_KEY, 30)
    with database.cursor() as cursor:
        cursor.execute("SELECT jwt_key FROM inventory_clusterconnection")
        assert TYPED_KEY not in cursor.fetchone()[0]
    entry = JournalEntry.objects.filter(kind=JournalKind.SETTINGS_CHANGED, cluster=connected).latest("at")
    assert entry.actor is not None
    assert "was connected" in entry.text


def test_a_new_cluster_is_made_with_its_connection_or_not_at_all(
    slurm: Slurm, operator: Client, made: seed.Seeded
) -> None:
    site = str(made.sites["Edge"].pk)
    refused = typed(slurm, None, site=site, name="lab", jwt_key="not base64 !", save="1")
    answer = operator.post(reverse("cluster-connect"), refused)
    assert answer.context["form"].errors["jwt_key"]
    assert not Cluster.objects.filter(name="lab").exists()
    operator.post(reverse("cluster-connect"), typed(slurm, None, site=site, name="lab", save="1"))
    assert Cluster.objects.get(name="lab").scheduler == "slurm"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"address": ""}, "address"),
        ({"address": "ftp://x"}, "address"),
        ({"username": ""}, "username"),
        ({"jwt_key": ""}, "jwt_key"),
        ({"way": "slurm-token"}, "token"),
        ({"way": "kubeconfig"}, "kubeconfig"),
        ({"way": "kubernetes-token", "address": ""}, "address"),
        ({"way": "other"}, "way"),
        ({"interval": "2"}, "interval"),
        ({"tls_authority": "no pem"}, "tls_authority"),
        ({"cluster": "new"}, "name"),
        ({"way": "slurm-commands", "slurm_conf": "slurm.conf"}, "slurm_conf"),
    ],
)
def test_what_is_missing_stands_beside_its_field(
    operator: Client, central: Cluster, changed: dict[str, str], field: str
) -> None:
    answer = operator.post(reverse("cluster-connect"), {**typed(None, central), **changed, "save": "1"})
    assert answer.status_code == 200
    assert answer.context["form"].errors[field]
    assert f'id="id_{field}_error"' in answer.content.decode()
    assert not ClusterConnection.objects.exists()


def test_a_stored_secret_is_kept_when_it_is_not_typed_again(connected: Cluster, operator: Client) -> None:
    address = reverse("connection-edit", args=[connected.pk])
    page = operator.get(address).content.decode()
    assert TYPED_KEY not in page
    assert "Leave this empty to keep it." in page
    assert "kubeconfig" not in re.findall(r'<option value="([^"]+)"', page)  # another scheduler is another connection
    row = ClusterConnection.objects.get(cluster=connected)
    data = {"way": "slurm-key", "address": row.address, "username": "root", "interval": "60"}
    trial = operator.post(address, {**data, "test": "1"}).content.decode()
    assert "Slurm 24.11.5 answers." in trial  # with the key that is stored
    assert operator.post(address, {**data, "save": "1"}).status_code == 302
    row.refresh_from_db()
    assert (row.jwt_key, row.interval) == (TYPED_KEY, 60)


def test_a_connection_is_switched_read_and_cut(connected: Cluster, operator: Client) -> None:
    row = ClusterConnection.objects.get(cluster=connected)
    operator.post(reverse("connection-act", args=[connected.pk, "disable"]))
    row.refresh_from_db()
    assert not row.enabled
    answer = operator.post(reverse("connection-act", args=[connected.pk, "read"]))
    assert any("switched off" in text for text in said(answer))
    operator.post(reverse("connection-act", args=[connected.pk, "enable"]))
    operator.post(reverse("connection-act", args=[connected.pk, "read"]))
    row.refresh_from_db()
    assert row.enabled
    assert row.due_at <= timezone.now()
    assert operator.post(reverse("connection-act", args=[connected.pk, "explode"])).status_code == 404
    assert (
        "what is cordoned stays so" in operator.get(reverse("connection-delete", args=[connected.pk])).content.decode()
    )
    assert (
        reverse("connection-delete", args=[connected.pk])
        in operator.get(reverse("cluster", args=[connected.pk])).content.decode()
    )
    operator.post(reverse("connection-delete", args=[connected.pk]))
    assert not ClusterConnection.objects.exists()
    assert Job.objects.filter(cluster=connected).exists()


# -- cordons -----------------------------------------------------------------------------------------------------------


def test_a_drain_shows_whom_it_touches_needs_a_reason_and_is_set_in_slurm(
    slurm: Slurm, connected: Cluster, operator: Client, made: seed.Seeded
) -> None:
    node = made.nodes["a01-gpu01"]
    address = reverse("cordon-act", args=[node.pk, "drain"])
    page = operator.get(address, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in page
    for text in (
        "1 job on 2 cards", "mira", "All are over at the latest", "Slurm of central-cluster starts no new work",
        "goes on to its end; then the node counts as drained", "Return it to scheduling",
    ):  # fmt: skip
        assert text in page, text
    empty = operator.post(address, {"reason": " "})
    assert empty.status_code == 200
    assert 'id="id_reason_error"' in empty.content.decode()
    assert not slurm.controller.nodes["a01-gpu01"].drained
    answer = operator.post(address, {"reason": "fan 3 rattles"}, headers={"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Redirect"]) == (204, reverse("node", args=[node.pk]))
    assert any("To undo it, return it to scheduling." in text for text in said(answer))
    assert slurm.controller.nodes["a01-gpu01"].drained
    assert "fan 3 rattles" in slurm.controller.nodes["a01-gpu01"].reason
    row = Cordon.objects.get(node=node, ours=True)
    assert (row.drain, row.state, row.requested_by) == (True, "applied", made.users["operator"])
    back = operator.post(reverse("cordon-act", args=[node.pk, "return"]), {"go": "1"})
    assert back["Location"] == reverse("node", args=[node.pk])
    assert not slurm.controller.nodes["a01-gpu01"].drained
    row.refresh_from_db()
    assert row.lifted_by == "us"


def test_somebody_elses_cordon_is_shown_and_stays(
    slurm: Slurm, connected: Cluster, operator: Client, made: seed.Seeded
) -> None:
    slurm.controller.drain("a02-gpu01", "kernel update, ask Reto", by="reto")
    sync(connected)
    node = made.nodes["a02-gpu01"]
    page = operator.get(reverse("node", args=[node.pk])).content.decode()
    assert "kernel update, ask Reto" in page
    assert "never lifts somebody else" in page
    assert reverse("cordon-act", args=[node.pk, "return"]) not in page
    refused = operator.post(reverse("cordon-act", args=[node.pk, "return"]), {"go": "1"})
    assert refused.status_code == 200
    assert "it is returned there" in refused.content.decode()
    dialog = operator.get(reverse("cordon-act", args=[node.pk, "cordon"])).content.decode()
    assert "Somebody else has taken it out already" in dialog
    answer = operator.post(reverse("cordon-act", args=[node.pk, "cordon"]), {"reason": "ours too"})
    assert any("written down but not done yet" in text for text in said(answer))
    assert slurm.controller.nodes["a02-gpu01"].reason == "kernel update, ask Reto"
    slurm.controller.resume_node("a02-gpu01")
    sync(connected)
    assert Cordon.objects.get(node=node, ours=False).lifted_at is not None


def test_a_node_of_no_scheduler_is_kept_from_the_pool_only(operator: Client, made: seed.Seeded) -> None:
    node = made.nodes["e01-gpu01"]
    address = reverse("cordon-act", args=[node.pk, "cordon"])
    assert "only the pool is told" in operator.get(address).content.decode()
    operator.post(address, {"reason": "smells"})
    assert Cordon.objects.get(node=node).state == "applied"


# -- jobs --------------------------------------------------------------------------------------------------------------


def test_a_job_is_cancelled_with_a_reason(slurm: Slurm, connected: Cluster, operator: Client) -> None:
    job = Job.objects.get(cluster=connected, open=True)
    address = reverse("job-act", args=[job.pk, "cancel"])
    page = operator.get(address, headers={"HX-Request": "true"}).content.decode()
    for text in ("Cancel job", "2 cards come free.", "can&#x27;t be undone", "btn-danger", "mira, vision"):
        assert text in page, text
    assert 'id="id_reason_error"' in operator.post(address, {"reason": ""}).content.decode()
    answer = operator.post(address, {"reason": "wrong data set"})
    assert answer["Location"] == reverse("job", args=[job.pk])
    assert slurm.controller.jobs[int(job.job_id)].state == "CANCELLED"
    sync(connected)
    job.refresh_from_db()
    assert (job.state, job.open) == ("cancelled", False)
    shown = operator.get(reverse("job", args=[job.pk])).content.decode()
    assert "wrong data set" in shown
    again = operator.post(address, {"reason": "again"})
    assert "is over" in again.content.decode()


def test_a_waiting_job_is_held_and_released(slurm: Slurm, connected: Cluster, operator: Client) -> None:
    slurm.controller.submit(Wish(name="big", user="jonas", cards=8, nodes=("a01-gpu01",)))
    slurm.controller.advance(timezone.now().timestamp())
    sync(connected)
    job = Job.objects.get(cluster=connected, state="pending")
    operator.post(reverse("job-act", args=[job.pk, "hold"]), {"reason": "maintenance first"})
    sync(connected)
    cells = dict(snapshots.snapshot(snapshots.Topic("job", job.pk)))
    assert cells["job.state"].text == "Held"
    assert reverse("job-act", args=[job.pk, "release"]) in operator.get(reverse("job", args=[job.pk])).content.decode()
    operator.post(reverse("job-act", args=[job.pk, "release"]), {"reason": "done"})
    sync(connected)
    job.refresh_from_db()
    assert not job.held


def test_a_signal_has_to_be_one_that_exists(connected: Cluster, operator: Client) -> None:
    job = Job.objects.get(cluster=connected, open=True)
    address = reverse("job-act", args=[job.pk, "signal"])
    assert "signal" in operator.post(address, {"reason": "x", "signal": "BOOM"}).context["form"].errors
    assert operator.post(address, {"reason": "look", "signal": "USR1"}).status_code == 302


def test_a_scheduler_that_is_away_refuses_beside_the_form(slurm: Slurm, connected: Cluster, operator: Client) -> None:
    job = Job.objects.get(cluster=connected, open=True)
    ClusterConnection.objects.filter(cluster=connected).update(address="http://127.0.0.1:1")
    page = operator.post(reverse("job-act", args=[job.pk, "requeue"]), {"reason": "stuck"}).content.decode()
    assert "was not requeued" in page
    assert 'value="stuck"' in page
