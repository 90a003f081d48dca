"""Maintenance windows and holds."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from pools.models import HOLD_TARGETS, Hold, MaintenanceWindow
from pools.selectors.access import require_operator
from pools.services.catalogue import checked, store, tell
from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, InvalidInput


def save_window(
    window: MaintenanceWindow | None, *, values: Mapping[str, Any], actor: User | None
) -> MaintenanceWindow:
    """A new window, or a changed one. Raises InvalidInput with the field, and for one that is over already."""
    require_operator(actor)
    row = window or MaintenanceWindow()
    ends_at = values.get("ends_at", row.ends_at)
    if ends_at is not None and ends_at <= timezone.now():
        raise InvalidInput("the end lies in the past", field="ends_at")
    if row.cancelled_at is not None:
        raise Conflict(f"{row} was cancelled: make a new one")
    return store(row, values=values, actor=actor)


def cancel_window(window: MaintenanceWindow, *, actor: User | None) -> None:
    """Calls a window off; the queue no longer plans around it. Doing it again changes nothing."""
    require_operator(actor)
    now = timezone.now()
    with transaction.atomic():
        if MaintenanceWindow.objects.filter(pk=window.pk, cancelled_at=None).update(cancelled_at=now, updated_at=now):
            tell(window, f"Maintenance window {window} was called off.", actor)
    window.refresh_from_db()


def place_hold(*, target: Any, reason: str, source: str, until: datetime | None = None, actor: User | None) -> Hold:
    """Lets nothing new of a tenant, project, request or pool start until `until`, or until it is lifted."""
    require_operator(actor)
    name = target._meta.model_name
    if name not in HOLD_TARGETS:
        raise InvalidInput(f"a hold is of a {', '.join(HOLD_TARGETS)}")
    if not reason.strip():
        raise InvalidInput("say why", field="reason")
    row = Hold(reason=reason.strip(), source=source, until=until, placed_by=actor, **{name: target})
    with transaction.atomic():
        checked(row)
        row.save()
        tell(row, f"{name.capitalize()} {target} was put on hold: {row.reason}", actor)
    return row


def lift_hold(hold: Hold, *, actor: User | None) -> None:
    """Ends a hold. Doing it again changes nothing."""
    require_operator(actor)
    now = timezone.now()
    with transaction.atomic():
        rows = Hold.objects.filter(pk=hold.pk, lifted_at=None)
        if rows.update(lifted_at=now, lifted_by=actor, updated_at=now):
            tell(hold, f"The hold was lifted: {hold.reason}", actor)
    hold.refresh_from_db()
