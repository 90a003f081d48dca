"""Admission: from the locked ledger to a committed plan, in one transaction.

Whoever decides holds one lock for all pools, because quotas reach over them; several workers take turns,
and each finds what the one before has done. A plan is applied by conditional updates, so that applied
again it changes nothing, and a request that was cancelled meanwhile gets nothing.
"""

import json
import logging
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from pools.models import AllocationSource, Pool, Request
from pools.rules.fleet import CARD
from pools.rules.marks import mark_of
from pools.rules.plan import admit as plan_for
from pools.rules.reasons import Reason
from pools.rules.result import Plan, Start, Wait
from pools.rules.snapshot import Snapshot
from pools.selectors.frozen import WINDOW, freeze
from pools.selectors.frozen.fleet import slices_at
from pools.services.ledger import entries
from pools.services.ledger.entries import Entry
from pools.services.moving import Move, move_all
from pools.signals import nodes_wanted, queue_changed
from sensaka.platform.fields import new_ids

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Admitted:
    """What a pass did: requests started, told to leave, and waiting; nodes asked to wake."""

    started: int = 0
    told: int = 0
    waiting: int = 0
    woken: int = 0


def admit_all() -> dict[UUID, Admitted]:
    """One pass over every pool in which somebody waits, in the order of their ranks."""
    waiting = Request.objects.filter(state="queued").values("pool")
    return {pool.pk: admit(pool) for pool in Pool.objects.filter(pk__in=waiting).order_by("rank", "name")}


def admit(pool: Pool, *, window: int = WINDOW, also: Collection[Any] = ()) -> Admitted:
    """One pass over the queue of a pool; over the first `window` of a longer one, and `also` (ids).

    Raises InvalidInput when what is stored contradicts itself.
    """
    try:
        return _pass(pool, window, also)
    except IntegrityError:
        # somebody wrote into the ledger past the lock, by hand: what they wrote stands, and the plan is made again
        log.warning("the plan of pool %s met an allocation that was not in its snapshot", pool)
        return _pass(pool, window, also)


def _pass(pool: Pool, window: int, also: Collection[Any]) -> Admitted:
    with transaction.atomic():
        entries.take_turns()
        now = timezone.now()
        snapshot = freeze(pool, now, window=window, also=also)
        if not snapshot.waiting:
            return Admitted()
        plan = plan_for(snapshot)
        done = apply(pool, snapshot, plan, now=now)
        entries.check_turn()
    return done


def look_through_all(*, window: int = WINDOW) -> dict[UUID, Admitted]:
    """Looks at every request of the queues that are longer than a pass, and tells each why it waits.

    The plan is made without the lock, so nobody waits for it. What it would start, further back than a
    pass looks, is given to one.
    """
    done = {}
    for pool in Pool.objects.order_by("rank", "name"):
        if not Request.objects.filter(pool=pool, state="queued").order_by()[window : window + 1].exists():
            continue
        now = timezone.now()
        plan = plan_for(_undisturbed(pool, now))
        with transaction.atomic():
            _explain(plan.waits, now)
            transaction.on_commit(partial(queue_changed.send, sender=Pool, pool=pool.pk))
        wanted = [one.request.id for one in plan.starts[:window]]
        done[pool.pk] = admit(pool, window=window, also=wanted) if wanted else Admitted(waiting=len(plan.waits))
    return done


def _undisturbed(pool: Pool, now: datetime) -> Snapshot:
    """A snapshot of one moment, although nothing is locked meanwhile."""
    alone = not connection.in_atomic_block
    with transaction.atomic():
        if alone:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return freeze(pool, now)


def apply(pool: Pool, snapshot: Snapshot, plan: Plan, *, now: datetime) -> Admitted:
    """Writes a plan, in the caller's transaction, which holds the lock. Nine queries at most, whatever its size."""
    started = _start(pool, snapshot, plan.starts, now)
    told = _tell_to_leave(plan, now)
    changed = _explain(plan.waits, now)
    if changed:
        transaction.on_commit(partial(queue_changed.send, sender=Pool, pool=pool.pk))
    if plan.wakes:
        transaction.on_commit(partial(nodes_wanted.send, sender=Pool, nodes=list(plan.wakes)))
    return Admitted(started, told, len(plan.waits), len(plan.wakes))


