"""What pods do: the same for the same moment, with days and nights, and hoarders."""

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


def test_there_are_always_idle_hoarders_and_free_cards() -> None:
    for hour in range(0, 48, 6):
        demands = WORK.demands(NOON + hour * HOUR)
        hoarders = [row for row in demands if row.memory > 0.2 and row.activity < 0.01]
        free = [row for row in demands if row.job is None]
        busy = [row for row in demands if row.activity > 0.05]
        assert len(hoarders) >= 5
        assert len(free) >= 5
        assert len(busy) >= 80


def test_pods_are_on_nodes_of_kubernetes_only() -> None:
    for place, demand in enumerate(WORK.demands(NOON)):
        slurm = PLAN.nodes[place // SLOTS].cluster in PLAN.slurm_clusters
        assert demand.job is None or (not slurm and demand.job.pod_uid)
