"""One Slurm for the whole session, and drivers for it by each of its ways in."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
import pytest_asyncio

from inventory.drivers.clusters.readings import JobReading
from inventory.drivers.clusters.slurm import CommandDoor, Login, RestDoor, SlurmCluster
from inventory.models import Cluster, ClusterConnection, Site
from inventory.services.clusters import connections
from inventory.services.clusters.opening import Access
from tests.labs.slurm import chroot
from tests.labs.slurm.lab import SlurmLab, missing

DEADLINE = 30.0  # s, for what is expected to take a fraction of it


def require(reason: str | None) -> None:
    """Skips with the reason why something can't be tried here; in CI that is a failure."""
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def lab() -> Iterator[SlurmLab]:
    """Starts it once; skipped with the reason where it can't be, which in CI is a failure."""
    require(missing())
    lab = SlurmLab()
    try:
        lab.start()
        lab.seed()
        yield lab
    finally:
        lab.stop()


@pytest.fixture(scope="session")
def newer() -> Iterator[SlurmLab]:
    """The same with Slurm 24.11; skipped with the reason where it can't be made."""
    reason = chroot.missing() or chroot.build()
    if reason is not None:
        pytest.skip(reason)
    lab = SlurmLab(newer=True)
    try:
        lab.start()
        lab.seed()
        yield lab
    finally:
        lab.stop()


@pytest.fixture
def quiet(lab: SlurmLab) -> Iterator[SlurmLab]:
    """The lab with nothing running, and every node in service, before and after."""
    lab.calm()
    yield lab
    lab.calm()


@pytest.fixture
def connected(quiet: SlurmLab, db: None) -> Callable[[Access], ClusterConnection]:
    """Makes a cluster that is reached in the given way."""

    def connect(way: Access) -> ClusterConnection:
        cluster = Cluster.objects.create(site=Site.objects.create(name="Basel"), name="lab")
        return connections.connect(cluster=cluster, access=way, actor=None)

    return connect


def commands(lab: SlurmLab) -> CommandDoor:
    environment = {"SLURM_CONF": lab.environment["SLURM_CONF"], "PATH": lab.environment["PATH"]}
    return CommandDoor(environment=environment, prefix=lab.prefix)


def rest(lab: SlurmLab) -> RestDoor:
    return RestDoor(lab.rest_url, Login("root", lab.token()))


@pytest_asyncio.fixture
async def cluster(lab: SlurmLab) -> AsyncIterator[SlurmCluster]:
    """By slurmrestd, with the commands where that can't."""
    driver = SlurmCluster(rest=rest(lab), command=commands(lab))
    yield driver
    await driver.close()


@pytest_asyncio.fixture
async def opened() -> AsyncIterator[Callable[..., SlurmCluster]]:
    """Makes drivers of any kind and closes them at the end."""
    made: list[SlurmCluster] = []

    def make(**doors: RestDoor | CommandDoor) -> SlurmCluster:
        made.append(SlurmCluster(**doors))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for driver in made:
        await driver.close()


@pytest_asyncio.fixture(params=["rest and commands", "commands"])
async def either(lab: SlurmLab, request: pytest.FixtureRequest) -> AsyncIterator[SlurmCluster]:
    """Both ways in turn: what is read must not depend on it."""
    both = request.param != "commands"
    driver = SlurmCluster(rest=rest(lab) if both else None, command=commands(lab))
    yield driver
    await driver.close()


Opened = Callable[..., SlurmCluster]


async def until(check: Callable[[], Awaitable[bool]], what: str, seconds: float = 30) -> None:
    """Polls until it is so, or fails with what was waited for."""
    end = time.monotonic() + seconds
    while not await check():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        await asyncio.sleep(0.1)


async def job_now(cluster: SlurmCluster, job_id: str) -> JobReading:
    """A job as it is now; it must be known."""
    reading = await cluster.read_jobs(deadline=DEADLINE)
    assert reading.complete, reading.failures
    return next(job for job in reading.jobs if job.job_id == job_id)


async def job_in(cluster: SlurmCluster, job_id: str, *states: str, seconds: float = 30) -> JobReading:
    """Waits until a job is in one of the states."""
    end = time.monotonic() + seconds
    while (job := await job_now(cluster, job_id)).state not in states:
        assert time.monotonic() < end, f"job {job_id} is {job.state} ({job.reason}), not {states}"
        await asyncio.sleep(0.1)
    return job
