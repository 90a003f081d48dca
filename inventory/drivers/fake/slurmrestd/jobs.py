"""Jobs of the emulated Slurm: what was asked for, where a run is, how it went. Times are epoch seconds, 0 for none."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

ENDED = frozenset({"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "REQUEUED"})
HOLDING = frozenset({"RUNNING", "SUSPENDED"})


@dataclass(frozen=True, slots=True)
class Wish:
    """What a job asks for. `cards`, `cpus` and `memory` (MiB) are per node, `limit` is in minutes.

    `total` cards instead of `cards` are spread over the nodes, one on each at least. `limit` None takes the
    partition's longest. `tasks` are the numbers of an array, of which
    `at_once` run at a time (0: as many as fit).
    """

    name: str
    user: str
    account: str = ""
    partition: str = ""
    qos: str = "normal"
    script: str = ""
    comment: str = ""
    directory: str = "/"
    output: str = ""
    node_count: int = 1
    nodes: tuple[str, ...] = ()
    cards: int = 0
    total: int = 0
    card_type: str = ""
    cpus: int = 1
    memory: int = 1000
    limit: int | None = None
    requeue: bool = True
    held: bool = False
    tasks: tuple[int, ...] = ()
    at_once: int = 0
    reservation: str = ""
    begin: int = 0

    @property
    def count(self) -> int:
        """How many nodes."""
        return len(self.nodes) or self.node_count

    @property
    def all_cards(self) -> int:
        """Cards on all nodes together."""
        return self.total or self.cards * self.count

    def spread(self, free: Sequence[int]) -> list[int]:
        """How many cards it takes on each of its nodes, which have so many free; [] where they don't fit."""
        if not self.total:
            return [self.cards] * len(free) if all(self.cards <= one for one in free) else []
        taken = [1] * len(free)
        for place, one in enumerate(free):
            taken[place] += max(0, min(one - 1, self.total - sum(taken)))
        return taken if sum(taken) == self.total and all(map(int.__ge__, free, taken)) else []


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run's work ends by itself, `seconds` of running after its start."""

    seconds: int
    state: str = "COMPLETED"
    code: int = 0
    signal: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """What a run holds on one node: gres numbers (IDX), processors."""

    node: str
    cards: tuple[int, ...]
    cpus: int


@dataclass(slots=True)
class Job:
    """A job as slurmctld keeps it; a requeue closes a copy for the accounting and lets it wait again.

    An array that waits is one record with the `tasks` that are left; each that starts becomes a job of
    its own, the last one keeps the array's number.
    """

    id: int
    wish: Wish
    submitted: int
    eligible: int
    priority: int = 1
    state: str = "PENDING"
    reason: str = "None"
    held: bool = False
    started: int = 0
    ended: int = 0
    expected: int = 0  # when a waiting job may start
    paused_at: int = 0
    suspended: int = 0
    shares: list[Share] = field(default_factory=list)
    ending: Ending | None = None
    code: int = 0
    signal: int = 0
    restarts: int = 0
    array_id: int = 0
    task: int | None = None
    tasks: tuple[int, ...] = ()
    ended_by: str = ""
    failed_node: str = ""

    @property
    def limit_at(self) -> int | None:
        """When its time limit ends it, if nothing is suspended any more; None without limit."""
        return None if self.wish.limit is None else self.started + self.suspended + self.wish.limit * 60

    @property
    def due(self) -> int | None:
        """When a running run ends by itself or by its limit."""
        work = None if self.ending is None else self.started + self.suspended + self.ending.seconds
        moments = [moment for moment in (work, self.limit_at) if moment is not None]
        return min(moments, default=None)

    def record(self) -> "Job":
        """A copy that stays as it is."""
        return copy.copy(self)

    def split(self, number: int, task: int) -> "Job":
        """One task of a waiting array as a job of its own."""
        self.tasks = tuple(other for other in self.tasks if other != task)
        return replace(self, id=number, task=task, tasks=(), shares=[])


Work = Callable[[Job], Ending | None]


def no_end(job: Job) -> Ending | None:
    """Work that runs until somebody ends it."""
    return None
