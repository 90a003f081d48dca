"""Adding sources by form: a search for BMCs, an exporter's page, tokens for agents."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from inventory.forms.enrolment import AgentForm, BmcRangeForm, ExporterForm
from inventory.models import Bmc, Discovery, Site
from inventory.services import agents, collectors, discovery
from sensaka.identity.access import inventory_page, operator_page, person
from sensaka.kernel.errors import Conflict, InvalidInput


def refused(form: forms.Form, error: InvalidInput | Conflict) -> None:
    """A service's refusal, beside the field that it names; what was typed stays."""
    field = error.context.get("field")
    form.add_error(field if isinstance(field, str) and field in form.fields else None, error.message)


@operator_page
def enrol(request: HttpRequest) -> HttpResponse:
    """The three ways in."""
    return render(request, "inventory/enrol.html", {"has_site": Site.objects.exists()})


@operator_page
@sensitive_post_parameters("new_password")
def enrol_bmc(request: HttpRequest) -> HttpResponse:
    """Search an address range for BMCs."""
    form = BmcRangeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            with transaction.atomic():  # a refused search leaves no new log-in behind
                row = discovery.start_discovery(
                    addresses=data["addresses"], ports=data["ports"], protocol=data["protocol"],
                    credential=form.chosen_credential(), tls=data["tls"], tls_authority=data["tls_authority"],
                    interval=data["interval"], site=data["site"], cluster=data["cluster"], rack=data["rack"],
                    actor=person(request),
                )  # fmt: skip
        except (InvalidInput, Conflict) as error:
            if "field" not in error.context:
                error.context["field"] = "addresses"
            refused(form, error)
        else:
            return redirect("discovery", row.pk)
    context = {"form": form, "dependent": BmcRangeForm.DEPENDENT}
    return render(request, "inventory/enrol_bmc.html", context)


@inventory_page
def discovery_page(request: HttpRequest, discovery_id: UUID) -> HttpResponse:
    """A search and what each address answered; live while it runs."""
    row = get_object_or_404(Discovery.objects.select_related("site", "cluster", "rack", "credential"), pk=discovery_id)
    template = "inventory/discovery_results.html" if request.headers.get("HX-Request") else "inventory/discovery.html"
    return render(request, template, {"discovery": row, "results": _results(row)})


def _results(row: Discovery) -> list[dict[str, Any]]:
    """The answers, found BMCs first, each with its node's page."""
    bmcs = Bmc.objects.select_related("node").in_bulk([entry["bmc"] for entry in row.results if entry.get("bmc")])
    known = {str(key): bmc for key, bmc in bmcs.items()}
    lines = [{**entry, "row": known.get(str(entry.get("bmc")))} for entry in row.results]
    return sorted(lines, key=lambda line: (line["row"] is None, line.get("outcome", "")))


@operator_page
def enrol_exporter(request: HttpRequest) -> HttpResponse:
    """Add an exporter's page; `test` reads it once without adding it."""
    form = ExporterForm(request.POST or None)
    tested: Any = None
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            if "test" in request.POST:
                tested = collectors.test_exporter(url=data["url"])
            else:
                row = collectors.add_exporter(
                    url=data["url"], site=data["site"], cluster=data["cluster"], rack=data["rack"],
                    interval=data["interval"], actor=person(request),
                )  # fmt: skip
                messages.success(request, _("%(url)s is added; it is read within seconds.") % {"url": row.url})
                return redirect("collectors")
        except (InvalidInput, Conflict) as error:
            if "field" not in error.context:
                error.context["field"] = "url"
            refused(form, error)
    return render(request, "inventory/enrol_exporter.html", {"form": form, "tested": tested})


@never_cache
@operator_page
def enrol_agent(request: HttpRequest) -> HttpResponse:
    """Make a token for agents and show the commands, once."""
    form = AgentForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            row, token = agents.create_enrolment_token(
                name=data["name"], site=data["site"], cluster=data["cluster"], rack=data["rack"], uses=data["uses"],
                expires_at=timezone.now() + form.life(), actor=person(request),
            )  # fmt: skip
        except (InvalidInput, Conflict) as error:
            refused(form, error)
        else:
            server = request.build_absolute_uri("/").rstrip("/")
            context = {"token": token, "row": row, "server": server}
            return render(request, "inventory/agent_commands.html", context)
    return render(request, "inventory/enrol_agent.html", {"form": form})
