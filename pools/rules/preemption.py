"""Which work leaves for a request of a higher class: whole gangs, those that lose least, and only if it helps.

A request may displace preemptible work of a strictly lower class that has run its minimum time. As the
class falls along every displacement, none can come back on itself: there are no cycles. Who is told to
leave gets a signal and its class's grace.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pools.rules.demand import Request, Running
from pools.rules.fleet import CARD, Id, Mode
from pools.rules.placement import closest, units_by_node
from pools.rules.snapshot import Snapshot
from pools.rules.space import Space, Wish

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Preemption:
    """Work that is to leave for `by`: its grace ends at `leaves_at`, `lost` are card-seconds of work."""

    running: Running
    by: Request
    leaves_at: int
    lost: float

    @property
    def name(self) -> str:
        """How people know the work."""
        return self.running.name or str(self.running.id)


def harm(running: Running, now: int) -> float:
    """Card-seconds of work that are lost when it leaves now: all since its last checkpoint, or since its start."""
    cards = sum(unit.share for unit in running.units) / CARD
    since = running.started_at if running.checkpoint_at is None else max(running.started_at, running.checkpoint_at)
    return cards * max(0, now - since)


def candidates(snapshot: Snapshot, request: Request, leaving: Collection[Id] = ()) -> list[Running]:
    """What the request may displace, least harm first: lower classes first, then what loses least.

    `leaving` are allocations that were told to go already.
    """
    own = snapshot.priorities[request.priority]
    if not (snapshot.policy.preemption and own.may_preempt):
        return []
    found = []
    for running in snapshot.running:
        if running.priority is None or running.signalled_at is not None or running.id in leaving:
            continue
        other = snapshot.priorities[running.priority]
        if (
            other.preemptible
            and other.value < own.value
            and running.started_at + other.minimum_run <= snapshot.now
            and (running.request is None or running.request != request.id)
        ):
            found.append((other.value, harm(running, snapshot.now), str(running.id), running))
    return [running for *_, running in sorted(found, key=lambda entry: entry[:3])]


class Freed:
    """What of the fleet would be free for a wish if some work left."""

    def __init__(self, space: Space, wish: Wish, ends_at: int) -> None:
        self._space, self._wish = space, wish
        self._open = space.open_until(wish, ends_at)
        self._hosts = space.hosts_for(wish.spec, ends_at)
        self._free = self._open & space.whole_free()

    def useful(self, running: Running) -> bool:
        """Whether it holds a card that the wish could use."""
        return any(self._open[self._space.at(unit.card)] for unit in running.units)

    def fits(self, leaving: Sequence[Running]) -> bool:
        """Whether all units of the wish have a place once these have left."""
        space, spec = self._space, self._wish.spec
        free = space.room.free.copy()
        cpu, memory = space.room.cpu.copy(), space.room.memory.copy()
        for running in leaving:
            for unit in running.units:
                free[space.at(unit.card)] += unit.share
            for node, (cores, size) in running.hosts.items():
                if (place := space.snapshot.fleet.node_places.get(node)) is not None:
                    cpu[place] += cores
                    memory[place] += size
        whole = self._open & (free >= CARD)
        hosts = space.units_on(spec, cpu, memory)
        return closest(space, self._wish, units_by_node(space, self._wish, whole, hosts)) is not None


def choose(
    space: Space, request: Request, options: Sequence[Wish], leaving: Collection[Id] = ()
) -> tuple[Wish, list[Preemption]] | None:
    """The work that must leave so that the request fits, as little as possible; None when nothing helps.

    Only whole cards are freed by preemption: shares are small and come free soon.
    """
    snapshot = space.snapshot
    best: tuple[float, Wish, list[Running]] | None = None
    for wish in options:
        if wish.spec.mode is not Mode.WHOLE:
            continue
        freed = Freed(space, wish, snapshot.now + request.time_limit)
        victims = _least([one for one in candidates(snapshot, request, leaving) if freed.useful(one)], freed.fits)
        if victims is not None:
            lost = sum(harm(running, snapshot.now) for running in victims)
            if best is None or lost < best[0]:
                best = lost, wish, victims
    if best is None or not best[2]:
        return None
    _, wish, chosen = best
    return wish, [
        Preemption(running, request, snapshot.now + _grace(snapshot, running), harm(running, snapshot.now))
        for running in chosen
    ]


def _grace(snapshot: Snapshot, running: Running) -> int:
    return snapshot.priorities[running.priority].grace if running.priority is not None else 0


def _least(ordered: list[Running], fits: Callable[[Sequence[Running]], bool]) -> list[Running] | None:
    """The shortest beginning of the list that is enough, less whatever of it turns out not to be needed."""
    if not fits(ordered):
        return None
    low, high = 0, len(ordered)
    while low < high:
        middle = (low + high) // 2
        if fits(ordered[:middle]):
            high = middle
        else:
            low = middle + 1
    chosen = ordered[:low]
    # the most harmful are tried first: what can stay, stays
    for running in reversed(list(chosen)):
        without = [one for one in chosen if one is not running]
        if fits(without):
            chosen = without
    return chosen
