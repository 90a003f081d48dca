"""Acts on collectors: read now, switch, change the rhythm, delete after asking."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from inventory.forms.enrolment import IntervalForm
from inventory.models import Agent, Bmc, ClusterConnection, Exporter
from inventory.services import agents, collectors
from sensaka.identity.access import operator_page, person
from sensaka.kernel.errors import Conflict, InvalidInput

_KINDS: dict[str, type[Any]] = {"bmc": Bmc, "exporter": Exporter, "agent": Agent, "scheduler": ClusterConnection}


def _source(kind: str, source_id: UUID) -> Any:
    if kind not in _KINDS:
        raise Http404(f"There is no kind of collector {kind!r}.")
    of = "cluster" if kind == "scheduler" else "node"
    return get_object_or_404(_KINDS[kind].objects.select_related(of), pk=source_id)


def _back(request: HttpRequest) -> HttpResponse:
    target = request.POST.get("next", "")
    if target and url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure()):
        return redirect(target)
    return redirect("collectors")


@operator_page
@require_POST
def act(request: HttpRequest, kind: str, source_id: UUID, name: str) -> HttpResponse:
    """`read`, `enable`, `disable`, `interval`, or for agents `revoke`."""
    source = _source(kind, source_id)
    actor = person(request)
    try:
        match name:
            case "read":
                collectors.read_now(collector=source, actor=actor)
                said = _("%(name)s is read now.")
            case "enable" | "disable":
                collectors.set_enabled(collector=source, enabled=name == "enable", actor=actor)
                said = _("%(name)s is switched on.") if name == "enable" else _("%(name)s is switched off.")
            case "interval":
                form = IntervalForm(request.POST)
                if not form.is_valid():
                    raise InvalidInput(_("Use a whole number of seconds from 5 to 3600."))
                collectors.change_interval(collector=source, interval=form.cleaned_data["interval"], actor=actor)
                said = _("%(name)s has a new rhythm.")
            case "revoke" if kind == "agent":
                agents.revoke_agent(agent=source, actor=actor)
                said = _("%(name)s may no longer send. To undo this, enrol it again.")
            case _:
                raise Http404(f"There is no act {name!r}.")
    except (InvalidInput, Conflict) as error:
        messages.error(request, error.message)
    else:
        messages.success(request, said % {"name": source})
    return _back(request)


@operator_page
def delete(request: HttpRequest, kind: str, source_id: UUID) -> HttpResponse:
    """Delete a collector; its node, cards and their history stay. Schedulers are disconnected elsewhere."""
    if kind == "scheduler":
        raise Http404("A scheduler is disconnected where its connection is edited.")
    source = _source(kind, source_id)
    if request.method == "POST":
        name = str(source)
        try:
            collectors.remove(collector=source, actor=person(request))
        except (InvalidInput, Conflict) as error:
            messages.error(request, error.message)
        else:
            messages.success(request, _("%(name)s is deleted.") % {"name": name})
        return redirect("collectors")
    effect = _("Nothing reads this source any more. Its node and cards stay, with their history, and become stale.")
    return render(request, "inventory/confirm_delete.html", {"row": source, "back": "collectors", "effect": effect})
