"""What the pages of pools have in common: a form that a service saves, a question before an act."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Model, ProtectedError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from pools.forms.base import refused
from sensaka.kernel.errors import Conflict, InvalidInput

Save = Callable[[], Any]
_LISTS = {
    "pools": "Pools", "specs": "Specs", "tenants": "Tenants", "quotas": "Quotas", "maintenance": "Maintenance",
    "priority-classes": "Priority classes",
}  # fmt: skip


def edit(
    request: HttpRequest, form: forms.BaseForm, save: Save, *, title: str, back: str, back_args: tuple[Any, ...] = (),
    lead: str = "", act: str = "", template: str = "pools/form_page.html", **context: Any,
) -> HttpResponse:  # fmt: skip
    """Shows a form; sent and sound, `save` writes it and the page before is next. A refusal stands at its field."""
    if request.method == "POST" and form.is_valid():
        try:
            row = save()
        except (InvalidInput, Conflict) as error:
            refused(form, error)
        else:
            messages.success(request, _("%(name)s is saved.") % {"name": row})
            return redirect(back, *back_args)
    shown = {
        "form": form, "title": title, "back": back, "back_args": back_args, "lead": lead, "act": act or _("Save"),
        "back_title": _(_LISTS[back]) if back in _LISTS else _("Back"),
        "dependent": getattr(form, "DEPENDENT", {}), **context,
    }  # fmt: skip
    return render(request, template, shown)


def confirm(
    request: HttpRequest, row: Model, act: Callable[[], object], *, question: str, effect: str, button: str, done: str,
    back: str, back_args: tuple[Any, ...] = (),
) -> HttpResponse:  # fmt: skip
    """Asks, then acts; what can't be says why, and nothing happens."""
    if request.method == "POST":
        try:
            act()
        except ProtectedError as error:
            number = len(error.protected_objects)
            told = _("%(name)s is in use by %(number)d other things, so it stays. Take it out of use instead.")
            messages.error(request, told % {"name": row, "number": number})
        except (InvalidInput, Conflict) as error:
            messages.error(request, error.message[:1].upper() + error.message[1:] + ".")
        else:
            messages.success(request, done)
        return redirect(back, *back_args)
    shown = {
        "row": row, "question": question, "effect": effect, "button": button, "back": back, "back_args": back_args,
    }  # fmt: skip
    return render(request, "pools/confirm.html", shown)
