"""The cluster in memory keeps the contract, first of all drivers."""

from datetime import UTC, datetime, timedelta

import pytest

from inventory.drivers.clusters.capabilities import ClusterDriver, JobSpec, Outcome
from inventory.drivers.clusters.readings import JobState
from inventory.drivers.fake.cluster import FakeCluster
from inventory.drivers.fake.scheduler import FakeNode
from tests.contracts.cluster_contract import ClusterContract, Live

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Handle:
    nodes = ("a1", "a2")
    unknown_job = "987654"
    fixed = {"script": ""}

    def __init__(self, cluster: FakeCluster) -> None:
        self._scheduler = cluster.scheduler

    def drain_by_hand(self, node: str, reason: str) -> str:
        self._scheduler.nodes[node].cordoned, self._scheduler.nodes[node].reason = True, reason
        return reason

    def resume_by_hand(self, node: str) -> None:
        self._scheduler.nodes[node].cordoned, self._scheduler.nodes[node].reason = False, ""

    def finish(self, job_id: str, exit_code: int) -> None:
        run = self._scheduler.current(job_id)
        assert run is not None
        self._scheduler.end(run, JobState.FAILED if exit_code else JobState.COMPLETED, exit_code)

    def run_again(self, job_id: str) -> None:
        """It starts at once."""

    def unreachable(self) -> ClusterDriver:
        cluster = FakeCluster([FakeNode("a1", "h100", 8)])
        cluster.out_of_reach = "the cable is cut"
        return cluster


class TestFakeCluster(ClusterContract):
    @pytest.fixture
    def live(self) -> Live:
        cluster = FakeCluster([FakeNode("a1", "h100", 8), FakeNode("a2", "h100", 8)])
        return cluster, Handle(cluster)


def job(**changes: object) -> JobSpec:
    fixed = {"name": "j", "script": "", "mark": "m", "working_directory": "/"}
    return JobSpec(**(fixed | changes))  # type: ignore[arg-type]


async def test_time_limit_and_lost_node() -> None:
    """P12: what the contract can't wait for: a limit that passes, a node that is lost."""
    now = START
    cluster = FakeCluster([FakeNode("a1", "h100", 2), FakeNode("a2", "h100", 2)], clock=lambda: now)
    limited = await cluster.submit(job(cards=2, time_limit=60), deadline=1)
    lost = await cluster.submit(job(cards=2, nodes=("a2",)), deadline=1)
    waiting = await cluster.submit(job(cards=2), deadline=1)
    now += timedelta(seconds=90)
    cluster.scheduler.fail_node("a2")
    states = {one.job_id: one.state for one in (await cluster.read_jobs(deadline=1)).jobs}
    assert states == {
        limited.reference: JobState.TIMEOUT,
        lost.reference: JobState.PENDING,
        waiting.reference: JobState.RUNNING,
    }
    runs = {run.key: run for run in (await cluster.read_runs(since=START, deadline=1)).runs}
    ended = sorted((run.state, run.elapsed) for run in runs.values() if run.ended_at)
    assert ended == [(JobState.NODE_FAIL, 90), (JobState.TIMEOUT, 60)]
    assert len(runs) == 4


async def test_old_runs_are_not_told_again() -> None:
    """P12: a run that ended before the watermark is told only to who asks for its job."""
    now = START
    cluster = FakeCluster([FakeNode("a1", "h100", 2)], clock=lambda: now)
    number = (await cluster.submit(job(cards=1, time_limit=60), deadline=1)).reference
    now += timedelta(hours=1)
    reading = await cluster.read_runs(since=now - timedelta(minutes=30), deadline=1)
    assert reading.runs == ()
    assert [r.job_id for r in (await cluster.read_runs(since=now, also=[number], deadline=1)).runs] == [number]


async def test_what_is_missing_from_a_reading_that_failed_is_not_gone() -> None:
    """P12: followers are told of the fault, then go on; what the scheduler really forgot is gone, once."""
    cluster = FakeCluster([FakeNode("a1", "h100", 2)])
    await cluster.submit(job(cards=1), deadline=1)
    changes = cluster.follow_jobs(deadline=5)
    first = await anext(changes)
    cluster.out_of_reach = "the cable is cut"
    fault = await anext(changes)
    cluster.out_of_reach = ""
    cluster.scheduler.runs.clear()
    last = await anext(changes)
    assert [(one.complete, one.whole, len(one.jobs), len(one.gone)) for one in (first, fault, last)] == [
        (True, True, 1, 0),
        (False, False, 0, 0),
        (True, False, 0, 1),
    ]
    assert last.gone == first.jobs


async def test_only_a_node_of_ours_is_emptied() -> None:
    """H6: what runs on a node that this owner cordoned goes to another one."""
    cluster = FakeCluster([FakeNode("a1", "h100", 2), FakeNode("a2", "h100", 2)])
    await cluster.submit(job(cards=1), deadline=1)
    assert (await cluster.evict("a1", owner="c1", deadline=1)).outcome is Outcome.REFUSED
    await cluster.cordon("a1", owner="c1", reason="x", deadline=1)
    assert (await cluster.evict("a1", owner="c2", deadline=1)).outcome is Outcome.HELD_BY_OTHER
    emptied = [await cluster.evict("a1", owner="c1", deadline=1) for _ in range(2)]
    assert [(one.outcome, len(one.evicted)) for one in emptied] == [(Outcome.DONE, 1), (Outcome.UNCHANGED, 0)]
    assert [one.nodes for one in (await cluster.read_jobs(deadline=1)).jobs] == [("a2",)]
