"""500 nodes and 5,000 jobs: read right, and (in the soak) within 2 s of CPU."""

import resource
import time

import httpx
import pytest

from inventory.drivers.clusters.readings import JobState, NodeLoad
from inventory.drivers.clusters.slurm import Login, RestDoor, SlurmCluster
from tests.contracts.clusters import generated

FORMS = [("v0.0.38", False), ("v0.0.42", True)]


def big_cluster(version: str, new: bool) -> tuple[SlurmCluster, int]:
    """A driver for the big cluster, and how many bytes its lists are."""
    bodies = {"nodes": generated.nodes_answer(new), "jobs": generated.jobs_answer(new)}

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/openapi/v3":
            return httpx.Response(200, json={"paths": {f"/slurm/{version}/nodes": {}}})
        return httpx.Response(200, content=bodies[request.url.path.rpartition("/")[2]])

    door = RestDoor("http://big", Login("root", "t"), transport=httpx.MockTransport(answer))
    return SlurmCluster(rest=door), sum(len(body) for body in bodies.values())


@pytest.mark.parametrize(("version", "new"), FORMS)
async def test_every_card_of_a_big_cluster_is_bound_once(version: str, new: bool) -> None:
    """P12: 2,000 running jobs hold all 4,000 cards, each held by exactly one."""
    driver, _ = big_cluster(version, new)
    nodes, jobs = await driver.read_nodes(deadline=60), await driver.read_jobs(deadline=60)
    await driver.close()
    assert (len(nodes.nodes), len(jobs.jobs)) == (generated.NODES, generated.JOBS)
    assert nodes.complete
    assert jobs.complete
    held = [(b.node, index) for job in jobs.jobs for b in job.bindings for index in b.indices]
    assert len(held) == len(set(held)) == generated.NODES * generated.CARDS
    for job in jobs.jobs:
        place = generated.held_by(int(job.job_id) - 1)
        assert (job.state is JobState.RUNNING) == (place is not None)
        if place is not None:
            assert [(b.node, b.indices) for b in job.bindings] == [(place[0], (place[1], place[1] + 1))]
            assert job.cards_known
    assert sum(node.cordoned for node in nodes.nodes) == 10
    assert all(node.load is NodeLoad.ALLOCATED for node in nodes.nodes)
    assert len({job.key for job in jobs.jobs}) == generated.JOBS


@pytest.mark.soak
@pytest.mark.parametrize(("version", "new"), FORMS)
async def test_one_sync_of_a_big_cluster_is_cheap(version: str, new: bool) -> None:
    """Issue "Clusters and jobs": one sync of 500 nodes and 5,000 jobs takes under 2 s of CPU."""
    driver, size = big_cluster(version, new)
    spent = []
    for _ in range(3):
        start = time.process_time()
        nodes, jobs = await driver.read_nodes(deadline=60), await driver.read_jobs(deadline=60)
        spent.append(time.process_time() - start)
        assert len(nodes.nodes) + len(jobs.jobs) == generated.NODES + generated.JOBS
    await driver.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{version}: {size / 1e6:.1f} MB, CPU {', '.join(f'{one:.2f}' for one in spent)} s, peak {peak:.0f} MiB")
    assert min(spent) < 2
