"""`bench replay`: how long jobs of the Philly trace wait when Sensaka's planner queues them, beside textbook policies.

The trace's jobs, pooled on 80 nodes of 8 cards, each at its time and for its run time, event by event.
Sensaka's planner is told nothing in advance: the trace has no time limits, so every request asks for
LIMIT, longer than any job runs. EASY backfill is run twice, told the same and told all run times; shortest
job first is told them as well. Waits are seconds; a gang is a job of more cards than a node has. The
error of an expected start is the start less what the request was first told: below zero it started
sooner. `--only 2017-10 2017-11` replays the jobs of these months alone, from an empty fleet.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Protocol

import numpy as np

from pools.rules.snapshot import Policy
from sensaka.bench import philly
from sensaka.bench.philly import Job
from sensaka.bench.replay_planner import Planner
from sensaka.bench.replay_policies import Easy, Fifo, Fleet, Nodes, ShortestFirst
from sensaka.bench.report import Options, Report, Row

FLEET = Fleet(nodes=80, per_node=8)
LIMIT = 60 * 86_400
"""Seconds; the longest job of the trace runs for 53.6 days."""

TOLD_EVERY = 25
"""Of so many requests one is told when to expect its start, if it has to wait: to tell takes longer than to decide."""

QUANTILES = (1, 10, 25, 50, 75, 90, 99)

OURS, EASY, EASY_TOLD = "sensaka", "easy, same limits", "easy, told run times"


class Queueing(Protocol):
    """A policy: it hears of arrivals and ends, and says what starts on which nodes."""

    def arrived(self, job: Job, now: int) -> None:
        """A job came."""

    def ended(self, job: Job, now: int) -> None:
        """A job that it started is over."""

    def decide(self, now: int) -> list[tuple[Job, Nodes]]:
        """What starts now, and the node of each unit."""


@dataclass(slots=True)
class Outcome:
    """One policy: starts (Unix s) by job number, and CPU-seconds."""

    name: str
    starts: dict[int, int] = field(default_factory=dict)
    cpu: float = 0.0


def replay(name: str, jobs: Sequence[Job], policy: Queueing, fleet: Fleet) -> Outcome:
    """Run all jobs to their end. RuntimeError when the policy gives more than there is, or never starts some job."""
    outcome = Outcome(name)
    free = np.full(fleet.nodes, fleet.per_node)
    ends: list[tuple[int, int, Job, Nodes]] = []
    begun = time.thread_time()
    coming = 0
    while coming < len(jobs) or ends:
        now = min([job.submitted for job in jobs[coming : coming + 1]] + [end for end, *_ in ends[:1]])
        while ends and ends[0][0] <= now:
            _, _, job, nodes = heappop(ends)
            np.add.at(free, list(nodes), job.units(fleet.per_node)[1])
            policy.ended(job, now)
        while coming < len(jobs) and jobs[coming].submitted <= now:
            policy.arrived(jobs[coming], now)
            coming += 1
        for job, nodes in policy.decide(now):
            count, each = job.units(fleet.per_node)
            np.subtract.at(free, list(nodes), each)
            if job.number in outcome.starts or len(nodes) != count or free.min() < 0:
                raise RuntimeError(f"{name} started job {job.number} on {nodes}, which is not possible")
            outcome.starts[job.number] = now
            heappush(ends, (now + job.runs, job.number, job, nodes))
    if len(outcome.starts) != len(jobs):
        raise RuntimeError(f"{name} never started {len(jobs) - len(outcome.starts)} jobs")
    outcome.cpu = time.thread_time() - begun
    return outcome


def figures(jobs: Sequence[Job], outcome: Outcome, fleet: Fleet) -> dict[str, float]:
    """Waits in s, and the percent of card time held between the first and the last submission."""
    waits = np.array([outcome.starts[job.number] - job.submitted for job in jobs], float)
    gangs = waits[[job.cards > fleet.per_node for job in jobs]]
    first, last = jobs[0].submitted, jobs[-1].submitted
    held = sum(
        job.cards * max(0, min(outcome.starts[job.number] + job.runs, last) - outcome.starts[job.number])
        for job in jobs
    )
    found = {"mean wait": float(waits.mean()), "p99 wait": float(np.percentile(waits, 99))}
    if len(gangs):
        found |= {"gang wait": float(gangs.mean()), "p99 gang wait": float(np.percentile(gangs, 99))}
    return found | {"utilisation": 100 * held / (fleet.cards * max(1, last - first))}


def run(options: Options) -> Report:
    """The whole trace, or the months of `options.only`. What EASY does better is in the report's `failed`."""
    if options.data is None:
        raise ValueError("bench replay needs --data: the folder with the Philly trace")
    jobs = [job for job in philly.jobs(options.data) if not options.only or job.month in options.only]
    if not jobs:
        raise ValueError(f"the trace has no jobs of {', '.join(options.only) or 'any month'}")
    return compare(jobs, FLEET, options.say)


