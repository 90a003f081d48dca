"""Sensaka's own planner in the replay: at each event a plan from a frozen snapshot, and what it starts runs.

Teams are tenants of equal weight whose usage decays as in the product, all work is of one class, and
each request asks for the same time limit: the planner is told neither run times nor what comes later.
"""

from collections import defaultdict
from time import thread_time_ns

from pools.rules.demand import PriorityClass, Request, Running, Spec
from pools.rules.fleet import Card, Cluster, Node, Pool, Rule
from pools.rules.ordering import accrued
from pools.rules.plan import admit
from pools.rules.result import Plan, running_of
from pools.rules.snapshot import Policy, Snapshot, build
from pools.rules.tenancy import Project, Tenant
from sensaka.bench.philly import Job
from sensaka.bench.replay_policies import Fleet, Nodes

MODEL = "card"


class Planner:
    """The product's planner (`plan.admit`) as a queueing policy. `limit` (s) is the time limit of every request.

    Every `told_every`-th request that has to wait is told all its reasons and its expected start;
    `expected` is what they were told at first, by job number.
    """

    def __init__(self, fleet: Fleet, teams: list[str], *, limit: int, told_every: int, policy: Policy) -> None:
        self.per_node, self.limit, self.told_every = fleet.per_node, limit, told_every
        self.usage: dict[str, float] = dict.fromkeys(teams, 0.0)
        self.cards: dict[str, int] = defaultdict(int)
        self.used_at = 0
        self.waiting: dict[int, Request] = {}
        self.running: dict[int, Running] = {}
        self.jobs: dict[int, Job] = {}
        self.expected: dict[int, int] = {}
        self.planning: list[float] = []
        self._ask: list[int] = []
        self._snapshot = _empty(fleet, teams, policy)

    def arrived(self, job: Job, now: int) -> None:
        """A request for it joins the queue."""
        count, each = job.units(self.per_node)
        self.jobs[job.number] = job
        self.waiting[job.number] = Request(
            job.number, job.team, job.team, "all", each, "normal", now, self.limit, count=count
        )
        if job.number % self.told_every == 0:
            self._ask.append(job.number)

    def ended(self, job: Job, now: int) -> None:
        """Its allocation ends."""
        self._accrue(now)
        self.cards[job.team] -= job.cards
        del self.running[job.number]

    def decide(self, now: int) -> list[tuple[Job, Nodes]]:
        """One pass of admission; nothing is to be decided while nobody waits."""
        asked, self._ask = self._ask, []
        if not self.waiting:
            return []
        self._accrue(now)
        begun = thread_time_ns()
        snapshot = self._snapshot.with_work(
            now=now,
            waiting=list(self.waiting.values()),
            running=list(self.running.values()),
            tenants=[Tenant(team, usage=usage) for team, usage in self.usage.items()],
        )
        plan = admit(snapshot, told=bool(asked))
        self.planning.append((thread_time_ns() - begun) / 1e6)
        for wait in plan.waits:
            if wait.request.id in asked and wait.expected_start is not None:
                self.expected[int(str(wait.request.id))] = wait.expected_start
        return self._started(snapshot, plan)

    def _started(self, snapshot: Snapshot, plan: Plan) -> list[tuple[Job, Nodes]]:
        started = []
        for start in plan.starts:
            job = self.jobs[int(str(start.request.id))]
            self.running[job.number] = running_of(snapshot, start, plan.at)
            del self.waiting[job.number]
            self.cards[job.team] += job.cards
            started.append((job, tuple(snapshot.fleet.node_places[node] for node in start.nodes)))
        return started

    def _accrue(self, now: int) -> None:
        """Each team's usage up to now."""
        for team, usage in self.usage.items():
            self.usage[team] = accrued(usage, self.cards[team], now - self.used_at, self._snapshot.policy.half_life)
        self.used_at = now


def _empty(fleet: Fleet, teams: list[str], policy: Policy) -> Snapshot:
    models = frozenset({MODEL})
    return build(
        now=0,
        clusters=[Cluster("cluster")],
        nodes=[Node(node, "cluster") for node in range(fleet.nodes)],
        cards=[Card((node, card), node, MODEL) for node in range(fleet.nodes) for card in range(fleet.per_node)],
        pools=[Pool("all", rules=(Rule(models=models),))],
        specs=[Spec(size, models, cards=size) for size in range(1, fleet.per_node + 1)],
        priorities=[PriorityClass("normal")],
        tenants=[Tenant(team) for team in teams],
        projects=[Project(team, team) for team in teams],
        policy=policy,
    )
