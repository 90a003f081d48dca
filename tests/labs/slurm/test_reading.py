"""What a real Slurm runs is seen on the right cards, by slurmrestd and by the commands alike."""

from datetime import UTC, datetime, timedelta

import pytest

from inventory.drivers.clusters.capabilities import Capability
from inventory.drivers.clusters.readings import CardKind, NodeLoad
from inventory.drivers.clusters.slurm import SlurmCluster
from tests.labs.slurm.configuration import H100, NODES
from tests.labs.slurm.conftest import DEADLINE, Opened, commands, job_in, rest, until
from tests.labs.slurm.lab import SlurmLab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("slurm")]


async def test_description_names_version_and_ways(lab: SlurmLab, opened: Opened) -> None:
    """P11: an operator sees which Slurm answers, how, and what can't be done with it."""
    by_rest = opened(rest=rest(lab))
    both = opened(rest=rest(lab), command=commands(lab))
    described, whole = await by_rest.describe(deadline=DEADLINE), await both.describe(deadline=DEADLINE)
    assert (described.reached, described.interface, described.tested) == (True, "v0.0.38", True)
    assert described.version.startswith("22.05")
    assert described.token_expires_at is not None
    assert not described.has(Capability.CORDON)
    assert described.has(Capability.CANCEL)
    missing = {state.capability for state in whole.capabilities if not state.available}
    assert missing == {Capability.EVICT}


async def test_nodes_have_all_their_accelerators(quiet: SlurmLab, either: SlurmCluster) -> None:
    """P11: several types on one node, MIG types, shards and MPS."""
    reading = await either.read_nodes(deadline=DEADLINE)
    nodes = {node.name: node for node in reading.nodes}
    assert reading.complete
    assert set(nodes) == set(NODES)
    assert all(node.load is NodeLoad.IDLE and node.responding and not node.cordoned for node in nodes.values())
    assert [(a.kind, a.type, a.total, a.used) for a in nodes["h100-001"].accelerators] == [
        (CardKind.CARD, "h100", 8, 0)
    ]
    mixed = {(a.kind, a.type): a.total for a in nodes["mixed-001"].accelerators}
    assert mixed[CardKind.CARD, "h100"] == 2
    assert mixed[CardKind.MIG, "a100_3g.20gb"] == 2
    assert sum(total for (kind, _), total in mixed.items() if kind is CardKind.SHARD) == 8
    assert any(a.kind is CardKind.MPS and a.total == 200 for a in nodes["mixed-002"].accelerators)
    assert nodes["h100-001"].memory == 2_000_000 * 1024**2


async def test_partitions_and_reservations(quiet: SlurmLab, either: SlurmCluster) -> None:
    """P11: queues with their nodes and limits; a maintenance reservation is one."""
    start = int(datetime.now(UTC).timestamp()) + 3600
    quiet.run(
        "scontrol", "create", "reservation", "reservationname=repair", f"starttime=uts{start}", "duration=30",
        "nodes=mi300x-[003-004]", "users=root", "flags=maint",
    )  # fmt: skip
    queues = await either.read_queues(deadline=DEADLINE)
    reservations = await either.read_reservations(deadline=DEADLINE)
    quiet.run("scontrol", "delete", "reservationname=repair")
    found = {queue.name: queue for queue in queues.queues}
    assert set(found) == {"h100", "mi300x", "all"}
    assert found["h100"].nodes == H100
    assert (found["h100"].default, found["all"].default) == (True, False)
    assert found["all"].time_limit == 86_400
    assert [entry.name for entry in reservations.reservations] == ["repair"]
    repair = reservations.reservations[0]
    assert (repair.nodes, repair.maintenance) == (("mi300x-003", "mi300x-004"), True)
    assert repair.starts_at == datetime.fromtimestamp(start, UTC)
    assert (await either.read_reservations(deadline=DEADLINE)).reservations == ()


