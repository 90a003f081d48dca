"""Slurm 24.11 in a chroot: the contract, the core of reading, and drains over slurmrestd of v0.0.40 to 42."""

from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from inventory.drivers.clusters.capabilities import Capability, Outcome
from inventory.drivers.clusters.readings import CardKind
from inventory.drivers.clusters.slurm import SlurmCluster
from inventory.drivers.clusters.slurm.versions import Interface, choose
from tests.contracts.cluster_contract import ClusterContract, Live
from tests.labs.slurm.configuration import H100, NODES
from tests.labs.slurm.conftest import DEADLINE, Opened, commands, job_in, rest, until
from tests.labs.slurm.lab import SlurmLab
from tests.labs.slurm.test_contract import Handle

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.xdist_group("slurm")]
NODE = "h100-006"


@pytest.fixture
def calm(newer: SlurmLab) -> SlurmLab:
    newer.calm()
    return newer


@pytest_asyncio.fixture(params=["rest", "commands"])
async def way(calm: SlurmLab, request: pytest.FixtureRequest) -> AsyncIterator[SlurmCluster]:
    """Each alone: the newer slurmrestd needs no commands beside it."""
    by_rest = request.param == "rest"
    driver = SlurmCluster(rest=rest(calm) if by_rest else None, command=None if by_rest else commands(calm))
    yield driver
    await driver.close()


class TestNewerSlurm(ClusterContract):
    @pytest_asyncio.fixture(params=["rest and commands", "commands"])
    async def live(self, calm: SlurmLab, request: pytest.FixtureRequest) -> AsyncIterator[Live]:
        both = request.param != "commands"
        driver = SlurmCluster(rest=rest(calm) if both else None, command=commands(calm), interval=0.3)
        if request.node.name.startswith(("test_tenants", "test_qualities")):
            for kind in ("account", "qos"):
                calm.succeeds("sacctmgr", "-i", "delete", kind, "contract")
        yield driver, Handle(calm)
        await driver.close()


async def test_description(calm: SlurmLab, opened: Opened) -> None:
    """P11: the newest interface that is tested is chosen; drains and placing need no commands."""
    described = await opened(rest=rest(calm)).describe(deadline=DEADLINE)
    assert (described.reached, described.interface, described.tested) == (True, "v0.0.42", True)
    assert described.version.startswith("24.11")
    assert all(described.has(one) for one in (Capability.CORDON, Capability.PLACE, Capability.HOLD))


async def test_nodes_and_queues(way: SlurmCluster) -> None:
    """P11: several types on one node, MIG types, shards and MPS."""
    reading = await way.read_nodes(deadline=DEADLINE)
    assert reading.complete, reading.failures
    nodes = {node.name: node for node in reading.nodes}
    assert set(nodes) == set(NODES)
    mixed = {(a.kind, a.type): a.total for a in nodes["mixed-001"].accelerators}
    assert (mixed[CardKind.CARD, "h100"], mixed[CardKind.MIG, "a100_3g.20gb"]) == (2, 2)
    assert sum(total for (kind, _), total in mixed.items() if kind is CardKind.SHARD) == 8
    queues = {queue.name: queue for queue in (await way.read_queues(deadline=DEADLINE)).queues}
    assert set(queues) == {"h100", "mi300x", "all"}
    assert (queues["h100"].nodes, queues["all"].time_limit) == (H100, 86_400)


