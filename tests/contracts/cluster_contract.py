"""What every adapter of a cluster owes: a suite that its fake and its real scheduler both pass.

A test module takes part by a subclass of `ClusterContract` with a fixture `live`, which gives the driver
and a `ClusterHandle` of the cluster behind it. Two nodes are idle at the start, with four cards or more.
"""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from inventory.drivers.clusters.capabilities import AccountSpec, Capability, ClusterDriver, JobSpec, Outcome, QosSpec
from inventory.drivers.clusters.readings import ClusterNode, JobReading, JobState
from inventory.observations import FailureKind

GENEROUS = 30.0  # s, for what is expected to take a fraction of it
UNKNOWN_JOB = 987_654


class ClusterHandle(Protocol):
    """The cluster's side: what others do there, and what a job of this cluster looks like."""

    nodes: tuple[str, str]
    folder: str

    def drain_by_hand(self, node: str, reason: str) -> None:
        """Somebody else takes a node out."""

    def resume_by_hand(self, node: str) -> None:
        """Somebody else returns it."""

    def finish(self, job_id: int, exit_code: int) -> None:
        """A running job ends by itself with this code."""

    def run_again(self, job_id: int) -> None:
        """A requeued job need not wait any longer."""

    def unreachable(self) -> ClusterDriver:
        """A driver for a cluster that is not there."""


Live = tuple[ClusterDriver, ClusterHandle]


