"""The emulated slurmrestd keeps the contract over HTTP, and says what a real one says of tokens, versions and acts."""

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import pytest_asyncio

from inventory.drivers.clusters import SlurmTarget, open_slurm
from inventory.drivers.clusters.capabilities import Capability, ClusterDriver, JobSpec, Outcome
from inventory.drivers.clusters.readings import JobReading, JobState
from inventory.drivers.clusters.slurm import Login, RestDoor, SlurmCluster
from inventory.drivers.fake.slurmrestd import (
    Account,
    Controller,
    Layout,
    Node,
    Partition,
    Qos,
    Reservation,
    SlurmRest,
    SlurmRestServer,
    mint,
)
from inventory.drivers.fake.slurmrestd.service import VERSIONS
from inventory.observations import FailureKind
from tests.contracts.cluster_contract import ClusterContract, Live

KEY = b"0123456789abcdef0123456789abcdef"
NAMES = ("h1", "h2", "h3", "h4")


def made_controller(**layout: Any) -> Controller:
    parts = {"cluster": "north", "partitions": (Partition("train", NAMES, limit=600),)} | layout
    return Controller(Layout(**parts), [Node(name) for name in NAMES], now=int(time.time()))


def token(user: str = "root", lifespan: int = 600) -> str:
    return mint(KEY, user, lifespan=lifespan, now=time.time())


def driver_of(server: SlurmRestServer) -> SlurmCluster:
    return SlurmCluster(rest=RestDoor(server.url, Login("root", token())), interval=0.05)


class Handle:
    nodes = ("h1", "h2")
    unknown_job = "987654"
    fixed = {"script": "#!/bin/sh\n", "working_directory": "/"}

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def drain_by_hand(self, node: str, reason: str) -> str:
        self._controller.drain(node, reason)
        return reason

    def resume_by_hand(self, node: str) -> None:
        self._controller.resume_node(node)

    def finish(self, job_id: str, exit_code: int) -> None:
        self._controller.finish(int(job_id), exit_code)

    def run_again(self, job_id: str) -> None:
        self._controller.begin(int(job_id), 0)

    def unreachable(self) -> ClusterDriver:
        return SlurmCluster(rest=RestDoor("http://127.0.0.1:9", Login("root", "x")))


class TestEmulatedSlurm(ClusterContract):
    @pytest_asyncio.fixture(params=VERSIONS)
    async def live(self, request: pytest.FixtureRequest) -> AsyncIterator[Live]:
        controller = made_controller()
        async with SlurmRestServer(SlurmRest(controller, key=KEY, versions=[request.param])) as server:
            driver = driver_of(server)
            yield driver, Handle(controller)
            await driver.close()


@pytest_asyncio.fixture
async def server() -> AsyncIterator[SlurmRestServer]:
    layout = {"accounts": (Account("vision", ("ann",), cards=16),), "qos": (Qos("normal", 1), Qos("high", 100))}
    async with SlurmRestServer(SlurmRest(made_controller(**layout), key=KEY)) as running:
        yield running


@pytest_asyncio.fixture
async def driver(server: SlurmRestServer) -> AsyncIterator[SlurmCluster]:
    opened = driver_of(server)
    yield opened
    await opened.close()


def spec(**changes: Any) -> JobSpec:
    fixed = {"name": "j", "script": "#!/bin/sh\n", "mark": "sensaka:x", "working_directory": "/"}
    return JobSpec(**(fixed | changes))


async def submitted(driver: SlurmCluster, **changes: Any) -> str:
    sent = await driver.submit(spec(**changes), deadline=5)
    assert sent.outcome is Outcome.DONE, sent
    return sent.reference


async def jobs_now(driver: SlurmCluster) -> dict[str, JobReading]:
    reading = await driver.read_jobs(deadline=5)
    assert reading.complete, reading.failures
    return {job.job_id: job for job in reading.jobs}


