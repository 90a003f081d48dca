"""What may be asked for, and the form that asks for it."""

from collections import defaultdict
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from pools.forms.base import refused, zone_of
from pools.forms.requests import USUAL, RequestForm
from pools.models import PriorityClass, Project
from pools.selectors.access import requestable_projects
from pools.selectors.expectation import Expected, Wish, expectations
from pools.selectors.offers import Offer, offers
from pools.selectors.reasons import Told, told
from pools.services import requests as services
from sensaka.identity.access import person
from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, InvalidInput
from sensaka.live import offer_cells
from sensaka.live.snapshots import own
from sensaka.live.topics import Topic


def _usual_project(user: User) -> Project | None:
    """The project of the person's last request, where they may still ask for it, else the first by name."""
    rows = requestable_projects(user).order_by("tenant__name", "name")
    last = rows.filter(requests__submitter=user).order_by("-requests__submitted_at").first()
    return last or rows.first()


def catalogue(request: HttpRequest) -> HttpResponse:
    """Spec cards with what is free now, the price, and when a request would start; `?expected=1` plans for each."""
    user = person(request)
    project = _usual_project(user)
    rows = offers(user, offer_cells.current()) if project is not None else []
    planned = project is not None and bool(request.GET.get("expected"))
    plans = _plans(rows, project, timezone.now()) if planned and project is not None else {}
    context = {
        "offers": [(offer, *_told(plans.get(offer.spec.pk), user)) for offer in rows],
        "planned": planned,
        "project": project,
        "usual": USUAL,
        "cells": own(Topic("offers"), user),
    }
    template = "cockpit/offers_list.html" if request.headers.get("HX-Request") else "cockpit/offers.html"
    return render(request, template, context)


def _told(plan: Expected | None, user: User) -> tuple[Expected | None, str]:
    """A plan, and the first of its reasons as a sentence; the form shows all."""
    reasons = _reasons(plan, user) if plan is not None else []
    return plan, reasons[0].detail if reasons else ""


def _reasons(plan: Expected, user: User) -> list[Told]:
    """The reasons of a plan, without the names of other teams' work."""
    names = None if user.sees_all_tenants else {"this request": "this request"}
    return told(plan.reasons, zone=zone_of(user), now=timezone.now(), names=names)


def _plans(rows: list[Offer], project: Project, now: datetime) -> dict[UUID, Expected]:
    """What to expect of one unit of each spec, in the pool that is taken first, by the usual class and time."""
    usual = PriorityClass.objects.filter(default=True).first()
    if usual is None:
        return {offer.spec.pk: Expected(unknown=_("no priority class is the usual one")) for offer in rows}
    by_pool: dict[UUID, list[Offer]] = defaultdict(list)
    for offer in rows:
        by_pool[offer.places[0].pool.pk].append(offer)
    found: dict[UUID, Expected] = {}
    for own_rows in by_pool.values():
        wishes = [Wish(project, one.spec, usual, min(USUAL, one.longest_run or USUAL)) for one in own_rows]
        plans = expectations(own_rows[0].places[0].pool, wishes, now=now)
        found |= {one.spec.pk: plan for one, plan in zip(own_rows, plans, strict=True)}
    return found


def _offer(user: User, spec_id: UUID) -> Offer:
    """What may be asked for, by its spec; others are not found."""
    if not requestable_projects(user).exists():
        raise PermissionDenied("You are in no team that may ask for cards: ask an admin of your tenant to add you.")
    for offer in offers(user, offer_cells.current()):
        if offer.spec.pk == spec_id:
            return offer
    raise Http404("No such spec is offered to you.")


def _form(request: HttpRequest, user: User, offer: Offer) -> RequestForm:
    initial = {"key": str(uuid4()), "project": _usual_project(user)}
    pools = [place.pool for place in offer.places]
    return RequestForm(request.POST or None, user=user, spec=offer.spec, pools=pools, initial=initial)


def ask(request: HttpRequest, spec_id: UUID) -> HttpResponse:
    """The form of one spec. Sent twice it makes one request."""
    user = person(request)
    offer = _offer(user, spec_id)
    form = _form(request, user, offer)
    if request.method == "POST" and form.is_valid():
        try:
            made = services.submit(
                spec=offer.spec, work=form.work(), actor=user, idempotency_key=form.cleaned_data["key"], **form.values()
            )
        except (InvalidInput, Conflict) as error:
            refused(form, error)
        else:
            messages.success(request, _("%(request)s is in the queue.") % {"request": made})
            return redirect("request", made.pk)
    context = {"form": form, "offer": offer, "spec": offer.spec, "cells": own(Topic("offers"), user)}
    return render(request, "cockpit/ask.html", context)


def expected(request: HttpRequest, spec_id: UUID) -> HttpResponse:
    """What would happen if the form were sent as it stands: a fragment beside it. Nothing is stored."""
    user = person(request)
    offer = _offer(user, spec_id)
    pools = [place.pool for place in offer.places]
    data = request.GET.copy()
    data["launch"] = "cards"  # what is started changes nothing of when
    form = RequestForm(data, user=user, spec=offer.spec, pools=pools)
    form.full_clean()
    wanted: dict[str, Any] = {
        name: form.cleaned_data.get(name) for name in ("project", "count", "time_limit", "priority", "pool")
    }
    wanted["priority"] = wanted["priority"] or PriorityClass.objects.filter(default=True).first()
    context: dict[str, Any] = {"offer": offer}
    if all(wanted[name] for name in ("project", "count", "time_limit", "priority")):
        now = timezone.now()
        pool = wanted.pop("pool") or pools[0]
        wish = Wish(
            spec=offer.spec, near=form.cleaned_data.get("near") or "", not_before=form.cleaned_data.get("not_before"),
            **wanted,
        )  # fmt: skip
        plan = expectations(pool, [wish], now=now)[0]
        context |= {"plan": plan, "reasons": _reasons(plan, user), "pool": pool}
    return render(request, "cockpit/ask_expected.html", context)
