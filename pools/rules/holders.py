"""What runs, as arrays: which cards and how much of the hosts come free when some of it leaves."""

import numpy as np
from numpy.typing import NDArray

from pools.rules.demand import Running
from pools.rules.fleet import CARD
from pools.rules.snapshot import NEVER, Snapshot

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


def leaves_at(snapshot: Snapshot, running: Running) -> int:
    """When it will have left by its time limit, or by the end of its grace when it was told to go; else NEVER."""
    end = NEVER if running.ends_at is None else running.ends_at
    if running.signalled_at is not None and running.priority is not None:
        end = min(end, running.signalled_at + snapshot.priorities[running.priority].grace)
    # what is over its time is about to go
    return max(end, snapshot.now)


class Holders:
    """Running allocations by their place in the snapshot, their units and their hosts."""

    def __init__(self, snapshot: Snapshot, columns: Ints, width: int) -> None:
        fleet = snapshot.fleet
        self._shape = (len(fleet.nodes), width)
        self.until = np.array([leaves_at(snapshot, one) for one in snapshot.running], np.int64)
        units = [(owner, unit) for owner, one in enumerate(snapshot.running) for unit in one.units]
        cards = np.array([fleet.card_places[unit.card] for _, unit in units], np.int64)
        self._owner = np.array([owner for owner, _ in units], np.int64)
        self._share = np.array([unit.share for _, unit in units], np.int64)
        self._cell = fleet.node[cards] * width + columns[cards] if len(cards) else cards
        self.shares = bool((self._share < CARD).any())
        hosts = [
            (owner, fleet.node_places[node], cores, memory)
            for owner, one in enumerate(snapshot.running)
            for node, (cores, memory) in one.hosts.items()
            if node in fleet.node_places
        ]
        self._host_owner = np.array([host[0] for host in hosts], np.int64)
        self._host = np.array([host[1] for host in hosts], np.int64)
        self._cpu = np.array([host[2] for host in hosts], float)
        self._memory = np.array([host[3] for host in hosts], float)
        self._started: list[tuple[int, int, float, float]] = []

    def hold_until_they_leave(self, free_at: Ints) -> None:
        """Raise the times at which cards (by node and column) come free to those at which their holders leave."""
        flat = free_at.ravel()
        np.maximum.at(flat, self._cell, self.until[self._owner])
        free_at[:] = flat.reshape(free_at.shape)

    def start(self, node: int, until: int, cpu: float, memory: float) -> None:
        """Work of this plan uses a host."""
        self._started.append((node, until, cpu, memory))

    def cells_of(self, owner: int) -> list[tuple[int, int]]:
        """Node and column of each of its cards."""
        width = self._shape[1]
        return [(cell // width, cell % width) for cell in self._cell[self._owner == owner].tolist()]

    def holding(self, cells: Mask) -> Mask:
        """Which of them hold something of these cards (by node and column)."""
        found = np.zeros(len(self.until), bool)
        if len(self._cell):
            found[self._owner[cells.ravel()[self._cell]]] = True
        return found

    def cards_of(self, leaving: Mask) -> Ints:
        """Thousandths by node and column that come free when these leave."""
        own = leaving[self._owner]
        freed = np.bincount(self._cell[own], self._share[own], self._shape[0] * self._shape[1])
        return freed.astype(np.int64).reshape(self._shape)

    def hosts_of(self, leaving: Mask) -> tuple[Floats, Floats]:
        """Cores and memory by node that come free when these leave."""
        own = leaving[self._host_owner]
        cpu, memory = np.zeros(self._shape[0]), np.zeros(self._shape[0])
        np.add.at(cpu, self._host[own], self._cpu[own])
        np.add.at(memory, self._host[own], self._memory[own])
        return cpu, memory

    def by_card(self, chosen: Mask, worth: Floats) -> tuple[Floats, Ints]:
        """By node and column, for cards that one of `chosen` holds whole: its worth, divided over its cards of the
        node, and which one it is (-1 for none)."""
        cost, holder = np.zeros(self._shape).ravel(), np.full(self._shape, -1).ravel()
        own = chosen[self._owner] & (self._share == CARD)
        owners, cells = self._owner[own], self._cell[own]
        pairs = owners * self._shape[0] + cells // max(self._shape[1], 1)
        _, which, on_node = np.unique(pairs, return_inverse=True, return_counts=True)
        cost[cells] = worth[owners] / on_node[which]
        holder[cells] = owners
        return cost.reshape(self._shape), holder.reshape(self._shape)

    def hosts_left_by(self, moment: int) -> tuple[Floats, Floats]:
        """Cores and memory by node of all that will have left by then, work of this plan included."""
        cpu, memory = self.hosts_of(self.until <= moment)
        for node, until, cores, size in self._started:
            if until <= moment:
                cpu[node] += cores
                memory[node] += size
        return cpu, memory