async def test_it_says_that_it_is_simulated(driver: SlurmCluster) -> None:
    """P11: nodes carry the feature; version and interface are those of the release it stands in for."""
    described = await driver.describe(deadline=5)
    nodes = (await driver.read_nodes(deadline=5)).nodes
    assert (described.version, described.interface, described.cluster) == ("24.11.5", "v0.0.42", "north")
    assert {state.capability for state in described.capabilities if not state.available} == {
        Capability.EVICT, Capability.REQUEUE, Capability.SUSPEND, Capability.TENANTS, Capability.QOS,
    }  # fmt: skip
    assert all("simulated" in node.features and node.queues == ("train",) for node in nodes)
    assert [one.total for node in nodes for one in node.accelerators] == [8, 8, 8, 8]


async def test_tokens_end_and_belong_to_a_user(server: SlurmRestServer) -> None:
    """P11: an ended, forged or foreign token is an authentication failure; renewal mends it."""
    forged = mint(b"another key", "root", lifespan=600, now=time.time())
    for user, text in (("root", token(lifespan=-5)), ("root", forged), ("root", token("ann")), ("root", "x")):
        bad = SlurmCluster(rest=RestDoor(server.url, Login(user, text)))
        reading = await bad.read_nodes(deadline=5)
        await bad.close()
        assert [failure.kind for failure in reading.failures] == [FailureKind.AUTHENTICATION], text

    async def renew() -> str:
        return token()

    renewed = SlurmCluster(rest=RestDoor(server.url, Login("root", token(lifespan=-5), renew)))
    assert (await renewed.read_nodes(deadline=5)).complete
    assert (await renewed.describe(deadline=5)).token_expires_at is not None
    await renewed.close()


async def test_users_steer_their_own_jobs_only(server: SlurmRestServer, driver: SlurmCluster) -> None:
    """P11: root submits for a user; another user can neither cancel it nor drain a node."""
    number = await submitted(driver, user="ann", account="vision", cards=1)
    other = SlurmCluster(rest=RestDoor(server.url, Login("bob", token("bob"))))
    cancelled = await other.cancel(number, deadline=5)
    drained = await other.cordon("h1", owner="c1", reason="x", deadline=5)
    await other.close()
    assert (cancelled.kind, drained.kind) == (FailureKind.PERMISSION, FailureKind.PERMISSION)
    job = (await jobs_now(driver))[number]
    assert (job.user, job.account, job.state) == ("ann", "vision", JobState.RUNNING)


async def test_a_gang_is_bound_to_its_cards_on_each_node(driver: SlurmCluster) -> None:
    """P12: several nodes, each with its own numbers; nodes tell the same."""
    first = await submitted(driver, nodes=("h1",), cards=3)
    gang = await submitted(driver, nodes=("h1", "h2"), cards=4, card_type="h100")
    jobs = await jobs_now(driver)
    bound = {(one.node, one.indices) for one in jobs[gang].bindings}
    assert bound == {("h1", (3, 4, 5, 6)), ("h2", (0, 1, 2, 3))}
    assert (jobs[gang].cards, jobs[gang].cards_by_type, jobs[gang].cards_known) == (8, (("h100", 8),), True)
    nodes = {node.name: node.accelerators[0] for node in (await driver.read_nodes(deadline=5)).nodes}
    assert (nodes["h1"].used, nodes["h1"].used_indices) == (7, tuple(range(7)))
    assert jobs[first].nodes == ("h1",)


async def test_why_jobs_wait(server: SlurmRestServer, driver: SlurmCluster) -> None:
    """P12: resources, priority, a hold, an account's limit, nodes that are out, a reservation."""
    controller = server.service.controller
    for name in NAMES:
        await submitted(driver, nodes=(name,), cards=8, time_limit=3600)
    wanted = {
        await submitted(driver, node_count=2, cards=8, time_limit=600): "Resources",
        await submitted(driver, node_count=3, cards=8, time_limit=600): "Priority",
        await submitted(driver, cards=1, held=True): "JobHeldUser",
        await submitted(driver, user="ann", account="vision", node_count=3, cards=8): "AssocGrpGRES",
    }
    await driver.cordon("h4", owner="c1", reason="fan", deadline=5)
    wanted[await submitted(driver, nodes=("h4",), cards=1)] = "ReqNodeNotAvail, UnavailableNodes:h4"
    controller.reservations.append(
        Reservation("maint", ("h3",), controller.now + 60, controller.now + 3600, flags=("MAINT",))
    )
    wanted[await submitted(driver, nodes=("h3",), cards=1)] = "ReqNodeNotAvail, Reserved for maintenance"
    jobs = await jobs_now(driver)
    assert {number: jobs[number].reason for number in wanted} == wanted
    (reservation,) = (await driver.read_reservations(deadline=5)).reservations
    assert (reservation.nodes, reservation.maintenance) == (("h3",), True)
    assert reservation.starts_at is not None


