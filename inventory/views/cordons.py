"""Taking a node out of scheduling and back, after showing whom it touches."""

from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from inventory.forms.clusters import ReasonForm
from inventory.models import Cordon, Node
from inventory.selectors.cordons import before_cordon
from inventory.services.clusters import cordoning
from inventory.views import act_sentences
from inventory.views.acts import done, refused
from sensaka.identity.access import operator_page, person
from sensaka.kernel.errors import Conflict, InvalidInput

_NAMES = frozenset({"cordon", "drain", "return"})


@operator_page
def act(request: HttpRequest, node_id: UUID, name: str) -> HttpResponse:
    """Ask, then `cordon`, `drain` or `return` a node."""
    if name not in _NAMES:
        raise Http404(f"There is no act {name!r}.")
    try:
        before = before_cordon(node_id)
    except Node.DoesNotExist:
        raise Http404("No such node.") from None
    form = (forms.Form if name == "return" else ReasonForm)(request.POST or None)
    back, said = reverse("node", args=[node_id]), act_sentences.of_node(name, before)
    if request.method == "POST" and form.is_valid():
        actor = person(request)
        try:
            if name == "return":
                row = cordoning.uncordon(node=before.node, actor=actor)
            else:
                reason = form.cleaned_data["reason"]
                row = cordoning.cordon(node=before.node, reason=reason, drain=name == "drain", actor=actor)
        except (InvalidInput, Conflict) as error:
            refused(form, error)
        else:
            _tell(request, row, said)
            return done(request, back)
    context = {
        "form": form,
        "said": said,
        "before": before,
        "touched": act_sentences.touched(before.running),
        "act": name,
        "back": back,
        "form_template": "inventory/cordon_form.html",
    }
    template = context["form_template"] if request.headers.get("HX-Request") else "inventory/act_page.html"
    return render(request, str(template), context)


def _tell(request: HttpRequest, row: Cordon | None, said: act_sentences.Said) -> None:
    """What came of it: done, or written down and tried again."""
    if row is not None and row.last_error:
        text = _("It is written down but not done yet: %(error)s. It is tried again until it is done.")
        messages.warning(request, text % {"error": row.last_error.rstrip(".")})
    else:
        messages.success(request, said.done)
