"""More time for requests that run: asked for with a reason, and decided."""

from datetime import timedelta

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.utils import timezone

from pools.models import Allocation, Extension, ExtensionState, Request
from pools.selectors.access import manages, require_owner
from pools.services.asking import LONGEST
from pools.services.catalogue import checked
from pools.services.lifecycle import note
from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, IllegalTransition, InvalidInput


def ask_extension(request: Request, *, seconds: int, justification: str, actor: User) -> Extension:
    """Asks for more time for a request that holds cards; an operator's own wish is granted at once.

    Raises InvalidInput with the field, IllegalTransition for one that holds no cards, and Conflict while
    another wish waits for its decision.
    """
    require_owner(actor, request)
    if request.state not in ("starting", "running"):
        raise IllegalTransition(f"{request} is {request.get_state_display()}: only what runs can be extended")
    if not 60 <= seconds <= LONGEST:
        raise InvalidInput(f"ask for 60 to {LONGEST:,} seconds", field="seconds")
    if not justification.strip():
        raise InvalidInput("say what the time is needed for", field="justification")
    row = Extension(request=request, seconds=seconds, justification=justification.strip(), asked_by=actor)
    try:
        with transaction.atomic():
            checked(row)
            row.save()
            cause = f"{actor} asked for {seconds:,} s more: {row.justification}"
            note(request, "extension_asked", cause=cause, target=request.state, actor=actor, now=timezone.now())
    except IntegrityError:
        raise Conflict("an extension is asked already: wait for its decision") from None
    return decide(row, granted=True, why="", actor=actor) if actor.operates else row


def may_decide(user: User, extension: Extension) -> bool:
    """Operators decide; an admin of the tenant does while the pool's longest run is kept to."""
    if user.operates:
        return True
    request = extension.request
    longest = request.pool.longest_run
    within = longest is not None and request.time_limit + extension.seconds <= longest
    return within and manages(user, request.project.tenant_id)


def decide(extension: Extension, *, granted: bool, why: str, actor: User) -> Extension:
    """Grants or refuses an extension; granted, the request and what it holds end that much later.

    Raises PermissionDenied, Conflict when it was decided already or the request no longer runs, and
    InvalidInput for a refusal without a reason.
    """
    if not may_decide(actor, extension):
        raise PermissionDenied("Operators decide this, and admins of the tenant up to the pool's longest run.")
    if not granted and not why.strip():
        raise InvalidInput("say why it is refused", field="why")
    now = timezone.now()
    state = ExtensionState.GRANTED if granted else ExtensionState.REFUSED
    with transaction.atomic():
        request = Request.objects.select_for_update().get(pk=extension.request_id)
        decided = Extension.objects.filter(pk=extension.pk, state=ExtensionState.ASKED).update(
            state=state, decided_by=actor, decided_at=now, decision=why.strip(), updated_at=now
        )
        if not decided:
            raise Conflict("the extension was decided already")
        if granted:
            _lengthen(request, extension.seconds)
        cause = f"{actor} {state} {extension.seconds:,} s more{': ' + why.strip() if why.strip() else ''}."
        note(request, f"extension_{state}", cause=cause, target=request.state, actor=actor, now=now)
    extension.refresh_from_db()
    return extension


def _lengthen(request: Request, seconds: int) -> None:
    """The row is locked. What it holds ends later as well."""
    if request.state not in ("starting", "running"):
        raise Conflict(f"{request} is {request.get_state_display()} by now")
    request.time_limit += seconds
    if request.ends_at is not None:
        request.ends_at += timedelta(seconds=seconds)
    request.save(update_fields=["time_limit", "ends_at", "updated_at"])
    Allocation.objects.filter(request=request, span__upper_inf=True).update(ends_at=request.ends_at)
