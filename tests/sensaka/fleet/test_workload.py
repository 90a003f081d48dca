"""What runs where: the same for the same moment, with days and nights, jobs over several nodes, and hoarders."""

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from sensaka.fleet.layout import Work
from sensaka.fleet.plan import SLOTS, make_plan
from sensaka.fleet.workload import Workload, daylight
from tests.sensaka.fleet.conftest import NOON

PLAN = make_plan(seed=1, nodes=64, ipmi=True)
WORK = Workload(PLAN)
HOUR = 3600


@settings(max_examples=10, deadline=None)
@given(at=st.floats(NOON - 1e7, NOON + 1e7))
def test_demands_are_a_function_of_the_moment_within_their_bounds(at: float) -> None:
    demands = WORK.demands(at)

    assert demands == Workload(PLAN).demands(at)
    assert len(demands) == len(PLAN.cards)
    for demand in demands:
        assert all(0 <= value <= 1 for value in (demand.activity, demand.memory, demand.tensor, demand.traffic))
        assert (demand.job is None) == (demand.memory == 0)


def test_serving_follows_the_day_of_its_site() -> None:
    assert daylight(NOON, "UTC") > daylight(NOON + 14 * HOUR, "UTC")
    for node in PLAN.nodes:
        if node.work is not Work.SERVING or node.mig:
            continue
        level = {}
        for hour in range(0, 24, 2):
            rows = WORK.demands(NOON + hour * HOUR)[node.number * SLOTS : node.number * SLOTS + SLOTS]
            level[hour] = sum(row.activity for row in rows)
        assert max(level.values()) > 2 * min(level.values())


def test_training_jobs_span_nodes_and_pause_for_checkpoints() -> None:
    nodes_of: dict[str, set[int]] = defaultdict(set)
    levels: dict[str, set[bool]] = defaultdict(set)
    for second in range(0, 2 * HOUR, 40):
        for place, demand in enumerate(WORK.demands(NOON + second)):
            if demand.job is not None and demand.job.kind == "training":
                nodes_of[demand.job.slurm_job_id].add(place // SLOTS)
                levels[demand.job.slurm_job_id].add(demand.activity > 0.5)

    assert max(len(nodes) for nodes in nodes_of.values()) >= 4
    assert any(found == {True, False} for found in levels.values())


def test_there_are_always_idle_hoarders_and_free_cards() -> None:
    for hour in range(0, 48, 6):
        demands = WORK.demands(NOON + hour * HOUR)
        hoarders = [row for row in demands if row.memory > 0.2 and row.activity < 0.01]
        free = [row for row in demands if row.job is None]
        busy = [row for row in demands if row.activity > 0.05]
        assert len(hoarders) >= 5
        assert len(free) >= 5
        assert len(busy) >= 100


def test_a_job_belongs_to_slurm_or_to_a_pod_as_its_cluster_does() -> None:
    for place, demand in enumerate(WORK.demands(NOON)):
        if demand.job is None:
            continue
        slurm = PLAN.nodes[place // SLOTS].cluster.endswith("train")
        assert bool(demand.job.slurm_job_id) == slurm
        assert bool(demand.job.pod_uid) == (not slurm)
