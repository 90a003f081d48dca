"""The whole way on a real Slurm: connect, sync, cordon, steer; and what is stored against `sacct`, run by run."""

import asyncio
import base64
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.utils import timezone

from inventory.models import Card, Cluster, ClusterConnection, Cordon, Job, JobCard, Node, SchedulerNode, Site
from inventory.services.clusters import connections, reading, steering, syncing
from inventory.services.clusters.cordoning import cordon, uncordon
from inventory.services.clusters.opening import Access
from inventory.services.clusters.steering import Verb
from sensaka.identity.models import User
from tests.labs.slurm.conftest import DEADLINE
from tests.labs.slurm.lab import SlurmLab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("slurm"), pytest.mark.django_db]


def access(lab: SlurmLab) -> Access:
    """By slurmrestd with tokens that we make from Slurm's key, and the commands where that can't."""
    key = base64.b64encode((lab.folder / "etc/jwt.key").read_bytes()).decode()
    conf = lab.environment["SLURM_CONF"]
    return Access("slurm", lab.rest_url, username="root", jwt_key=key, commands=True, slurm_conf=conf)


@pytest.fixture
def connection(quiet: SlurmLab) -> ClusterConnection:
    site = Site.objects.create(name="Basel")
    cluster = Cluster.objects.create(site=site, name="lab")
    return connections.connect(cluster=cluster, access=access(quiet), actor=None)


def sync(connection: ClusterConnection) -> ClusterConnection:
    row = ClusterConnection.objects.get(pk=connection.pk)
    for job in syncing.sync_jobs([row], now=timezone.now()):
        syncing.store(job, asyncio.run(reading.read_cluster(job)))
    row.refresh_from_db()
    assert (row.error_kind, row.failures) == ("", [])
    return row


def synced_until(connection: ClusterConnection, what: str, reached: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE
    while True:
        sync(connection)
        if reached():
            return
        assert time.monotonic() < end, f"not seen within {DEADLINE} s: {what}"
        time.sleep(0.5)


def test_a_trial_says_what_there_is(quiet: SlurmLab) -> None:
    found = connections.test(access(quiet))
    assert found.reached
    assert found.description is not None
    assert found.description.version.startswith("22.05")
    assert found.nodes == len(quiet.run("sinfo", "-h", "-N", "-p", "all", "-o", "%N").split())


def test_jobs_are_bound_to_our_cards_and_steered(quiet: SlurmLab, connection: ClusterConnection) -> None:
    sync(connection)
    number = quiet.submit("--gres=gpu:2", "-J", "train")
    synced_until(connection, "running", lambda: Job.objects.filter(job_id=number, state="running").exists())
    job = Job.objects.get(job_id=number)
    assert (job.cards, job.cards_known) == (2, False)
    assert "no card is known with minor number" in job.cards_reason
    node = job.nodes.get()
    boot = SchedulerNode.objects.get(node=node).booted_at
    Node.objects.filter(pk=node.pk).update(read_at=timezone.now())
    assert boot is None or boot <= timezone.now()
    now = timezone.now()
    Card.objects.bulk_create(
        Card(node=node, minor=minor, slot=str(7 - minor), uuid=f"GPU-{minor}", first_seen_at=now, state_since=now)
        for minor in range(8)
    )
    sync(connection)
    job.refresh_from_db()
    assert (job.cards_known, job.cards_reason) == (True, "")
    told = quiet.run("scontrol", "-d", "show", "job", number)
    minors = sorted(JobCard.objects.filter(job=job).values_list("card__minor", flat=True))
    assert f"(IDX:{minors[0]}-{minors[1]})" in told
    person = User.objects.create(username="grace")
    assert steering.act(job=job, verb=Verb.SUSPEND, reason="test", actor=person).ok
    synced_until(connection, "suspended", lambda: Job.objects.filter(pk=job.pk, state="suspended").exists())
    assert steering.act(job=job, verb=Verb.CANCEL, reason="test", actor=person).ok
    synced_until(connection, "accounted", lambda: Job.objects.filter(pk=job.pk, accounted_at__isnull=False).exists())
    assert Job.objects.get(pk=job.pk).state == "cancelled"


def test_cordons_of_ours_and_of_others(quiet: SlurmLab, connection: ClusterConnection) -> None:
    sync(connection)
    first, second = SchedulerNode.objects.order_by("name")[:2]
    assert first.node is not None
    assert second.node is not None
    row = cordon(node=first.node, reason="fan is loud", actor=None)
    assert (row.state, row.last_error) == ("applied", "")
    told = quiet.run("scontrol", "show", "node", first.name)
    assert f"Reason=sensaka:{row.mark} fan is loud" in told
    quiet.run("scontrol", "update", f"nodename={second.name}", "state=drain", "reason=disk is full")
    time.sleep(1)  # a reading of the second of the act would say nothing of it
    sync(connection)
    assert {(one.node_id, one.ours, one.reason) for one in Cordon.objects.filter(lifted_at=None)} == {
        (first.node_id, True, "fan is loud"),
        (second.node_id, False, "disk is full"),
    }
    quiet.run("scontrol", "update", f"nodename={first.name}", "state=resume")
    sync(connection)
    assert Cordon.objects.get(ours=True).lifted_by == "hand"
    again = cordon(node=first.node, reason="again", actor=None)
    lifted = uncordon(node=first.node, actor=None)
    assert lifted is not None
    assert (lifted.pk, lifted.lifted_by) == (again.pk, "us")
    assert "DRAIN" in quiet.run("scontrol", "show", "node", second.name).partition("State=")[2].split()[0]


def test_two_hundred_jobs_equal_sacct_to_the_second(quiet: SlurmLab, connection: ClusterConnection) -> None:
    since = datetime.now(UTC)
    sync(connection)
    numbers = {quiet.submit("--gres=gpu:1", script="sleep 0.3") for _ in range(60)}
    array = quiet.submit("--gres=gpu:1", "--array=0-139", script="sleep 0.3")

    def over() -> bool:
        rows = Job.objects.filter(submitted_at__gte=since.replace(microsecond=0))
        done = rows.filter(accounted_at__isnull=False)
        return done.count() >= 200 and not rows.filter(open=True).exists()

    end = time.monotonic() + 240
    while not over():
        assert time.monotonic() < end, "200 jobs were not over and accounted for within four minutes"
        sync(connection)
        time.sleep(0.5)
    told = {}
    columns = "JobIDRaw,Submit,Start,End,ElapsedRaw,State,AllocTRES"
    for line in quiet.run("sacct", "-X", "-n", "-P", "-D", "-u", "root", "-o", columns).splitlines():
        number, submit, start, finish, elapsed, state, tres = line.split("|")
        told[number] = (submit, start, finish, int(elapsed), state.split()[0].lower(), "gres/gpu=1" in tres)
    rows = Job.objects.filter(submitted_at__gte=since.replace(microsecond=0))
    assert rows.count() == 200
    assert rows.filter(array_id=array).count() == 140
    assert numbers <= set(rows.values_list("job_id", flat=True))
    for row in rows:
        assert row.started_at is not None
        assert row.ended_at is not None
        submit, start, finish, elapsed, state, card = told[row.job_id]
        stamps = [str(int(moment.timestamp())) for moment in (row.submitted_at, row.started_at, row.ended_at)]
        assert (*stamps, row.final_gpu_seconds, row.state) == (submit, start, finish, elapsed, state)
        assert card
