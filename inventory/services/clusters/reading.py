"""One visit to a scheduler: everything that a sync stores, read within one deadline. No database here."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from inventory.drivers.clusters.capabilities import Capability, ClusterDescription, ClusterDriver
from inventory.drivers.clusters.readings import (
    JobReading,
    NodesReading,
    QueuesReading,
    ReservationsReading,
    RunsReading,
)
from inventory.observations import FailureKind, ReadFailure
from inventory.services.clusters import opening
from inventory.services.clusters.opening import Access
from sensaka.kernel.errors import InvalidInput

DEADLINE = 60.0  # s for a visit; a call has less
_CALL = 25.0
_FOLLOWED = 3.0  # s that a watch is listened to in each visit: what happened since the last one comes at once
_CLOSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class SyncJob:
    """One cluster to be read.

    `watches`: its kind of scheduler tells changes by itself; `follows` and `accounting`: what the last
    description said of it. `open_runs` are the runs that we take for unfinished: key and id.
    """

    id: UUID
    access: Access
    describe: bool
    watches: bool
    follows: bool
    accounting: bool
    cursor: str
    since: datetime
    open_runs: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class SeenJobs:
    """The jobs of a visit. Where `whole`, what is not among them is gone; `gone` were told as such."""

    observed_at: datetime
    complete: bool = True
    whole: bool = True
    jobs: dict[str, JobReading] = field(default_factory=dict)
    gone: dict[str, JobReading] = field(default_factory=dict)
    cursor: str = ""
    failures: tuple[ReadFailure, ...] = ()


@dataclass(slots=True)
class ClusterReading:
    """What a visit gave. A part is None when it was not asked for."""

    elapsed: float = 0.0
    description: ClusterDescription | None = None
    nodes: NodesReading | None = None
    queues: QueuesReading | None = None
    reservations: ReservationsReading | None = None
    jobs: SeenJobs | None = None
    runs: RunsReading | None = None
    broken: ReadFailure | None = None

    @property
    def failures(self) -> tuple[ReadFailure, ...]:
        """Everything that could not be read."""
        parts = (self.description, self.nodes, self.queues, self.reservations, self.jobs, self.runs)
        found = [failure for part in parts if part is not None for failure in part.failures]
        return tuple(dict.fromkeys([self.broken, *found] if self.broken else found))

    @property
    def lost(self) -> ReadFailure | None:
        """Why the visit gave nothing at all; None when it gave something."""
        if self.broken is not None:
            return self.broken
        nothing = all(
            part is not None and not part.complete and not rows
            for part, rows in ((self.nodes, self.nodes and self.nodes.nodes), (self.jobs, self.jobs and self.jobs.jobs))
        )
        reached = self.description is None or self.description.reached
        if reached and not nothing:
            return None
        return next(iter(self.failures), ReadFailure(what="scheduler", kind=FailureKind.UNKNOWN))


async def read_cluster(job: SyncJob) -> ClusterReading:
    """A whole visit. Never raises for what the scheduler does."""
    loop = asyncio.get_running_loop()
    start, reading = loop.time(), ClusterReading()
    try:
        driver = opening.open_driver(job.access)
    except InvalidInput as error:
        reading.broken = ReadFailure(what="settings", kind=FailureKind.NOT_SUPPORTED, detail=error.message)
        return reading
    try:
        await _read(driver, job, reading)
    finally:
        # What was read must not be lost because the farewell takes long.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await driver.close()
    reading.elapsed = loop.time() - start
    return reading


async def _read(driver: ClusterDriver, job: SyncJob, reading: ClusterReading) -> None:
    follows, accounting = job.watches and job.follows, job.accounting
    if job.describe:
        reading.description = await driver.describe(deadline=_CALL)
        if not reading.description.reached:
            return
        follows = job.watches and reading.description.has(Capability.FOLLOW)
        accounting = reading.description.has(Capability.RUNS)
    reading.nodes, reading.queues, reading.reservations, jobs = await asyncio.gather(
        driver.read_nodes(deadline=_CALL),
        driver.read_queues(deadline=_CALL),
        driver.read_reservations(deadline=_CALL),
        _follow(driver, job.cursor) if follows else _jobs(driver),
    )
    reading.jobs = jobs
    if accounting and jobs.complete:
        also = {job_id for key, job_id in job.open_runs.items() if key not in jobs.jobs}
        reading.runs = await driver.read_runs(since=job.since, also=sorted(also), deadline=_CALL)


async def _jobs(driver: ClusterDriver) -> SeenJobs:
    reading = await driver.read_jobs(deadline=_CALL)
    jobs = {job.key: job for job in reading.jobs}
    return SeenJobs(reading.observed_at, reading.complete, reading.complete, jobs, failures=reading.failures)


async def _follow(driver: ClusterDriver, cursor: str) -> SeenJobs:
    """What changed since the cursor, folded into one; a whole list where the cursor is too old."""
    seen: SeenJobs | None = None
    async for change in driver.follow_jobs(cursor=cursor, deadline=_FOLLOWED):
        if seen is None or change.whole:
            seen = SeenJobs(change.observed_at, whole=change.whole, cursor=cursor)
        seen.complete = change.complete
        seen.failures = () if change.complete else change.failures
        seen.observed_at = change.observed_at
        seen.cursor = change.cursor or seen.cursor
        for job in change.jobs:
            seen.jobs[job.key] = job
            seen.gone.pop(job.key, None)
        for job in change.gone:
            seen.gone[job.key] = job
            seen.jobs.pop(job.key, None)
    if seen is None:
        nothing = SeenJobs(datetime.now(UTC).replace(microsecond=0), whole=False, cursor=cursor)
        return nothing if cursor else await _jobs(driver)
    return seen
