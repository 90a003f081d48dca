"""Settings of the inventory: places, credentials, card models, busy thresholds."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import Count, Model, ProtectedError, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from inventory.forms.places import PLACE_FORMS, CardModelForm, CredentialForm, ThresholdForm
from inventory.models import BusyThreshold, CardModel, Cluster, Credential, JournalKind, Rack, Site
from inventory.services.journal import Note, write_entries
from inventory.signals import tree_changed
from sensaka.identity.access import inventory_page, operator_page, person

_PLACES: dict[str, type[Model]] = {"site": Site, "cluster": Cluster, "rack": Rack}
_TITLES = {
    "places": "Places", "credentials": "Credentials", "card-models": "Card models", "thresholds": "Busy thresholds",
}  # fmt: skip
_INSTALLED = ~Q(nodes__state="retired") & Q(nodes__isnull=False)


def _next(request: HttpRequest, fallback: str) -> HttpResponse:
    """Where `?next=` says when that is a page of ours, else the list."""
    target = request.GET.get("next", "")
    if target and url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure()):
        return redirect(target)
    return redirect(fallback)


def _tell(request: HttpRequest, row: Model, text: str) -> None:
    """Write the journal and nudge the pages."""
    note = Note(JournalKind.SETTINGS_CHANGED, text[:1].upper() + text[1:], timezone.now(), source="user")
    write_entries(notes=[note], actor=person(request))
    tree_changed.send(sender=type(row), nodes=())


def _edit(request: HttpRequest, form: "forms.ModelForm[Any]", *, title: str, back: str, lead: str = "") -> HttpResponse:
    """Show a form, or save it and go back."""
    if request.method == "POST" and form.is_valid():
        row = form.save()
        _tell(request, row, f"{row._meta.verbose_name} {row} was saved in the settings.")
        messages.success(request, _("%(name)s is saved.") % {"name": row})
        return _next(request, back)
    context = {
        "form": form, "title": title, "back": back, "back_title": _(_TITLES[back]), "act": _("Save"), "lead": lead,
    }  # fmt: skip
    return render(request, "parts/form_page.html", context)


def _delete(request: HttpRequest, row: Model, *, back: str, effect: str) -> HttpResponse:
    """Ask, then delete; what is in use says so and stays."""
    if request.method == "POST":
        name = str(row)
        try:
            row.delete()
        except ProtectedError as error:
            number = len(error.protected_objects)
            messages.error(
                request,
                _("%(name)s is in use by %(number)d other things: move or remove those first.")
                % {"name": name, "number": number},
            )
            return redirect(back)
        _tell(request, row, f"{row._meta.verbose_name} {name} was deleted from the settings.")
        messages.success(request, _("%(name)s is deleted.") % {"name": name})
        return redirect(back)
    return render(request, "inventory/confirm_delete.html", {"row": row, "back": back, "effect": effect})


@inventory_page
def places(request: HttpRequest) -> HttpResponse:
    """Sites with their clusters and racks."""
    nodes = Count("nodes", filter=_INSTALLED, distinct=True)
    context = {
        "sites": Site.objects.annotate(number=nodes),
        "clusters": Cluster.objects.select_related("site").annotate(number=nodes),
        "racks": Rack.objects.select_related("site").annotate(number=nodes),
    }
    return render(request, "inventory/places.html", context)


def _place_model(kind: str) -> type[Any]:
    if kind not in _PLACES:
        raise Http404(f"There is no kind of place {kind!r}.")
    return _PLACES[kind]


@operator_page
def place_add(request: HttpRequest, kind: str) -> HttpResponse:
    """A new site, cluster or rack."""
    _place_model(kind)
    site = request.GET.get("site")
    form = PLACE_FORMS[kind](request.POST or None, initial={"site": site} if site else None)
    return _edit(request, form, title=_("Add a %(kind)s") % {"kind": kind}, back="places")


@operator_page
def place_edit(request: HttpRequest, kind: str, place_id: UUID) -> HttpResponse:
    """Change a site, cluster or rack."""
    row = get_object_or_404(_place_model(kind), pk=place_id)
    return _edit(request, PLACE_FORMS[kind](request.POST or None, instance=row), title=str(row), back="places")


@operator_page
def place_delete(request: HttpRequest, kind: str, place_id: UUID) -> HttpResponse:
    """Delete a site, cluster or rack that nothing uses."""
    row = get_object_or_404(_place_model(kind), pk=place_id)
    return _delete(request, row, back="places", effect=_("It can be deleted while nothing stands in it."))


@inventory_page
def credentials(request: HttpRequest) -> HttpResponse:
    """Log-ins for BMCs, without their passwords."""
    rows = Credential.objects.defer("password").annotate(number=Count("bmcs"))
    return render(request, "inventory/credentials.html", {"credentials": rows})


@operator_page
def credential_add(request: HttpRequest) -> HttpResponse:
    """A new log-in."""
    return _edit(request, CredentialForm(request.POST or None), title=_("Add a log-in"), back="credentials")


@operator_page
def credential_edit(request: HttpRequest, credential_id: UUID) -> HttpResponse:
    """Change a log-in."""
    row = get_object_or_404(Credential, pk=credential_id)
    return _edit(request, CredentialForm(request.POST or None, instance=row), title=row.name, back="credentials")


@operator_page
def credential_delete(request: HttpRequest, credential_id: UUID) -> HttpResponse:
    """Delete a log-in that no BMC uses."""
    row = get_object_or_404(Credential, pk=credential_id)
    return _delete(request, row, back="credentials", effect=_("It can be deleted while no BMC uses it."))


@inventory_page
def card_models(request: HttpRequest) -> HttpResponse:
    """The catalogue."""
    query = request.GET.get("q", "").strip()
    rows = CardModel.objects.annotate(number=Count("cards", filter=~Q(cards__state="retired")))
    if query:
        rows = rows.filter(Q(name__icontains=query) | Q(vendor__icontains=query) | Q(slug__icontains=query))
    return render(request, "inventory/card_models.html", {"models": rows, "query": query})


@operator_page
def card_model_add(request: HttpRequest) -> HttpResponse:
    """A model of the site's own."""
    lead = _("Cards whose name or PCI id is listed here belong to this model from their next reading on.")
    form = CardModelForm(request.POST or None)
    return _edit(request, form, title=_("Add a card model"), back="card-models", lead=lead)