async def test_an_array_is_told_task_by_task(server: SlurmRestServer, driver: SlurmCluster) -> None:
    """P12: each started task has a number of its own, the rest waits in one record."""
    body = {
        "script": "#!/bin/sh\n",
        "job": {"name": "sweep", "environment": ["A=1"], "current_working_directory": "/", "array": "0-5%2",
                "tres_per_node": "gres/gpu:1", "time_limit": {"set": True, "infinite": False, "number": 5}},
    }  # fmt: skip
    headers = {"X-SLURM-USER-NAME": "root", "X-SLURM-USER-TOKEN": token()}
    async with httpx.AsyncClient(headers=headers, trust_env=False) as client:
        sent = await client.post(f"{server.url}/slurm/v0.0.42/job/submit", json=body)
    number = str(sent.json()["job_id"])
    jobs = await jobs_now(driver)
    started = {job.array_task: job.job_id for job in jobs.values() if job.state is JobState.RUNNING}
    assert set(started) == {0, 1}
    assert number not in started.values()
    assert (jobs[number].array_tasks, jobs[number].reason) == ("2-5%2", "JobArrayTaskLimit")
    assert {job.array_id for job in jobs.values()} == {number}
    server.service.controller.finish(int(started[0]))
    jobs = await jobs_now(driver)
    assert {job.array_task for job in jobs.values() if job.state is JobState.RUNNING} == {1, 2}
    assert (await driver.cancel(number, deadline=5)).ok
    assert {job.state for job in (await jobs_now(driver)).values()} == {JobState.COMPLETED, JobState.CANCELLED}


async def test_a_failed_nodes_runs_end_and_wait_again(server: SlurmRestServer, driver: SlurmCluster) -> None:
    """P12: node_fail in the accounting under a key of its own; the node comes back and the job runs again."""
    controller = server.service.controller
    number = await submitted(driver, nodes=("h2",), cards=2)
    since = datetime.now(UTC) - timedelta(minutes=5)
    first = (await jobs_now(driver))[number]
    controller.set_answering("h2", False)
    server.service.clock = lambda: time.time() + 61
    again = (await jobs_now(driver))[number]
    assert (again.state, again.reason, again.restarts) == (JobState.PENDING, "BeginTime", 1)
    down = next(node for node in (await driver.read_nodes(deadline=5)).nodes if node.name == "h2")
    assert (down.load, down.responding, down.reason) == ("down", False, "Not responding")
    controller.set_answering("h2", True)
    server.service.clock = lambda: time.time() + 200
    second = (await jobs_now(driver))[number]
    assert (second.state, second.key == first.key) == (JobState.RUNNING, False)
    runs = {run.key: run for run in (await driver.read_runs(since=since, deadline=5)).runs}
    assert runs[first.key].state is JobState.NODE_FAIL
    assert runs[first.key].elapsed in (60, 61)
    assert runs[second.key].state is JobState.RUNNING
    assert [runs[key].cards for key in (first.key, second.key)] == [2, 2]


async def test_nodes_that_slurmctld_hides(server: SlurmRestServer, driver: SlurmCluster) -> None:
    """P11: slurmctld away behind a slurmrestd that answers is out of reach, not an error of ours."""
    server.service.away = True
    reading = await driver.read_jobs(deadline=5)
    assert [failure.kind for failure in reading.failures] == [FailureKind.UNREACHABLE]
    server.service.away = False
    assert (await driver.read_jobs(deadline=5)).complete


