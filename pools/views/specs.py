"""Specs and priority classes: lists and forms."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _

from pools.forms.specs import PriorityClassForm, SpecForm
from pools.models import Pool, PriorityClass, Spec
from pools.selectors.counts import capacity
from pools.services import specs as services
from pools.views.editing import confirm, edit
from sensaka.identity.access import inventory_page, operator_page, person


@inventory_page
def specs(request: HttpRequest) -> HttpResponse:
    """Every spec, what it holds, where it is offered and how much of it is free."""
    found = capacity()
    lines = [
        {
            "spec": spec,
            "in_pools": [
                {"pool": pool, "in_pool": found.specs[pool.pk, spec.pk]}
                for pool in spec.pools.all()
                if (pool.pk, spec.pk) in found.specs
            ],
        }
        for spec in Spec.objects.prefetch_related("card_models", "pools")
    ]
    return render(request, "pools/specs.html", {"lines": lines, "has_pools": Pool.objects.exists()})


@operator_page
def spec_add(request: HttpRequest) -> HttpResponse:
    """A new spec."""
    form = SpecForm(request.POST or None, initial={"pools": request.GET.getlist("pool")})
    lead = _("Tenants ask for a spec and a count, never for a server.")
    return edit(
        request, form, lambda: services.save_spec(None, values=form.values(), actor=person(request)),
        title=_("Add a spec"), back="specs", lead=lead,
    )  # fmt: skip


@operator_page
def spec_edit(request: HttpRequest, spec_id: UUID) -> HttpResponse:
    """Change a spec. What was requested before stays as it is."""
    row = get_object_or_404(Spec, pk=spec_id)
    form = SpecForm(request.POST or None, instance=row)

    def save() -> Spec:
        return services.save_spec(Spec.objects.get(pk=spec_id), values=form.values(), actor=person(request))

    return edit(request, form, save, title=str(row.name), back="specs")


@operator_page
def spec_delete(request: HttpRequest, spec_id: UUID) -> HttpResponse:
    """Delete a spec that nobody ever asked for."""
    row = get_object_or_404(Spec, pk=spec_id)
    return confirm(
        request, row, lambda: services.remove_spec(row, actor=person(request)), back="specs",
        question=_("Delete spec %(name)s?") % {"name": row}, button=_("Delete"),
        effect=_("A spec that was ever requested stays; it can be withdrawn by editing it."),
        done=_("%(name)s is deleted.") % {"name": row},
    )  # fmt: skip


@inventory_page
def priority_classes(request: HttpRequest) -> HttpResponse:
    """The classes, the most urgent first."""
    return render(
        request, "pools/priority_classes.html", {"classes": PriorityClass.objects.prefetch_related("tenants")}
    )


@operator_page
def priority_class_add(request: HttpRequest) -> HttpResponse:
    """A new class."""
    first = not PriorityClass.objects.exists()
    form = PriorityClassForm(request.POST or None, initial={"default": first})
    return edit(
        request, form, lambda: services.save_priority_class(None, values=form.values(), actor=person(request)),
        title=_("Add a priority class"), back="priority-classes",
    )  # fmt: skip


@operator_page
def priority_class_edit(request: HttpRequest, class_id: UUID) -> HttpResponse:
    """Change a class; what waits is ordered anew."""
    row = get_object_or_404(PriorityClass, pk=class_id)
    form = PriorityClassForm(request.POST or None, instance=row)

    def save() -> PriorityClass:
        stored = PriorityClass.objects.get(pk=class_id)
        return services.save_priority_class(stored, values=form.values(), actor=person(request))

    return edit(request, form, save, title=str(row.name), back="priority-classes")


@operator_page
def priority_class_delete(request: HttpRequest, class_id: UUID) -> HttpResponse:
    """Delete a class that no request has."""
    row = get_object_or_404(PriorityClass, pk=class_id)
    return confirm(
        request, row, lambda: services.remove_priority_class(row, actor=person(request)), back="priority-classes",
        question=_("Delete class %(name)s?") % {"name": row}, button=_("Delete"),
        effect=_("A class that was ever requested with stays."), done=_("%(name)s is deleted.") % {"name": row},
    )  # fmt: skip