class ClusterContract:
    """P11, P12: any cluster is read and steered by the same few calls."""

    async def test_it_describes_itself(self, live: Live) -> None:
        driver, _ = live
        described = await driver.describe(deadline=GENEROUS)
        assert described.reached
        assert described.scheduler
        assert described.version
        assert {state.capability for state in described.capabilities} == set(Capability)
        assert all(state.available or state.reason for state in described.capabilities)

    async def test_out_of_reach_is_data(self, live: Live) -> None:
        _, handle = live
        driver = handle.unreachable()
        since = datetime.now(UTC)
        readings: list[Any] = [
            await driver.read_nodes(deadline=GENEROUS),
            await driver.read_queues(deadline=GENEROUS),
            await driver.read_reservations(deadline=GENEROUS),
            await driver.read_jobs(deadline=GENEROUS),
        ]
        runs = await driver.read_runs(since=since, deadline=GENEROUS)
        described = await driver.describe(deadline=GENEROUS)
        act = await driver.cancel(1, deadline=GENEROUS)
        await driver.close()
        for reading in (*readings, runs):
            assert not reading.complete
            assert [failure.kind for failure in reading.failures] == [FailureKind.UNREACHABLE]
        assert runs.watermark == since
        assert (described.reached, bool(described.reason)) == (False, True)
        assert (act.outcome, act.kind) == (Outcome.FAILED, FailureKind.UNREACHABLE)

    async def test_cordon_has_an_owner(self, live: Live) -> None:
        driver, handle = live
        node = handle.nodes[0]
        acts = [await driver.cordon(node, owner="c1", reason="test", deadline=GENEROUS) for _ in range(2)]
        assert [act.outcome for act in acts] == [Outcome.DONE, Outcome.UNCHANGED]
        seen = await _node(driver, node)
        assert (seen.cordoned, seen.owner) == (True, "c1")
        assert "test" in seen.reason
        assert (await driver.uncordon(node, owner="c2", deadline=GENEROUS)).outcome is Outcome.HELD_BY_OTHER
        acts = [await driver.uncordon(node, owner="c1", deadline=GENEROUS) for _ in range(2)]
        assert [act.outcome for act in acts] == [Outcome.DONE, Outcome.UNCHANGED]
        assert not (await _node(driver, node)).cordoned

    async def test_somebody_elses_cordon_stays(self, live: Live) -> None:
        driver, handle = live
        node = handle.nodes[0]
        handle.drain_by_hand(node, "bad fan")
        for act in (
            await driver.cordon(node, owner="c1", reason="ours", deadline=GENEROUS),
            await driver.uncordon(node, owner="c1", deadline=GENEROUS),
        ):
            assert act.outcome is Outcome.HELD_BY_OTHER
            assert "bad fan" in act.detail
        seen = await _node(driver, node)
        assert (seen.cordoned, seen.owner, seen.reason) == (True, "", "bad fan")
        handle.resume_by_hand(node)
        assert not (await _node(driver, node)).cordoned

    async def test_a_job_runs_where_it_is_put_and_holds_cards_alone(self, live: Live) -> None:
        driver, handle = live
        numbers = [await _submitted(driver, handle, nodes=(handle.nodes[1],), cards=2) for _ in range(2)]
        jobs = [await _job_in(driver, number, JobState.RUNNING) for number in numbers]
        held = [index for job in jobs for binding in job.bindings for index in binding.indices]
        assert [job.nodes for job in jobs] == [(handle.nodes[1],)] * 2
        assert len(set(held)) == len(held) == 4
        assert all(job.cards_known and job.cards == 2 and job.comment == "sensaka:t" for job in jobs)
        node = await _node(driver, handle.nodes[1])
        assert set(held) == {index for one in node.accelerators for index in one.used_indices}
        for number in numbers:
            assert (await driver.cancel(number, deadline=GENEROUS)).ok
            assert (await _job_in(driver, number, JobState.CANCELLED)).bindings == ()

    async def test_how_a_job_ends(self, live: Live) -> None:
        driver, handle = live
        for code, state in ((0, JobState.COMPLETED), (3, JobState.FAILED)):
            number = await _submitted(driver, handle, cards=1)
            await _job_in(driver, number, JobState.RUNNING)
            handle.finish(number, code)
            job = await _job_in(driver, number, state)
            assert (job.exit_code, job.cards_known) == (code, True)
            assert job.started_at is not None
            assert job.ended_at is not None
            assert job.ended_at >= job.started_at
            assert (await driver.cancel(number, deadline=GENEROUS)).ok

    async def test_hold_keeps_and_release_starts(self, live: Live) -> None:
        driver, handle = live
        number = await _submitted(driver, handle, cards=1, held=True)
        assert (await _job_in(driver, number, JobState.PENDING)).held
        assert (await driver.release(number, deadline=GENEROUS)).ok
        await _job_in(driver, number, JobState.RUNNING)
        assert (await driver.cancel(number, deadline=GENEROUS)).ok

    async def test_a_suspended_job_keeps_its_cards(self, live: Live) -> None:
        driver, handle = live
        number = await _submitted(driver, handle, cards=2)
        before = await _job_in(driver, number, JobState.RUNNING)
        assert (await driver.suspend(number, deadline=GENEROUS)).ok
        assert (await _job_in(driver, number, JobState.SUSPENDED)).bindings == before.bindings
        assert (await driver.resume(number, deadline=GENEROUS)).ok
        await _job_in(driver, number, JobState.RUNNING)
        assert (await driver.cancel(number, deadline=GENEROUS)).ok

    async def test_runs_of_a_requeued_job_stay_apart_and_repeats_are_harmless(self, live: Live) -> None:
        driver, handle = live
        since = datetime.now(UTC) - timedelta(minutes=5)
        number = await _submitted(driver, handle, cards=1)
        first = await _job_in(driver, number, JobState.RUNNING)
        assert (await driver.requeue(number, deadline=GENEROUS)).ok
        handle.run_again(number)
        end = time.monotonic() + GENEROUS
        while (second := await _job_in(driver, number, JobState.RUNNING)).key == first.key:
            assert time.monotonic() < end, "the second run has not started"
            await asyncio.sleep(0.1)
        assert (await driver.cancel(number, deadline=GENEROUS)).ok
        wanted = {first.key: JobState.REQUEUED, second.key: JobState.CANCELLED}
        found: dict[str, JobState] = {}
        while found != wanted:
            assert time.monotonic() < end, f"the accounting has {found}"
            await asyncio.sleep(0.1)
            reading = await driver.read_runs(since=since, also=[number], deadline=GENEROUS)
            found = {run.key: run.state for run in reading.runs if run.job_id == number}
        repeated = await driver.read_runs(since=since, also=[number], deadline=GENEROUS)
        keys = [run.key for run in repeated.runs]
        assert len(set(keys)) == len(keys)
        assert since <= repeated.watermark <= repeated.observed_at
        assert all(run.elapsed is not None and run.cards == 1 for run in repeated.runs if run.job_id == number)

    async def test_what_does_not_exist(self, live: Live) -> None:
        driver, _ = live
        assert (await driver.cordon("nowhere", owner="c1", reason="x", deadline=GENEROUS)).outcome is Outcome.NOT_FOUND
        assert (await driver.uncordon("nowhere", owner="c1", deadline=GENEROUS)).outcome is Outcome.NOT_FOUND
        for act in (driver.cancel, driver.hold, driver.release, driver.requeue, driver.suspend, driver.resume):
            assert (await act(UNKNOWN_JOB, deadline=GENEROUS)).outcome is Outcome.NOT_FOUND
        assert (await driver.signal(UNKNOWN_JOB, "USR1", deadline=GENEROUS)).outcome is Outcome.NOT_FOUND

    async def test_what_can_never_run_is_refused(self, live: Live) -> None:
        driver, handle = live
        sent = await driver.submit(_spec(handle, cards=1, nodes=("nowhere",)), deadline=GENEROUS)
        assert sent.outcome is Outcome.REFUSED
        assert sent.detail

    async def test_tenants_are_made_once_and_set(self, live: Live) -> None:
        driver, _ = live
        account = AccountSpec(name="contract", description="Contract", cards=8, card_seconds=7200)
        qos = QosSpec(name="contract", priority=7, cards=4)
        made = [await driver.ensure_account(account, deadline=GENEROUS) for _ in range(2)]
        made += [await driver.ensure_qos(qos, deadline=GENEROUS) for _ in range(2)]
        assert [one.outcome for one in made] == [Outcome.DONE, Outcome.UNCHANGED] * 2
        reading = await driver.read_tenants(deadline=GENEROUS)
        tenant = next(one for one in reading.tenants if one.account == "contract")
        assert (tenant.cards, tenant.card_seconds) == (8, 7200)
        assert next(one for one in reading.qos if one.name == "contract").priority == 7


