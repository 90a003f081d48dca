"""Three placement policies over the same nodes: Sensaka's rule, first-fit, and FGD as published.

FGD (fragmentation gradient descent, Weng et al., USENIX ATC 2023) knows the mix of the whole trace in
advance; Sensaka's rule learns it from what arrived.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pools.rules.fleet import CARD
from pools.rules.pricing import Prices, Shape
from pools.rules.room import Room
from sensaka.bench.openb import Host, Task

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Place = tuple[int, list[int]]
"""A node and the cards on it."""

TYPICAL = 0.95
"""FGD looks at the most frequent shapes that make up this part of the tasks."""


class Nodes:
    """The arrays that each policy starts from, and which nodes have one of some models."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.width = max(host.cards for host in hosts)
        self.cpu = np.array([host.cpu for host in hosts], np.int64)
        self.memory = np.array([host.memory for host in hosts], np.int64)
        self.free = np.array([[CARD] * host.cards + [0] * (self.width - host.cards) for host in hosts], np.int64)
        self.models = tuple(sorted({host.model for host in hosts}))
        self.model = np.array([self.models.index(host.model) for host in hosts], np.int64)
        self.capacity = int(self.free.sum())
        self._with: dict[frozenset[str], Mask] = {}

    def having(self, models: frozenset[str]) -> Mask | None:
        """The nodes with one of these models; None when any will do."""
        if not models:
            return None
        if models not in self._with:
            self._with[models] = np.array([self.models[place] in models for place in self.model])
        return self._with[models]


class Learned:
    """Sensaka's rule: the node whose value falls least, at prices learned from the arrivals."""

    name = "sensaka"

    def __init__(self, nodes: Nodes, known: Sequence[Task]) -> None:
        del known  # nothing is known in advance
        self._nodes = nodes
        self._room = Room(
            cpu=nodes.cpu / 1000.0, memory=nodes.memory.astype(float), free=nodes.free, model=nodes.model,
            models=nodes.models, prices=Prices(),
        )  # fmt: skip
        self._arrived: list[tuple[Shape, frozenset[str], int]] = []
        self._left = self._room.prices.due_at

    def see(self, task: Task) -> None:
        """Take note of an arrival; learn when it is time to."""
        self._arrived.append((_shape(task), task.models, 1))
        self._left -= 1
        if self._left <= 0:
            self._room.prices = self._room.prices.seen(self._arrived)
            self._arrived = []
            self._room.refresh()
            self._left = self._room.prices.due_at - self._room.prices.arrivals

    def place(self, task: Task) -> Place | None:
        """Choose and take."""
        shape = _shape(task)
        offer = self._room.best(shape, memory=task.memory, allowed=self._nodes.having(task.models))
        if offer is None:
            return None
        columns = self._room.columns(offer, shape)
        self._room.take(offer.node, columns, task.share, shape.cpu, task.memory)
        return offer.node, columns

    def leave(self, task: Task, place: Place) -> None:
        """Give back."""
        self._room.take(*place, -task.share, -task.cpu / 1000, -task.memory)


def _shape(task: Task) -> Shape:
    return Shape(task.cpu / 1000, task.cards, task.share)


class FirstFit:
    """The first node in their order that the task fits on, its first fitting cards."""

    name = "first-fit"

    def __init__(self, nodes: Nodes, known: Sequence[Task]) -> None:
        del known
        self.nodes = nodes
        self.cpu, self.memory, self.free = nodes.cpu.copy(), nodes.memory.copy(), nodes.free.copy()
        self.most = self.free.max(axis=1)
        self.whole = (self.free == CARD).sum(axis=1)

    def see(self, task: Task) -> None:
        """It learns nothing."""

    def fits(self, task: Task) -> Mask:
        """The nodes that the task fits on."""
        found = (self.cpu >= task.cpu) & (self.memory >= task.memory)
        if task.cards:
            found &= self.most >= task.share if task.share < CARD else self.whole >= task.cards
        allowed = self.nodes.having(task.models)
        return found if allowed is None else found & allowed

    def place(self, task: Task) -> Place | None:
        """Choose and take."""
        fits = self.fits(task)
        node = int(fits.argmax())
        if not fits[node]:
            return None
        return self.take(task, node, np.flatnonzero(self.free[node] >= task.share)[: task.cards].tolist())

    def take(self, task: Task, node: int, columns: list[int], sign: int = 1) -> Place:
        """Spend (or with -1 give back) on a node."""
        self.free[node, columns] -= sign * task.share
        self.cpu[node] -= sign * task.cpu
        self.memory[node] -= sign * task.memory
        self.most[node] = self.free[node].max()
        self.whole[node] = (self.free[node] == CARD).sum()
        return node, columns

    def leave(self, task: Task, place: Place) -> None:
        """Give back."""
        self.take(task, *place, sign=-1)