@operator_page
def card_model_edit(request: HttpRequest, model_id: UUID) -> HttpResponse:
    """Change a model; a shipped one comes back with the next update."""
    row = get_object_or_404(CardModel, pk=model_id)
    lead = _("This model is shipped with Sensaka: an update may write it again.") if row.shipped else ""
    form = CardModelForm(request.POST or None, instance=row)
    return _edit(request, form, title=row.name, back="card-models", lead=lead)


@inventory_page
def thresholds(request: HttpRequest) -> HttpResponse:
    """From which activity cards count as busy."""
    rows = BusyThreshold.objects.select_related("model", "cluster__site").order_by("model__name", "cluster__name")
    return render(request, "inventory/thresholds.html", {"thresholds": rows})


@operator_page
def threshold_add(request: HttpRequest) -> HttpResponse:
    """A new threshold."""
    return _edit(request, ThresholdForm(request.POST or None), title=_("Add a threshold"), back="thresholds")


@operator_page
def threshold_edit(request: HttpRequest, threshold_id: UUID) -> HttpResponse:
    """Change a threshold."""
    row = get_object_or_404(BusyThreshold, pk=threshold_id)
    return _edit(request, ThresholdForm(request.POST or None, instance=row), title=_("Threshold"), back="thresholds")


@operator_page
def threshold_delete(request: HttpRequest, threshold_id: UUID) -> HttpResponse:
    """Delete a threshold; the less specific one counts again."""
    row = get_object_or_404(BusyThreshold, pk=threshold_id)
    return _delete(request, row, back="thresholds", effect=_("The less specific threshold counts then."))
