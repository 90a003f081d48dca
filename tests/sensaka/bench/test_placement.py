"""`bench placement` on a small trace: what it reads, how it counts, and that FGD's fragment is the published one."""

import random
from pathlib import Path

import numpy as np
import pytest

from sensaka.bench import placement
from sensaka.bench.openb import FILL, Host, Task, filling, hosts, tasks, traces
from sensaka.bench.placement_policies import FirstFit, Fragmentation, Learned, Nodes
from sensaka.bench.report import Options

ANY: frozenset[str] = frozenset()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    nodes = [
        f"node-{number},64000,262144,{8 if number % 2 else 2},{'G2' if number % 2 else 'T4'}" for number in range(8)
    ]
    (tmp_path / "openb_node_list_gpu_node.csv").write_text("\n".join(["sn,cpu_milli,memory_mib,gpu,model", *nodes]))
    chance = random.Random(1)
    rows = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"]
    for number in range(60):
        cards, share = chance.choice([(1, 1000), (1, 470), (1, 810), (2, 1000), (8, 1000), (0, 0)])
        rows.append(
            f"pod-{number},{chance.choice([2000, 8000])},1024,{cards},{share},{'T4' if number % 9 == 0 else ''}"
        )
    (tmp_path / "openb_pod_list_small.csv").write_text("\n".join(rows))
    return tmp_path


def test_traces_are_read(folder: Path) -> None:
    assert traces(folder) == ["small"]
    assert hosts(folder)[1] == Host(64000, 262144, 8, "G2")
    read = tasks(folder, "small")
    assert len(read) == 60
    assert read[0].models == {"T4"}
    assert {task.kind for task in read} == {"cpu", "share", "1", "2", "8"}
    with pytest.raises(FileNotFoundError, match="openb_node_list"):
        traces(folder / "nowhere")


def test_a_workload_is_the_trace_topped_up_to_130_percent(folder: Path) -> None:
    read = tasks(folder, "small")
    capacity = 40_000
    drawn = list(filling(read, capacity, random.Random(5)))
    arrived = sum(task.size for task in drawn)
    assert arrived >= FILL * capacity > arrived - drawn[-1].size
    assert drawn == list(filling(read, capacity, random.Random(5)))


@pytest.mark.parametrize("policy", placement.POLICIES)
def test_no_policy_gives_more_than_there_is_and_what_leaves_is_free_again(
    folder: Path, policy: type[placement.Policy]
) -> None:
    nodes = Nodes(hosts(folder))
    known = tasks(folder, "small")
    placing = policy(nodes, known)
    free = nodes.free.copy()
    placed = []
    for task in filling(known, nodes.capacity, random.Random(3)):
        placing.see(task)
        place = placing.place(task)
        if place is not None:
            node, columns = place
            assert len(columns) == task.cards
            free[node, columns] -= task.share
            assert (free >= 0).all()
            assert not task.models or nodes.models[nodes.model[node]] in task.models
            placed.append((task, place))
    assert placed
    whole = Task(0, 0, 8, 1000, ANY)
    for task, place in placed:
        placing.leave(task, place)
    assert placing.place(whole) is not None, "the fleet is empty again"


def test_the_fragment_of_a_node_is_what_typical_tasks_cannot_use() -> None:
    nodes = Nodes([Host(8000, 1000, 2, "G2")])
    half, whole, idle = Task(1000, 1, 1, 500, ANY), Task(1000, 1, 1, 1000, ANY), Task(9000, 1, 1, 100, ANY)
    fgd = Fragmentation(nodes, [half, half, whole, idle])
    # 0.3 and 1 free: half can't use the 0.3; nor can whole; the one that wants 9 cores uses nothing
    found = fgd._fragments(np.array([8000]), np.array([[300, 1000]]))
    assert found[0] == pytest.approx(0.5 * 300 + 0.25 * 300 + 0.25 * 1300)


def test_first_fit_takes_the_first_node_and_the_first_card() -> None:
    first = FirstFit(Nodes([Host(8000, 1000, 2, "G2"), Host(8000, 1000, 2, "G2")]), [])
    assert first.place(Task(1000, 1, 1, 600, ANY)) == (0, [0])
    assert first.place(Task(1000, 1, 1, 600, ANY)) == (0, [1])
    assert first.place(Task(1000, 1, 1, 600, ANY)) == (1, [0])
    assert first.place(Task(1000, 1, 2, 1000, ANY)) is None


def test_the_learned_policy_learns_at_the_twentieth_arrival(folder: Path) -> None:
    learned = Learned(Nodes(hosts(folder)), [])
    for number, task in enumerate(tasks(folder, "small")[:26], start=1):
        learned.see(task)
        assert bool(learned._room.prices.values) == (number >= 20)


@pytest.mark.parametrize("departures", [False, True])
def test_the_report_names_every_case_beside_its_peers(
    folder: Path, departures: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "SEEDS", (1, 2))
    monkeypatch.setattr(placement, "DEPARTURE_SEEDS", (1,))
    monkeypatch.setattr(placement, "DEPARTURE_ARRIVALS", 300)
    # one process, so that the small sizes hold there too
    monkeypatch.setattr(placement, "_outcomes", lambda jobs: map(placement._one, jobs))
    report = placement.run(Options(data=folder, seconds=1, say=lambda text: None, departures=departures))
    cases = {row.case: row.value for row in report.rows if "@" in row.case}
    wanted = {"small@departures"} if departures else {f"small@{ratio}%" for ratio in (100, 110, 120, 130)}
    assert set(cases) == wanted
    assert all(0 < value <= 100 for value in cases.values())
    peers = {row.peer for row in report.rows if "@" in row.case}
    assert peers == {"first-fit, same workloads", "fgd, same workloads"}
    assert report.work["cards"] == 40
