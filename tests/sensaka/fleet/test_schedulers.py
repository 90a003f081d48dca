"""The schedulers' doors: the product's own driver reads them, steers them, finds their ports closed when stopped."""

import base64
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from inventory.drivers.clusters.capabilities import JobSpec, Outcome
from inventory.drivers.clusters.readings import JobState
from inventory.drivers.clusters.slurm import Login, RestDoor, SlurmCluster
from inventory.drivers.fake.slurmrestd import mint
from inventory.observations import FailureKind
from sensaka.fleet.access import SchedulerLogin
from sensaka.fleet.acts import perform
from sensaka.fleet.doors.bmcs import free_port
from sensaka.fleet.doors.schedulers import SlurmDoors, addresses
from sensaka.fleet.plan import make_plan
from sensaka.fleet.world import World
from tests.sensaka.fleet.conftest import NOON

pytestmark = pytest.mark.xdist_group("fleet")


def opened(login: SchedulerLogin) -> SlurmCluster:
    token = mint(base64.b64decode(login.jwt_key), login.username, lifespan=600, now=time.time())
    return SlurmCluster(rest=RestDoor(login.address, Login(login.username, token)))


@pytest_asyncio.fixture
async def doors(world: World) -> AsyncIterator[SlurmDoors]:
    places = addresses(world.plan)
    made = SlurmDoors(world, port=free_port(places.values(), 16_820), keys={name: name * 8 for name in places})
    await made.apply()
    yield made
    await made.close()


@pytest_asyncio.fixture
async def driver(doors: SlurmDoors) -> AsyncIterator[SlurmCluster]:
    found = opened(doors.logins()["fra-train"])
    yield found
    await found.close()


def test_each_cluster_has_an_address_of_its_own_that_never_moves() -> None:
    plan = make_plan(seed=1, nodes=64, ipmi=True)
    assert addresses(plan) == {"fra-train": "127.76.1.1", "sin-train": "127.76.2.3"}


async def test_the_driver_reads_every_node_job_and_queue(world: World, driver: SlurmCluster) -> None:
    """I7: what the driver reads is what the fleet's world has."""
    controller = world.slurm["fra-train"].controller
    described = await driver.describe(deadline=5)
    assert (described.cluster, described.reached, described.tested) == ("fra-train", True, True)
    nodes = (await driver.read_nodes(deadline=5)).nodes
    assert {node.name for node in nodes} == {node.name for node in world.plan.nodes if node.cluster == "fra-train"}
    assert all("simulated" in node.features for node in nodes)
    assert {queue.name for queue in (await driver.read_queues(deadline=5)).queues} == {"h100", "interactive", "mi300x"}
    reading = await driver.read_jobs(deadline=5)
    running = {job.job_id: job for job in reading.jobs if job.state is JobState.RUNNING}
    assert set(running) == {str(job.id) for job in controller.running()}
    assert all(job.cards_known for job in running.values())
    assert {len(job.nodes) for job in running.values()} >= {1, 2}
    assert any(job.reason == "Resources" for job in reading.jobs if job.state is JobState.PENDING)


async def test_what_the_product_does_there_shows_in_the_world(
    world: World, doors: SlurmDoors, driver: SlurmCluster
) -> None:
    """H6 P11: a drain, a job of its own with its mark, a cancel; each is counted, to be kept at once."""
    assert (await driver.cordon("fra-h100-06", owner="c1", reason="x", deadline=5)).ok
    assert world.slurm["fra-train"].controller.nodes["fra-h100-06"].reason == "sensaka:c1 x"
    sent = await driver.submit(
        JobSpec(name="ours", script="#!/bin/sh\n", mark="sensaka:r1", working_directory="/", queue="interactive",
                cards=1, time_limit=3600, account="tenant-7", user="zoe"),
        deadline=5,
    )  # fmt: skip
    assert sent.outcome is Outcome.DONE, sent
    world.advance(NOON + 1)
    job = world.slurm["fra-train"].controller.jobs[int(sent.reference)]
    assert (job.state, job.wish.comment, job.wish.user) == ("RUNNING", "sensaka:r1", "zoe")
    assert (await driver.cancel(sent.reference, deadline=5)).ok
    assert (job.state, job.ended_by) == ("CANCELLED", "root")
    assert doors.acts == 3


async def test_a_stopped_scheduler_is_out_of_reach_until_it_is_started(
    world: World, doors: SlurmDoors, driver: SlurmCluster
) -> None:
    perform(world, {"do": "stop_scheduler", "cluster": "fra-train"})
    await doors.apply()
    assert [one.kind for one in (await driver.read_nodes(deadline=5)).failures] == [FailureKind.UNREACHABLE]
    other = opened(doors.logins()["sin-train"])
    assert (await other.read_nodes(deadline=5)).complete
    await other.close()
    perform(world, {"do": "start_scheduler", "cluster": "fra-train"})
    await doors.apply()
    assert (await driver.read_nodes(deadline=5)).complete
