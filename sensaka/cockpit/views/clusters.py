"""The list of clusters, and one cluster: its scheduler, what it runs, and when what ran where."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.gzip import gzip_page

from inventory.models import Cluster, SchedulerNode
from inventory.rules.jobs import HOLDING, WAITING
from inventory.selectors.clusters import ClusterDetail, cluster_detail, cluster_rows
from inventory.selectors.jobs import JobFilter, job_page
from sensaka.cockpit.job_filter import moment
from sensaka.cockpit.timelines import picture
from sensaka.identity.access import inventory_page
from sensaka.live.snapshots import snapshot
from sensaka.live.topics import Topic

_JOBS = 15
_NODES = 100
SPANS = {
    "6h": ("6 h", timedelta(hours=6)),
    "24h": ("24 h", timedelta(hours=24)),
    "3d": ("3 d", timedelta(days=3)),
    "7d": ("7 d", timedelta(days=7)),
}
DEFAULT_SPAN = "24h"
CAPABILITIES = {
    "nodes": _("Read nodes"),
    "queues": _("Read queues"),
    "reservations": _("Read reservations"),
    "jobs": _("Read jobs"),
    "runs": _("Read ended runs"),
    "follow": _("Follow jobs as they change"),
    "cordon": _("Cordon and return nodes"),
    "evict": _("Move work off a node"),
    "submit": _("Submit jobs"),
    "place": _("Submit onto named nodes"),
    "hold": _("Hold and release jobs"),
    "signal": _("Send signals to jobs"),
    "cancel": _("Cancel jobs"),
    "requeue": _("Requeue jobs"),
    "suspend": _("Suspend and resume jobs"),
    "tenants": _("Keep accounts or namespaces"),
    "qos": _("Keep qualities of service"),
}


@inventory_page
def clusters(request: HttpRequest) -> HttpResponse:
    """Every cluster, connected or not."""
    rows = cluster_rows()
    context = {
        "rows": rows,
        "cells": snapshot(Topic("clusters")),
        "connected": any(row.connection is not None for row in rows),
    }
    template = "cockpit/clusters_table.html" if request.headers.get("HX-Request") else "cockpit/clusters.html"
    return render(request, template, context)


def _known(cluster_id: UUID, *, with_nodes: bool = False) -> ClusterDetail:
    try:
        return cluster_detail(cluster_id, with_nodes=with_nodes)
    except Cluster.DoesNotExist:
        raise Http404("No such cluster.") from None


def _part(request: HttpRequest, found: ClusterDetail, part: str) -> dict[str, Any]:
    """What one part of the page needs besides the cluster itself."""
    key = found.cluster.pk
    match part:
        case "jobs":
            running = JobFilter(cluster=key, open=True, states=tuple(HOLDING))
            waiting = JobFilter(cluster=key, open=True, states=tuple(WAITING))
            return {"running": job_page(running, limit=_JOBS), "waiting": job_page(waiting, limit=_JOBS)}
        case "nodes":
            words = request.GET.get("q", "").lower().split()
            rows = [row for row in found.nodes if all(word in _text(row) for word in words)]
            return {"page": Paginator(rows, _NODES).get_page(request.GET.get("page")), "all": len(found.nodes)}
        case "connection":
            states = found.connection.capabilities if found.connection else []
            named = [(CAPABILITIES.get(state["capability"], state["capability"]), state) for state in states]
            return {"capabilities": sorted(named, key=lambda pair: not pair[1].get("available"))}
    return {}


def _text(row: SchedulerNode) -> str:
    return " ".join((row.name, row.raw_state, row.reason, *row.queues, row.node.name if row.node else "")).lower()


PARTS = ("connection", "jobs", "nodes", "queues", "cordons", "journal")


@inventory_page
def cluster(request: HttpRequest, cluster_id: UUID) -> HttpResponse:
    """One cluster."""
    found = _known(cluster_id)
    context: dict[str, Any] = {
        "found": found,
        "cluster": found.cluster,
        "cells": snapshot(Topic("cluster", cluster_id)),
        "spans": [(key, title) for key, (title, _length) in SPANS.items()],
        "span": DEFAULT_SPAN,
    }
    for part in PARTS:
        context.update(_part(request, found, part))
    return render(request, "cockpit/cluster.html", context)


@inventory_page
def cluster_part(request: HttpRequest, cluster_id: UUID, part: str) -> HttpResponse:
    """One part of a cluster's page; the journal of its nodes too with `?of=nodes`."""
    if part not in PARTS:
        raise Http404(f"A cluster has no part {part!r}.")
    found = _known(cluster_id, with_nodes=request.GET.get("of") == "nodes")
    context = {"found": found, "cluster": found.cluster, "cells": snapshot(Topic("cluster", cluster_id))}
    return render(request, f"cockpit/cluster_{part}.html", {**context, **_part(request, found, part)})


@gzip_page
@inventory_page
def cluster_timeline(request: HttpRequest, cluster_id: UUID) -> JsonResponse:
    """What ran on which node or card: `?span=24h&by=card&end=<time>`; without an end up to now."""
    length = SPANS.get(request.GET.get("span", ""), SPANS[DEFAULT_SPAN])[1]
    now = timezone.now()
    end = min(moment(request.GET.get("end", "")) or now, now)
    by = "card" if request.GET.get("by") == "card" else "node"
    if not Cluster.objects.filter(pk=cluster_id).exists():
        raise Http404("No such cluster.")
    return JsonResponse(picture(cluster_id, start=end - length, end=end, by=by))
