"""What happened while nobody looked: runs that vanish, accounting that lags, watches that break."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from msgspec.structs import replace

from inventory.drivers.clusters.capabilities import CapabilityState, ClusterDescription
from inventory.drivers.clusters.readings import JobReading, JobsChange, JobState
from inventory.models import ClusterConnection, Job
from tests.inventory.clusters.building import T0, Lab, Opener, new_lab

pytestmark = pytest.mark.django_db


class Watch:
    """A scheduler without accounting whose changes come by a watch: what it has kept of them can be gone on from."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.changes: dict[str, JobsChange] = {}
        self.asked: list[str] = []
        self._describe = lab.fake.describe
        lab.fake.describe = self.describe  # type: ignore[method-assign]
        lab.fake.follow_jobs = self.follow  # type: ignore[method-assign,assignment]

    async def describe(self, *, deadline: float) -> ClusterDescription:
        told = await self._describe(deadline=deadline)
        able = tuple(
            replace(one, available=False) if one.capability == "runs" else one for one in told.capabilities
        )  # fmt: skip
        assert all(isinstance(one, CapabilityState) for one in able)
        return replace(told, capabilities=able)

    async def follow(self, *, cursor: str = "", deadline: float) -> AsyncIterator[JobsChange]:
        self.asked.append(cursor)
        if cursor in self.changes:
            yield self.changes[cursor]
            return
        reading = await self.lab.fake.read_jobs(deadline=deadline)
        if not reading.complete:
            yield JobsChange(observed_at=reading.observed_at, complete=False, failures=reading.failures)
            return
        yield JobsChange(observed_at=reading.observed_at, jobs=reading.jobs, whole=True, cursor="1")

    def listed(self) -> list[JobReading]:
        return [self.lab.fake._job(run) for run in self.lab.fake.scheduler.runs]


@pytest.fixture
def lab(opener: Opener) -> Lab:
    return new_lab(opener, scheduler="kubernetes")


def test_a_pod_deleted_during_an_outage_is_lost(lab: Lab) -> None:
    watch = Watch(lab)
    run = lab.submit("train", cards=2)
    lab.sync()
    last = lab.clock.now
    lab.fake.out_of_reach = "no route to host"
    lab.sync(60)
    assert lab.runs()[0].open is True
    lab.fake.scheduler.runs.clear()
    lab.fake.out_of_reach = ""
    lab.sync(60)
    (row,) = lab.runs()
    assert (row.key, row.open, row.state, row.ended_at) == (run.key, False, "unknown", None)
    assert (row.seen_at, row.lost_at) == (last, lab.clock.now)
    # counted as far as it was seen, no further
    assert row.final_gpu_seconds == 2 * int((last - run.submitted_at).total_seconds())
    assert watch.asked == ["", "1", "1"]


def test_a_watch_tells_how_a_deleted_pod_ended(lab: Lab) -> None:
    watch = Watch(lab)
    run = lab.submit("train", cards=1)
    other = lab.submit("stays", cards=1)
    lab.sync()
    lab.clock.pass_(10)
    lab.fake.scheduler.end(run, JobState.COMPLETED, 0)
    ended = next(job for job in watch.listed() if job.key == run.key)
    watch.changes["1"] = JobsChange(observed_at=lab.clock.now, gone=(ended,), cursor="2")
    lab.sync()
    rows = {row.key: row for row in lab.runs()}
    assert (rows[run.key].state, rows[run.key].open, rows[run.key].lost_at) == ("completed", False, None)
    assert rows[run.key].final_gpu_seconds == 20
    assert rows[other.key].open is True  # what a change does not name is as it was
    assert ClusterConnection.objects.get().follow_cursor == "2"
    watch.changes["2"] = JobsChange(observed_at=lab.clock.now, cursor="3")
    before = Job.objects.values_list("updated_at", flat=True)
    lab.sync()
    assert list(before) == list(Job.objects.values_list("updated_at", flat=True))


def test_a_pod_that_went_while_it_ran_is_lost_at_once(lab: Lab) -> None:
    watch = Watch(lab)
    run = lab.submit("train", cards=1)
    lab.sync()
    still = next(job for job in watch.listed() if job.key == run.key)
    watch.changes["1"] = JobsChange(observed_at=lab.clock.now + timedelta(seconds=5), gone=(still,), cursor="2")
    lab.sync()
    (row,) = lab.runs()
    assert (row.open, row.state, row.lost_at) == (False, "unknown", T0 + timedelta(seconds=15))


def test_an_incomplete_change_takes_nobody_away(lab: Lab) -> None:
    watch = Watch(lab)
    lab.submit("train", cards=1)
    lab.sync()
    watch.changes["1"] = JobsChange(observed_at=lab.clock.now, complete=False, cursor="1")
    lab.sync()
    assert [row.open for row in lab.runs()] == [True]


def test_with_accounting_a_vanished_run_waits_for_its_record(opener: Opener) -> None:
    """slurmctld has forgotten it, slurmdbd does not know its end yet."""
    lab = new_lab(opener)
    run = lab.submit("train", cards=1)
    lab.sync()
    last = lab.clock.now
    lab.fake.scheduler.runs.remove(run)
    lab.sync()
    (row,) = lab.runs()
    assert (row.open, row.missing_since, row.seen_at) == (True, lab.clock.now, last)
    lab.sync(300)
    assert lab.runs()[0].open is True
    run.state, run.ended_at = JobState.COMPLETED, lab.clock.now - timedelta(seconds=200)
    lab.fake.scheduler.runs.append(run)
    lab.sync()
    (row,) = lab.runs()
    assert (row.state, row.open, row.ended_at, row.missing_since) == ("completed", False, run.ended_at, None)


def test_without_its_record_it_is_lost_after_the_grace_and_may_come_back(opener: Opener) -> None:
    lab = new_lab(opener)
    run = lab.submit("train", cards=1)
    lab.sync()
    last = lab.clock.now
    lab.fake.scheduler.runs.remove(run)
    lab.sync()
    lab.sync(601)
    (row,) = lab.runs()
    assert (row.open, row.state, row.seen_at, row.lost_at) == (False, "unknown", last, lab.clock.now)
    lab.fake.scheduler.runs.append(run)
    lab.sync()
    (row,) = lab.runs()
    assert (row.open, row.state, row.lost_at) == (True, "running", None)


def test_a_held_job_cancelled_while_nobody_looked_is_found_by_its_id(opener: Opener) -> None:
    lab = new_lab(opener)
    run = lab.submit("waits", cards=1, held=True)
    lab.sync()
    lab.clock.pass_(30)
    lab.fake.scheduler.end(run, JobState.CANCELLED)
    lab.sync()
    (row,) = lab.runs()
    assert (row.state, row.open, row.final_gpu_seconds) == ("cancelled", False, None)
