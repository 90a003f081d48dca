"""What every adapter of a cluster owes: a suite that its fake and its real scheduler both pass.

A test module takes part by a subclass of `ClusterContract` with a fixture `live`, which gives the driver
and a `ClusterHandle` of the cluster behind it. Two nodes are idle at the start, with four cards or more.
"""

import asyncio
import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from inventory.drivers.clusters.capabilities import Capability, ClusterDriver, JobSpec, Outcome, QosSpec, TenantSpec
from inventory.drivers.clusters.readings import CardBinding, ClusterNode, JobReading, JobsChange, JobState
from inventory.observations import FailureKind

GENEROUS = 30.0  # s, for what is expected to take a fraction of it
_MARKS = itertools.count(time.time_ns() // 1000)


class ClusterHandle(Protocol):
    """The cluster's side: what others do there, and what a job of this cluster looks like."""

    nodes: tuple[str, str]
    unknown_job: str
    fixed: dict[str, Any]  # what every JobSpec of this cluster needs

    def drain_by_hand(self, node: str, reason: str) -> str:
        """Somebody else takes a node out; what the scheduler tells as the reason."""

    def resume_by_hand(self, node: str) -> None:
        """Somebody else returns it."""

    def finish(self, job_id: str, exit_code: int) -> None:
        """A running job ends by itself with this code."""

    def run_again(self, job_id: str) -> None:
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
        act = await driver.cancel(handle.unknown_job, deadline=GENEROUS)
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
        reason = handle.drain_by_hand(node, "bad fan")
        for act in (
            await driver.cordon(node, owner="c1", reason="ours", deadline=GENEROUS),
            await driver.uncordon(node, owner="c1", deadline=GENEROUS),
        ):
            assert act.outcome is Outcome.HELD_BY_OTHER
            assert reason in act.detail
        seen = await _node(driver, node)
        assert (seen.cordoned, seen.owner, seen.reason) == (True, "", reason)
        handle.resume_by_hand(node)
        assert not (await _node(driver, node)).cordoned

    async def test_a_job_runs_where_it_is_put_and_holds_cards_alone(self, live: Live) -> None:
        driver, handle = live
        numbers = [await _submitted(driver, handle, nodes=(handle.nodes[1],), cards=2) for _ in range(2)]
        jobs = [await _job_in(driver, number, JobState.RUNNING) for number in numbers]
        held = [card for job in jobs for binding in job.bindings for card in _cards(binding)]
        assert [job.nodes for job in jobs] == [(handle.nodes[1],)] * 2
        assert len(set(held)) == len(held) == 4
        assert all(job.cards_known and job.cards == 2 and job.comment.startswith("sensaka:") for job in jobs)
        node = await _node(driver, handle.nodes[1])
        assert [one.used for one in node.accelerators if one.total] == [4]
        used = {index for one in node.accelerators for index in one.used_indices}
        assert not used or used == set(held)
        for number in numbers:
            assert (await driver.cancel(number, deadline=GENEROUS)).ok
            await _over(driver, number)

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

    async def test_a_time_limit_is_moved_while_it_runs(self, live: Live) -> None:
        driver, handle = live
        number = await _submitted(driver, handle, cards=1, time_limit=600)
        assert (await _job_in(driver, number, JobState.RUNNING)).time_limit == 600
        moved = await driver.set_time_limit(number, 1200, deadline=GENEROUS)
        if moved.outcome is not Outcome.NOT_SUPPORTED:
            assert moved.ok, moved
            assert (await _job_in(driver, number, JobState.RUNNING)).time_limit == 1200
        assert (await driver.cancel(number, deadline=GENEROUS)).ok
        missing = await driver.set_time_limit(handle.unknown_job, 1200, deadline=GENEROUS)
        assert missing.outcome in (Outcome.NOT_FOUND, Outcome.NOT_SUPPORTED)

    async def test_cards_in_all_are_spread_over_the_nodes_or_refused(self, live: Live) -> None:
        driver, handle = live
        sent = await driver.submit(_spec(handle, nodes=handle.nodes, card_total=3), deadline=GENEROUS)
        if sent.outcome in (Outcome.REFUSED, Outcome.NOT_SUPPORTED):
            assert sent.detail
            return
        job = await _job_in(driver, sent.reference, JobState.RUNNING)
        assert sorted(job.nodes) == sorted(handle.nodes)
        assert (job.cards, sorted(binding.count for binding in job.bindings)) == (3, [1, 2])
        assert (await driver.cancel(sent.reference, deadline=GENEROUS)).ok

    async def test_hold_keeps_and_release_starts(self, live: Live) -> None:
        driver, handle = live
        number = await _submitted(driver, handle, cards=1, held=True)
        assert (await _job_in(driver, number, JobState.PENDING)).held
        assert (await driver.hold(number, deadline=GENEROUS)).ok
        assert (await driver.release(number, deadline=GENEROUS)).ok
        await _job_in(driver, number, JobState.RUNNING)
        assert (await driver.cancel(number, deadline=GENEROUS)).ok

    async def test_a_suspended_job_keeps_its_cards(self, live: Live) -> None:
        driver, handle = live
        number = await _submitted(driver, handle, cards=2)
        if not (await driver.describe(deadline=GENEROUS)).has(Capability.SUSPEND):
            refused = [await act(number, deadline=GENEROUS) for act in (driver.suspend, driver.resume)]
            assert all(one.outcome is Outcome.NOT_SUPPORTED and one.detail for one in refused)
            return
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
        if not (await driver.describe(deadline=GENEROUS)).has(Capability.REQUEUE):
            refused = await driver.requeue(number, deadline=GENEROUS)
            assert (refused.outcome, bool(refused.detail)) == (Outcome.NOT_SUPPORTED, True)
            return
        watched: list[JobsChange] = []
        watch = asyncio.create_task(_watch(driver, watched))
        await _until(lambda: bool(watched), "the first change")
        assert watched[0].whole
        assert first.key in {job.key for job in watched[0].jobs}
        assert (await driver.requeue(number, deadline=GENEROUS)).ok
        handle.run_again(number)
        second = await _job_in(driver, number, JobState.RUNNING, other_than=first.key)
        assert (await driver.cancel(number, deadline=GENEROUS)).ok
        wanted = {first.key: JobState.REQUEUED, second.key: JobState.CANCELLED}
        if not (await driver.describe(deadline=GENEROUS)).has(Capability.RUNS):
            await _until(lambda: _told(watched, wanted) == wanted, "the end of both runs is told")
        watch.cancel()
        if (await driver.describe(deadline=GENEROUS)).has(Capability.RUNS):
            await self._accounted(driver, number, since, wanted)

    async def _accounted(
        self, driver: ClusterDriver, number: str, since: datetime, wanted: dict[str, JobState]
    ) -> None:
        end = time.monotonic() + GENEROUS
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

    async def test_changes_are_told_once(self, live: Live) -> None:
        driver, handle = live
        watched: list[JobsChange] = []
        watch = asyncio.create_task(_watch(driver, watched))
        await _until(lambda: bool(watched), "the first change")
        number = await _submitted(driver, handle, cards=1)
        job = await _job_in(driver, number, JobState.RUNNING)
        await _until(lambda: _told(watched, {job.key: job}).get(job.key) is JobState.RUNNING, "that it runs")
        handle.finish(number, 0)
        await _until(lambda: _told(watched, {job.key: job}).get(job.key) is JobState.COMPLETED, "that it ended")
        watch.cancel()
        told = [job for change in watched[1:] for job in change.jobs]
        assert all(change.complete and not change.whole for change in watched[1:])
        assert all(before != after for before, after in itertools.pairwise(told))
        assert (await driver.cancel(number, deadline=GENEROUS)).ok

    async def test_what_does_not_exist(self, live: Live) -> None:
        driver, handle = live
        described = await driver.describe(deadline=GENEROUS)
        assert (await driver.cordon("nowhere", owner="c1", reason="x", deadline=GENEROUS)).outcome is Outcome.NOT_FOUND
        assert (await driver.uncordon("nowhere", owner="c1", deadline=GENEROUS)).outcome is Outcome.NOT_FOUND
        acts = [driver.cancel, driver.hold, driver.release]
        acts += [driver.requeue] if described.has(Capability.REQUEUE) else []
        acts += [driver.suspend, driver.resume] if described.has(Capability.SUSPEND) else []
        for act in acts:
            assert (await act(handle.unknown_job, deadline=GENEROUS)).outcome is Outcome.NOT_FOUND
        signalled = await driver.signal(handle.unknown_job, "USR1", deadline=GENEROUS)
        known = described.has(Capability.SIGNAL)
        assert signalled.outcome is (Outcome.NOT_FOUND if known else Outcome.NOT_SUPPORTED)
        assert signalled.detail
        emptied = await driver.evict("nowhere", owner="c1", deadline=GENEROUS)
        known = described.has(Capability.EVICT)
        assert emptied.outcome is (Outcome.NOT_FOUND if known else Outcome.NOT_SUPPORTED)

    async def test_what_can_never_run_is_refused(self, live: Live) -> None:
        driver, handle = live
        sent = await driver.submit(_spec(handle, cards=1, nodes=("nowhere",)), deadline=GENEROUS)
        assert sent.outcome is Outcome.REFUSED
        assert sent.detail

    async def test_tenants_are_made_once_and_set(self, live: Live) -> None:
        driver, _ = live
        described = await driver.describe(deadline=GENEROUS)
        if not described.has(Capability.TENANTS):
            refused = await driver.ensure_tenant(TenantSpec(name="contract", cards=8), deadline=GENEROUS)
            assert (refused.outcome, bool(refused.detail)) == (Outcome.NOT_SUPPORTED, True)
            return
        for cards in (8, 6):
            asked = TenantSpec(name="contract", description="Contract", cards=cards, card_seconds=7200, storage=2**40)
            made = [await driver.ensure_tenant(asked, deadline=GENEROUS) for _ in range(2)]
            assert [one.outcome for one in made] == [Outcome.DONE, Outcome.UNCHANGED]
            reading = await driver.read_tenants(deadline=GENEROUS)
            tenant = next(one for one in reading.tenants if one.name == "contract")
            assert "cards" in described.enforces
            for field in ("cards", "card_seconds", "storage"):
                told = field in described.enforces
                assert getattr(tenant, field) == (getattr(asked, field) if told else None)
                assert told or field in made[0].detail

    async def test_qualities_of_service_are_made_once_and_set(self, live: Live) -> None:
        driver, _ = live
        qos = QosSpec(name="contract", priority=7, cards=4)
        made = [await driver.ensure_qos(qos, deadline=GENEROUS) for _ in range(2)]
        if not (await driver.describe(deadline=GENEROUS)).has(Capability.QOS):
            assert all(one.outcome is Outcome.NOT_SUPPORTED and one.detail for one in made)
            return
        assert [one.outcome for one in made] == [Outcome.DONE, Outcome.UNCHANGED]
        reading = await driver.read_tenants(deadline=GENEROUS)
        assert next(one for one in reading.qos if one.name == "contract").priority == 7


def _spec(handle: ClusterHandle, **changes: Any) -> JobSpec:
    fixed = {"name": "contract", "mark": f"sensaka:t{next(_MARKS)}", "working_directory": ""} | handle.fixed
    return JobSpec(**(fixed | {"nodes": (handle.nodes[1],)} | changes))


async def _submitted(driver: ClusterDriver, handle: ClusterHandle, **changes: Any) -> str:
    sent = await driver.submit(_spec(handle, **changes), deadline=GENEROUS)
    assert sent.outcome is Outcome.DONE, sent
    return sent.reference


def _cards(binding: CardBinding) -> tuple[str | int, ...]:
    return binding.uuids or binding.addresses or binding.indices


async def _node(driver: ClusterDriver, name: str) -> ClusterNode:
    reading = await driver.read_nodes(deadline=GENEROUS)
    assert reading.complete, reading.failures
    return next(node for node in reading.nodes if node.name == name)


async def _jobs(driver: ClusterDriver, job_id: str) -> list[JobReading]:
    reading = await driver.read_jobs(deadline=GENEROUS)
    assert reading.complete, reading.failures
    return [job for job in reading.jobs if job.job_id == job_id]


async def _job_in(driver: ClusterDriver, job_id: str, state: JobState, other_than: str = "") -> JobReading:
    end = time.monotonic() + GENEROUS
    while True:
        jobs = await _jobs(driver, job_id)
        for job in jobs:
            if job.state is state and job.key != other_than:
                return job
        told = [(job.state, job.reason) for job in jobs]
        assert time.monotonic() < end, f"job {job_id} is {told}, not {state}"
        await asyncio.sleep(0.1)


async def _over(driver: ClusterDriver, job_id: str) -> None:
    """A cancelled job is told as such without cards, or not at all any more."""
    end = time.monotonic() + GENEROUS
    while True:
        jobs = await _jobs(driver, job_id)
        if all(job.state is JobState.CANCELLED and not job.bindings for job in jobs):
            return
        assert time.monotonic() < end, jobs
        await asyncio.sleep(0.1)


async def _watch(driver: ClusterDriver, watched: list[JobsChange]) -> None:
    async for change in driver.follow_jobs(deadline=4 * GENEROUS):
        watched.append(change)  # noqa: PERF401 - read by the test while it grows


def _told(watched: list[JobsChange], keys: Any) -> dict[str, JobState]:
    """The state that was told last of each of these runs."""
    return {job.key: job.state for change in watched for job in (*change.jobs, *change.gone) if job.key in keys}


async def _until(check: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + GENEROUS
    while not check():
        assert time.monotonic() < end, f"not seen: {what}"
        await asyncio.sleep(0.05)
