"""The whole way on a real Slurm: connect, sync, cordon, steer; and what is stored against `sacct`, run by run."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.utils import timezone

from inventory.models import ClusterConnection, Cordon, Job, SchedulerNode
from inventory.services.clusters import connections, steering
from inventory.services.clusters.cordoning import cordon, uncordon
from inventory.services.clusters.opening import Access
from inventory.services.clusters.steering import Verb
from sensaka.identity.models import User
from tests.labs.slurm.lab import SlurmLab
from tests.labs.slurm.stored import (
    access,
    accounted,
    as_accounted,
    put_cards,
    stored_cards,
    sync,
    synced_until,
    told_cards,
)

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("slurm"), pytest.mark.django_db]


@pytest.fixture
def connection(quiet: SlurmLab, connected: Callable[[Access], ClusterConnection]) -> ClusterConnection:
    return connected(access(quiet))


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
    boot = SchedulerNode.objects.get(node=job.nodes.get()).booted_at
    assert boot is None or boot <= timezone.now()
    put_cards("h100")
    sync(connection)
    job.refresh_from_db()
    assert (job.cards_known, job.cards_reason) == (True, "")
    assert stored_cards(job) == told_cards(quiet, number)
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
    rows = Job.objects.filter(submitted_at__gte=since.replace(microsecond=0))
    assert rows.count() == 200
    assert rows.filter(array_id=array).count() == 140
    assert numbers <= set(rows.values_list("job_id", flat=True))
    told = {run.number: run for run in accounted(quiet)}
    for row in rows:
        assert as_accounted(row) == told[row.job_id]
        assert row.cards == 1
