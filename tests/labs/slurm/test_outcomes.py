"""How jobs end on a real Slurm, seen live and in the accounting, run by run. Time limits: see test_runs."""

import asyncio
import functools
import signal
from datetime import UTC, datetime, timedelta

import pytest

from inventory.drivers.clusters.readings import JobState, RunReading
from inventory.drivers.clusters.slurm import SlurmCluster
from tests.labs.slurm.conftest import DEADLINE, job_in, job_now, until
from tests.labs.slurm.lab import SlurmLab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("slurm")]


async def runs_of(cluster: SlurmCluster, job_id: str, *, count: int = 1) -> list[RunReading]:
    """The finished runs of a job in the accounting, in the order of their submission, once there are enough."""
    found: list[RunReading] = []

    async def enough() -> bool:
        since = datetime.now(UTC) - timedelta(minutes=30)
        reading = await cluster.read_runs(since=since, also=[job_id], deadline=DEADLINE)
        assert reading.complete, reading.failures
        found[:] = [run for run in reading.runs if run.job_id == job_id and run.ended_at is not None]
        return len(found) >= count

    await until(enough, f"{count} finished runs of job {job_id}")
    return sorted(found, key=lambda run: run.key)


async def test_success_and_failure(quiet: SlurmLab, either: SlurmCluster) -> None:
    """P12: exit codes and signals, live and in the accounting."""
    fine = quiet.submit("--gres=gpu:1", script="exit 0")
    bad = quiet.submit("--gres=gpu:2", script="exit 7")
    shot = quiet.submit(script="kill -SEGV $$")
    assert (await job_in(either, fine, "completed")).exit_code == 0
    failed = await job_in(either, bad, "failed")
    assert (failed.exit_code, failed.exit_signal, failed.reason) == (7, None, "NonZeroExitCode")
    assert (await job_in(either, shot, "failed")).exit_signal == signal.SIGSEGV
    run = (await runs_of(either, bad))[0]
    assert (run.state, run.cards, run.cards_by_type) == (JobState.FAILED, 2, (("h100", 2),))
    assert run.exit_code in (7, None)  # slurmrestd 22.05 does not tell it, sacct does
    assert run.key == failed.key
    assert (run.started_at, run.ended_at) == (failed.started_at, failed.ended_at)
    assert [step.step for step in run.steps] == ["batch"]
    assert (await runs_of(either, shot))[0].exit_signal == signal.SIGSEGV


async def test_cancelled_running_and_waiting(quiet: SlurmLab, cluster: SlurmCluster) -> None:
    """P12: a run that is cancelled before it started never held a node."""
    running, waiting = quiet.submit("--gres=gpu:1"), quiet.submit("-H", "--gres=gpu:1")
    await job_in(cluster, running, "running")
    assert (await job_now(cluster, waiting)).held
    for number in (running, waiting):
        assert (await cluster.cancel(number, deadline=DEADLINE)).ok
        await job_in(cluster, number, "cancelled")
    ran, waited = (await runs_of(cluster, running))[0], (await runs_of(cluster, waiting))[0]
    assert ran.state is waited.state is JobState.CANCELLED
    assert ran.started_at is not None
    assert (waited.started_at, waited.nodes, waited.cards, waited.elapsed) == (None, (), 0, 0)


async def test_suspended_time_is_kept_apart(quiet: SlurmLab, cluster: SlurmCluster) -> None:
    """P12: a suspended job keeps its cards; elapsed leaves the pause out."""
    number = quiet.submit("--gres=gpu:2", script="sleep 3")
    await job_in(cluster, number, "running")
    assert (await cluster.suspend(number, deadline=DEADLINE)).ok
    paused = await job_in(cluster, number, "suspended")
    assert (paused.cards_known, sum(binding.count for binding in paused.bindings)) == (True, 2)
    await asyncio.sleep(2)  # the pause itself is what is measured
    assert (await cluster.resume(number, deadline=DEADLINE)).ok
    await job_in(cluster, number, "completed")
    run = (await runs_of(cluster, number))[0]
    assert run.started_at is not None
    assert run.ended_at is not None
    assert run.suspended is not None
    assert run.suspended >= 2
    assert run.elapsed == (run.ended_at - run.started_at).total_seconds() - run.suspended


async def test_requeued_runs_stay_apart(quiet: SlurmLab, either: SlurmCluster) -> None:
    """P12: each run of a requeued job has its key, its seconds and its end."""
    number = quiet.submit("--gres=gpu:1", script="sleep 2")
    first = await job_in(either, number, "running")
    assert (await either.requeue(number, deadline=DEADLINE)).ok
    await job_in(either, number, "pending")
    # Slurm would wait two minutes; at once is too early, the first run's SIGKILL (KillWait) would meet the second
    quiet.run("scontrol", "update", f"jobid={number}", "starttime=now+4seconds")
    second = await job_in(either, number, "completed")
    runs = await runs_of(either, number, count=2)
    assert [run.state for run in runs] == [JobState.REQUEUED, JobState.COMPLETED]
    assert [run.key for run in runs] == [first.key, second.key]
    assert first.key != second.key
    assert second.restarts == 1


