"""`bench placement`: how much of a cluster is given out before work stops fitting, beside FGD and first-fit.

The fill benchmark of the FGD artifact (hkust-adsl/kubernetes-scheduler-simulator): tasks of a trace in
random order arrive until they ask for 130 % of the cards, one at a time, none leaves, and one that fits
nowhere is dropped. The figure is the share of all cards that is allocated, over the events whose arrived
share rounds to the ratio, as a mean of the seeds. With `--departures` tasks live for an exponential time
and ask for 100 % of the cards on average. Decision times are CPU time of one core; prices are refreshed
between decisions and their time is told apart.
"""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from heapq import heappop, heappush
from multiprocessing import get_context
from os import sched_getaffinity
from pathlib import Path
from statistics import mean, quantiles
from typing import Any

from sensaka.bench import openb
from sensaka.bench.placement_policies import FirstFit, Fragmentation, Learned, Nodes, Place
from sensaka.bench.placement_published import FGD
from sensaka.bench.report import Options, Report, Row

RATIOS = (100, 110, 120, 130)
SEEDS = tuple(range(42, 52))
POLICIES = (Learned, FirstFit, Fragmentation)

DEPARTURE_SEEDS = SEEDS[:3]
DEPARTURE_ARRIVALS = 60_000
SLOWEST = 100.0
"""Microseconds that a decision may take on average."""

AHEAD = 0.4
"""Percentage points by which both peers are to be beaten in the fill."""

Policy = Learned | FirstFit | Fragmentation


@dataclass(slots=True)
class Outcome:
    """One policy on one workload: percent allocated by case, tasks dropped by class, times in microseconds."""

    trace: str
    policy: str
    allocated: dict[str, float] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    decisions: list[float] = field(default_factory=list)
    learning: float = 0.0


class Clock:
    """CPU time of placing, and of learning between placements."""

    def __init__(self, policy: Policy, outcome: Outcome) -> None:
        self._policy, self._outcome = policy, outcome

    def place(self, task: openb.Task) -> Place | None:
        """One decision."""
        started = time.thread_time_ns()
        self._policy.see(task)
        seen = time.thread_time_ns()
        place = self._policy.place(task)
        self._outcome.learning += (seen - started) / 1000
        self._outcome.decisions.append((time.thread_time_ns() - seen) / 1000)
        if place is None:
            self._outcome.dropped[task.kind] += 1
        return place


def fill(folder: Path, trace: str, seed: int, kind: type[Policy]) -> Outcome:
    """The fill benchmark, one run."""
    chance, nodes, known = _start(folder, trace, seed)
    outcome = Outcome(trace, kind.name)
    clock = Clock(kind(nodes, known), outcome)
    arrived = allocated = 0
    by_ratio: dict[int, list[float]] = defaultdict(list)
    for task in openb.filling(known, nodes.capacity, chance):
        arrived += task.size
        if clock.place(task) is not None:
            allocated += task.size
        by_ratio[round(100 * arrived / nodes.capacity)].append(100 * allocated / nodes.capacity)
    # on a small cluster one task can step over a ratio; then the next one that was met counts
    met = {ratio: min(key for key in by_ratio if key >= ratio) for ratio in RATIOS}
    outcome.allocated = {f"{trace}@{ratio}%": mean(by_ratio[met[ratio]]) for ratio in RATIOS}
    return outcome


def churn(folder: Path, trace: str, seed: int, kind: type[Policy]) -> Outcome:
    """Arrivals and departures at an offered load of 100 %, one run: the mean over the last two thirds of the time."""
    chance, nodes, known = _start(folder, trace, seed)
    outcome = Outcome(trace, kind.name)
    policy = kind(nodes, known)
    clock = Clock(policy, outcome)
    rate = nodes.capacity / mean(task.size for task in known)
    now = held = area = 0.0
    leaving: list[tuple[float, int, openb.Task, Place]] = []
    for number in range(DEPARTURE_ARRIVALS):
        arrives = now + chance.expovariate(rate)
        measured = number >= DEPARTURE_ARRIVALS // 3
        if number == DEPARTURE_ARRIVALS // 3:
            begun = now
        while leaving and leaving[0][0] <= arrives:
            at, _, gone, place = heappop(leaving)
            area += held * (at - now) if measured else 0
            policy.leave(gone, place)
            held -= gone.size
            now = at
        area += held * (arrives - now) if measured else 0
        now = arrives
        task, life = chance.choice(known), chance.expovariate(1.0)
        taken = clock.place(task)
        if taken is not None:
            held += task.size
            heappush(leaving, (now + life, number, task, taken))
    outcome.allocated = {f"{trace}@departures": 100 * area / ((now - begun) * nodes.capacity)}
    return outcome


def _start(folder: Path, trace: str, seed: int) -> tuple[random.Random, Nodes, list[openb.Task]]:
    chance = random.Random(seed)  # noqa: S311 - workloads, not secrets
    all_hosts = openb.hosts(folder)
    chance.shuffle(all_hosts)
    return chance, Nodes(all_hosts), openb.tasks(folder, trace)