class Fragmentation(FirstFit):
    """FGD: the node whose expected fragment grows least.

    The fragment of a node for a shape is its free cards that the shape can't use: all of them when the
    shape does not fit or needs none, else those with less free than it takes of each. The expectation is
    over the typical shapes. The gradient goes through a sigmoid and is rounded down to 0-100; of equal
    scores the first node in their order wins, which the published result depends on.
    """

    name = "fgd"

    def __init__(self, nodes: Nodes, known: Sequence[Task]) -> None:
        super().__init__(nodes, known)
        counts = Counter((task.cpu, task.cards, task.share) for task in known)
        shapes, part, covered = [], [], 0
        for shape, count in counts.most_common():
            shapes.append(shape)
            part.append(count)
            covered += count
            if covered >= TYPICAL * len(known):
                break
        self._part = np.array(part, float) / sum(part)
        self._typical = np.array(shapes, np.int64)
        self._scores: dict[tuple[int, int, int], tuple[NDArray[np.int8], NDArray[np.int8]]] = {}
        self._versions = np.zeros(len(nodes.cpu), np.int64)
        self._seen: dict[tuple[int, int, int], Ints] = {}
        self._fragment = self._fragments(self.cpu, self.free)

    def _fragments(self, cpu: Ints, free: Ints) -> Floats:
        """Expected fragment (thousandths) of some states of nodes."""
        need_cpu, need_cards, need_share = self._typical.T
        whole_enough = (free[:, None, :] >= need_share[None, :, None]) & (free[:, None, :] > 0)
        usable = (whole_enough.sum(axis=2) >= need_cards) & (cpu[:, None] >= need_cpu) & (need_cards > 0)
        left_over = np.where(whole_enough, 0, free[:, None, :]).sum(axis=2)
        amount = np.where(usable, left_over, free.sum(axis=1)[:, None])
        return np.asarray(amount @ self._part)

    def place(self, task: Task) -> Place | None:
        """Choose and take."""
        fits = self.fits(task)
        key = (task.cpu, task.cards, task.share)
        if key not in self._seen:
            self._seen[key] = np.full(len(self.cpu), -1, np.int64)
            self._scores[key] = (np.zeros(len(self.cpu), np.int8), np.zeros(len(self.cpu), np.int8))
        score, column = self._scores[key]
        stale = np.flatnonzero(fits & (self._seen[key] != self._versions))
        if len(stale):
            score[stale], column[stale] = self._score(task, stale)
            self._seen[key][stale] = self._versions[stale]
        node = int(np.where(fits, score, -1).argmax())
        if not fits[node]:
            return None
        if task.cards == 1 and task.share < CARD:
            columns = [int(column[node])]
        else:
            columns = np.flatnonzero(self.free[node] == CARD)[: task.cards].tolist()
        return self.take(task, node, columns)

    def _score(self, task: Task, nodes: Ints) -> tuple[Ints, Ints]:
        """(score 0-100, best card) on each of these nodes."""
        cpu, free = self.cpu[nodes] - task.cpu, self.free[nodes]
        if task.cards == 1 and task.share < CARD:
            rows, columns = np.nonzero(free >= task.share)
            after = free[rows]
            after[np.arange(len(rows)), columns] -= task.share
            grows = self._fragments(cpu[rows], after) - self._fragment[nodes[rows]]
            scores = np.full(free.shape, -1, np.int64)
            scores[rows, columns] = _rounded(grows)
            return scores.max(axis=1), scores.argmax(axis=1)
        after = free.copy()
        taken = (np.cumsum(free == CARD, axis=1) <= task.cards) & (free == CARD)
        after[taken & (task.cards > 0)] = 0
        return _rounded(self._fragments(cpu, after) - self._fragment[nodes]), np.zeros(len(nodes), np.int64)

    def take(self, task: Task, node: int, columns: list[int], sign: int = 1) -> Place:
        """Spend, and work out the node's fragment again."""
        super().take(task, node, columns, sign)
        self._versions[node] += 1
        self._fragment[node] = self._fragments(self.cpu[node : node + 1], self.free[node : node + 1])[0]
        return node, columns


def _rounded(grows: Floats) -> Ints:
    """Thousandths of fragment to a whole score."""
    return np.floor(100 / (1 + np.exp(grows / CARD))).astype(np.int64)
