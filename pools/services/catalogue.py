"""Saving and removing what operators set up: one row, its lines in the journal, one signal after commit."""

from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.utils import timezone

from inventory.models import JournalKind
from inventory.services.journal import Note, write_entries
from pools.signals import catalogue_changed
from sensaka.identity.models import User
from sensaka.kernel.errors import InvalidInput

R = TypeVar("R", bound=models.Model)


def store(row: R, *, values: Mapping[str, Any], actor: User | None) -> R:
    """Sets `values` on a new or stored row, many-to-many ones included, and tells the journal what changed.

    Raises InvalidInput with the field where one value, or all of them together, can't be.
    """
    many = {field.name for field in row._meta.many_to_many}
    changed = sorted(name for name, value in values.items() if name not in many and getattr(row, name, None) != value)
    for name in changed:
        setattr(row, name, values[name])
    adding = row._state.adding
    with transaction.atomic():
        checked(row)
        row.save()
        for name in many & values.keys():
            if set(getattr(row, name).all()) != set(values[name]):
                getattr(row, name).set(values[name])
                changed.append(name)
        if adding:
            tell(row, f"{kind_of(row)} {row} was added.", actor)
        elif changed:
            named = ", ".join(name.replace("_", " ") for name in changed)
            tell(row, f"{kind_of(row)} {row} was changed: {named}.", actor)
    return row


def remove(row: models.Model, *, actor: User | None) -> None:
    """Deletes a row. Raises ProtectedError while something uses it."""
    with transaction.atomic():
        tell(row, f"{kind_of(row)} {row} was deleted.", actor)
        row.delete()


def checked(row: models.Model) -> None:
    """Raises InvalidInput with the first field that can't be, and all messages by field."""
    try:
        row.full_clean()
    except ValidationError as error:
        found = error.message_dict
        field = next(iter(found))
        named = None if field == "__all__" else field
        raise InvalidInput(found[field][0], field=named, fields=found) from None


def kind_of(row: models.Model) -> str:
    """What the journal calls a row: "Priority class"."""
    name = str(row._meta.verbose_name)
    return name[:1].upper() + name[1:]


def tell(row: models.Model, text: str, actor: User | None) -> None:
    """A line in the journal now, the signal after commit."""
    detail = {row._meta.model_name or "row": str(row.pk)}
    note = Note(JournalKind.SETTINGS_CHANGED, text, timezone.now(), source="user" if actor else "", detail=detail)
    write_entries(notes=[note], actor=actor)
    transaction.on_commit(partial(catalogue_changed.send, sender=type(row), kind=row._meta.model_name))
