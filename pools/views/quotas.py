"""Quotas with their use: the operators' list and form, and a person's own usage."""

from typing import Any
from uuid import UUID

from django.db.models import F, Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from pools.forms.base import refused
from pools.forms.quotas import LimitFormSet, QuotaForm, limits_shown, shown_amount
from pools.models import Quota, QuotaLimit, Resource, Tenant
from pools.selectors.held import held_of
from pools.selectors.quotas import Used, use_of
from pools.services import quotas as services
from pools.views.editing import confirm
from sensaka.identity.access import inventory_page, operator_page, person
from sensaka.kernel.errors import Conflict, InvalidInput

_UNITS = {
    Resource.HOURS: _("GPU-hours"), Resource.CARDS: _("cards"), Resource.MEMORY: _("GiB"),
    Resource.TOKENS: _("tokens"), Resource.STORAGE: _("GiB"),
}  # fmt: skip


def _line(one: Used) -> dict[str, Any]:
    """A limit as the pages show it, amounts as people read them."""
    resource = one.limit.resource
    percent = one.percent
    return {
        "limit": one.limit, "unit": _UNITS[Resource(resource)], "period": one.period, "percent": percent,
        "fill": min(100.0, percent) if percent is not None else (100.0 if one.used else 0.0),
        "over": one.borrowed > 0,
        **{name: shown_amount(resource, value) for name, value in (
            ("used", one.used), ("nominal", one.limit.nominal), ("borrowed", one.borrowed),
            ("borrowing", one.limit.borrowing), ("lending", one.limit.lending),
        )},
    }  # fmt: skip


def _lines(rows: QuerySet[Quota]) -> list[dict[str, Any]]:
    limits = QuotaLimit.objects.select_related("model").order_by("resource", F("model__name").asc(nulls_first=True))
    quotas = list(
        rows.select_related("tenant", "project")
        .prefetch_related(Prefetch("limits", queryset=limits))
        .order_by("tenant__name", F("project__name").asc(nulls_first=True))
    )
    use = use_of(quotas)
    return [{"quota": quota, "limits": [_line(one) for one in use[quota.pk]]} for quota in quotas]


@inventory_page
def quotas(request: HttpRequest) -> HttpResponse:
    """Every quota, its use against its limits, and what is borrowed."""
    lines = _lines(Quota.objects.all())
    return render(request, "pools/quotas.html", {"lines": lines, "has_tenants": Tenant.objects.exists()})


def my_usage(request: HttpRequest) -> HttpResponse:
    """What a person's own tenants and projects hold now, against their quotas."""
    user, now = person(request), timezone.now()
    context = {"lines": _lines(Quota.objects.visible_to(user)), "held": held_of(user, now), "at": now}
    return render(request, "pools/my_usage.html", context)


@operator_page
def quota_add(request: HttpRequest) -> HttpResponse:
    """A new quota record."""
    return _edit(request, None)


@operator_page
def quota_edit(request: HttpRequest, quota_id: UUID) -> HttpResponse:
    """Change a quota and its limits."""
    return _edit(request, get_object_or_404(Quota.objects.prefetch_related("limits"), pk=quota_id))


def _edit(request: HttpRequest, row: Quota | None) -> HttpResponse:
    tenant = request.GET.get("tenant")
    form = QuotaForm(request.POST or None, instance=row, initial={"tenant": tenant} if tenant else None)
    lines = LimitFormSet(request.POST or None, initial=limits_shown(row), prefix="limits")
    if request.method == "POST" and form.is_valid() and lines.is_valid():
        limits = [line for one in lines.forms if (line := one.line()) is not None]
        stored = None if row is None else Quota.objects.get(pk=row.pk)
        try:
            services.save_quota(stored, values=form.values(), limits=limits, actor=person(request))
        except (InvalidInput, Conflict) as error:
            refused(form, error)
        else:
            return redirect("quotas")
    return render(request, "pools/quota_form.html", {"form": form, "lines": lines, "quota": row})


@operator_page
def quota_delete(request: HttpRequest, quota_id: UUID) -> HttpResponse:
    """Take all limits of a holder away."""
    row = get_object_or_404(Quota.objects.select_related("tenant", "project"), pk=quota_id)
    return confirm(
        request, row, lambda: services.remove_quota(row, actor=person(request)), back="quotas",
        question=_("Delete the quota of %(name)s?") % {"name": row.project or row.tenant}, button=_("Delete"),
        effect=_("Nothing of its own limits it any more: what waits for this quota may start."),
        done=_("The quota is deleted."),
    )  # fmt: skip
