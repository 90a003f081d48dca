"""slurmrestd, slurmctld, tokens and clocks fail; the driver says so, recovers, and nothing is doubled."""

import signal
import time
from datetime import UTC, datetime, timedelta

import pytest

from inventory.drivers.clusters.capabilities import JobSpec, Outcome
from inventory.drivers.clusters.slurm import Login, RestDoor, SlurmCluster
from inventory.observations import FailureKind
from tests.labs.slurm.conftest import DEADLINE, Opened, commands, job_in, rest, until
from tests.labs.slurm.lab import SlurmLab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("slurm")]


async def test_slurmrestd_killed_and_restarted(quiet: SlurmLab, cluster: SlurmCluster) -> None:
    """P11: out of reach is data with a reason; the same driver goes on when it is back."""
    assert (await cluster.read_nodes(deadline=DEADLINE)).complete
    quiet.kill("slurmrestd")
    reading = await cluster.read_nodes(deadline=DEADLINE)
    described = await cluster.describe(deadline=DEADLINE)
    act = await cluster.cancel("1", deadline=DEADLINE)
    quiet.start_rest()
    assert (reading.complete, [failure.kind for failure in reading.failures]) == (False, [FailureKind.UNREACHABLE])
    assert (described.reached, described.interface) == (True, "commands")
    assert (act.outcome, act.kind) == (Outcome.FAILED, FailureKind.UNREACHABLE)
    assert len((await cluster.read_nodes(deadline=DEADLINE)).nodes) == 12


async def test_slurmctld_restarted_under_running_jobs(quiet: SlurmLab, cluster: SlurmCluster) -> None:
    """P12: the job, its cards and its one run are the same before and after."""
    number = quiet.submit("--gres=gpu:3", script="sleep 9")
    before = await job_in(cluster, number, "running")
    quiet.kill("slurmctld", signal.SIGTERM)
    meanwhile = await cluster.read_jobs(deadline=3.0)
    quiet.start_controller()
    assert meanwhile.failures[0].kind in (FailureKind.UNREACHABLE, FailureKind.TIMEOUT)
    after = await job_in(cluster, number, "running")
    assert (after.key, after.bindings, after.started_at) == (before.key, before.bindings, before.started_at)
    await job_in(cluster, number, "completed")

    async def accounted() -> bool:
        since = datetime.now(UTC) - timedelta(minutes=10)
        reading = await cluster.read_runs(since=since, deadline=DEADLINE, also=[number])
        return [(run.key, run.state) for run in reading.runs if run.job_id == number] == [(before.key, "completed")]

    await until(accounted, "one run in the accounting")


async def test_a_silent_slurmctld_meets_the_deadline(quiet: SlurmLab, cluster: SlurmCluster) -> None:
    """P11: a controller that hangs costs the deadline and no more; what was asked may have happened."""
    await cluster.describe(deadline=DEADLINE)
    with quiet.paused("slurmctld"):
        start = time.monotonic()
        reading = await cluster.read_jobs(deadline=1.0)
        job = JobSpec(name="x", script="#!/bin/sh\n", mark="m", working_directory="/tmp")
        sent = await cluster.submit(job, deadline=1.0)
        spent = time.monotonic() - start
    assert [failure.kind for failure in reading.failures] == [FailureKind.TIMEOUT]
    assert sent.outcome is Outcome.UNKNOWN
    assert spent < 6
    assert (await cluster.read_jobs(deadline=DEADLINE)).complete


async def test_an_ended_token(lab: SlurmLab, opened: Opened) -> None:
    """P11: an ended or wrong token is told as such although 22.05 calls it an unspecified error."""
    short = lab.token(lifespan=1)
    driver = opened(rest=RestDoor(lab.rest_url, Login("root", short)))
    wrong = opened(rest=RestDoor(lab.rest_url, Login("root", "a.b.c")))

    async def refused() -> bool:
        failures = (await driver.read_nodes(deadline=DEADLINE)).failures
        return [failure.kind for failure in failures] == [FailureKind.AUTHENTICATION]

    await until(refused, "the token has ended")
    assert (await driver.read_runs(since=datetime.now(UTC), deadline=DEADLINE)).failures[0].kind == "authentication"
    result = await driver.cancel("1", deadline=DEADLINE)
    assert (result.outcome, result.kind) == (Outcome.FAILED, FailureKind.AUTHENTICATION)
    described = await driver.describe(deadline=DEADLINE)
    assert (described.reached, "ended" in described.reason) == (False, True)
    assert (await wrong.read_nodes(deadline=DEADLINE)).failures[0].kind is FailureKind.AUTHENTICATION


async def test_a_token_is_renewed(lab: SlurmLab, opened: Opened) -> None:
    """P11: with a way to renew, an ended token costs nothing but the renewal, once."""
    renewed: list[str] = []

    async def renew() -> str:
        renewed.append(lab.token())
        return renewed[-1]

    driver = opened(rest=RestDoor(lab.rest_url, Login("root", "a.b.c", renew)))
    readings = [await driver.read_nodes(deadline=DEADLINE) for _ in range(3)]
    assert [len(reading.nodes) for reading in readings] == [12, 12, 12]
    assert len(renewed) == 1


async def test_accounting_away(quiet: SlurmLab, cluster: SlurmCluster) -> None:
    """P12: while slurmdbd is away the watermark stays, and what ended meanwhile is read afterwards, once."""
    since = datetime.now(UTC) - timedelta(minutes=1)
    quiet.kill("slurmdbd", signal.SIGTERM)
    number = quiet.submit("--gres=gpu:1", script="exit 0")
    await job_in(cluster, number, "completed")
    reading = await cluster.read_runs(since=since, deadline=DEADLINE)
    assert (reading.complete, reading.watermark) == (False, since)
    quiet.start_accounting()

    async def accounted() -> bool:
        reading = await cluster.read_runs(since=since, deadline=DEADLINE)
        return [run.state for run in reading.runs if run.job_id == number] == ["completed"]

    await until(accounted, "the run has arrived", 60)


async def test_commands_that_are_not_there(lab: SlurmLab, opened: Opened) -> None:
    """P11: Slurm's commands missing on this host is a state with a reason."""
    driver = opened(command=type(commands(lab))(environment={"PATH": "/nonexistent"}))
    described = await driver.describe(deadline=DEADLINE)
    assert not described.reached
    assert described.failures[0].kind is FailureKind.MISSING_LIBRARY
    assert not any(state.available for state in described.capabilities)
    assert (await driver.read_jobs(deadline=DEADLINE)).failures[0].kind is FailureKind.MISSING_LIBRARY


async def test_two_users_one_server(lab: SlurmLab, opened: Opened) -> None:
    """P11: a user without rights reads, and is refused acts in Slurm's words."""
    token = lab.token("nobody")
    driver = opened(rest=RestDoor(lab.rest_url, Login("nobody", token)))
    admin = opened(rest=rest(lab))
    number = lab.submit("-H")
    assert (await driver.read_nodes(deadline=DEADLINE)).complete
    refused = await driver.cancel(number, deadline=DEADLINE)
    assert refused.outcome is Outcome.FAILED
    assert refused.kind is FailureKind.PERMISSION
    assert (await admin.cancel(number, deadline=DEADLINE)).ok
