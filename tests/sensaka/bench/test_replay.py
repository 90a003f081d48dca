"""`bench replay` on small made-up traces: what it reads, that each policy is what its name says, how it counts."""

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pools.rules.snapshot import Policy
from sensaka.bench import philly, replay
from sensaka.bench.philly import Job
from sensaka.bench.replay_planner import Planner
from sensaka.bench.replay_policies import Easy, Fifo, Fleet, Nodes, ShortestFirst
from sensaka.bench.report import Options

SMALL = Fleet(nodes=2, per_node=4)
START = int(datetime(2017, 10, 2, tzinfo=UTC).timestamp())


def made(*rows: tuple[int, int, int]) -> list[Job]:
    """Jobs of (second of submission, run time, cards), of two teams in turn."""
    return [Job(number, START + at, runs, cards, f"team{number % 2}") for number, (at, runs, cards) in enumerate(rows)]


def waits(jobs: list[Job], policy: replay.Queueing, fleet: Fleet = SMALL) -> list[int]:
    starts = replay.replay("policy", jobs, policy, fleet).starts
    return [starts[job.number] - job.submitted for job in jobs]


def told(job: Job) -> int:
    return job.runs


def planner(jobs: list[Job], fleet: Fleet = SMALL, *, told_every: int = 1) -> Planner:
    return Planner(fleet, sorted({job.team for job in jobs}), limit=1000, told_every=told_every, policy=Policy())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    chance = random.Random(4)
    rows = ["timestamp,duration,num_gpus,gpu_time,cluster"]
    for _ in range(400):
        at = datetime.fromtimestamp(START + chance.randrange(40 * 86_400), UTC)
        cards, runs = chance.choice([1, 1, 1, 4, 8, 16, 32]), chance.choice([600.5, 40_000.0, 400_000.0])
        rows.append(f"{at:%Y-%m-%d %H:%M:%S},{runs},{cards},{runs * cards},{chance.choice('abc')}")
    (tmp_path / "philly.csv").write_text("\n".join(rows))
    return tmp_path


def test_the_trace_is_read_in_the_order_of_submission(folder: Path) -> None:
    jobs = philly.jobs(folder)
    assert len(jobs) == 400
    assert [job.submitted for job in jobs] == sorted(job.submitted for job in jobs)
    assert {job.runs for job in jobs} == {601, 40_000, 400_000}, "whole seconds, none shorter than it was"
    assert {job.month for job in jobs} == {"2017-10", "2017-11"}
    with pytest.raises(FileNotFoundError, match=r"philly\.csv"):
        philly.jobs(folder / "nowhere")


@pytest.mark.parametrize(("cards", "units"), [(1, (1, 1)), (8, (1, 8)), (12, (3, 4)), (16, (2, 8)), (128, (16, 8))])
def test_a_job_is_one_unit_or_a_gang_of_equal_ones(cards: int, units: tuple[int, int]) -> None:
    assert Job(0, 0, 1, cards, "a").units(8) == units


def test_fifo_lets_nobody_pass() -> None:
    jobs = made((0, 100, 4), (1, 100, 8), (2, 10, 1))
    assert waits(jobs, Fifo(SMALL)) == [0, 99, 198]


def test_the_shortest_goes_first_and_nobody_before_it() -> None:
    jobs = made((0, 100, 8), (1, 50, 8), (2, 10, 8), (3, 5, 1))
    assert waits(jobs, ShortestFirst(SMALL)) == [0, 114, 103, 97]


def test_easy_lets_pass_what_ends_in_time_or_uses_what_the_head_does_not_need() -> None:
    # the head needs one node; one node is held until 100, the other one has one free card until 300
    held = [(0, 100, 4), (0, 300, 3)]
    assert waits(made(*held, (1, 50, 4), (2, 500, 1)), Easy(SMALL, told)) == [0, 0, 99, 0], "the head needs it not"
    both = made(*held, (1, 50, 8), (2, 200, 1), (3, 900, 1))
    assert waits(both, Easy(SMALL, told)) == [0, 0, 299, 0, 347], "one ends before the head starts, one does not"