def _start(pool: Pool, snapshot: Snapshot, starts: Sequence[Start], now: datetime) -> int:
    """queued > starting with a mark, and the promise of the cards, for those that still wait."""
    if not starts:
        return 0
    attempts: dict[Any, int] = dict(
        Request.objects.filter(pk__in=[one.request.id for one in starts], state="queued").values_list("pk", "attempt")
    )
    secret = secrets.token_hex(4 * len(starts))
    moves = []
    for number, one in enumerate(starts):
        if (before := attempts.get(one.request.id)) is None:
            continue
        mark = mark_of(str(one.request.id), before + 1, secret[8 * number : 8 * number + 8])
        changes = {
            "attempt": before + 1, "mark": mark, "explanation": one.why[:500], "reasons": [], "position": None,
            "expected_start": None, "cluster_id": _cluster_of(snapshot, one),
        }  # fmt: skip
        moves.append(Move(one.request.id, "queued", "admit", f"Placed on {one.why}."[:500], before + 1, changes))  # type: ignore[arg-type]
    moved = move_all(moves, now=now)
    _promise(pool, snapshot, [one for one in starts if one.request.id in moved], attempts, now)
    return len(moved)


def _cluster_of(snapshot: Snapshot, start: Start) -> Any:
    fleet = snapshot.fleet
    return fleet.nodes[fleet.node_places[start.nodes[0]]].cluster


def _promise(
    pool: Pool, snapshot: Snapshot, starts: Sequence[Start], attempts: Mapping[Any, int], now: datetime
) -> None:  # fmt: skip
    fleet = snapshot.fleet
    shared = {unit.card for one in starts for units in one.units for unit in units if unit.share != CARD}
    slices = slices_at(shared) if shared else {}
    since = now.replace(microsecond=0)
    found = [
        Entry(
            None, unit.card, fleet.cards[fleet.card_places[unit.card]].node, slices.get((unit.card, unit.start)),  # type: ignore[arg-type]
            unit.start, unit.stop, since, None, datetime.fromtimestamp(one.ends_at, UTC), one.request.id, None,  # type: ignore[arg-type]
            attempts[one.request.id] + 1, number, pool.pk, one.request.spec, one.request.priority, one.request.tenant,  # type: ignore[arg-type]
            one.request.project, AllocationSource.MANAGED.value, False, "",  # type: ignore[arg-type]
        )
        for one in starts
        for number, units in enumerate(one.units)
        for unit in units
    ]  # fmt: skip
    for entry, key in zip(found, new_ids(len(found)), strict=True):
        entry.id = key
    entries.write(found)


def _tell_to_leave(plan: Plan, now: datetime) -> int:
    """Marks what is to leave; whoever talks to its cluster signals it and ends it after its grace."""
    chosen: dict[Any, Any] = {one.running.request: one for one in plan.preemptions if one.running.request is not None}
    if not chosen:
        return 0
    rows = Request.objects.filter(pk__in=chosen, signalled_at=None, state__in=("starting", "running"))
    moves = []
    for key, state, attempt in rows.values_list("pk", "state", "attempt"):
        one = chosen[key]
        leaves = datetime.fromtimestamp(one.leaves_at, UTC)
        # whose work it is stands in the detail: whoever reads this may not see that
        cause = f"Told to leave by {leaves:%Y-%m-%d %H:%M:%S} UTC: work of a higher class needs its cards."
        changes = {"signalled_at": now, "leaves_at": leaves, "told_at": None}
        moves.append(Move(key, state, "preempt_asked", cause, attempt, changes, {"by": str(one.by.id)}))
    return len(move_all(moves, now=now))


_EXPLAIN = """
UPDATE pools_request request
   SET reasons = given.reasons, position = given.place, expected_start = given.expected, considered_at = %s
  FROM (SELECT id, reasons::jsonb AS reasons, place, to_timestamp(expected) AS expected
          FROM unnest(%s::uuid[], %s::text[], %s::int[], %s::float8[]) AS part(id, reasons, place, expected)) AS given
 WHERE request.id = given.id AND request.state = 'queued'
   AND (request.reasons, request.position, request.expected_start)
       IS DISTINCT FROM (given.reasons, given.place, given.expected)
"""


def _explain(waits: Sequence[Wait], now: datetime) -> int:
    """Reasons, places and expected starts of all that wait, in one statement; rows that say so already stay."""
    if not waits:
        return 0
    columns: tuple[list[Any], list[str], list[int], list[int | None]] = ([], [], [], [])
    for wait in waits:
        columns[0].append(wait.request.id)
        columns[1].append(stored_reasons(wait.reasons))
        columns[2].append(wait.position)
        columns[3].append(wait.expected_start)
    with connection.cursor() as cursor:
        cursor.execute(_EXPLAIN, [now, *columns])
        return int(cursor.rowcount)


def stored_reasons(reasons: Sequence[Reason]) -> str:
    """Reasons as they are stored. When they were found is left out: it is no reason, and would change every row."""
    told = [
        {"code": one.code.value, "args": {name: value for name, value in one.args.items() if name != "now"}}
        for one in reasons
    ]
    return json.dumps(told, default=_plain)


def _plain(value: Any) -> Any:
    """Numbers of arrays as numbers, everything else as text."""
    return value.item() if hasattr(value, "item") else str(value)