def compare(jobs: Sequence[Job], fleet: Fleet, say: Callable[[str], object]) -> Report:
    """All policies on the same jobs."""
    begun = time.monotonic()
    teams = sorted({job.team for job in jobs})
    planner = Planner(fleet, teams, limit=LIMIT, told_every=TOLD_EVERY, policy=Policy())
    policies: Mapping[str, Queueing] = {
        OURS: planner,
        "fifo, strict": Fifo(fleet),
        EASY: Easy(fleet, lambda job: LIMIT),
        EASY_TOLD: Easy(fleet, lambda job: job.runs),
        "sjf, told run times": ShortestFirst(fleet),
    }
    report = Report("replay", _work(jobs, fleet))
    found: dict[str, dict[str, float]] = {}
    for name, policy in policies.items():
        outcome = replay(name, jobs, policy, fleet)
        found[name] = figures(jobs, outcome, fleet)
        report.cpu_seconds += outcome.cpu
        if name == OURS:
            ours = outcome
        say(f"{name} done after {time.monotonic() - begun:.0f} s")
    _add_waits(report, found)
    _add_expected(report, planner, ours)
    _add_times(report, planner)
    report.wall_seconds = time.monotonic() - begun
    return report


def _work(jobs: Sequence[Job], fleet: Fleet) -> dict[str, Any]:
    span = max(1, jobs[-1].submitted - jobs[0].submitted)
    by_size: dict[int, int] = defaultdict(int)
    for job in jobs:
        by_size[job.cards] += 1
    return {
        "jobs": len(jobs),
        "gangs": sum(job.cards > fleet.per_node for job in jobs),
        "nodes": fleet.nodes,
        "cards": fleet.cards,
        "from": jobs[0].day,
        "to": jobs[-1].day,
        "offered load %": round(100 * sum(job.cards * job.runs for job in jobs) / (span * fleet.cards), 1),
        "jobs by cards": dict(sorted(by_size.items())),
        "time limit of every request, days": LIMIT / 86_400,
        "told in advance": "sensaka, fifo and easy with the same limits: nothing; the others: all run times",
    }


def _add_waits(report: Report, found: Mapping[str, Mapping[str, float]]) -> None:
    ours = found[OURS]
    for case, value in ours.items():
        waits = case != "utilisation"
        unit = "s" if waits else "% of card time"
        for peer, figure in ((name, of[case]) for name, of in found.items() if name != OURS):
            report.rows.append(Row(case, round(value, 1), unit, peer, round(figure, 1), lower_is_better=waits))
            if peer in (EASY, EASY_TOLD) and case in ("mean wait", "gang wait") and value > figure:
                report.failed.append(f"{case}: {value:,.0f} s, {peer} {figure:,.0f} s")


def _add_expected(report: Report, planner: Planner, ours: Outcome) -> None:
    """The signed error of what was told, by quantile."""
    errors = [ours.starts[number] - told for number, told in planner.expected.items()]
    report.rows.append(Row("expected starts told", len(errors), "requests"))
    if not errors:
        return
    for quantile in QUANTILES:
        value = round(float(np.percentile(errors, quantile)), 1)
        report.rows.append(Row(f"expected start, error, {quantile} %", value, "s"))
    late = 100 * sum(error > 0 for error in errors) / len(errors)
    report.rows.append(Row("expected start, later than told", round(late, 2), "% of requests"))


def _add_times(report: Report, planner: Planner) -> None:
    if not planner.planning:
        return
    report.rows += [
        Row("passes of admission", len(planner.planning), "passes"),
        Row("a pass, mean", round(float(np.mean(planner.planning)), 2), "ms CPU"),
        Row("a pass, p99", round(float(np.percentile(planner.planning, 99)), 2), "ms CPU"),
    ]
