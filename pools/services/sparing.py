"""Exemptions: idle cards of a project, a request or a spec that are left alone for a time."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from pools.models import SPARED_TARGETS, IdleExemption
from pools.selectors.access import require_operator
from pools.services.catalogue import checked, tell
from sensaka.identity.models import User
from sensaka.kernel.errors import InvalidInput


def spare(*, target: Any, reason: str, until: datetime, actor: User | None) -> IdleExemption:
    """Leaves idle cards of a project, request or spec alone until `until`, or until it is lifted.

    Raises PermissionDenied and InvalidInput with the field.
    """
    require_operator(actor)
    name = target._meta.model_name
    if name not in SPARED_TARGETS:
        raise InvalidInput(f"spared is a {', '.join(SPARED_TARGETS)}")
    if not reason.strip():
        raise InvalidInput("say why", field="reason")
    if until <= timezone.now():
        raise InvalidInput("the end lies in the past", field="until")
    row = IdleExemption(reason=reason.strip(), until=until, placed_by=actor, **{name: target})
    with transaction.atomic():
        checked(row)
        row.save()
        tell(row, f"Idle cards of {name} {target} are left alone: {row.reason}", actor)
    return row


def lift_exemption(row: IdleExemption, *, actor: User | None) -> None:
    """Ends an exemption. Doing it again changes nothing."""
    require_operator(actor)
    now = timezone.now()
    with transaction.atomic():
        rows = IdleExemption.objects.filter(pk=row.pk, lifted_at=None)
        if rows.update(lifted_at=now, lifted_by=actor, updated_at=now):
            tell(row, f"Idle cards are no longer left alone: {row.reason}", actor)
    row.refresh_from_db()