def _one(job: tuple[Callable[..., Outcome], Path, str, int, type[Policy]]) -> Outcome:
    run_one, *arguments = job
    return run_one(*arguments)


def _outcomes(jobs: Sequence[tuple[Callable[..., Outcome], Path, str, int, type[Policy]]]) -> Iterator[Outcome]:
    with ProcessPoolExecutor(len(sched_getaffinity(0)), mp_context=get_context("spawn")) as workers:
        yield from workers.map(_one, jobs)


def run(options: Options) -> Report:
    """All traces in the folder, or those of `options.only`. What is not ahead of a peer is in the report's `failed`."""
    if options.data is None:
        raise ValueError("bench placement needs --data: the folder with the openb traces")
    begun = time.monotonic()
    names = [name for name in openb.traces(options.data) if not options.only or name in options.only]
    how, seeds = (churn, DEPARTURE_SEEDS) if options.departures else (fill, SEEDS)
    jobs = [(how, options.data, name, seed, kind) for name in names for seed in seeds for kind in POLICIES]
    found: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in _outcomes(jobs):
        found[outcome.trace].append(outcome)
        if len(found[outcome.trace]) == len(seeds) * len(POLICIES):
            options.say(f"{outcome.trace} done after {time.monotonic() - begun:.0f} s")
    report = Report("placement", _work(options.data, names, len(seeds), found))
    for name in names:
        _add_allocated(report, found[name], departures=options.departures)
    _add_times(report, [one for name in names for one in found[name]])
    report.cpu_seconds = sum(sum(one.decisions) + one.learning for name in names for one in found[name]) / 1e6
    report.wall_seconds = time.monotonic() - begun
    return report


def _work(folder: Path, names: Sequence[str], seeds: int, found: dict[str, list[Outcome]]) -> dict[str, Any]:
    nodes = openb.hosts(folder)
    return {
        "traces": len(names),
        "seeds": seeds,
        "nodes": len(nodes),
        "cards": sum(host.cards for host in nodes),
        "decisions": sum(len(one.decisions) for outcomes in found.values() for one in outcomes),
        "dropped": {name: _dropped(found[name]) for name in names},
        "told in advance": "sensaka: nothing; first-fit: nothing; fgd: the whole trace's mix",
    }


def _dropped(outcomes: Sequence[Outcome]) -> dict[str, dict[str, float]]:
    """Tasks dropped a run, by policy and class."""
    by_policy: dict[str, Counter[str]] = defaultdict(Counter)
    runs = Counter(one.policy for one in outcomes)
    for one in outcomes:
        by_policy[one.policy].update(one.dropped)
    return {
        policy: {kind: round(count / runs[policy], 1) for kind, count in sorted(counts.items())}
        for policy, counts in by_policy.items()
    }


def _add_allocated(report: Report, outcomes: Sequence[Outcome], *, departures: bool) -> None:
    cases = list(outcomes[0].allocated)
    for place, case in enumerate(cases):
        figures = {
            kind.name: mean(one.allocated[case] for one in outcomes if one.policy == kind.name) for kind in POLICIES
        }
        ours = figures.pop(Learned.name)
        peers = {f"{name}, same workloads": value for name, value in figures.items()}
        published = FGD.get(outcomes[0].trace)
        if published and not departures:
            peers = {"fgd, published": published[place], **peers}
        least = 0.0 if departures else AHEAD
        for peer, value in peers.items():
            report.rows.append(Row(case, round(ours, 3), "% of cards allocated", peer, round(value, 3)))
            if (ours < value + least and peer != "fgd, same workloads") or (departures and ours < value):
                report.failed.append(f"{case}: {ours:.2f} %, {peer} {value:.2f} %")


def _add_times(report: Report, outcomes: Sequence[Outcome]) -> None:
    by_policy: dict[str, list[float]] = defaultdict(list)
    learning: Counter[str] = Counter()
    for one in outcomes:
        by_policy[one.policy] += one.decisions
        learning[one.policy] += one.learning  # type: ignore[assignment]
    peer = mean(by_policy[Fragmentation.name])
    for policy, times in by_policy.items():
        same = {"peer": "fgd, same workloads", "peer_value": round(peer, 1)} if policy == Learned.name else {}
        report.rows += [
            Row(f"{policy}: mean decision", round(mean(times), 1), "us CPU", lower_is_better=True, **same),  # type: ignore[arg-type]
            Row(f"{policy}: p99 decision", round(quantiles(times, n=100)[98], 1), "us CPU", lower_is_better=True),
        ]
    ours = by_policy[Learned.name]
    report.rows.append(
        Row("sensaka: learning, for each decision", round(learning[Learned.name] / len(ours), 1), "us CPU")
    )
    if mean(ours) > SLOWEST:
        report.failed.append(f"a decision takes {mean(ours):.0f} us on average, more than {SLOWEST:.0f}")
