"""Idle cards: who holds them, since when, what was said, and what may be done about it."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from inventory.views.acts import done
from pools.forms.base import refused
from pools.forms.idle import ExemptionForm
from pools.models import IdleCase, IdleExemption
from pools.selectors.idle_cases import cases_seen, closed_cases, holding, open_cases, owned, under_way
from pools.services import reclaiming, sparing
from sensaka.cockpit import idle_acts
from sensaka.identity.access import operator_page, person
from sensaka.kernel.errors import Conflict, InvalidInput, NotFound
from sensaka.live.snapshots import own
from sensaka.live.topics import Topic

_PAST = 20


def idle(request: HttpRequest) -> HttpResponse:
    """Operators and auditors see all idle work, others that of their teams."""
    user, now = person(request), timezone.now()
    rows = open_cases(user)
    mine = owned(user, rows)
    topic = Topic("idle")
    context = {
        "lines": [
            {
                "case": case, "work": idle_acts.named(case), "reclaim": under_way(case),
                "next": idle_acts.next_step(case),
                "acts": idle_acts.possible(case, owner=case.pk in mine, operates=user.operates),
            }
            for case in rows
        ],
        "cards": sum(case.cards for case in rows),
        "past": [{"case": case, "work": idle_acts.named(case)} for case in closed_cases(user, limit=_PAST)],
        "spared": list(holding(user).filter(until__gt=now)), "topic": topic, "cells": own(topic, user),
    }  # fmt: skip
    template = "cockpit/idle_list.html" if request.headers.get("HX-Request") else "cockpit/idle.html"
    return render(request, template, context)


def act(request: HttpRequest, case_id: UUID, name: str) -> HttpResponse:
    """Say what will happen, ask, then do it: release, extend, grant, refuse, leave, reclaim."""
    if name not in idle_acts.FORMS:
        raise Http404(f"There is no act {name!r}.")
    user = person(request)
    case = get_object_or_404(cases_seen(user), pk=case_id)
    if not (user.operates or (name in idle_acts.OWNERS and case.pk in owned(user, [case]))):
        raise PermissionDenied("Only operators may do this, and what is the owner's own its owner and their admins.")
    form = idle_acts.FORMS[name](request.POST or None)
    said, back = idle_acts.said(name, case), reverse("idle")
    if request.method == "POST" and form.is_valid():
        try:
            _SERVICES[name](case, form.cleaned_data, user)
        except (InvalidInput, Conflict, NotFound) as error:
            refused(form, error)  # type: ignore[arg-type]
        else:
            messages.success(request, said.done)
            return done(request, back)
    context = {
        "form": form, "said": said, "case": case, "work": idle_acts.named(case), "back": back,
        "form_template": "cockpit/idle_act_form.html",
    }  # fmt: skip
    template = "cockpit/idle_act_form.html" if request.headers.get("HX-Request") else "inventory/act_page.html"
    return render(request, template, context)


_SERVICES: dict[str, Callable[[IdleCase, dict[str, Any], Any], IdleCase]] = {
    "release": lambda case, data, user: reclaiming.release(case, **data, actor=user),
    "extend": lambda case, data, user: reclaiming.ask_time(case, **data, actor=user),
    "grant": lambda case, data, user: reclaiming.decide_time(case, granted=True, **data, actor=user),
    "refuse": lambda case, data, user: reclaiming.decide_time(case, granted=False, **data, actor=user),
    "leave": lambda case, data, user: reclaiming.leave(case, **data, actor=user),
    "reclaim": lambda case, data, user: reclaiming.reclaim(case, **data, actor=user),
}


@operator_page
def exemption_add(request: HttpRequest) -> HttpResponse:
    """Spare a project, a spec or a request for a time."""
    user = person(request)
    form = ExemptionForm(request.POST or None, user=user)
    if request.method == "POST" and form.is_valid():
        try:
            sparing.spare(target=form.target, reason=form.cleaned_data["reason"], until=form.until_when, actor=user)
        except (InvalidInput, Conflict) as error:
            refused(form, error)
        else:
            messages.success(request, _("Idle cards of %(name)s are left alone.") % {"name": form.target})
            return redirect("idle")
    context = {
        "form": form, "title": _("Spare idle cards"), "back": "idle", "back_args": (), "back_title": _("Idle cards"),
        "lead": _("Nobody is warned about them and nothing of them is taken back until then."),
        "act": _("Spare them"), "dependent": ExemptionForm.DEPENDENT,
    }  # fmt: skip
    return render(request, "pools/form_page.html", context)


@operator_page
def exemption_lift(request: HttpRequest, exemption_id: UUID) -> HttpResponse:
    """End an exemption before its time."""
    row = get_object_or_404(IdleExemption.objects.select_related("project", "request__spec", "spec"), pk=exemption_id)
    if request.method == "POST":
        sparing.lift_exemption(row, actor=person(request))
        messages.success(request, _("%(name)s is no longer spared.") % {"name": row.target})
        return redirect("idle")
    context = {
        "row": row, "question": _("No longer spare %(name)s?") % {"name": row.target},
        "effect": _("Its idle cards count again: their owners are warned, and then they may be taken back."),
        "button": _("End the exemption"), "back": "idle", "back_args": (),
    }  # fmt: skip
    return render(request, "pools/confirm.html", context)