def test_easy_with_like_limits_keeps_the_nodes_of_the_head() -> None:
    jobs = made((0, 100, 4), (0, 300, 3), (1, 50, 8), (2, 200, 1))
    assert waits(jobs, Easy(SMALL, lambda _: 1000)) == [0, 0, 299, 348]


def test_the_planner_lets_a_gang_wait_for_no_more_than_what_runs() -> None:
    jobs = made((0, 100, 4), (0, 100, 4), (1, 50, 8), *((second, 100, 1) for second in range(2, 40)))
    assert waits(jobs, planner(jobs))[2] == 99


def test_the_planner_knows_nothing_of_the_future() -> None:
    chance = random.Random(9)
    rows = [(second, chance.randrange(50, 90), chance.choice([1, 2, 4, 8])) for second in range(40)]
    same = [(at, runs + 1000 * (number % 3), cards) for number, (at, runs, cards) in enumerate(rows)]
    until = START + 50
    begun = [
        {number: at for number, at in replay.replay("planner", jobs, planner(jobs), SMALL).starts.items() if at < until}
        for jobs in (made(*rows), made(*same))
    ]
    assert begun[0] == begun[1], "until the first one ends nothing differs"
    assert begun[0]


def test_what_is_told_is_no_sooner_than_the_start_where_all_take_their_full_time() -> None:
    jobs = made((0, 1000, 4), (0, 1000, 4), (1, 1000, 4), (2, 1000, 4), (3, 1000, 2))
    own = planner(jobs)
    starts = replay.replay("planner", jobs, own, SMALL).starts
    assert own.expected == {number: starts[number] for number in (2, 3, 4)}


def test_a_policy_that_gives_more_than_there_is_is_found_out() -> None:
    class Generous(Fifo):
        def fit(self, job: Job, free: object) -> Nodes | None:
            return (0,) * job.units(self.per_node)[0]

    with pytest.raises(RuntimeError, match="not possible"):
        waits(made((0, 100, 4), (1, 100, 1)), Generous(SMALL))


def test_waits_and_utilisation_are_those_of_the_jobs() -> None:
    jobs = made((0, 100, 4), (0, 100, 4), (10, 50, 8), (100, 50, 1))
    outcome = replay.Outcome("any", {0: START, 1: START, 2: START + 100, 3: START + 150})
    found = replay.figures(jobs, outcome, SMALL)
    assert found["mean wait"] == (0 + 0 + 90 + 50) / 4
    assert found["gang wait"] == found["p99 gang wait"] == 90
    assert found["utilisation"] == 100.0, "all cards from the first to the last submission"


def test_the_report_has_every_figure_beside_each_policy(folder: Path) -> None:
    report = replay.run(Options(data=folder, seconds=1, say=lambda _: None, only=("2017-10",)))
    assert report.work["from"] >= "2017-10-02"
    assert report.work["to"] <= "2017-10-31"
    rows = {(row.case, row.peer): row for row in report.rows}
    for case in ("mean wait", "p99 wait", "gang wait", "p99 gang wait", "utilisation"):
        for peer in ("fifo, strict", replay.EASY, replay.EASY_TOLD, "sjf, told run times"):
            assert (case, peer) in rows
    assert rows["passes of admission", None].value > 0
    worse = [
        f"{case}: {row.value:,.0f} s, {peer} {row.peer_value:,.0f} s"
        for (case, peer), row in rows.items()
        if case in ("mean wait", "gang wait") and peer in (replay.EASY, replay.EASY_TOLD)
        if row.peer_value is not None and row.value > row.peer_value
    ]
    assert report.failed == worse
    with pytest.raises(ValueError, match="no jobs of 2018-01"):
        replay.run(Options(data=folder, seconds=1, say=lambda _: None, only=("2018-01",)))
