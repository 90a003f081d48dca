"""Who holds which card when: the ledger as a picture over time and as a list."""

from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.gzip import gzip_page

from pools.models import Allocation, Tenant
from pools.selectors.holdings import Wanted, holdings, pools_with_rows
from sensaka.cockpit.holding_picture import drawn
from sensaka.cockpit.job_filter import identifier, moment
from sensaka.cockpit.views.clusters import DEFAULT_SPAN, SPANS
from sensaka.identity.access import inventory_page, person
from sensaka.live.snapshots import snapshot
from sensaka.live.topics import Topic

PAGE = 100


def _wanted(request: HttpRequest) -> Wanted:
    """The filters of an address. What can't be read is as if it were not there."""
    query = request.GET
    tenant = query.get("tenant", "")
    state = query.get("state", "")
    return Wanted(
        pool=identifier(query.get("pool", "")),
        tenant=identifier(tenant),
        unassigned=tenant == "none",
        open=None if state == "all" else state != "over",
        card=identifier(query.get("card", "")),
        text=query.get("q", "").replace("\x00", "").strip()[:100],
    )


@inventory_page
def allocations(request: HttpRequest) -> HttpResponse:
    """The picture, and the rows behind it."""
    user, now, wanted = person(request), timezone.now(), _wanted(request)
    rows = holdings(user, wanted, now=now)
    context = {
        "page": Paginator(rows, PAGE).get_page(request.GET.get("page")),
        "now": now,
        "pools": pools_with_rows(),
        "tenants": Tenant.objects.order_by("name"),
        "cells": snapshot(Topic("holdings")),
        "spans": [(key, title) for key, (title, _length) in SPANS.items()],
        "span": DEFAULT_SPAN,
        "query": request.GET.urlencode(),
        "filtered": any(request.GET.get(name) for name in ("pool", "tenant", "q", "card")),
    }
    template = "cockpit/allocations_table.html" if request.headers.get("HX-Request") else "cockpit/allocations.html"
    return render(request, template, context)


@gzip_page
@inventory_page
def timeline(request: HttpRequest) -> HttpResponseBase:
    """What was held by node or card: `?span=24h&by=card&end=<time>&pool=`; without an end up to now."""
    length = SPANS.get(request.GET.get("span", ""), SPANS[DEFAULT_SPAN])[1]
    now = timezone.now()
    end = min(moment(request.GET.get("end", "")) or now, now)
    by = "card" if request.GET.get("by") == "card" else "node"
    read = _wanted(request)
    wanted = Wanted(pool=read.pool, tenant=read.tenant, unassigned=read.unassigned)
    return JsonResponse(drawn(wanted, start=end - length, end=end, by=by, now=now))


@inventory_page
def allocation(request: HttpRequest, allocation_id: UUID) -> HttpResponse:
    """Where a bar of the picture leads: to its request, else its job, else its card."""
    row = get_object_or_404(Allocation.objects.visible_to(person(request)), pk=allocation_id)
    if row.request_id is not None:
        return redirect("request", row.request_id)
    if row.job_id is not None:
        return redirect("job", row.job_id)
    return redirect("card", row.card_id)
