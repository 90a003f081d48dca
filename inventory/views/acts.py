"""What acts that are confirmed in a dialog share: where they lead, and how a refusal is shown."""

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from sensaka.kernel.errors import SensakaError


def refused(form: forms.Form, error: SensakaError) -> None:
    """A service's refusal, beside the field that it names; what was typed stays."""
    field = error.context.get("field")
    message = error.message[:1].upper() + error.message[1:]
    form.add_error(field if isinstance(field, str) and field in form.fields else None, message)


def done(request: HttpRequest, back: str) -> HttpResponse:
    """On to a page: by the script of a dialog, else by the browser."""
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204, headers={"HX-Redirect": back})
    return redirect(back)
