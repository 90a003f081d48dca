"""A person's requests, and one request with its reasons, cards and history."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone

from inventory.views.acts import done
from pools.forms.base import refused, zone_of
from pools.forms.requests import ExtensionForm, WhyForm
from pools.models import Allocation, Request
from pools.selectors.access import may_change
from pools.selectors.reasons import told_to
from pools.selectors.requests import (
    asked_extensions,
    cards_of,
    changeable,
    decidable,
    history,
    requests_seen,
    work_page,
)
from pools.services import extensions
from pools.services import requests as services
from sensaka.cockpit import request_acts
from sensaka.cockpit.job_filter import cursor
from sensaka.cockpit.views.overview import overview
from sensaka.identity.access import person
from sensaka.kernel.errors import Conflict, InvalidInput
from sensaka.live.held_activity import held_now
from sensaka.live.snapshots import own
from sensaka.live.topics import Topic

PAGE = 25
_HELD = 512
_PARTS = frozenset({"facts", "why", "held", "history"})


def landing(request: HttpRequest) -> HttpResponseBase:
    """Where a sign-in leads: the overview for operators and auditors, for others what they may do here."""
    if person(request).sees_inventory:
        return overview(request)
    return render(request, "identity/member.html")


def work(request: HttpRequest) -> HttpResponse:
    """Requests that go on, or those that are over; the person's own, or those of all of their teams."""
    user, now = person(request), timezone.now()
    ended, mine = request.GET.get("state") == "over", request.GET.get("whose") != "team"
    rows = work_page(user, mine=mine, ended=ended, before=cursor(request.GET.get("before", "")), limit=PAGE + 1)
    shown = rows[:PAGE]
    topic = Topic("requests", ids=tuple(row.pk for row in shown)) if shown else Topic("work")
    reasons, cards = told_to(user, shown, zone=zone_of(user), now=now), cards_of((row.pk for row in shown), now=now)
    may = changeable(user, shown)
    asked = list(asked_extensions(user)[:200])
    lines = [
        {
            "request": row, "reasons": reasons[row.pk], "cards": cards.get(row.pk, 0),
            "acts": request_acts.possible(row) if row.pk in may else [],
            "asked": next((one for one in asked if one.request_id == row.pk), None),
        }
        for row in shown
    ]  # fmt: skip
    context = {
        "lines": lines, "cells": own(topic, user), "topic": topic, "mine": mine, "ended": ended,
        "older": f"{shown[-1].submitted_at.isoformat()}_{shown[-1].pk}" if len(rows) > PAGE else "",
        "to_decide": len(decidable(user, asked)) if not user.operates else 0,
    }  # fmt: skip
    template = "cockpit/work_list.html" if request.headers.get("HX-Request") else "cockpit/work.html"
    return render(request, template, context)


def _seen(request: HttpRequest, request_id: UUID) -> Request:
    """The request where the person may see it; others are not found."""
    return get_object_or_404(requests_seen(person(request)), pk=request_id)


def _context(request: HttpRequest, row: Request) -> dict[str, Any]:
    user, now = person(request), timezone.now()
    held = (
        Allocation.objects.visible_to(user)
        .filter(request=row)
        .select_related("card__model", "node", "slice")
        .order_by("-attempt", "node__name", "unit", "card__slot", "id")[: _HELD + 1]
    )
    ledger = list(held)
    rows = held_now(ledger[:_HELD])
    return {
        "row": row,
        "cells": own(Topic("request", row.pk), user),
        "reasons": told_to(user, [row], zone=zone_of(user), now=now)[row.pk],
        "held": rows,
        "more_held": len(ledger) > _HELD,
        "cards": len({one.allocation.card_id for one in rows if one.allocation.span.upper is None}),
        "history": history(user, row),
        "extensions": list(row.extensions.select_related("asked_by", "decided_by")),
        "acts": request_acts.possible(row) if may_change(user, row) else [],
    }


def one(request: HttpRequest, request_id: UUID) -> HttpResponse:
    """One request: what it asks for, why it waits, what it holds and does, what happened to it."""
    return render(request, "cockpit/request.html", _context(request, _seen(request, request_id)))


def part(request: HttpRequest, request_id: UUID, part: str) -> HttpResponse:
    """One part of a request's page."""
    if part not in _PARTS:
        raise Http404(f"A request has no part {part!r}.")
    return render(request, f"cockpit/request_{part}.html", _context(request, _seen(request, request_id)))


def act(request: HttpRequest, request_id: UUID, name: str) -> HttpResponse:
    """Say what will happen, ask, then do it: hold, resume, release, cancel, extend."""
    if name not in request_acts.ACTS:
        raise Http404(f"There is no act {name!r}.")
    user, row = person(request), _seen(request, request_id)
    if not may_change(user, row):
        raise PermissionDenied("Only who submitted it, admins of the tenant and operators may do this.")
    form = (ExtensionForm if name == "extend" else WhyForm)(request.POST or None)
    said = request_acts.said(name, row, cards_of([row.pk], now=timezone.now()).get(row.pk, 0))
    back = reverse("request", args=[row.pk])
    if request.method == "POST" and form.is_valid():
        try:
            if name == "extend":
                extensions.ask_extension(row, **form.cleaned_data, actor=user)
            else:
                getattr(services, name)(row, actor=user, why=form.cleaned_data["why"])
        except (InvalidInput, Conflict) as error:
            refused(form, error)
        else:
            messages.success(request, said.done)
            return done(request, back)
    context = {"form": form, "said": said, "row": row, "back": back, "form_template": "cockpit/request_act_form.html"}
    template = "cockpit/request_act_form.html" if request.headers.get("HX-Request") else "inventory/act_page.html"
    return render(request, template, context)
