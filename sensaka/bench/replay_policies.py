"""Three textbook queueing policies on nodes of equal size: strict FIFO, EASY backfill, shortest job first.

All place a job alike: units on the fullest nodes that hold them. EASY keeps the earliest start of the
head of its queue on the nodes themselves, not on a mere count of cards.
"""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from sensaka.bench.philly import Job

Ints = NDArray[np.int64]
Nodes = tuple[int, ...]
"""The node of each unit of a job."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Nodes of equal size."""

    nodes: int
    per_node: int

    @property
    def cards(self) -> int:
        """Of all nodes."""
        return self.nodes * self.per_node


class Fifo:
    """Nobody starts before who came earlier."""

    def __init__(self, fleet: Fleet) -> None:
        self.per_node = fleet.per_node
        self.free = np.full(fleet.nodes, fleet.per_node, np.int64)
        self.places: dict[int, Nodes] = {}
        self.queue: list[tuple[int, int, Job]] = []

    def key(self, job: Job) -> int:
        """What the queue is ordered by; ties by submission."""
        return job.number

    def arrived(self, job: Job, now: int) -> None:
        """A job joins the queue."""
        heappush(self.queue, (self.key(job), job.number, job))

    def ended(self, job: Job, now: int) -> None:
        """Its cards are free again."""
        self._spend(job, self.places.pop(job.number), -1)

    def decide(self, now: int) -> list[tuple[Job, Nodes]]:
        """What starts now."""
        started = []
        while self.queue and (nodes := self.fit(self.queue[0][2], self.free)) is not None:
            job = heappop(self.queue)[2]
            self.start(job, nodes)
            started.append((job, nodes))
        return started

    def fit(self, job: Job, free: Ints) -> Nodes | None:
        """The fullest nodes that hold its units; None when they don't fit together."""
        count, each = job.units(self.per_node)
        fits = free // each
        if fits.sum() < count:
            return None
        chosen: list[int] = []
        for node in np.argsort(np.where(fits > 0, free, self.per_node + 1), kind="stable").tolist():
            chosen += [node] * min(int(fits[node]), count - len(chosen))
            if len(chosen) == count:
                break
        return tuple(chosen)

    def start(self, job: Job, nodes: Nodes) -> None:
        """Take the cards."""
        self.places[job.number] = nodes
        self._spend(job, nodes, 1)

    def _spend(self, job: Job, nodes: Nodes, sign: int) -> None:
        np.subtract.at(self.free, list(nodes), sign * job.units(self.per_node)[1])


class ShortestFirst(Fifo):
    """The shortest of those that wait goes first, and nobody before it. It is told the run times in advance."""

    def key(self, job: Job) -> int:
        """Its run time."""
        return job.runs


class Easy(Fifo):
    """FIFO, but a job may pass the head of the queue if that delays the head's earliest start in no way.

    `length` (s) is what it believes of a job: its run time, or its time limit when nobody can know.
    """

    def __init__(self, fleet: Fleet, length: Callable[[Job], int]) -> None:
        super().__init__(fleet)
        self.length = length
        self._ends: dict[int, tuple[int, Job]] = {}

    def ended(self, job: Job, now: int) -> None:
        """Its cards are free again."""
        super().ended(job, now)
        del self._ends[job.number]

    def start(self, job: Job, nodes: Nodes) -> None:
        """Take the cards."""
        super().start(job, nodes)
        self._ends[job.number] = (self._now + self.length(job), job)

    def decide(self, now: int) -> list[tuple[Job, Nodes]]:
        """What starts now: from the head as FIFO does, then whatever leaves the head its start."""
        self._now = now
        started = super().decide(now)
        if self.queue:
            started += self._backfill(now)
        return started

    def _backfill(self, now: int) -> list[tuple[Job, Nodes]]:
        head = self.queue[0][2]
        shadow, then = self._shadow(head)
        count, each = head.units(self.per_node)
        started: list[tuple[Job, Nodes]] = []
        failed: set[tuple[int, bool]] = set()
        for entry in sorted(self.queue)[1:]:
            job = entry[2]
            passes = now + self.length(job) <= shadow
            if (job.cards, passes) in failed:
                continue
            free = self.free
            if not passes:
                free = self._unneeded(then, count, each)
            nodes = self.fit(job, free)
            if nodes is not None and not passes:
                after = then.copy()
                np.subtract.at(after, list(nodes), job.units(self.per_node)[1])
                if (after // each).sum() < count:
                    nodes = None
                else:
                    then = after
            if nodes is None:
                failed.add((job.cards, passes))
                continue
            self.start(job, nodes)
            started.append((job, nodes))
        gone = {job.number for job, _ in started}
        if gone:
            self.queue = sorted(entry for entry in self.queue if entry[1] not in gone)
        return started

    def _shadow(self, head: Job) -> tuple[int, Ints]:
        """(when the head can start at the latest, the cards free on each node then)."""
        count, each = head.units(self.per_node)
        then = self.free.copy()
        for end, job in sorted(self._ends.values(), key=lambda entry: entry[0]):
            np.add.at(then, list(self.places[job.number]), job.units(self.per_node)[1])
            if (then // each).sum() >= count:
                return end, then
        raise AssertionError("an empty fleet holds every job")

    def _unneeded(self, then: Ints, count: int, each: int) -> Ints:
        """The free cards that a job may keep beyond the head's start, on each node by itself."""
        spare = int((then // each).sum()) - count
        without_loss = then - np.maximum(then // each - spare, 0) * each
        return np.asarray(np.minimum(self.free, without_loss))
