"""A plan: what starts where, what waits and why, who is told to leave, which nodes are woken."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pools.rules.demand import Request, Running, Unit
from pools.rules.fleet import Id
from pools.rules.preemption import Preemption
from pools.rules.reasons import Reason
from pools.rules.sharing import Division
from pools.rules.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Start:
    """A request that starts now. `units` are its units, each of one or more parts of cards of one node.

    `divided` are empty cards that must be divided anew first; `why` says in one sentence why there.
    """

    request: Request
    model: str
    units: tuple[tuple[Unit, ...], ...]
    nodes: tuple[Id, ...]
    divided: Mapping[Id, Division]
    ends_at: int
    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    """A request that waits: its place in the queue (from 1), all reasons, and when to expect it to start."""

    request: Request
    position: int
    reasons: tuple[Reason, ...]
    expected_start: int | None


@dataclass(frozen=True, slots=True)
class Promise:
    """A reservation: the request can start at `at` on these cards."""

    request: Request
    at: int
    cards: tuple[Id, ...]


@dataclass(frozen=True)
class Plan:
    """What was decided at `at`. Every waiting request of the snapshot is in `starts` or `waits`."""

    at: int
    starts: tuple[Start, ...]
    waits: tuple[Wait, ...]
    preemptions: tuple[Preemption, ...]
    promises: tuple[Promise, ...]
    wakes: tuple[Id, ...]

    @property
    def empty(self) -> bool:
        """Nothing is to be done."""
        return not (self.starts or self.preemptions or self.wakes)


def applied(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """The snapshot after the plan. Applied to what it was already applied to, a plan changes nothing.

    This is what a service does with rows; simulations and tests do it with this.
    """
    waiting = {request.id for request in snapshot.waiting}
    starts = [start for start in plan.starts if start.request.id in waiting]
    started = {start.request.id for start in starts}
    told = {one.running.id for one in plan.preemptions}
    running = [
        replace(one, signalled_at=plan.at) if one.id in told and one.signalled_at is None else one
        for one in snapshot.running
    ]
    divided = {card: division for start in starts for card, division in start.divided.items()}
    if not starts and running == list(snapshot.running):
        return snapshot
    return snapshot.with_(
        waiting=[request for request in snapshot.waiting if request.id not in started],
        running=[*running, *(running_of(snapshot, start, plan.at) for start in starts)],
        cards=[
            replace(card, mode=new.mode, layout=new.layout, shares=new.shares)
            if (new := divided.get(card.id)) is not None
            else card
            for card in snapshot.fleet.cards
        ],
    )


def running_of(snapshot: Snapshot, start: Start, at: int) -> Running:
    """The allocation that a start of a plan made at `at` becomes."""
    request = start.request
    spec = snapshot.specs[request.spec]
    hosts: dict[Id, tuple[float, int]] = {}
    for node in start.nodes:
        cores, memory = hosts.get(node, (0.0, 0))
        hosts[node] = cores + spec.cpu, memory + spec.memory
    return Running(
        id=("of", request.id, at),
        tenant=request.tenant,
        project=request.project,
        units=tuple(unit for units in start.units for unit in units),
        started_at=at,
        ends_at=start.ends_at,
        request=request.id,
        spec=request.spec,
        priority=request.priority,
        name=request.name,
        hosts=hosts,
        preempted=request.preempted,
    )
