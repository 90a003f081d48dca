"""The topics `requests:<ids>`, `work` and `request:<id>`: what of a person's requests moves on a page."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import Max
from django.utils import timezone

from pools.models import Allocation, Request, RequestEvent
from pools.rules.lifecycle import HOLDING
from sensaka.identity.models import User
from sensaka.live.cells import Cell, Cells, count, moment, unknown, version
from sensaka.live.words import REQUEST_TAGS, REQUEST_WORDS

_BEFORE = frozenset({"submitted", "queued", "preempted"})
_LIST = (
    "id", "state", "held", "boost", "reasons", "position", "expected_start", "ends_at", "end_asked", "signalled_at",
    "leaves_at", "considered_at",
)  # fmt: skip


def state_cell(request: Request) -> Cell:
    """What a request does, or how it ended."""
    if request.state in _BEFORE and request.held:
        return Cell("On hold", "off", hint="It keeps its place and does not start until it is resumed.")
    if request.state in HOLDING and request.end_asked:
        return Cell("Ending", "busy", hint="Its cluster is told to end the work; then the cards are free.")
    if request.state in HOLDING and request.signalled_at is not None:
        until = f" It leaves by {request.leaves_at:%Y-%m-%d %H:%M} UTC." if request.leaves_at else ""
        return Cell("Told to leave", "warn", hint=f"Work of a higher class needs its cards.{until}")
    return Cell(REQUEST_WORDS.get(request.state, request.state), REQUEST_TAGS.get(request.state, "unknown"))


def expected_cell(request: Request) -> Cell:
    """When the last plan expects it to start; never a guess of ours."""
    if request.state != "queued":
        return Cell("")
    if request.expected_start is None:
        return Cell("not known", "unknown", hint=_why_unknown(request.considered_at))
    hint = "By the last plan, if everything ahead takes its full time limit. Work that ends early brings it forward."
    return moment(request.expected_start, hint=hint)


def _why_unknown(considered_at: datetime | None) -> str:
    if considered_at is None:
        return "No plan has looked at it yet."
    return "The last plan has no time for it: its reasons say what has to change first."


def row_cells(prefix: str, request: Request) -> Cells:
    """The cells of a request in a list."""
    waits = request.state == "queued"
    return {
        f"{prefix}.state": state_cell(request),
        f"{prefix}.position": Cell(count(request.position)) if waits and request.position else unknown(),
        f"{prefix}.expected": expected_cell(request),
        f"{prefix}.ends": moment(request.ends_at) if request.ends_at else unknown("It has no end yet."),
    }


def _newest(user: User) -> tuple[object, ...]:
    """The request that was submitted last, of those that a person sees."""
    rows = Request.objects.visible_to(user).order_by("-submitted_at", "-id")
    return tuple(rows.values_list("id", flat=True)[:1])


def list_cells(user: User, ids: Iterable[UUID]) -> Cells:
    """The rows of a list, and a version that changes when one of them does or a newer one comes. Three queries."""
    wanted = list(ids)
    found: Cells = {}
    shown: list[object] = []
    if wanted:
        for row in Request.objects.visible_to(user).filter(pk__in=wanted).only(*_LIST).order_by("id"):
            found.update(row_cells(f"request.{row.pk}", row))
            shown.append((row.pk, row.state, row.held, row.boost, row.reasons, row.end_asked, row.position))
        events = RequestEvent.objects.visible_to(user).filter(request__in=wanted)
        shown.append(events.aggregate(last=Max("at"))["last"])
    found["requests.version"] = version(shown, _newest(user))
    return found


def cells(user: User, request_id: UUID) -> Cells:
    """Everything on the page of a request that moves; none of one that is gone or somebody else's."""
    request = Request.objects.visible_to(user).filter(pk=request_id).only(*_LIST, "updated_at", "explanation").first()
    if request is None:
        return {}
    found = row_cells("request", request)
    held = Allocation.objects.visible_to(user).filter(request=request_id).order_by("id")
    last = RequestEvent.objects.filter(request=request_id).aggregate(last=Max("at"))["last"]
    now = timezone.now() if request.state in HOLDING else None  # activity moves while cards are held
    minute = None if now is None else int(now.timestamp()) // 10
    found["facts.version"] = version(request.updated_at, request.state, last)
    found["why.version"] = version(request.reasons, request.state, request.position)
    found["history.version"] = version(last)
    found["held.version"] = version(list(held.values_list("id", "span")), minute)
    return found
