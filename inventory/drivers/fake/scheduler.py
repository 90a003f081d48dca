"""A small scheduler in memory, behind the fake cluster: nodes with whole cards, first come first served.

Jobs run until somebody ends them (`end`, `fail_node`) or the clock passes their time limit.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from inventory.drivers.clusters.capabilities import JobSpec
from inventory.drivers.clusters.readings import HOLDING, CardBinding, CardKind, JobState


def present() -> datetime:
    """The present second."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass
class FakeNode:
    """One node of the cluster."""

    name: str
    card_type: str
    cards: int
    reason: str = ""
    cordoned: bool = False
    down: bool = False


@dataclass
class FakeRun:
    """One run of a job: a requeue makes another one with the same number."""

    job_id: str
    spec: JobSpec
    submitted_at: datetime
    state: JobState = JobState.PENDING
    held: bool = False
    started_at: datetime | None = None
    ended_at: datetime | None = None
    paused_at: datetime | None = None
    suspended: float = 0
    exit_code: int | None = None
    bindings: list[CardBinding] = field(default_factory=list)
    restarts: int = 0

    @property
    def key(self) -> str:
        """Job and time of submission, as the contract wants it."""
        return f"{self.job_id}-{int(self.submitted_at.timestamp())}"

    @property
    def nodes(self) -> tuple[str, ...]:
        """Where it runs or ran."""
        return tuple(binding.node for binding in self.bindings)


class FakeScheduler:
    """Nodes, runs, and who gets which cards."""

    def __init__(self, nodes: Iterable[FakeNode], clock: Callable[[], datetime] = present) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.clock = clock
        self.runs: list[FakeRun] = []

    def refusal(self, job: JobSpec) -> str:
        """Why a job can never run here, "" when it can."""
        missing = [name for name in job.nodes if name not in self.nodes]
        if missing:
            return f"there is no node {missing[0]}"
        able = [node for node in self.nodes.values() if not job.nodes or node.name in job.nodes]
        if sum(self._fits(node, job, empty=True) for node in able) < (len(job.nodes) or job.node_count):
            return "too few nodes have such cards"
        if job.card_total > sum(node.cards for node in able):
            return "the nodes have too few such cards"
        return ""

    def submit(self, job: JobSpec) -> FakeRun:
        """Queues a job, and starts it if it fits."""
        number = max((int(run.job_id) for run in self.runs), default=0) + 1
        run = FakeRun(str(number), job, self.clock(), held=job.held)
        self.runs.append(run)
        self.schedule()
        return run

    def current(self, job_id: str) -> FakeRun | None:
        """A job's latest run, None for an unknown id."""
        return next((run for run in reversed(self.runs) if run.job_id == job_id), None)

    def end(self, run: FakeRun, state: JobState, exit_code: int | None = None) -> None:
        """A run ends."""
        if run.state is JobState.SUSPENDED:
            self.resume(run)
        run.state, run.ended_at, run.exit_code, run.held = state, self.clock(), exit_code, False
        self.schedule()

    def again(self, run: FakeRun, state: JobState) -> None:
        """A run ends and its job waits as another run, with a key of its own even within one second."""
        later = max(self.clock(), run.submitted_at + timedelta(seconds=1))
        run.state, run.ended_at = state, self.clock()
        self.runs.append(FakeRun(run.job_id, run.spec, later, restarts=run.restarts + 1))
        self.schedule()

    def suspend(self, run: FakeRun) -> None:
        """Stops a run, which keeps its cards."""
        run.state, run.paused_at = JobState.SUSPENDED, self.clock()

    def resume(self, run: FakeRun) -> None:
        """Lets a suspended run go on."""
        if run.paused_at is not None:
            run.suspended += (self.clock() - run.paused_at).total_seconds()
        run.state, run.paused_at = JobState.RUNNING, None

    def fail_node(self, name: str) -> None:
        """A node is lost: its runs end as node_fail, and their jobs wait again."""
        node = self.nodes[name]
        node.down, node.reason = True, node.reason or "Not responding"
        for run in [run for run in self.runs if run.state in HOLDING and name in run.nodes]:
            self.again(run, JobState.NODE_FAIL)

    def schedule(self) -> None:
        """Ends what is over its limit, then starts what fits, in the order of submission."""
        for run in self.runs:
            limit = run.spec.time_limit
            if run.state is JobState.RUNNING and run.started_at is not None and limit is not None:
                due = run.started_at + timedelta(seconds=limit + run.suspended)
                if due <= self.clock():
                    run.state, run.ended_at = JobState.TIMEOUT, due
        for run in self.runs:
            if run.state is JobState.PENDING and not run.held and (bindings := self._place(run.spec)):
                run.state, run.started_at, run.bindings = JobState.RUNNING, self.clock(), bindings

    def used(self, node: str) -> set[int]:
        """The minor numbers in use on a node."""
        holding = [run for run in self.runs if run.state in HOLDING]
        return {index for run in holding for one in run.bindings if one.node == node for index in one.indices}

    def _place(self, job: JobSpec) -> list[CardBinding]:
        able = [node for node in self.nodes.values() if not job.nodes or node.name in job.nodes]
        able = [node for node in able if not node.cordoned and not node.down and self._fits(node, job)]
        wanted = len(job.nodes) or job.node_count
        if len(able) < wanted:
            return []
        if job.card_total:
            return self._spread(able[:wanted], job.card_total)
        return [self._bind(node, job.cards) for node in able[:wanted]]

    def _spread(self, nodes: list[FakeNode], total: int) -> list[CardBinding]:
        """As many as are free on each node in turn, one at least on each; nothing when all are too few."""
        free = [node.cards - len(self.used(node.name)) for node in nodes]
        if sum(free) < total or not all(free):
            return []
        given = [1] * len(nodes)
        for place, most in enumerate(free):
            given[place] += min(most - 1, total - sum(given))
        return [self._bind(node, count) for node, count in zip(nodes, given, strict=True)]

    def _fits(self, node: FakeNode, job: JobSpec, *, empty: bool = False) -> bool:
        free = node.cards - (0 if empty else len(self.used(node.name)))
        return job.cards <= free and job.card_type in ("", node.card_type)

    def _bind(self, node: FakeNode, cards: int) -> CardBinding:
        free = sorted(set(range(node.cards)) - self.used(node.name))[:cards]
        return CardBinding(node=node.name, kind=CardKind.CARD, type=node.card_type, count=cards, indices=tuple(free))
