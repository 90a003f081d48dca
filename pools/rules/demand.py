"""What is asked for and what is held: specs, priority classes, requests, running allocations, holds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pools.rules.fleet import CARD, Id, Mode


class Near(StrEnum):
    """How close the units of a request must be to each other; each level includes those before it."""

    ISLAND = "island"
    NODE = "node"
    RACK = "rack"
    LEAF = "leaf"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Spec:
    """A standard spec: one unit of it is `cards` cards of one node, whole, or one share of one card.

    `models`: any of them, all cards of a request of the same one. `shares` is into how many parts a time
    sliced or MPS card is divided; a MIG spec names its `profile` instead.
    `cpu` (cores) and `memory` (bytes) are of the host, for one unit. `price` is for one unit and hour.
    """

    id: Id
    models: frozenset[str]
    name: str = ""
    cards: int = 1
    mode: Mode = Mode.WHOLE
    shares: int = 1
    profile: str = ""
    cpu: float = 0.0
    memory: int = 0
    near: Near = Near.CLUSTER
    price: float | None = None
    offered: bool = True


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """How urgent work is: a higher `value` goes first and may preempt a lower one that is `preemptible`.

    `minimum_run` seconds of a started gang are safe from preemption, `grace` seconds lie between the
    signal and the end. `price_factor` multiplies the price of the spec.
    """

    id: Id
    value: int = 0
    name: str = ""
    preemptible: bool = False
    may_preempt: bool = True
    minimum_run: int = 0
    grace: int = 0
    price_factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Request:
    """A wish for `count` units of a spec, all or nothing, for at most `time_limit` seconds.

    `model` is the name of a cached model that it would load, `boost` the operator's own order (higher
    first, over everything). `waited_since` is when it last came to the queue, when that was later than its
    submission; `preempted` counts how often it lost its place.
    """

    id: Id
    tenant: Id
    project: Id
    pool: Id
    spec: Id
    priority: Id
    submitted_at: int
    time_limit: int
    count: int = 1
    near: Near | None = None
    waited_since: int | None = None
    not_before: int | None = None
    model: str = ""
    boost: int = 0
    preempted: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Unit:
    """A promise of one thing: the range [start, stop) in thousandths of a card."""

    card: Id
    start: int = 0
    stop: int = CARD

    @property
    def share(self) -> int:
        """Thousandths of the card."""
        return self.stop - self.start

    @property
    def whole(self) -> bool:
        """The card is held by one holder."""
        return self.share == CARD


@dataclass(frozen=True, slots=True)
class Running:
    """An open allocation of all units of one request or of one observed job (`request` None).

    `ends_at` is the end by its time limit; None when it has none. `hosts` is what it uses of each
    node: (cores, bytes). `checkpoint_at` is its last known checkpoint, `signalled_at` when it was told
    to leave (the place is promised to whoever preempts it).
    """

    id: Id
    tenant: Id | None
    project: Id | None
    units: tuple[Unit, ...]
    started_at: int
    ends_at: int | None
    request: Id | None = None
    spec: Id | None = None
    priority: Id | None = None
    name: str = ""
    hosts: Mapping[Id, tuple[float, int]] = field(default_factory=dict)
    checkpoint_at: int | None = None
    signalled_at: int | None = None
    preempted: int = 0


class Scope(StrEnum):
    """What a hold stops."""

    TENANT = "tenant"
    PROJECT = "project"
    REQUEST = "request"
    POOL = "pool"


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing new of its scope starts before `until` (None: until somebody lifts it)."""

    id: Id
    scope: Scope
    target: Id
    text: str = ""
    by: str = ""
    until: int | None = None

    def stops(self, request: Request) -> bool:
        """Whether the request is under the hold."""
        targets = {
            Scope.TENANT: request.tenant,
            Scope.PROJECT: request.project,
            Scope.REQUEST: request.id,
            Scope.POOL: request.pool,
        }
        return self.target == targets[self.scope]
