"""What runs on a real Slurm as rows of ours: bound to the right cards while it runs, and every way to end.

Each test starts all of its jobs at once and follows them together: their waits run side by side.
"""

import time
from collections.abc import Callable, Iterator

import pytest
from django.db.models import Q

from inventory.models import ClusterConnection, Job, JobCard, JournalEntry, Node, SchedulerNode
from inventory.services.clusters import steering
from inventory.services.clusters.opening import Access
from inventory.services.clusters.steering import Verb
from sensaka.identity.models import User
from tests.labs.slurm.lab import SlurmLab
from tests.labs.slurm.stored import (
    Accounted,
    Cards,
    access,
    accounted,
    as_accounted,
    in_state,
    over,
    put_cards,
    stored_cards,
    sync,
    synced_until,
    told_cards,
)

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("slurm"), pytest.mark.django_db]
UNTIL_TOLD = "while [ ! -e end ]; do sleep 0.2; done; "
FAILING = "mi300x-002"


@pytest.fixture
def connection(quiet: SlurmLab, connected: Callable[[Access], ClusterConnection]) -> ClusterConnection:
    """With cards on all nodes but the mixed ones."""
    row = connected(access(quiet))
    sync(row)
    put_cards("h100", "mi300x")
    return row


@pytest.fixture
def told_to_end(quiet: SlurmLab) -> Iterator[Callable[[], None]]:
    """Lets the jobs go on that wait for it."""
    end = quiet.folder / "work/end"
    yield end.touch
    end.unlink(missing_ok=True)


def runs_of(numbers: list[str]) -> list[Job]:
    return list(Job.objects.filter(job_id__in=numbers))


def runs_stored(numbers: list[str]) -> list[Accounted]:
    return sorted(map(as_accounted, runs_of(numbers)), key=lambda run: (run.number, run.submitted))


def runs_told(lab: SlurmLab, numbers: list[str]) -> list[Accounted]:
    return sorted(accounted(lab, *numbers), key=lambda run: (run.number, run.submitted))


def test_jobs_of_every_shape_are_bound_while_they_run(
    quiet: SlurmLab, connection: ClusterConnection, told_to_end: Callable[[], None]
) -> None:
    """P12: batch, array, heterogeneous and multi-node jobs hold just the cards that Slurm gave them."""
    run = {"script": UNTIL_TOLD}
    batch = quiet.submit("--gres=gpu:3", **run)
    array = quiet.submit("--array=0-3", "--gres=gpu:1", **run)
    pair = quiet.submit("-p", "h100", "--gres=gpu:h100:2", ":", "-p", "mi300x", "--gres=gpu:mi300x:4", "-N1", **run)
    uneven = quiet.submit("-p", "h100", "-N2", "-n3", "--gpus=h100:5", **run)
    wide = quiet.submit("-p", "all", "-w", "h100-005,h100-006,mi300x-[003-004]", "-N4", "--gres=gpu:2", **run)
    parts = [pair, str(int(pair) + 1)]
    synced_until(
        connection, "the array's tasks", lambda: Job.objects.filter(array_id=array, state="running").count() == 4
    )
    tasks = list(Job.objects.filter(array_id=array).values_list("job_id", flat=True))
    numbers = [batch, *tasks, *parts, uneven, wide]
    synced_until(connection, "all run", lambda: in_state("running", *numbers))
    jobs = {job.job_id: job for job in runs_of(numbers)}
    held = {number: stored_cards(job) for number, job in jobs.items()}
    assert held == {number: told_cards(quiet, number) for number in numbers}
    assert all(job.cards_known and job.cards == _count(held[number]) for number, job in jobs.items())
    assert _count(held[batch]) == 3
    assert sorted(len(minors) for minors in held[uneven].values()) in ([1, 4], [2, 3])
    assert set(held[wide]) == {"h100-005", "h100-006", "mi300x-003", "mi300x-004"}
    assert {number: (jobs[number].group_id, jobs[number].group_offset) for number in parts} == {
        parts[0]: (pair, 0),
        parts[1]: (pair, 1),
    }
    assert sorted(job.array_task for job in jobs.values() if job.array_id) == [0, 1, 2, 3]
    cards = list(JobCard.objects.filter(job__in=jobs.values()).values_list("card", flat=True))
    assert len(cards) == len(set(cards)) == 3 + 4 + 2 + 4 + 5 + 8
    told_to_end()
    synced_until(connection, "all are over", lambda: over(*numbers))
    assert {number: stored_cards(job) for number, job in jobs.items()} == held
    assert [as_accounted(job) for job in sorted(runs_of(numbers), key=lambda job: job.job_id)] == runs_told(
        quiet, numbers
    )
    # the accounting also tells what other tests ran on this Slurm a few minutes ago
    assert [job.state for job in runs_of(numbers)] == ["completed"] * len(numbers)
    assert not Job.objects.filter(Q(open=True) | Q(lost_at__isnull=False)).exists()


def _count(cards: Cards) -> int:
    return sum(len(minors) for minors in cards.values())


@pytest.fixture
def failing(quiet: SlurmLab) -> Iterator[str]:
    """A node that may be killed; it is back afterwards."""
    yield FAILING
    if not quiet.runs(f"slurmd-{FAILING}"):
        quiet.start_node(FAILING)


