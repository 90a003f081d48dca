"""The fleet's Kubernetes clusters: the product's driver finds the pods that agents report, and what it does counts."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from inventory.drivers.clusters import KubernetesTarget, open_kubernetes
from inventory.drivers.clusters.capabilities import ClusterDriver, JobSpec, Outcome
from inventory.drivers.clusters.readings import CardKind, JobReading, JobState
from inventory.observations import FailureKind
from sensaka.fleet.acts import perform
from sensaka.fleet.doors.bmcs import free_port
from sensaka.fleet.doors.schedulers import API_ADDRESS, KubernetesDoors
from sensaka.fleet.kubernetes import batch
from sensaka.fleet.readings import node_reading
from sensaka.fleet.world import StateError, World

pytestmark = pytest.mark.xdist_group("fleet")

CLUSTER = "sin-serve"
PATIENCE = 20.0


def made(world: World, folder: Path) -> KubernetesDoors:
    return KubernetesDoors(
        world, folder, ports={CLUSTER: free_port([API_ADDRESS], 16_443)}, tokens={CLUSTER: "token-of-this-test"}
    )


@pytest.fixture
def doors(world: World, tmp_path: Path) -> Iterator[KubernetesDoors]:
    found = made(world, tmp_path)
    found.start()
    yield found
    found.close()


@pytest_asyncio.fixture
async def driver(doors: KubernetesDoors) -> AsyncIterator[ClusterDriver]:
    opened = open_kubernetes(KubernetesTarget(kubeconfig=doors.logins()[CLUSTER].kubeconfig))
    yield opened
    await opened.close()


async def until(check: Callable[[], bool], what: str, doors: KubernetesDoors, world: World) -> None:
    end = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < end, f"{what} did not come about"
        await asyncio.sleep(0.1)
        doors.sync()
        world.advance(world.at + 0.1)


async def running(driver: ClusterDriver) -> dict[str, JobReading]:
    reading = await driver.read_jobs(deadline=10)
    assert reading.complete, reading.failures
    return {job.key: job for job in reading.jobs if job.state is JobState.RUNNING}


async def test_pods_are_those_that_agents_report_on_the_same_devices(world: World, driver: ClusterDriver) -> None:
    """I7: by UID and name; whole cards and MIG instances by their UUIDs."""
    nodes = {node.name: node for node in (await driver.read_nodes(deadline=10)).nodes}
    assert set(nodes) == {node.name for node in world.plan.nodes if node.cluster == CLUSTER}
    assert all(node.responding for node in nodes.values())
    bound: dict[str, str] = {}
    jobs = await running(driver)
    for job in jobs.values():
        for binding in job.bindings:
            bound |= dict.fromkeys(binding.uuids, binding.node)
    told: dict[str, str] = {}
    pods: set[str] = set()
    for node in world.plan.nodes:
        if node.cluster == CLUSTER:
            for process in node_reading(world, node).processes:
                told[process.slice_uuid or process.card_uuid] = node.name
                pods.add(process.pod)
    assert bound == told
    assert len(told) > 60
    assert {kind for job in jobs.values() for kind in (one.kind for one in job.bindings)} == {
        CardKind.CARD, CardKind.MIG,
    }  # fmt: skip
    assert len(jobs) == len(pods)


async def test_an_evicted_pod_leaves_its_card_and_another_takes_its_place(
    world: World, doors: KubernetesDoors, driver: ClusterDriver
) -> None:
    """H6: cordon and drain: within the budget, nothing comes back to the node, its cards fall idle."""
    name = next(node.name for node in world.plan.nodes if node.cluster == CLUSTER and not node.mig)
    node = world.plan.by_name[name]
    before = len(node_reading(world, node).processes)
    assert (await driver.cordon(name, owner="c1", reason="x", deadline=10)).ok
    await driver.evict(name, owner="c1", deadline=3)

    def fewer() -> bool:
        return len(node_reading(world, node).processes) < before

    await until(fewer, "fewer processes", doors, world)
    assert (await driver.uncordon(name, owner="c1", deadline=10)).ok


async def test_a_job_of_the_product_makes_a_card_work(
    world: World, doors: KubernetesDoors, driver: ClusterDriver
) -> None:
    """P11: it lands on a free card; the node's agent reports its pod."""
    spec = JobSpec(
        name="ours", script="sleep 600", mark="sensaka-r1", working_directory="", image="registry.example/x:1",
        account="serving", cards=1, time_limit=3600,
    )  # fmt: skip
    sent = await driver.submit(spec, deadline=10)
    assert sent.outcome is Outcome.DONE, sent

    def seen() -> bool:
        nodes = [node for node in world.plan.nodes if node.cluster == CLUSTER]
        found = [process.pod for node in nodes for process in node_reading(world, node).processes]
        return any(pod.startswith("ours") for pod in found)

    await until(seen, "its pod at an agent", doors, world)


