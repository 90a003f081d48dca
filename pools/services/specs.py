"""Specs and priority classes."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction

from inventory.models import CardModel
from pools.models import PriorityClass, SharingMode, Spec
from pools.selectors.access import require_operator
from pools.services.catalogue import remove, store
from sensaka.identity.models import User
from sensaka.kernel.errors import InvalidInput


def save_spec(spec: Spec | None, *, values: Mapping[str, Any], actor: User | None) -> Spec:
    """A new spec, or a changed one.

    Raises InvalidInput with the field: for values that don't go together, and for a MIG profile that no
    card model of it has.
    """
    require_operator(actor)
    row = spec or Spec()
    models = values.get("card_models")
    if models is None:
        models = [] if row._state.adding else list(row.card_models.all())
    if not models:
        raise InvalidInput("choose at least one card model", field="card_models")
    if values.get("mode", row.mode) == SharingMode.MIG:
        _check_profile(values.get("profile", row.profile), models)
    return store(row, values=values, actor=actor)


def _check_profile(profile: str, models: Iterable[CardModel]) -> None:
    for model in models:
        known = [one["name"] for one in model.mig_profiles]
        if profile not in known:
            offered = f"it has {', '.join(known)}" if known else "it has none"
            raise InvalidInput(f"{model} has no MIG profile {profile or 'without a name'}: {offered}", field="profile")


def remove_spec(spec: Spec, *, actor: User | None) -> None:
    """Deletes a spec that nobody ever asked for. Raises ProtectedError else: withdraw it instead."""
    require_operator(actor)
    remove(spec, actor=actor)


def save_priority_class(row: PriorityClass | None, *, values: Mapping[str, Any], actor: User | None) -> PriorityClass:
    """A new class, or a changed one. A new default takes the mark from the one before, and is open to every tenant."""
    require_operator(actor)
    restricted = values["tenants"] if "tenants" in values else row is not None and row.tenants.exists()
    if restricted and values.get("default", row is not None and row.default):
        raise InvalidInput("the default class is open to every tenant", field="tenants")
    with transaction.atomic():
        if values.get("default"):
            others = PriorityClass.objects.filter(default=True)
            (others.exclude(pk=row.pk) if row is not None else others).update(default=False)
        return store(row or PriorityClass(), values=values, actor=actor)


def remove_priority_class(row: PriorityClass, *, actor: User | None) -> None:
    """Deletes a class that no request has. Raises ProtectedError else."""
    require_operator(actor)
    remove(row, actor=actor)