BOUND = [
    ("whole cards", ["-w", "h100-003", "--gres=gpu:h100:3"], {("h100-003", CardKind.CARD, "h100"): (0, 1, 2)}, 3, 0),
    ("MIG type", ["-w", "mixed-001", "--gres=gpu:a100_3g.20gb:1"],
     {("mixed-001", CardKind.MIG, "a100_3g.20gb"): (2,)}, 1, 0),
    ("shards", ["-w", "mixed-001", "--gres=shard:3"], {("mixed-001", CardKind.SHARD, ""): (0,)}, 0, 3),
    ("MPS", ["-w", "mixed-002", "--gres=mps:50"], {("mixed-002", CardKind.MPS, ""): (0,)}, 0, 0),
    ("two types on one node", ["-w", "mixed-002", "--gres=gpu:h100:1,gpu:a100_3g.20gb:2"],
     {("mixed-002", CardKind.CARD, "h100"): (0,), ("mixed-002", CardKind.MIG, "a100_3g.20gb"): (2, 3)}, 3, 0),
    ("two nodes of two kinds", ["-N2", "-w", "mi300x-004,h100-004", "--gres=gpu:2"],
     {("h100-004", CardKind.CARD, "h100"): (0, 1), ("mi300x-004", CardKind.CARD, "mi300x"): (0, 1)}, 4, 0),
    ("no cards", ["-w", "h100-004"], {}, 0, 0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "bound", "cards", "shares"), [case[1:] for case in BOUND], ids=[c[0] for c in BOUND]
)
async def test_running_jobs_are_bound(
    quiet: SlurmLab,
    cluster: SlurmCluster,
    options: list[str],
    bound: dict[tuple[str, CardKind, str], tuple[int, ...]],
    cards: int,
    shares: int,
) -> None:
    """P12: minor numbers on each node, for whole cards, MIG types, shards and MPS."""
    number = quiet.submit("-p", "all", *options)
    job = await job_in(cluster, number, "running")
    assert {(b.node, b.kind, b.type): b.indices for b in job.bindings} == bound
    assert (job.cards, job.shares) == (cards, shares)
    assert job.cards_known
    assert job.key == f"{number}-{int(job.submitted_at.timestamp())}" if job.submitted_at else False


async def test_unequal_shares_of_a_job_on_two_nodes(quiet: SlurmLab, either: SlurmCluster) -> None:
    """P12: --gpus splits as it likes; the job's own script tells the same cards."""
    script = "srun -l sh -c 'echo $SLURMD_NODENAME $SLURM_STEP_GPUS >> told'; sleep 60"
    number = quiet.submit("-p", "h100", "-N2", "-n3", "--gpus=h100:5", script=script)
    job = await job_in(either, number, "running")
    assert sum(binding.count for binding in job.bindings) == 5
    assert len({binding.node for binding in job.bindings}) == 2
    assert job.cards_known
    nodes = {node.name: node for node in (await either.read_nodes(deadline=DEADLINE)).nodes}
    for binding in job.bindings:
        assert nodes[binding.node].accelerators[0].used_indices == binding.indices


async def test_arrays_and_heterogeneous_jobs(quiet: SlurmLab, either: SlurmCluster) -> None:
    """P12: tasks of an array and parts of a heterogeneous job are jobs of their own that know their group."""
    array = quiet.submit("--array=0-3%2", "--gres=gpu:1")
    pair = quiet.submit("-p", "h100", "--gres=gpu:h100:2", ":", "-p", "mi300x", "--gres=gpu:mi300x:4", "-N1")
    await job_in(either, pair, "running")
    await job_in(either, str(int(pair) + 1), "running")
    jobs = (await either.read_jobs(deadline=DEADLINE)).jobs
    tasks = [job for job in jobs if job.array_id == array and job.ended_at is None]
    assert sorted(job.array_task for job in tasks if job.array_task is not None) == [0, 1]
    assert [job.array_tasks for job in tasks if job.array_task is None] == ["2-3%2"]
    assert len({index for job in tasks for b in job.bindings for index in b.indices}) == 2
    parts = {job.group_offset: job for job in jobs if job.group_id == pair}
    assert {offset: (job.cards, job.bindings[0].type) for offset, job in parts.items()} == {
        0: (2, "h100"),
        1: (4, "mi300x"),
    }
    since = datetime.now(UTC) - timedelta(minutes=5)

    async def accounted() -> bool:
        runs = (await either.read_runs(since=since, deadline=DEADLINE)).runs
        offsets = {run.group_offset for run in runs if run.group_id == pair}
        return offsets == {0, 1} and {run.array_task for run in runs if run.array_id == array} >= {0, 1}

    await until(accounted, "the accounting knows array and group")
