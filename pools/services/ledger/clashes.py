"""Plans that meet work that was not planned: what was seen keeps its cards, and the plan is made again."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from inventory.models import Card
from pools.models import Request
from pools.services.ledger.entries import Entry, stored
from pools.services.moving import Move


@dataclass(slots=True)
class Again:
    """Plans made again: entries on other cards, entries that are no more, and what to tell of the requests."""

    moved: list[Entry] = field(default_factory=list)
    gone: list[Entry] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)


def plan_again(
    ousted: Sequence[Entry], *, held: Collection[UUID], pools: Mapping[UUID, UUID], now: datetime
) -> Again:  # fmt: skip
    """Another free card of the same node, model and pool for each; else the whole request goes back to the queue.

    `held` are cards that turned out to be held in this pass. Three queries for any number of clashes.
    """
    again = Again()
    if not ousted:
        return again
    nodes = {entry.node for entry in ousted}
    requests = {
        row.pk: row
        for row in Request.objects.filter(pk__in={entry.request for entry in ousted}).only(
            "id", "state", "attempt", "launch_tried_at", "leaves_at"
        )
    }
    present = stored(Q(node__in=nodes, span__upper_inf=True) | Q(request__in=requests, job=None, span__upper_inf=True))
    free = _free_cards(nodes, {entry.card for entry in present} | set(held))
    names = dict(Card.objects.filter(node__in=nodes).values_list("pk", "model"))
    lost: set[UUID] = set()
    for entry in ousted:
        assert entry.request is not None
        fitting = [
            card
            for card, model in free.get(entry.node, {}).items()
            if model == names.get(entry.card) and pools.get(card) == entry.pool
        ]
        if fitting and entry.slice is None and entry.request not in lost:
            del free[entry.node][fitting[0]]
            again.moved.append(replace(entry, card=fitting[0]))
            again.moves.append(_told(requests[entry.request]))
        else:
            lost.add(entry.request)
    again.moved = [entry for entry in again.moved if entry.request not in lost]
    again.moves = [move for move in again.moves if move.request not in lost]
    again.gone = [entry for entry in present if entry.request in lost and entry.job is None]
    again.moves += [move for key in sorted(lost) if (move := _back(requests[key], now)) is not None]
    return again


def _free_cards(nodes: Collection[UUID], held: Collection[UUID]) -> dict[UUID, dict[UUID, UUID | None]]:
    found: dict[UUID, dict[UUID, UUID | None]] = defaultdict(dict)
    here = Card.objects.filter(node__in=nodes, state="present", conflict="").exclude(mig_enabled=True)
    for card, node, model in here.order_by("slot", "id").values_list("pk", "node", "model"):
        if card not in held and node is not None:
            found[node][card] = model
    return found


def _told(request: Request) -> Move:
    # whose work it is stays out: the history is read by the request's team
    cause = "Other work runs on a card that was promised to it: it got another card of the same node."
    return Move(request.pk, request.state, "replan", cause, request.attempt)


def _back(request: Request, now: datetime) -> Move | None:
    """Back to the queue at once; what was submitted already is withdrawn from its scheduler first."""
    if request.state != "starting":
        return None
    cause = "Other work runs on cards that were promised to it: it waits again."
    if request.launch_tried_at is None:
        return Move(request.pk, request.state, "return", cause, request.attempt, {"mark": ""})
    if request.leaves_at is not None:
        return None
    return Move(request.pk, request.state, "withdraw", cause, request.attempt, {"leaves_at": now, "told_at": now})