async def test_running_jobs_are_bound(calm: SlurmLab, way: SlurmCluster) -> None:
    """P12: minor numbers of whole cards, MIG types, shards, and of jobs on several nodes and in several parts."""
    whole = calm.submit("-w", "h100-003", "--gres=gpu:h100:3")
    part = calm.submit("-p", "all", "-w", "mixed-002", "--gres=gpu:h100:1,gpu:a100_3g.20gb:2")
    shards = calm.submit("-p", "all", "-w", "mixed-001", "--gres=shard:3")
    wide = calm.submit("-p", "all", "-N2", "-w", "mi300x-004,h100-004", "--gres=gpu:2")
    pair = calm.submit("-p", "h100", "--gres=gpu:h100:2", ":", "-p", "mi300x", "--gres=gpu:mi300x:4", "-N1")
    array = calm.submit("--array=0-3%2", "--gres=gpu:1")
    bound = {
        whole: {("h100-003", CardKind.CARD, "h100"): (0, 1, 2)},
        part: {("mixed-002", CardKind.CARD, "h100"): (0,), ("mixed-002", CardKind.MIG, "a100_3g.20gb"): (2, 3)},
        shards: {("mixed-001", CardKind.SHARD, ""): (0,)},
        wide: {("h100-004", CardKind.CARD, "h100"): (0, 1), ("mi300x-004", CardKind.CARD, "mi300x"): (0, 1)},
    }
    for number, wanted in bound.items():
        job = await job_in(way, number, "running")
        assert {(b.node, b.kind, b.type): b.indices for b in job.bindings} == wanted
        assert job.cards_known
    for number in (pair, str(int(pair) + 1)):
        await job_in(way, number, "running")
    jobs = (await way.read_jobs(deadline=DEADLINE)).jobs
    parts = {job.group_offset: (job.cards, job.bindings[0].type) for job in jobs if job.group_id == pair}
    assert parts == {0: (2, "h100"), 1: (4, "mi300x")}
    tasks = [job for job in jobs if job.array_id == array]
    assert sorted(job.array_task for job in tasks if job.array_task is not None) == [0, 1]
    assert [job.array_tasks for job in tasks if job.array_task is None] == ["2-3%2"]


async def test_drain_and_return(calm: SlurmLab, way: SlurmCluster) -> None:
    """P11 H6: over slurmrestd alone too; somebody else's reason stays."""
    assert (await way.cordon(NODE, owner="c1", reason="fan", deadline=DEADLINE)).outcome is Outcome.DONE
    told = calm.run("scontrol", "show", "node", NODE)
    assert "DRAIN" in told
    assert "Reason=sensaka:c1 fan" in told
    assert (await way.uncordon(NODE, owner="c1", deadline=DEADLINE)).outcome is Outcome.DONE
    assert "DRAIN" not in calm.run("scontrol", "show", "node", NODE)
    calm.run("scontrol", "update", f"nodename={NODE}", "state=drain", "reason=bad PSU")
    assert (await way.uncordon(NODE, owner="c1", deadline=DEADLINE)).outcome is Outcome.HELD_BY_OTHER
    assert "bad PSU" in calm.run("scontrol", "show", "node", NODE)


@pytest.mark.parametrize("name", ["v0.0.40", "v0.0.41", "v0.0.42"])
async def test_each_interface(calm: SlurmLab, opened: Opened, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """P11, P12: each that this slurmrestd offers reads nodes, jobs and runs, and drains."""

    def only(offered: Iterable[str]) -> Interface | None:
        return choose(one for one in offered if one == name)

    monkeypatch.setattr("inventory.drivers.clusters.slurm.rest.choose", only)
    driver = opened(rest=rest(calm))
    assert (await driver.describe(deadline=DEADLINE)).interface == name
    number = calm.submit("-p", "all", "-N2", "-w", "mi300x-004,h100-004", "--gres=gpu:2")
    job = await job_in(driver, number, "running")
    assert {(b.node, b.indices) for b in job.bindings} == {("h100-004", (0, 1)), ("mi300x-004", (0, 1))}
    nodes = {node.name: node for node in (await driver.read_nodes(deadline=DEADLINE)).nodes}
    assert nodes["h100-004"].accelerators[0].used_indices == (0, 1)
    assert (await driver.cordon(NODE, owner="c1", reason="fan", deadline=DEADLINE)).outcome is Outcome.DONE
    assert "Reason=sensaka:c1 fan" in calm.run("scontrol", "show", "node", NODE)
    assert (await driver.uncordon(NODE, owner="c1", deadline=DEADLINE)).outcome is Outcome.DONE
    assert (await driver.cancel(number, deadline=DEADLINE)).ok
    await job_in(driver, number, "cancelled")
    since = datetime.now(UTC) - timedelta(minutes=5)

    async def told() -> bool:
        reading = await driver.read_runs(since=since, also=[number], deadline=DEADLINE)
        return [(run.state, run.cards) for run in reading.runs if run.job_id == number] == [("cancelled", 4)]

    await until(told, "its end in the accounting")