async def test_people_start_jobs_that_end(
    world: World, doors: KubernetesDoors, driver: ClusterDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I7: Jobs come by the clock, run on free cards, end, and are forgotten a while later."""
    seen: dict[str, JobReading] = {}

    async def look(seconds: float) -> None:
        world.advance(world.at + seconds)
        doors.sync()
        await asyncio.sleep(1.2)  # the stand-in's controllers look twice a second
        reading = await driver.read_jobs(deadline=10)
        assert reading.complete, reading.failures
        seen.update({job.job_id: job for job in reading.jobs if job.account == "batch"})

    for _ in range(6):
        await look(121)
    assert seen
    started = set(seen)
    monkeypatch.setattr(batch, "_KEPT", 10_000)  # here the world's clock is ahead of that of the stand-in
    world.advance(time.time() + 4000)
    for _ in range(3):
        await look(1)
    assert any(job.state in (JobState.COMPLETED, JobState.FAILED) for job in seen.values()), seen
    monkeypatch.setattr(batch, "_KEPT", 900)
    seen.clear()
    await look(1)
    await look(1)
    assert not started & set(seen)


async def test_a_dead_node_is_not_ready_and_keeps_its_pods(
    world: World, doors: KubernetesDoors, driver: ClusterDriver
) -> None:
    name = next(node.name for node in world.plan.nodes if node.cluster == CLUSTER)
    before = set(await running(driver))
    perform(world, {"do": "os_down", "node": name})
    world.advance(world.at + 1)
    doors.sync()
    nodes = {node.name: node for node in (await driver.read_nodes(deadline=10)).nodes}
    assert not nodes[name].responding
    assert set(await running(driver)) == before


async def test_a_new_mig_layout_is_new_devices(world: World, doors: KubernetesDoors, driver: ClusterDriver) -> None:
    node = next(node for node in world.plan.nodes if node.cluster == CLUSTER and node.mig)
    perform(world, {"do": "reconfigure_mig", "node": node.name, "slot": 0, "profiles": "off"})
    world.advance(world.at + 1)
    doors.sync()
    seen = next(one for one in (await driver.read_nodes(deadline=10)).nodes if one.name == node.name)
    assert [one.total for one in seen.accelerators if one.kind is CardKind.CARD] == [1]


async def test_a_restart_keeps_pods_and_cordons(
    world: World, doors: KubernetesDoors, driver: ClusterDriver, tmp_path: Path
) -> None:
    """The same UIDs, the same mark; who watched is told to read anew."""
    name = next(node.name for node in world.plan.nodes if node.cluster == CLUSTER)
    assert (await driver.cordon(name, owner="c1", reason="x", deadline=10)).ok
    before = set(await running(driver))
    await driver.close()
    doors.save()
    doors.close()
    again = made(world, tmp_path)
    again.start()
    opened = open_kubernetes(KubernetesTarget(kubeconfig=again.logins()[CLUSTER].kubeconfig))
    try:
        assert set(await running(opened)) == before
        nodes = {node.name: node for node in (await opened.read_nodes(deadline=10)).nodes}
        assert (nodes[name].cordoned, nodes[name].owner) == (True, "c1")
    finally:
        await opened.close()
        again.close()


async def test_a_stopped_api_server_is_out_of_reach(
    world: World, doors: KubernetesDoors, driver: ClusterDriver
) -> None:
    perform(world, {"do": "stop_scheduler", "cluster": CLUSTER})
    await asyncio.to_thread(doors.apply)
    assert [one.kind for one in (await driver.read_nodes(deadline=5)).failures] == [FailureKind.UNREACHABLE]
    perform(world, {"do": "start_scheduler", "cluster": CLUSTER})
    await asyncio.to_thread(doors.apply)
    assert (await driver.read_nodes(deadline=10)).complete


def test_a_damaged_file_is_named(world: World, tmp_path: Path) -> None:
    (tmp_path / f"kubernetes-{CLUSTER}.json").write_text('{"objects": {}}')
    with pytest.raises(StateError, match=r"kubernetes-sin-serve\.json can't be read"):
        made(world, tmp_path)
