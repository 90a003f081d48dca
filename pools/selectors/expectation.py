"""When a request would start if it were asked for now: the same plan as admission's, with that request in the queue.

Nothing is written, and nothing is guessed: where no plan can be made the answer is that it isn't known.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from pools.models import Pool, PriorityClass, Project, Request, Spec
from pools.rules import demand as rules
from pools.rules.plan import admit
from pools.rules.snapshot import Snapshot
from pools.selectors.frozen import freeze
from sensaka.kernel.errors import InvalidInput

LONGEST_QUEUE = 2000
"""Waiting requests up to which a plan is made for who only looks."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What would be asked for. `time_limit` is seconds."""

    project: Project
    spec: Spec
    priority: PriorityClass
    time_limit: int
    count: int = 1
    near: str = ""
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """What the plan says: that it starts at once, or its place, its reasons ({code, args}) and its expected start.

    `unknown` says why there is no plan; empty otherwise.
    """

    at_once: bool = False
    start: datetime | None = None
    position: int | None = None
    reasons: list[Mapping[str, Any]] = field(default_factory=list)
    unknown: str = ""


def expectations(pool: Pool, wishes: Iterable[Wish], *, now: datetime) -> list[Expected]:
    """What to expect of each wish by itself, in their order. The pool is read once, then planned for each."""
    asked = list(wishes)
    if Request.objects.filter(pool=pool, state="queued")[: LONGEST_QUEUE + 1].count() > LONGEST_QUEUE:
        return [Expected(unknown="the queue is too long to look ahead")] * len(asked)
    try:
        snapshot = freeze(pool, now)
        return [_planned(snapshot, pool, wish, now) for wish in asked]
    except InvalidInput:
        return [Expected(unknown="no plan can be made of what is stored")] * len(asked)


def _planned(snapshot: Snapshot, pool: Pool, wish: Wish, now: datetime) -> Expected:
    own = uuid4()
    at = int(now.timestamp())
    request = rules.Request(
        own, wish.project.tenant_id, wish.project.pk, pool.pk, wish.spec.pk, wish.priority.pk, at, wish.time_limit,
        wish.count, rules.Near(wish.near) if wish.near else None, at,
        None if wish.not_before is None else int(wish.not_before.timestamp()),
    )  # fmt: skip
    plan = admit(snapshot.with_(waiting=[*snapshot.waiting, request]))
    wait = next((one for one in plan.waits if one.request.id == own), None)
    if wait is None:
        return Expected(at_once=True)
    start = None if wait.expected_start is None else datetime.fromtimestamp(wait.expected_start, UTC)
    return Expected(False, start, wait.position, [_plain(one.code, one.args, own) for one in wait.reasons])


def _plain(code: str, args: Mapping[str, Any], own: UUID) -> Mapping[str, Any]:
    """As stored reasons are; a request that is not there yet is called so."""
    return {
        "code": str(code),
        "args": {name: "this request" if value == str(own) else value for name, value in args.items()},
    }
