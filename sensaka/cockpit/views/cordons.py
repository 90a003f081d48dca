"""Nodes that are out of scheduling: now, and before."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from inventory.selectors.cordons import cordon_page, open_cordons, running_by_node
from sensaka.cockpit.job_filter import cursor, identifier
from sensaka.identity.access import inventory_page
from sensaka.live.snapshots import snapshot
from sensaka.live.topics import Topic

_PAGE = 50


@inventory_page
def cordons(request: HttpRequest) -> HttpResponse:
    """Open cordons with what still runs there, and all that were, page by page; `?cluster=` keeps to one."""
    cluster = identifier(request.GET.get("cluster", ""))
    open_ones = open_cordons(cluster=cluster)
    running = running_by_node(row.node_id for row in open_ones)
    rows = cordon_page(cluster=cluster, before=cursor(request.GET.get("before", "")), limit=_PAGE + 1)
    last = rows[_PAGE - 1] if len(rows) > _PAGE else None
    context = {
        "open": [(row, running[row.node_id]) for row in open_ones],
        "past": [row for row in rows[:_PAGE] if row.lifted_at is not None],
        "older": f"{last.requested_at.isoformat()}_{last.pk}" if last else "",
        "cells": snapshot(Topic("clusters")),
        "cluster": next((row.cluster for row in [*open_ones, *rows] if row.cluster_id == cluster), None),
    }
    template = "cockpit/cordons_table.html" if request.headers.get("HX-Request") else "cockpit/cordons.html"
    return render(request, template, context)
