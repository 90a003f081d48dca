"""Many requests that move from state to state at once: one statement and one insert for each kind of event."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from pools.models import Request, RequestEvent
from pools.rules.lifecycle import ENDED, REQUEST
from pools.signals import requests_changed

_TYPES = {
    "attempt": "smallint", "checkpoint_at": "timestamptz", "cluster_id": "uuid", "end_asked": "text",
    "end_asked_at": "timestamptz", "ended_at": "timestamptz", "ends_at": "timestamptz",
    "expected_start": "timestamptz", "explanation": "text", "job_reference": "text", "launch_tried_at": "timestamptz",
    "leased_until": "timestamptz", "leaves_at": "timestamptz", "mark": "text", "outcome": "text",
    "position": "integer", "preempted": "smallint", "reasons": "jsonb", "signalled_at": "timestamptz",
    "started_at": "timestamptz", "told_at": "timestamptz", "waited_since": "timestamptz",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Move:
    """One event of a request that is in `state`; `changes` are set with it, `cause` is one sentence."""

    request: UUID
    state: str
    event: str
    cause: str
    attempt: int = 0
    changes: Mapping[str, Any] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """The state after it. Raises IllegalTransition; an event that is not of the table leaves the state."""
        known = any(arrow.event == self.event for arrow in REQUEST.transitions)
        return REQUEST.target(self.state, self.event) if known else self.state


def move_all(moves: Iterable[Move], *, now: datetime) -> set[UUID]:
    """Lets the events happen to those requests that are still in their state, each request's in order; says to which.

    In the caller's transaction, with the lines of their histories; the signal is sent after commit.
    """
    groups: dict[tuple[int, str, str, tuple[str, ...]], list[Move]] = defaultdict(list)
    steps: Counter[UUID] = Counter()
    for move in moves:
        groups[steps[move.request], move.state, move.event, tuple(sorted(move.changes))].append(move)
        steps[move.request] += 1
    moved: set[UUID] = set()
    events: list[RequestEvent] = []
    for (_step, state, _event, names), own in sorted(groups.items()):
        done = _update(state, own[0].target, names, own, now)
        moved |= done
        events += [
            RequestEvent(
                request_id=move.request, at=now, event=move.event, source=state, target=move.target,
                attempt=move.changes.get("attempt", move.attempt), cause=move.cause[:500], detail=dict(move.detail),
            )
            for move in own
            if move.request in done
        ]  # fmt: skip
    if events:
        RequestEvent.objects.bulk_create(events)
        transaction.on_commit(partial(requests_changed.send, sender=Request, requests=sorted(moved)))
    return moved


def _update(state: str, target: str, names: tuple[str, ...], moves: list[Move], now: datetime) -> set[UUID]:
    columns = ["updated_at = %s"]
    values: list[Any] = [now]
    if target != state:
        columns += ["state = %s", "state_since = %s"]
        values += [target, now]
    if target in ENDED:
        columns += ["ended_at = %s", "reasons = '[]'", "position = NULL", "expected_start = NULL"]
        values += [now]
    columns += [f"{name} = given.{name}" for name in names]
    arrays = ["%s::uuid[]", *(f"%s::{'text' if _TYPES[name] == 'jsonb' else _TYPES[name]}[]" for name in names)]
    given = ", ".join(["id", *(f"{name}" for name in names)])
    chosen = ", ".join(["id", *(f"{name}::jsonb AS {name}" if _TYPES[name] == "jsonb" else name for name in names)])
    query = (
        f"UPDATE pools_request request SET {', '.join(columns)} "  # noqa: S608 - names from the table above
        f"FROM (SELECT {chosen} FROM unnest({', '.join(arrays)}) AS part({given})) AS given "
        "WHERE request.id = given.id AND request.state = %s RETURNING request.id"
    )
    values += [[move.request for move in moves], *([_plain(name, move) for move in moves] for name in names), state]
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return {key for (key,) in cursor.fetchall()}


def _plain(name: str, move: Move) -> Any:
    value = move.changes[name]
    return json.dumps(value) if _TYPES[name] == "jsonb" else value