async def test_accounts_are_listed(server: SlurmRestServer) -> None:
    """P12: accounts, associations with limits, users and qualities of service as slurmdbd lists them."""
    headers = {"X-SLURM-USER-NAME": "root", "X-SLURM-USER-TOKEN": token()}
    async with httpx.AsyncClient(base_url=f"{server.url}/slurmdb/v0.0.42", headers=headers, trust_env=False) as client:
        told = {name: (await client.get(f"/{name}/")).json()[name] for name in ("accounts", "associations", "users")}
        qos = (await client.get("/qos/")).json()["qos"]
        absent = await client.get("/nothing/")
    assert [row["name"] for row in told["accounts"]] == ["vision"]
    assert [(row["account"], row["user"]) for row in told["associations"]] == [("vision", ""), ("vision", "ann")]
    assert told["associations"][0]["max"]["tres"]["total"][0]["count"] == 16
    assert [row["name"] for row in told["users"]] == ["ann"]
    assert {row["name"]: row["priority"]["number"] for row in qos} == {"normal": 1, "high": 100}
    assert absent.status_code == 404


async def test_a_target_opens_it(server: SlurmRestServer) -> None:
    """P11: as the product opens it, by its address and a token."""
    opened = open_slurm(SlurmTarget(url=server.url, user="root", token=token()))
    assert len((await opened.read_nodes(deadline=5)).nodes) == 4
    assert [queue.name for queue in (await opened.read_queues(deadline=5)).queues] == ["train"]
    await opened.close()


JOB = {"name": "x", "environment": ["A=1"], "current_working_directory": "/"}
REFUSED: list[tuple[str, str, Any, int, int]] = [
    ("POST", "job/submit", {"script": "", "job": JOB | {"partition": "none"}}, 500, 2000),
    ("POST", "job/submit", {"script": "", "job": JOB | {"tres_per_node": "gres/gpu:9"}}, 500, 2014),
    ("POST", "job/submit", {"script": "", "job": JOB | {"tres_per_node": "gres/fpga:1"}}, 500, 2014),
    ("POST", "job/submit", {"script": "", "job": JOB | {"minimum_nodes": 5}}, 500, 2014),
    ("POST", "job/submit", {"script": "", "job": JOB | {"required_nodes": ["h[1"]}}, 500, 2018),
    ("POST", "job/submit", {"script": "", "job": JOB | {"array": "7-3"}}, 500, 2081),
    ("POST", "job/submit", {"script": "", "job": {"name": "x"}}, 500, 9001),
    ("POST", "job/submit", {"script": 3}, 500, 9001),
    ("POST", "job/77", {"hold": True}, 404, 2017),
    ("POST", "job/x", {"hold": True}, 404, 2017),
    ("POST", "node/h1", {"state": ["SIDEWAYS"]}, 500, 9000),
    ("POST", "node/h9", {"state": ["DRAIN"]}, 500, 2018),
    ("GET", "node/h9", None, 500, 9000),
    ("GET", "partition/none", None, 500, 9000),
    ("GET", "job/77", None, 404, 2017),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "code"), REFUSED)
async def test_what_makes_no_sense_is_refused_with_slurms_number(
    server: SlurmRestServer, method: str, path: str, body: Any, status: int, code: int
) -> None:
    """P11: as JSON with the number of slurm_errno.h; nothing has changed after it."""
    headers = {"X-SLURM-USER-NAME": "root", "X-SLURM-USER-TOKEN": token()}
    async with httpx.AsyncClient(headers=headers, trust_env=False) as client:
        answer = await client.request(method, f"{server.url}/slurm/v0.0.42/{path}", json=body)
        wrong = await client.request("PUT", f"{server.url}/slurm/v0.0.42/jobs/")
        other = await client.get(f"{server.url}/slurm/v0.0.39/jobs/")
    assert (answer.status_code, [error["error_number"] for error in answer.json()["errors"]]) == (status, [code])
    assert (wrong.status_code, other.status_code) == (405, 404)
    controller = server.service.controller
    assert (controller.jobs, controller.acts, server.service.acts) == ({}, 0, 0)
