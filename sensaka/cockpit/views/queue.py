"""The queues of all pools: who waits, why, in which order; and an operator's own order of them."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from inventory.views.act_sentences import Said
from inventory.views.acts import done
from pools.forms.base import refused, zone_of
from pools.forms.requests import MoveForm
from pools.models import Pool, Request
from pools.selectors.reasons import told_to
from pools.selectors.requests import first_of_queues, queue_of, requests_seen, waiting_by_pool
from pools.services.reordering import put_before
from sensaka.cockpit import request_acts
from sensaka.cockpit.job_filter import identifier
from sensaka.identity.access import inventory_page, operator_page, person
from sensaka.kernel.errors import Conflict, InvalidInput
from sensaka.live.snapshots import own
from sensaka.live.topics import MOST_IDS, Topic

PAGE = 50
PAGE_OF_ONE = 100
_TARGETS = 200


@inventory_page
def queue(request: HttpRequest) -> HttpResponse:
    """Each pool's queue in its order, the first of each; `?pool=` shows more of one."""
    user, now = person(request), timezone.now()
    waiting = waiting_by_pool()
    wanted = identifier(request.GET.get("pool", ""))
    pools = list(Pool.objects.order_by("rank", "name"))
    shown = [pool for pool in pools if (pool.pk == wanted if wanted else waiting.get(pool.pk))]
    start = _start(request.GET.get("start", "")) if wanted else 0
    queues = _one_queue(shown, start) if wanted else _heads(shown)
    all_rows = [row for _pool, rows, _next in queues for row in rows]
    reasons = told_to(user, all_rows, zone=zone_of(user), now=now)
    topic = Topic("requests", ids=tuple(row.pk for row in all_rows)) if all_rows else Topic("work")
    context = {
        "queues": [
            {
                "pool": pool, "number": waiting.get(pool.pk, 0), "next": following,
                "more": max(0, waiting.get(pool.pk, 0) - start - len(rows)),
                "lines": [_line(user.operates, row, reasons[row.pk], start + n) for n, row in enumerate(rows, 1)],
            }
            for pool, rows, following in queues
        ],
        "start": start, "before": max(0, start - PAGE_OF_ONE), "after": start + PAGE_OF_ONE,
        "pools": pools, "wanted": wanted, "topic": topic, "cells": own(topic, user), "total": sum(waiting.values()),
    }  # fmt: skip
    template = "cockpit/queue_list.html" if request.headers.get("HX-Request") else "cockpit/queue.html"
    return render(request, template, context)


def _start(text: str) -> int:
    """How many of a queue come before the page."""
    return min(int(text), 10**6) if text.isascii() and text.isdigit() else 0


Shown = tuple[Pool, list[Request], Request | None]
"""A pool, the part of its queue that is shown, and who follows it."""


def _one_queue(pools: list[Pool], start: int) -> list[Shown]:
    return [(pool, *_cut(list(queue_of(pool.pk)[start : start + PAGE_OF_ONE + 1]), PAGE_OF_ONE)) for pool in pools[:1]]


def _heads(pools: list[Pool]) -> list[Shown]:
    """The first of each queue, no more of all than a page can follow."""
    first = first_of_queues((pool.pk for pool in pools), each=PAGE + 1)
    found: list[Shown] = []
    left = MOST_IDS
    for pool in pools:
        found.append((pool, *_cut(first.get(pool.pk, []), min(PAGE, left))))
        left -= len(found[-1][1])
    return found


def _cut(rows: list[Request], most: int) -> tuple[list[Request], Request | None]:
    return rows[:most], next(iter(rows[most:]), None)


def _line(operates: bool, row: Request, reasons: Any, place: int) -> dict[str, Any]:
    return {
        "request": row, "reasons": reasons, "place": place, "acts": request_acts.possible(row) if operates else [],
    }  # fmt: skip


def _said(row: Request, others: int) -> Said:
    raised = ngettext(
        "%(number)d request that stays ahead of it is raised as well, so that it does.",
        "%(number)d requests that stay ahead of it may be raised as well, so that they do.",
        others,
    )
    return Said(
        title=_("Move %(request)s in the queue of %(pool)s") % {"request": row, "pool": row.pool},
        effects=[
            _("An operator's order goes over class, fair share and age. Quotas and free cards decide as before."),
            raised % {"number": others},
        ],
        undo=_("Move it back, or set its boost to 0 over REST."),
        button=_("Move"),
        done=_("%(request)s has a new place. The next plan, in a moment, follows it.") % {"request": row},
    )


def _targets(row: Request, named: UUID | None) -> list[Request]:
    """Those before which it may be put: the first of its queue, and one further behind that was named."""
    waiting = queue_of(row.pool_id).exclude(pk=row.pk)
    found = list(waiting[:_TARGETS])
    if named is not None and all(one.pk != named for one in found):
        found += list(waiting.filter(pk=named))
    return found


@operator_page
def move(request: HttpRequest, request_id: UUID) -> HttpResponse:
    """Where a request is to stand, and why: by the list, or from where it was dropped (`?before=`)."""
    row = get_object_or_404(requests_seen(person(request)), pk=request_id)
    ahead = _targets(row, identifier(request.POST.get("before") or request.GET.get("before") or ""))
    choices = [(str(one.pk), f"{place}. {one}, {one.project.tenant.name}") for place, one in enumerate(ahead, 1)]
    form = MoveForm(request.POST or None, others=choices, initial={"before": request.GET.get("before", "")})
    if "before" not in request.GET and choices:
        form.initial["before"] = choices[0][0]
    said = _said(row, len(ahead))
    back = f"{reverse('queue')}?pool={row.pool_id}" if request.GET.get("one") else reverse("queue")
    if request.method == "POST" and form.is_valid():
        other = next((one for one in ahead if one.pk == form.chosen), None)
        try:
            put_before(row, other, why=form.cleaned_data["why"], actor=person(request))
        except (InvalidInput, Conflict) as error:
            refused(form, error)
        else:
            messages.success(request, said.done)
            return done(request, back)
    context = {"form": form, "said": said, "row": row, "back": back, "form_template": "cockpit/request_act_form.html"}
    template = "cockpit/request_act_form.html" if request.headers.get("HX-Request") else "inventory/act_page.html"
    return render(request, template, context)
