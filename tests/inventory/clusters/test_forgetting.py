"""What schedulers told is kept for years, and not for ever."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from inventory.drivers.clusters.readings import JobState
from inventory.models import Job, JobCard, JobNode, Node, SchedulerNode
from inventory.services.clusters import forgetting
from inventory.tasks.clusters import forget_old_work
from tests.inventory.clusters.building import Lab, Opener, add_cards, new_lab

pytestmark = pytest.mark.django_db


@pytest.fixture
def lab(opener: Opener) -> Lab:
    """A run that is over, one that goes on, and one that waits."""
    found = new_lab(opener)
    found.sync()
    add_cards(found.node("n1"))
    first = found.submit("over", cards=1, nodes=("n1",))
    found.submit("on", cards=1, nodes=("n2",))
    found.submit("waits", cards=64)
    found.sync()
    found.fake.scheduler.end(first, JobState.COMPLETED, 0)
    found.sync()
    assert [(run.name, run.open) for run in found.runs()] == [("over", False), ("on", True), ("waits", True)]
    return found


def test_runs_are_kept_until_their_retention_is_over(lab: Lab) -> None:
    end = lab.runs()[0].ended_at
    assert end is not None
    assert JobCard.objects.filter(job__name="over").exists()
    assert forgetting.forget_old_runs(now=end + settings.JOB_RETENTION) == 0
    assert forgetting.forget_old_runs(now=end + settings.JOB_RETENTION + timedelta(seconds=1)) == 1
    assert [run.name for run in lab.runs()] == ["on", "waits"], "what is open stays, however old"
    assert {place.job.name for place in JobNode.objects.all()} == {"on"}
    assert not JobCard.objects.filter(job__name="over").exists()


def test_a_lost_run_and_one_that_never_started_have_an_end_too(lab: Lab) -> None:
    Job.objects.filter(name="on").update(open=False, lost_at=lab.clock.now, state="unknown")
    Job.objects.filter(name="waits").update(open=False, state="cancelled", ended_at=None)
    assert forgetting.forget_old_runs(now=lab.clock.now + settings.JOB_RETENTION + timedelta(minutes=1)) == 3


def test_a_run_of_a_time_that_is_not_accounted_for_stays(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    end = lab.runs()[0].ended_at
    assert end is not None
    later = end + settings.JOB_RETENTION + timedelta(days=1)
    monkeypatch.setattr(forgetting, "raw_needed_since", lambda: end)
    assert forgetting.forget_old_runs(now=later) == 0
    monkeypatch.setattr(forgetting, "raw_needed_since", lambda: later)
    assert forgetting.forget_old_runs(now=later) == 1


def test_more_runs_than_one_statement_takes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        Job.objects.create(
            cluster=lab.cluster, key=f"old-{number}", job_id=f"{number}", open=False, state="completed",
            submitted_at=lab.clock.now, ended_at=lab.clock.now, seen_at=lab.clock.now,
        )  # fmt: skip
    monkeypatch.setattr(forgetting, "_AT_ONCE", 2)
    monkeypatch.setattr(forgetting, "_MOST", 4)
    now = lab.clock.now + settings.JOB_RETENTION + timedelta(days=1)
    assert [forgetting.forget_old_runs(now=now) for _ in range(3)] == [4, 2, 0]


def test_nodes_that_are_long_gone_are_forgotten_and_ours_stay(lab: Lab) -> None:
    del lab.fake.scheduler.nodes["n1"]
    lab.sync()
    gone = SchedulerNode.objects.get(name="n1").gone_at
    assert gone is not None
    assert forgetting.forget_gone_nodes(now=gone + settings.GONE_SCHEDULER_NODE_RETENTION) == 0
    assert forgetting.forget_gone_nodes(now=gone + settings.GONE_SCHEDULER_NODE_RETENTION + timedelta(seconds=1)) == 1
    assert [row.name for row in SchedulerNode.objects.all()] == ["n2"]
    assert Node.objects.filter(name="n1").exists()
    assert JobNode.objects.filter(node__name="n1").exists(), "what ran there is still known"


def test_the_task_forgets_what_is_old_now(lab: Lab) -> None:
    Job.objects.filter(name="over").update(ended_at=timezone.now() - settings.JOB_RETENTION - timedelta(days=1))
    forget_old_work()
    assert [run.name for run in lab.runs()] == ["on", "waits"]
