"""Wishes for more time: what waits for a decision, and what was decided."""

from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from inventory.views.act_sentences import Said
from inventory.views.acts import done
from pools.forms.base import refused
from pools.forms.requests import NeededWhyForm, WhyForm
from pools.models import Extension
from pools.selectors.requests import asked_extensions, cards_of, decidable, decided_extensions
from pools.services.extensions import decide, may_decide
from sensaka.identity.access import person
from sensaka.kernel.errors import Conflict, InvalidInput
from sensaka.live.cells import duration
from sensaka.live.snapshots import own
from sensaka.live.topics import Topic

_MOST, _PAST = 200, 30


def extensions(request: HttpRequest) -> HttpResponse:
    """Everybody sees those of what they see; operators decide, tenant admins within the pool's longest run."""
    user = person(request)
    rows = list(asked_extensions(user)[:_MOST])
    may = decidable(user, rows)
    cards = cards_of((row.request_id for row in rows), now=timezone.now())
    topic = Topic("requests", ids=tuple({row.request_id for row in rows})) if rows else Topic("work")
    context = {
        "lines": [
            {"row": row, "cards": cards.get(row.request_id, 0), "may": row.pk in may} for row in rows
        ],
        "past": decided_extensions(user, limit=_PAST), "topic": topic, "cells": own(topic, user),
    }  # fmt: skip
    template = "cockpit/extensions_list.html" if request.headers.get("HX-Request") else "cockpit/extensions.html"
    return render(request, template, context)


def _said(row: Extension, name: str, cards: int) -> Said:
    named = {"request": row.request, "time": duration(row.seconds), "cards": cards}
    if name == "grant":
        return Said(
            title=_("Grant %(time)s more to %(request)s") % named,
            effects=[_("It keeps its %(cards)d cards for %(time)s longer than its time limit was.") % named],
            undo=_("It can't be taken back; the request can be cancelled."),
            button=_("Grant"),
            done=_("%(request)s has %(time)s more.") % named,
        )
    return Said(
        title=_("Refuse %(time)s more to %(request)s") % named,
        effects=[_("It ends at its time limit as before. Whoever asked reads your reason.")],
        undo=_("They can ask again."),
        button=_("Refuse"),
        done=_("%(request)s gets no more time.") % named,
    )


def decision(request: HttpRequest, extension_id: UUID, name: str) -> HttpResponse:
    """Grant or refuse, after saying what it means."""
    if name not in ("grant", "refuse"):
        raise Http404(f"There is no decision {name!r}.")
    user = person(request)
    rows = Extension.objects.visible_to(user).select_related(
        "request__project__tenant", "request__pool", "request__spec"
    )
    row = get_object_or_404(rows, pk=extension_id)
    if not may_decide(user, row):
        raise PermissionDenied("Operators decide this, and admins of the tenant up to the pool's longest run.")
    form = (NeededWhyForm if name == "refuse" else WhyForm)(request.POST or None)
    said = _said(row, name, cards_of([row.request_id], now=timezone.now()).get(row.request_id, 0))
    back = reverse("extensions")
    if request.method == "POST" and form.is_valid():
        try:
            decide(row, granted=name == "grant", why=form.cleaned_data["why"], actor=user)
        except (InvalidInput, Conflict) as error:
            refused(form, error)
        else:
            messages.success(request, said.done)
            return done(request, back)
    context = {
        "form": form, "said": said, "row": row.request, "extension": row, "back": back,
        "form_template": "cockpit/request_act_form.html",
    }  # fmt: skip
    template = "cockpit/request_act_form.html" if request.headers.get("HX-Request") else "inventory/act_page.html"
    return render(request, template, context)
