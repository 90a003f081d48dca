"""Who comes next: an operator's own order, then the priority class, then fair share and age.

Fair share follows Slurm's multifactor plugin: a tenant counts 2 ** -(its part of the usage / its part
of the weights), usage decaying with a half-life. Within a plan each request that is put in the order
charges its tenant beforehand, so that of two tenants with equal usage neither gets all the places.
Requests of one tenant and class go by the time that they have waited.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from math import log
from typing import Any

from pools.rules.demand import Request
from pools.rules.fleet import CARD, Id
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
    """A request's place in the order and what it comes from: its class, fair share (0-1) and age (0-1)."""

    request: Request
    value: int
    fair_share: float
    age: float

    @property
    def sentence(self) -> str:
        """The parts, for people."""
        moved = f"moved by an operator ({self.request.boost:+d}), " if self.request.boost else ""
        return f"{moved}class {self.value}, fair share {self.fair_share:.2f}, age {self.age:.2f}"


def order(snapshot: Snapshot) -> list[Place]:
    """All waiting requests, first come first. The same for the same snapshot, however its parts were listed."""
    shares = _Shares(snapshot)
    groups: dict[tuple[int, int], list[Request]] = defaultdict(list)
    for request in snapshot.waiting:
        groups[-request.boost, -snapshot.priorities[request.priority].value].append(request)
    return [place for key in sorted(groups) for place in _merged(groups[key], -key[1], shares, snapshot)]


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


def _merged(requests: Iterable[Request], value: int, shares: _Shares, snapshot: Snapshot) -> Iterable[Place]:
    """One class: the tenants' queues merged by the score of their first request."""
    policy = snapshot.policy

    def entry(queue: list[Request]) -> tuple[float, int, Any, Place, list[Request]]:
        first = queue[-1]
        since = _waits_since(first)
        age = min(1.0, max(0, snapshot.now - since) / policy.age_full)
        place = Place(first, value, shares.of(first.tenant), age)
        score = policy.fair_share_weight * place.fair_share + policy.age_weight * age
        return -score, since, first.id, place, queue

    queues: dict[Id, list[Request]] = defaultdict(list)
    for request in requests:
        queues[request.tenant].append(request)
    for queue in queues.values():
        queue.sort(key=lambda request: (_waits_since(request), request.id), reverse=True)
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
