"""The search behind Ctrl-K: pages, nodes, cards, clusters, jobs, requests and specs, as far as a person sees them."""

from dataclasses import dataclass

from django.db.models import F, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from inventory.models import Bmc, Card, Cluster, Job, Node
from pools.models import Request, Spec
from pools.selectors.access import requestable_projects
from sensaka.cockpit.context import navigation
from sensaka.identity.access import person
from sensaka.identity.models import User
from sensaka.live.words import JOB_WORDS, REQUEST_WORDS

_EACH = 8


@dataclass(frozen=True, slots=True)
class Result:
    """A line of the answer."""

    title: str
    detail: str
    url: str
    icon: str


def _nodes(query: str) -> list[Result]:
    rows = Node.objects.filter(
        Q(name__icontains=query) | Q(system_serial__icontains=query) | Q(system_uuid__iexact=query)
    )
    return [
        Result(node.name, f"{node.site.name}, {node.product or 'node'}", reverse("node", args=[node.pk]), "server")
        for node in rows.select_related("site")[:_EACH]
    ]


def _cards(query: str) -> list[Result]:
    rows = Card.objects.filter(Q(uuid__icontains=query) | Q(serial__icontains=query) | Q(pci_address__icontains=query))
    return [
        Result(
            f"{card.slot or card.pci_address or 'Card'} on {card.node.name if card.node else 'no node'}",
            f"{card.model or card.model_name}, {card.uuid or card.serial}",
            reverse("card", args=[card.pk]),
            "cpu",
        )
        for card in rows.select_related("node", "model")[:_EACH]
    ]


def _bmcs(query: str) -> list[Result]:
    rows = Bmc.objects.filter(address__startswith=query) if query[0].isdigit() else Bmc.objects.none()
    return [
        Result(str(bmc), f"BMC of {bmc.node or 'no node yet'}", reverse("node", args=[bmc.node_id]), "plug")
        for bmc in rows.select_related("node")[:_EACH]
        if bmc.node_id is not None
    ]


def _clusters(query: str) -> list[Result]:
    rows = Cluster.objects.filter(name__icontains=query).select_related("site")
    return [
        Result(row.name, f"cluster at {row.site.name}", reverse("cluster", args=[row.pk]), "server-2")
        for row in rows[:_EACH]
    ]


def _jobs(query: str) -> list[Result]:
    """Jobs by id, name or user; those that run or wait before those that are over."""
    named = Q(job_id__istartswith=query) | Q(name__icontains=query) | Q(user__iexact=query)
    rows = Job.objects.filter(named).select_related("cluster").order_by("-open", "-submitted_at", "-id")
    return [
        Result(
            f"{row.job_id} {row.name}".strip(),
            ", ".join(part for part in (JOB_WORDS.get(row.state, row.state), row.user, row.cluster.name) if part),
            reverse("job", args=[row.pk]),
            "list-details",
        )
        for row in rows.only("job_id", "name", "state", "user", "cluster__name", "submitted_at")[:_EACH]
    ]


def _requests(user: User, query: str) -> list[Result]:
    """Requests that a person sees, by name; those that go on before those that are over."""
    rows = Request.objects.visible_to(user).filter(name__icontains=query).select_related("spec", "project__tenant")
    return [
        Result(
            str(row), f"{REQUEST_WORDS.get(row.state, row.state)}, {row.project.tenant.name}: {row.project.name}",
            reverse("request", args=[row.pk]), "list-details",
        )
        for row in rows.order_by(F("ended_at").desc(nulls_first=True), "-submitted_at")[:_EACH]
    ]  # fmt: skip


def _specs(user: User, query: str) -> list[Result]:
    """Specs that a person may ask for, by name."""
    rows = Spec.objects.visible_to(user).filter(active=True, pools__accepting=True, name__icontains=query).distinct()
    return [Result(row.name, _("ask for it"), reverse("ask", args=[row.pk]), "plus") for row in rows[:_EACH]]


def search(request: HttpRequest) -> HttpResponse:
    """Results for `?q=`: a fragment for the palette, a page without script."""
    query = request.GET.get("q", "").replace("\x00", "").strip()[:100]
    pages = [
        Result(entry.title, "page", entry.url, entry.icon)
        for entry in navigation(request)
        if entry.url and query.lower() in entry.title.lower()
    ]
    user = person(request)
    kinds = (_nodes, _cards, _bmcs, _clusters, _jobs) if user.sees_inventory else ()
    found = [result for kind in kinds for result in kind(query)] if query else []
    if query:
        found += _requests(user, query)
    if query and requestable_projects(user).exists():
        found += _specs(user, query)
    results = [*found, *pages]
    template = "parts/palette_results.html" if request.headers.get("HX-Request") else "cockpit/search.html"
    return render(request, template, {"results": results, "query": query})
