"""Pools: the list with its counts, one pool with its rules and cards, and the forms that change them."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from pools.forms.base import refused
from pools.forms.pools import MemberForm, NewPoolForm, PoolForm, RequiredRuleForm, RuleForm
from pools.models import Pool, PoolMember, PoolRule
from pools.selectors.counts import Capacity, capacity
from pools.selectors.membership import preview, rules_of
from pools.services import pools as services
from pools.views.editing import confirm, edit
from sensaka.identity.access import inventory_page, operator_page, person
from sensaka.kernel.errors import Conflict, InvalidInput


def _spec_lines(pool: Pool, found: Capacity) -> list[dict[str, Any]]:
    return [
        {"spec": spec, "in_pool": found.specs[pool.pk, spec.pk]}
        for spec in pool.specs.prefetch_related("card_models")
        if (pool.pk, spec.pk) in found.specs
    ]


@inventory_page
def pools(request: HttpRequest) -> HttpResponse:
    """Every pool with its four counts, and the cards that are in none."""
    found = capacity()
    rows = Pool.objects.prefetch_related("tenants", "specs", "rules")
    lines = [{"pool": pool, "counts": found.pools[pool.pk]} for pool in rows if pool.pk in found.pools]
    return render(request, "pools/pools.html", {"lines": lines, "outside": found.outside, "at": found.at})


@inventory_page
def pool(request: HttpRequest, pool_id: UUID) -> HttpResponse:
    """One pool: its ladder, specs, rules and what was set by hand."""
    return _page(request, get_object_or_404(Pool.objects.prefetch_related("tenants"), pk=pool_id))


def _page(
    request: HttpRequest, row: Pool, *, rule: RuleForm | None = None, member: MemberForm | None = None
) -> HttpResponse:
    found = capacity()
    context = {
        "pool": row,
        "counts": found.pools[row.pk],
        "at": found.at,
        "specs": _spec_lines(row, found),
        "rules": rules_of(row.pk),
        "members": row.members.select_related("card__node", "card__model", "node"),
        "rule_form": rule or RequiredRuleForm(auto_id="rule_%s"),
        "member_form": member or MemberForm(auto_id="member_%s"),
    }
    return render(request, "pools/pool.html", context)


@operator_page
def pool_add(request: HttpRequest) -> HttpResponse:
    """A new pool with its first rule; which cards it takes is shown before it is made."""
    form = NewPoolForm(request.POST or None)

    def save() -> Pool:
        data, actor = form.cleaned_data, person(request)
        with transaction.atomic():
            values = {"name": data["name"], "description": data["description"]}
            made = services.save_pool(None, values=values, actor=actor)
            if form.given:
                services.add_rule(made, **form.conditions(), actor=actor)
        return made

    lead = _("Name the pool and say which cards it takes. More rules, single cards and the rest are set afterwards.")
    return edit(
        request, form, save, title=_("Add a pool"), back="pools", lead=lead, act=_("Make the pool"),
        template="pools/pool_add.html",
    )  # fmt: skip


@operator_page
def pool_edit(request: HttpRequest, pool_id: UUID) -> HttpResponse:
    """What a pool is called, who may use it, what happens to idle cards."""
    row = get_object_or_404(Pool, pk=pool_id)
    form = PoolForm(request.POST or None, instance=row)

    def save() -> Pool:
        return services.save_pool(Pool.objects.get(pk=pool_id), values=form.values(), actor=person(request))

    return edit(request, form, save, title=str(row.name), back="pool", back_args=(pool_id,))


@operator_page
def pool_delete(request: HttpRequest, pool_id: UUID) -> HttpResponse:
    """Delete a pool that nothing was ever requested from."""
    row = get_object_or_404(Pool, pk=pool_id)
    return confirm(
        request, row, lambda: services.remove_pool(row, actor=person(request)), back="pools",
        question=_("Delete pool %(name)s?") % {"name": row}, button=_("Delete"),
        effect=_("Its cards are free for other pools' rules. What was requested from a pool keeps it."),
        done=_("%(name)s is deleted.") % {"name": row},
    )  # fmt: skip


@inventory_page
def rule_preview(request: HttpRequest) -> HttpResponse:
    """Which cards the conditions in the address would take: a fragment beside the form."""
    form = RuleForm(request.GET)
    if not form.is_valid():
        return render(request, "pools/rule_preview.html", {"form": form})
    try:
        own = UUID(request.GET.get("pool", ""))
    except ValueError:
        own = None
    seen = preview(**form.conditions(), pool=own) if form.given else None
    return render(request, "pools/rule_preview.html", {"form": form, "preview": seen})


@require_POST
@operator_page
def rule_add(request: HttpRequest, pool_id: UUID) -> HttpResponse:
    """One more rule."""
    row = get_object_or_404(Pool, pk=pool_id)
    form = RequiredRuleForm(request.POST, auto_id="rule_%s")
    if form.is_valid():
        try:
            rule = services.add_rule(row, **form.conditions(), actor=person(request))
        except (InvalidInput, Conflict) as error:
            refused(form, error)
        else:
            messages.success(request, _("The pool takes cards by the rule: %(rule)s.") % {"rule": rule})
            return redirect("pool", pool_id)
    return _page(request, row, rule=form)


@require_POST
@operator_page
def rule_delete(request: HttpRequest, pool_id: UUID, rule_id: UUID) -> HttpResponse:
    """One rule less. It can be added again, so nothing is asked."""
    rule = get_object_or_404(PoolRule.objects.select_related("pool", "model", "cluster"), pk=rule_id, pool=pool_id)
    services.remove_rule(rule, actor=person(request))
    messages.success(request, _("The rule is gone: %(rule)s. What is held stays held.") % {"rule": rule})
    return redirect("pool", pool_id)


@require_POST
@operator_page
def member_add(request: HttpRequest, pool_id: UUID) -> HttpResponse:
    """Take a card or node in, or leave it out, by hand."""
    row = get_object_or_404(Pool, pk=pool_id)
    form = MemberForm(request.POST, auto_id="member_%s")
    if form.is_valid():
        named, included = form.cleaned_data["named"], form.cleaned_data["included"]
        services.set_member(row, **named, included=included, actor=person(request))
        return redirect("pool", pool_id)
    return _page(request, row, member=form)


@require_POST
@operator_page
def member_delete(request: HttpRequest, pool_id: UUID, member_id: UUID) -> HttpResponse:
    """Let the rules decide about it again."""
    found = PoolMember.objects.select_related("pool", "card", "node")
    services.unset_member(get_object_or_404(found, pk=member_id, pool=pool_id), actor=person(request))
    return redirect("pool", pool_id)