async def test_preemption_by_qos(quiet: SlurmLab, cluster: SlurmCluster) -> None:
    """P12: who is pushed out ends a run as preempted and waits again."""
    low = [quiet.submit("-q", "low", "-w", f"h100-00{n}", "--gres=gpu:8") for n in range(1, 7)]
    for number in low:
        await job_in(cluster, number, "running")
    high = quiet.submit("-q", "high", "--gres=gpu:8", script="sleep 1")
    await job_in(cluster, high, "completed")
    jobs = (await cluster.read_jobs(deadline=DEADLINE)).jobs
    pushed = [job.job_id for job in jobs if job.job_id in low and job.state is JobState.PENDING]
    assert len(pushed) == 1
    assert [run.state for run in await runs_of(cluster, pushed[0])] == [JobState.PREEMPTED]


async def test_a_node_that_fails(quiet: SlurmLab, cluster: SlurmCluster) -> None:
    """P12: its node goes down, the run ends as node_fail and the job waits again; the node comes back."""
    number = quiet.submit("-w", "mi300x-002", "-p", "mi300x", "--gres=gpu:8", script="sleep 120")
    await job_in(cluster, number, "running")
    quiet.kill_node("mi300x-002")

    async def down() -> bool:
        nodes = (await cluster.read_nodes(deadline=DEADLINE)).nodes
        node = next(node for node in nodes if node.name == "mi300x-002")
        return node.load == "down" and not node.responding

    await until(down, "slurmctld misses the node", 60)
    await job_in(cluster, number, "pending")
    quiet.start_node("mi300x-002")
    assert [run.state for run in await runs_of(cluster, number)] == [JobState.NODE_FAIL]

    async def back() -> bool:
        return not await down()

    await until(back, "the node is back in service")


@pytest.mark.slow
async def test_churn_equals_the_accounting_to_the_second(quiet: SlurmLab, cluster: SlurmCluster) -> None:
    """P12: 200 short jobs, some requeued and cancelled, read from a moving watermark: each run as sacct has it."""
    began = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=1)
    numbers: list[str] = []
    seen: dict[str, RunReading] = {}
    watermark = began

    async def read() -> None:
        nonlocal watermark
        open_jobs = {run.job_id for run in seen.values() if run.ended_at is None}
        reading = await cluster.read_runs(since=watermark, also=open_jobs, deadline=DEADLINE)
        assert reading.complete, reading.failures
        seen.update({run.key: run for run in reading.runs})
        watermark = reading.watermark

    async def running(number: str) -> bool:
        return bool(quiet.run("squeue", "-h", "-j", number, "-t", "running", "-o", "%i").strip())

    for n in range(200):
        options = ("-p", "all", f"--gres=gpu:{n % 4}") if n % 4 else ("-p", "all")
        # what is to be requeued has to run still when its turn comes, on a fast machine too
        seconds = 6 if n % 20 == 7 else n % 3
        numbers.append(await asyncio.to_thread(quiet.submit, *options, script=f"sleep {seconds}"))
        if n % 20 == 10:
            await until(functools.partial(running, numbers[-4]), "the job to be requeued runs", 60)
            await cluster.requeue(numbers[-4], deadline=DEADLINE)
            await cluster.cancel(numbers[-1], deadline=DEADLINE)
            await read()

    async def over() -> bool:
        waiting = quiet.run("squeue", "-h", "-a", "-t", "pending", "-O", "JobID:20,Reason:20").splitlines()
        for line in waiting:
            number, _, reason = line.strip().partition(" ")
            if reason.strip() == "BeginTime":  # a requeued one: don't wait two minutes
                quiet.succeeds("scontrol", "update", f"jobid={number}", "starttime=now")
        return not quiet.run("squeue", "-h", "-a").strip() and not quiet.busy()

    await until(over, "all jobs have ended", 120)

    def told() -> dict[tuple[str, int], tuple[str, ...]]:
        fields = "JobIDRaw,Submit,State,Start,End,ElapsedRaw,NodeList,AllocTRES"
        words = ("sacct", "-a", "-D", "-X", "-n", "-P", "-S", f"uts{int(began.timestamp())}", "-o", fields)
        rows = [row.split("|") for row in quiet.run(*words).splitlines()]
        return {(row[0], int(row[1])): tuple(row[2:]) for row in rows if row[0] in set(numbers)}

    async def accounted() -> bool:
        truth = told()
        return {number for number, _ in truth} == set(numbers) and all(row[2] != "Unknown" for row in truth.values())

    await until(accounted, "the accounting has all jobs", 60)
    truth = told()
    await read()
    ours = {
        (run.job_id, int(run.submitted_at.timestamp())): run
        for run in seen.values()
        if run.job_id in set(numbers) and run.submitted_at is not None
    }
    assert set(ours) == set(truth), set(ours) ^ set(truth)
    assert len(truth) > len(numbers)  # some were requeued: more runs than jobs
    for key, (state, start, end, elapsed, nodes, tres) in truth.items():
        run = ours[key]
        assert run.ended_at is not None, key
        assert run.raw_state == state.split()[0], key
        assert (int(run.ended_at.timestamp()), run.elapsed) == (int(end), int(elapsed)), key
        if run.started_at is None:
            assert nodes == "None assigned", key
        else:
            assert int(run.started_at.timestamp()) == int(start), key
        cards = [part for part in tres.split(",") if part.startswith("gres/gpu=")]
        assert run.cards == (int(cards[0].partition("=")[2]) if cards else 0), key
