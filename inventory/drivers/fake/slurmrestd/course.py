"""How time passes in the emulated Slurm: runs start, end and wait again, nodes go silent. Deterministic, no I/O.

Time is whole epoch seconds and moves only by `advance`, which lets everything that is due happen in order, each at
its own second.
"""

from collections.abc import Iterable, Sequence

from inventory.drivers.fake.slurmrestd.jobs import ENDED, HOLDING, Job, Share, Work, no_end
from inventory.drivers.fake.slurmrestd.places import Layout, Node, Reservation
from inventory.drivers.fake.slurmrestd.placing import Board

REQUEUE_WAIT = 120  # s that Slurm lets a requeued job wait
SILENT_FOR = 60  # s without an answer until a node counts as down (SlurmdTimeout)
REMEMBERED = 300  # s that slurmctld remembers a job that has ended (MinJobAge)
SILENT = "Not responding"


class Course:
    """Nodes, jobs, and the accounting of runs that are over.

    `work` says at each start how that run will end by itself; None runs until its limit or until it is ended.
    `runs` are the closed runs of the accounting, `kept_runs` of them at most and none older than `kept_seconds`.
    """

    def __init__(
        self,
        layout: Layout,
        nodes: Iterable[Node],
        *,
        now: int,
        work: Work = no_end,
        first_job: int = 1,
        kept_seconds: int = 24 * 3600,
        kept_runs: int = 5000,
    ) -> None:
        self.layout, self.work, self.now = layout, work, now
        self.nodes = {node.name: node for node in nodes}
        self.reservations: list[Reservation] = []
        self.jobs: dict[int, Job] = {}
        self.runs: list[Job] = []
        self.next_job = first_job
        self.acts = 0  # changes from outside
        self.moves = 0  # starts and ends of runs
        self._kept_seconds, self._kept_runs = kept_seconds, kept_runs
        self._stale = True
        self._next: int | None = None

    # time

    def advance(self, now: float) -> None:
        """Let all that is due until `now` happen; an earlier `now` changes nothing."""
        target = int(now)
        self._settle()
        while self._next is not None and self._next <= target:
            self.now = max(self.now, self._next)
            self._stale = True
            self._end_due()
            self._settle()
        self.now = max(self.now, target)

    def _end_due(self) -> None:
        for node in self.nodes.values():
            if node.silent_since and node.silent_since + SILENT_FOR <= self.now and not node.down:
                self.lose(node)
        for job in [job for job in self.jobs.values() if job.state == "RUNNING"]:
            if job.due is None or job.due > self.now:
                continue
            ending, limit = job.ending, job.limit_at
            if ending is not None and (limit is None or job.started + job.suspended + ending.seconds <= limit):
                self.end(job, ending.state, code=ending.code, signal=ending.signal)
            else:
                self.end(job, "TIMEOUT")

    def _settle(self) -> None:
        """Start what can start, forget what is old, and find the next moment at which something is due."""
        if not self._stale:
            return
        self._stale = False
        old = self.now - REMEMBERED
        self.jobs = {key: job for key, job in self.jobs.items() if job.state not in ENDED or job.ended > old}
        self._drop_old_runs()
        self.reservations = [one for one in self.reservations if one.end > self.now]
        board = Board(self.layout, self.nodes, self.jobs.values(), self.reservations, self.now)
        for job, shares in board.starts(self.waiting()):
            self._start(job, shares)
        self._next = self._next_due()

    def _drop_old_runs(self) -> None:
        oldest = self.now - self._kept_seconds
        start = max(0, len(self.runs) - self._kept_runs)
        while start < len(self.runs) and self.runs[start].ended < oldest:
            start += 1
        del self.runs[:start]

    def _next_due(self) -> int | None:
        moments = [job.due for job in self.jobs.values() if job.state == "RUNNING"]
        moments += [job.eligible for job in self.jobs.values() if job.state == "PENDING" and not job.held]
        moments += [moment for one in self.reservations for moment in (one.start, one.end)]
        moments += [node.silent_since + SILENT_FOR for node in self.nodes.values() if node.silent_since]
        return min((moment for moment in moments if moment is not None and moment > self.now), default=None)

    # looks

    def waiting(self) -> list[Job]:
        """Waiting jobs in the order in which they are tried."""
        found = [job for job in self.jobs.values() if job.state == "PENDING"]
        return sorted(found, key=lambda job: (-job.priority, job.submitted, job.id))

    def running(self) -> list[Job]:
        """Jobs that hold nodes."""
        return [job for job in self.jobs.values() if job.state in HOLDING]

    def used(self, node: str) -> list[int]:
        """Numbers of the cards that are given out on a node."""
        shares = [share for job in self.running() for share in job.shares]
        return sorted(index for share in shares if share.node == node for index in share.cards)

    # what happens

    def number(self) -> int:
        """The next job's number."""
        self.next_job += 1
        return self.next_job - 1

    def _start(self, job: Job, shares: Sequence[Share]) -> None:
        if job.tasks:
            task = job.tasks[0]
            if len(job.tasks) > 1:
                job = job.split(self.number(), task)
                self.jobs[job.id] = job
            else:
                job.task, job.tasks = task, ()
        job.state, job.reason, job.started, job.expected = "RUNNING", "None", self.now, 0
        job.shares = list(shares)
        job.ending = self.work(job)
        self.moves += 1

    def end(self, job: Job, state: str, *, code: int = 0, signal: int = 0, by: str = "") -> None:
        """A job is over: its run goes to the accounting."""
        if job.state == "SUSPENDED":
            self.unpause(job)
        job.state, job.ended, job.code, job.signal, job.ended_by = state, self.now, code, signal, by
        reasons = {"FAILED": "NonZeroExitCode", "TIMEOUT": "TimeLimit", "OUT_OF_MEMORY": "OutOfMemory"}
        job.reason, job.held, job.expected = reasons.get(state, "None"), False, 0
        self.runs.append(job.record())
        self.moves += 1
        self._stale = True

    def refresh(self) -> None:
        """Look at everything again at the next `advance`: jobs or reservations were set from outside."""
        self._stale = True

    def touched(self) -> None:
        """Something was changed from outside: count it and look at everything again."""
        self.acts += 1
        self._stale = True
        self._settle()

    def again(self, job: Job, state: str, failed_node: str = "") -> None:
        """Close the run for the accounting; its job comes back with a time of submission of its own."""
        if not job.wish.requeue and state == "NODE_FAIL":
            job.failed_node = failed_node
            self.end(job, state)
            return
        if job.state == "SUSPENDED":
            self.unpause(job)
        closed = job.record()
        closed.state, closed.ended, closed.failed_node, closed.ended_by = state, self.now, failed_node, ""
        self.runs.append(closed)
        job.state, job.reason, job.shares = "PENDING", "BeginTime", []
        job.submitted = max(self.now, job.submitted + 1)
        job.eligible = self.now + REQUEUE_WAIT
        job.started = job.suspended = 0
        job.ending, job.restarts, job.failed_node = None, job.restarts + 1, failed_node
        self.moves += 1
        self._stale = True

    def unpause(self, job: Job) -> None:
        """A suspended run goes on."""
        job.suspended += self.now - job.paused_at
        job.state, job.paused_at = "RUNNING", 0

    def lose(self, node: Node) -> None:
        """A node is down, with what ran on it."""
        node.down, node.silent_since = True, 0
        if not node.reason:
            node.say(SILENT, "slurm", self.now)
        self.lose_runs(node)
        self._stale = True

    def lose_runs(self, node: Node) -> None:
        """What runs on a node is lost; its jobs wait again where they may."""
        for job in self.running():
            if any(share.node == node.name for share in job.shares):
                self.again(job, "NODE_FAIL", node.name)
