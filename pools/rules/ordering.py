"""Who comes next: an operator's own order, then the priority class, then fair share, age and being a gang.

Fair share follows Slurm's multifactor plugin: a tenant counts 2 ** -(its part of the usage / its part
of the weights), usage decaying with a half-life. Within a plan each request that is put in the order
charges its tenant beforehand, so that of two tenants with equal usage neither gets all the places.
Requests of one tenant and class go by the time that they have waited.

A gang, which no single node can hold, starts only when many cards are free together, and whatever is
started meanwhile takes some of them. So it counts as if it had waited longer (`Policy.gang_weight`): it
becomes the blocked head sooner, and its cards are kept from then on. Where gangs are few this costs
others little; where they are many, other work waits longer.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from math import log
from typing import Any

import numpy as np

from pools.rules.demand import Request
from pools.rules.fleet import CARD, Id, Mode
from pools.rules.sharing import share_of
from pools.rules.snapshot import Snapshot


def decayed(usage: float, seconds: float, half_life: float) -> float:
    """What is left of usage (card-seconds) after some seconds."""
    return float(usage * 0.5 ** (seconds / half_life))


def accrued(usage: float, cards: float, seconds: float, half_life: float) -> float:
    """Usage after `seconds` in which `cards` were held: the old part decays, and so does the new while it grows."""
    grown = cards * half_life / log(2) * (1 - 0.5 ** (seconds / half_life))
    return float(decayed(usage, seconds, half_life) + grown)


@dataclass(frozen=True, slots=True)
class Place:
    """A request's place in the order and what it comes from: its class, fair share (0-1) and age (0-1).

    `gang`: no single node can hold it.
    """

    request: Request
    value: int
    fair_share: float
    age: float
    gang: bool = False

    @property
    def sentence(self) -> str:
        """The parts, for people."""
        moved = f"moved by an operator ({self.request.boost:+d}), " if self.request.boost else ""
        gang = ", a gang of several nodes" if self.gang else ""
        return f"{moved}class {self.value}, fair share {self.fair_share:.2f}, age {self.age:.2f}{gang}"


def order(snapshot: Snapshot) -> list[Place]:
    """All waiting requests, first come first. The same for the same snapshot, however its parts were listed."""
    shares = _Shares(snapshot)
    groups: dict[tuple[int, int], list[Request]] = defaultdict(list)
    for request in snapshot.waiting:
        groups[-request.boost, -snapshot.priorities[request.priority].value].append(request)
    most = _largest_nodes(snapshot)
    gangs = {request.id for request in snapshot.waiting if _needs_nodes(request, snapshot, most)}
    return [place for key in sorted(groups) for place in _merged(groups[key], -key[1], shares, snapshot, gangs)]


def _largest_nodes(snapshot: Snapshot) -> dict[str, int]:
    """The most cards on one node, by model."""
    fleet = snapshot.fleet
    on_node = np.zeros((len(fleet.models), max(1, len(fleet.nodes))), np.int64)
    np.add.at(on_node, (fleet.model, fleet.node), 1)
    return dict(zip(fleet.models, on_node.max(axis=1).tolist(), strict=True))


def _needs_nodes(request: Request, snapshot: Snapshot, most: Mapping[str, int]) -> bool:
    """Whether it is a gang: whole cards, and more of them than any one node has."""
    spec = snapshot.specs[request.spec]
    if request.count == 1 or spec.mode is not Mode.WHOLE:
        return False
    return request.count * spec.cards > max(most.get(model, 0) for model in spec.models)


class _Shares:
    """Fair shares while the order is made; only the tenant that is charged changes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._half_life = snapshot.policy.half_life
        self._sizes = {request.id: _size(request, snapshot) for request in snapshot.waiting}
        tenants = snapshot.tenants.values()
        weights = sum(tenant.weight for tenant in tenants)
        usage = sum(tenant.usage for tenant in tenants) + sum(map(self._charge, snapshot.waiting))
        mean = usage / weights if weights else 0.0
        self._used: dict[Id, float] = {tenant.id: tenant.usage for tenant in tenants}
        self._scale: Mapping[Id, float] = {tenant.id: tenant.weight * mean for tenant in tenants}

    def _charge(self, request: Request) -> float:
        return self._sizes[request.id] * min(request.time_limit, self._half_life)

    def of(self, tenant: Id) -> float:
        """0-1, 0.5 for one that has exactly its share."""
        scale = self._scale[tenant]
        return float(2.0 ** -(self._used[tenant] / scale)) if scale > 0 else 1.0

    def charge(self, request: Request) -> None:
        self._used[request.tenant] += self._charge(request)


def _size(request: Request, snapshot: Snapshot) -> float:
    """Cards, shares as fractions."""
    spec = snapshot.specs[request.spec]
    shares = (share_of(spec, snapshot.profiles.get(model, {})) for model in spec.models)
    share = max((share for share in shares if share is not None), default=CARD)
    return request.count * spec.cards * share / CARD


def _waits_since(request: Request) -> int:
    return request.submitted_at if request.waited_since is None else request.waited_since


def _merged(
    requests: Iterable[Request], value: int, shares: _Shares, snapshot: Snapshot, gangs: Set[Id]
) -> Iterable[Place]:
    """One class: the tenants' queues merged by the score of their first request."""
    policy = snapshot.policy

    def age_of(request: Request) -> float:
        return min(1.0, max(0, snapshot.now - _waits_since(request)) / policy.age_full)

    def own_score(request: Request) -> float:
        """Its score but for what its tenant used."""
        return policy.age_weight * age_of(request) + policy.gang_weight * (request.id in gangs)

    def entry(queue: list[Request]) -> tuple[float, int, Any, Place, list[Request]]:
        first = queue[-1]
        place = Place(first, value, shares.of(first.tenant), age_of(first), first.id in gangs)
        score = policy.fair_share_weight * place.fair_share + own_score(first)
        return -score, _waits_since(first), first.id, place, queue

    queues: dict[Id, list[Request]] = defaultdict(list)
    for request in requests:
        queues[request.tenant].append(request)
    for queue in queues.values():
        queue.sort(key=lambda request: (-own_score(request), _waits_since(request), request.id), reverse=True)
    heap = [entry(queue) for queue in queues.values()]
    heapify(heap)
    while heap:
        *_, place, queue = heap[0]
        yield place
        shares.charge(queue.pop())
        if queue:
            heapreplace(heap, entry(queue))
        else:
            heappop(heap)
