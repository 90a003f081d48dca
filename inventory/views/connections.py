"""Connecting a cluster to its scheduler: a form that tries before it keeps."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from inventory.forms.clusters import ConnectForm, ConnectionForm
from inventory.models import ClusterConnection, Site
from inventory.services import collectors
from inventory.services.clusters import connections
from inventory.services.clusters.connections import ConnectionTest
from inventory.views.acts import done, refused
from sensaka.identity.access import operator_page, person
from sensaka.kernel.errors import Conflict, InvalidInput

_secret = sensitive_post_parameters("jwt_key", "token", "kubeconfig")


def _tested(form: ConnectionForm) -> ConnectionTest | None:
    """What the scheduler said when it was tried, or None when the form was refused."""
    try:
        return connections.test(form.access())
    except (InvalidInput, Conflict) as error:
        refused(form, error)
        return None


@never_cache
@_secret
@operator_page
def connect(request: HttpRequest) -> HttpResponse:
    """Connect a cluster; `test` tries it without keeping anything."""
    wanted = request.GET.get("cluster", "")
    form = ConnectForm(request.POST or None, initial={"cluster": wanted} if wanted else None)
    tested = None
    if request.method == "POST" and form.is_valid():
        if "test" in request.POST:
            tested = _tested(form)
        else:
            try:
                with transaction.atomic():  # a refused connection leaves no new cluster behind
                    cluster = form.chosen_cluster()
                    connections.connect(
                        cluster=cluster,
                        access=form.access(),
                        interval=form.cleaned_data["interval"],
                        actor=person(request),
                    )
            except (InvalidInput, Conflict) as error:
                refused(form, error)
            else:
                messages.success(
                    request, _("%(name)s is connected; it is read within seconds.") % {"name": cluster.name}
                )
                return done(request, reverse("cluster", args=[cluster.pk]))
    context = {
        "form": form,
        "tested": tested,
        "dependent": ConnectForm.DEPENDENT,
        "title": _("Connect a cluster"),
        "back": reverse("clusters"),
        "back_title": _("Clusters"),
        "button": _("Connect"),
        "has_site": Site.objects.exists(),
    }
    return _shown(request, context)


@never_cache
@_secret
@operator_page
def edit(request: HttpRequest, cluster_id: UUID) -> HttpResponse:
    """Change how a cluster is reached; a secret that is not typed anew stays."""
    row = _connection(cluster_id)
    form = ConnectionForm(request.POST or None, stored=row)
    tested = None
    if request.method == "POST" and form.is_valid():
        if "test" in request.POST:
            tested = _tested(form)
        else:
            try:
                wanted = {**asdict(form.access()), "interval": form.cleaned_data["interval"]}
                connections.change(connection=row, changes=wanted, actor=person(request))
            except (InvalidInput, Conflict) as error:
                refused(form, error)
            else:
                messages.success(request, _("The connection is changed; it is read within seconds."))
                return done(request, reverse("cluster", args=[cluster_id]))
    context = {
        "form": form,
        "tested": tested,
        "dependent": ConnectionForm.DEPENDENT,
        "title": _("Connection of %(name)s") % {"name": row.cluster.name},
        "back": reverse("cluster", args=[cluster_id]),
        "back_title": row.cluster.name,
        "button": _("Save"),
        "has_site": True,
    }
    return _shown(request, context)


def _shown(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """The page; for its script only the form, so that a secret that was typed stays in the browser."""
    template = "connection_form" if request.headers.get("HX-Request") else "connection_page"
    return render(request, f"inventory/{template}.html", context)


def _connection(cluster_id: UUID) -> ClusterConnection:
    return get_object_or_404(ClusterConnection.objects.select_related("cluster__site"), cluster=cluster_id)


@operator_page
@require_POST
def act(request: HttpRequest, cluster_id: UUID, name: str) -> HttpResponse:
    """`read`, `enable` or `disable`."""
    row = _connection(cluster_id)
    actor = person(request)
    try:
        match name:
            case "read":
                collectors.read_now(collector=row, actor=actor)
                said = _("%(name)s is read now.")
            case "enable" | "disable":
                connections.change(connection=row, changes={"enabled": name == "enable"}, actor=actor)
                said = _("%(name)s is read again.") if name == "enable" else _("%(name)s is no longer read.")
            case _:
                raise Http404(f"There is no act {name!r}.")
    except (InvalidInput, Conflict) as error:
        messages.error(request, error.message)
    else:
        messages.success(request, said % {"name": row.cluster.name})
    return redirect("cluster", cluster_id)


@operator_page
def delete(request: HttpRequest, cluster_id: UUID) -> HttpResponse:
    """Cut the connection; the cluster, its nodes and the jobs that are known stay."""
    row = _connection(cluster_id)
    if request.method == "POST":
        try:
            connections.disconnect(connection=row, actor=person(request))
        except (InvalidInput, Conflict) as error:
            messages.error(request, error.message)
        else:
            messages.success(request, _("%(name)s is no longer connected.") % {"name": row.cluster.name})
        return redirect("cluster", cluster_id)
    effect = _(
        "Its scheduler is no longer read and can't be acted on from here. Nothing changes in the scheduler: what is "
        "cordoned stays so. The cluster, its nodes and the jobs that are known stay, with their history."
    )
    context = {"row": row, "back": "clusters", "effect": effect}
    return render(request, "inventory/confirm_delete.html", context)
