"""What a launched job's runs mean for its request: it runs, or it is over and how."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from pools.models import EndAsked, Request
from pools.rules.spans import outcome_of
from pools.services.ledger.seen import SeenJob
from pools.services.moving import Move

_HOLDING = frozenset({"running", "suspended", "completing"})
_AGAIN = frozenset({"preempted", "requeued"})


def moves_of(request: Request, runs: Sequence[SeenJob], now: datetime) -> list[Move]:
    """The events that follow from the runs of a request's present attempt, in order. A repeated look gives none."""
    # Kubernetes' Job stands for its pods until there are some, then nobody sees it any more
    runs = [run for run in runs if run.run.started_at is not None or run.run.state != "unknown"]
    if request.state not in ("starting", "running") or not runs:
        return []
    found: list[Move] = []
    state, started = request.state, [run.run.started_at for run in runs if run.run.started_at is not None]
    if state == "starting" and started and any(run.run.open and run.run.state in _HOLDING for run in runs):
        start = min(started).replace(microsecond=0)
        ends = start + timedelta(seconds=request.time_limit)
        changes = {"started_at": start, "ends_at": ends, "job_reference": runs[0].job_id}
        where = f"Job {runs[0].job_id} of {runs[0].cluster_name} runs."
        found.append(Move(request.pk, state, "launch", where, request.attempt, changes))
        state = "running"
    if any(run.run.open for run in runs):
        return found
    return [*found, *_ended(request, state, runs, now)]


def _ended(request: Request, state: str, runs: Sequence[SeenJob], now: datetime) -> list[Move]:
    deciding = min(runs, key=lambda run: _RANK.index(run.run.state) if run.run.state in _RANK else 0)
    words = outcome_of(deciding.run)
    told = f"Job {deciding.job_id} of {deciding.cluster_name} {_verb(words)}."
    if request.end_asked:
        event = "complete" if request.end_asked == EndAsked.COMPLETE and state != "submitted" else "cancel"
        return [_over(request, state, event, told, words)]
    by_itself = deciding.run.state == "completed"
    if not by_itself and request.signalled_at is not None:
        return _displaced(request, state, now)
    if not by_itself and (request.leaves_at is not None or deciding.run.state in _AGAIN):
        event = "requeue" if state == "running" else "return"
        return [Move(request.pk, state, event, told, request.attempt, afresh(now))]
    event = {"completed": "complete", "cancelled": "cancel", "timeout": "time_out"}.get(deciding.run.state, "fail")
    return [_over(request, state, event, told, words)]


_RANK = (
    "failed", "out_of_memory", "node_fail", "boot_fail", "deadline", "timeout", "cancelled", "preempted", "requeued",
    "completed",
)  # fmt: skip
"""Of the runs of a gang the worst says how the request ended; what nobody knows comes before all."""


def _verb(words: str) -> str:
    return words if words.split(" ")[0] in ("completed", "failed", "ended", "missed", "ran") else f"is over: {words}"


def _over(request: Request, state: str, event: str, cause: str, words: str) -> Move:
    return Move(request.pk, state, event, cause, request.attempt, {"outcome": words[:500]})


def _displaced(request: Request, state: str, now: datetime) -> list[Move]:
    """It left for work of a higher class: it waits again, with its history."""
    cause = "Its cards were needed by work of a higher class, and its grace is over."
    return [
        Move(request.pk, state, "preempt", cause, request.attempt, {"preempted": request.preempted + 1}),
        Move(request.pk, "preempted", "requeue", "It waits for cards again.", request.attempt, afresh(now)),
    ]


def afresh(now: datetime) -> dict[str, Any]:
    """A request that waits again knows nothing of its last attempt but the number."""
    return {
        "mark": "", "job_reference": "", "launch_tried_at": None, "leased_until": None, "signalled_at": None,
        "leaves_at": None, "told_at": None, "started_at": None, "ends_at": None, "waited_since": now,
    }  # fmt: skip