def _spec(handle: ClusterHandle, **changes: Any) -> JobSpec:
    script = "#!/bin/sh\nwhile [ ! -e end.$SLURM_JOB_ID ]; do sleep 0.2; done\nexit $(cat end.$SLURM_JOB_ID)\n"
    fixed = {"name": "contract", "script": script, "mark": "sensaka:t", "working_directory": handle.folder}
    return JobSpec(**(fixed | {"nodes": (handle.nodes[1],)} | changes))


async def _submitted(driver: ClusterDriver, handle: ClusterHandle, **changes: Any) -> int:
    sent = await driver.submit(_spec(handle, **changes), deadline=GENEROUS)
    assert sent.outcome is Outcome.DONE, sent
    return int(sent.reference)


async def _node(driver: ClusterDriver, name: str) -> ClusterNode:
    reading = await driver.read_nodes(deadline=GENEROUS)
    assert reading.complete, reading.failures
    return next(node for node in reading.nodes if node.name == name)


async def _job_in(driver: ClusterDriver, job_id: int, state: JobState) -> JobReading:
    end = time.monotonic() + GENEROUS
    while True:
        reading = await driver.read_jobs(deadline=GENEROUS)
        assert reading.complete, reading.failures
        job = next(job for job in reading.jobs if job.job_id == job_id)
        if job.state is state:
            return job
        assert time.monotonic() < end, f"job {job_id} is {job.state} ({job.reason}), not {state}"
        await asyncio.sleep(0.1)