@pytest.mark.slow
def test_every_way_to_end(
    quiet: SlurmLab, connection: ClusterConnection, told_to_end: Callable[[], None], failing: str
) -> None:
    """P12: states, exit codes, times, GPU seconds and cards of each run are those of Slurm's accounting."""
    person = User.objects.create(username="grace")

    def do(verb: Verb, number: str) -> None:
        assert steering.act(job=Job.objects.get(job_id=number, open=True), verb=verb, reason="test", actor=person).ok

    limited = quiet.submit("-w", "h100-001", "-t", "1", "--gres=gpu:1", script="sleep 300")
    fine = quiet.submit("-w", "h100-001", "--gres=gpu:1", script=UNTIL_TOLD)
    bad = quiet.submit("-w", "h100-001", "--gres=gpu:2", script=UNTIL_TOLD + "exit 7")
    shot = quiet.submit("-w", "h100-001", "--gres=gpu:1", script=UNTIL_TOLD + "kill -SEGV $$")
    stopped = quiet.submit("-w", "h100-002", "--gres=gpu:2", script="sleep 300")
    again = quiet.submit("-w", "h100-003", "--gres=gpu:1", script=UNTIL_TOLD)
    paused = quiet.submit("-w", "h100-004", "--gres=gpu:2", script=UNTIL_TOLD)
    low = quiet.submit("-q", "low", "-w", "h100-006", "--gres=gpu:8", script="sleep 300")
    unlucky = quiet.submit("-p", "mi300x", "-w", failing, "--gres=gpu:8", script="sleep 300")
    numbers = [limited, fine, bad, shot, stopped, again, paused, low, unlucky]
    waiting = quiet.submit("-H", "--gres=gpu:1", script="exit 0")
    synced_until(connection, "all run", lambda: in_state("running", *numbers))
    assert in_state("pending", waiting)
    firsts = {job.job_id: job.pk for job in runs_of(numbers)}
    held = {number: stored_cards(Job.objects.get(pk=key)) for number, key in firsts.items()}
    assert held == {number: told_cards(quiet, number) for number in numbers}

    with quiet.paused("slurmd-h100-002"):  # it takes its time to end; Slurm tells no cards meanwhile
        do(Verb.CANCEL, stopped)
        synced_until(connection, "completing", lambda: in_state("completing", stopped))
    assert stored_cards(Job.objects.get(pk=firsts[stopped])) == held[stopped]
    do(Verb.SUSPEND, paused)
    do(Verb.CANCEL, waiting)
    do(Verb.REQUEUE, again)
    high = quiet.submit("-q", "high", "-w", "h100-006", "--gres=gpu:8", script=UNTIL_TOLD)
    quiet.kill_node(failing)
    synced_until(connection, "suspended", lambda: in_state("suspended", paused))
    assert stored_cards(Job.objects.get(pk=firsts[paused])) == held[paused]
    time.sleep(2)  # the pause is what is measured
    do(Verb.RESUME, paused)
    told_to_end()
    ended = {
        fine: "completed", bad: "failed", shot: "failed", stopped: "cancelled", again: "requeued",
        paused: "completed", low: "preempted", unlucky: "node_fail",
    }  # fmt: skip
    synced_until(connection, "all but one ended", lambda: over_first(firsts, [*ended]), seconds=60)
    down = SchedulerNode.objects.get(name=failing)
    assert (down.load, down.responding) == ("down", False)
    for number in (low, unlucky):  # they wait for another turn
        do(Verb.CANCEL, number)
    quiet.run("scontrol", "update", f"jobid={again}", "starttime=now")
    numbers += [waiting, high]
    synced_until(connection, "the time limit", lambda: over(*numbers), seconds=100)

    states = {number: Job.objects.get(pk=key).state for number, key in firsts.items()}
    assert states == ended | {limited: "timeout"}
    later = Job.objects.filter(job_id__in=numbers).exclude(pk__in=firsts.values())
    assert {job.job_id: job.state for job in later} == {
        waiting: "cancelled", again: "completed", low: "cancelled", unlucky: "cancelled", high: "completed",
    }  # fmt: skip
    assert runs_stored(numbers) == runs_told(quiet, numbers)
    assert {number: stored_cards(Job.objects.get(pk=key)) for number, key in firsts.items()} == held
    _check_words(firsts, limited=limited, bad=bad, shot=shot, paused=paused)
    assert Job.objects.get(job_id=again, restarts=1).state == "completed"
    assert not Job.objects.get(job_id=waiting).held_cards.exists()
    quiet.start_node(failing)
    synced_until(connection, "the node is back", lambda: SchedulerNode.objects.get(name=failing).load != "down")
    assert JournalEntry.objects.filter(kind="job_act").count() == 7
    assert Node.objects.count() == 12


def over_first(firsts: dict[str, object], numbers: list[str]) -> bool:
    """Whether the first runs of these jobs have ended by the accounting."""
    keys = [firsts[number] for number in numbers]
    return Job.objects.filter(pk__in=keys, open=False, accounted_at__isnull=False).count() == len(keys)


def _check_words(firsts: dict[str, object], *, limited: str, bad: str, shot: str, paused: str) -> None:
    """What Slurm says beside the state."""
    late = Job.objects.get(pk=firsts[limited])
    assert (late.reason, late.time_limit) == ("TimeLimit", 60)
    assert late.final_gpu_seconds is not None
    assert 60 <= late.final_gpu_seconds < 100
    assert Job.objects.get(pk=firsts[bad]).exit_code == 7
    assert Job.objects.get(pk=firsts[shot]).exit_signal == 11
    pause = Job.objects.get(pk=firsts[paused])
    assert pause.started_at is not None
    assert pause.ended_at is not None
    assert pause.suspended is not None
    assert pause.suspended >= 2
    length = (pause.ended_at - pause.started_at).total_seconds()
    assert pause.final_gpu_seconds == 2 * (length - pause.suspended)
