"""Tenants: the operators' list, and one tenant's page, which is also its own team's page."""

from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from pools.forms.tenants import MappingRuleForm, MemberAddForm, ProjectForm, TenantForm
from pools.models import MappingRule, Membership, Project, Tenant
from pools.selectors.access import manages
from pools.services import tenants as services
from pools.views.editing import confirm, edit
from sensaka.identity.access import inventory_page, operator_page, person


@inventory_page
def tenants(request: HttpRequest) -> HttpResponse:
    """Every tenant."""
    rows = Tenant.objects.annotate(
        project_count=Count("projects", distinct=True), member_count=Count("memberships__user", distinct=True)
    )
    return render(request, "pools/tenants.html", {"tenants": rows})


def team(request: HttpRequest) -> HttpResponse:
    """A person's own tenants; straight to it where there is one."""
    rows = list(Tenant.objects.visible_to(person(request)).annotate(project_count=Count("projects")))
    if len(rows) == 1:
        return redirect("tenant", rows[0].pk)
    return render(request, "pools/team.html", {"tenants": rows})


def _seen(request: HttpRequest, tenant_id: UUID) -> Tenant:
    """The tenant when the person may see it; others are not found."""
    return get_object_or_404(Tenant.objects.visible_to(person(request)), pk=tenant_id)


def _managed(request: HttpRequest, tenant_id: UUID) -> Tenant:
    row = _seen(request, tenant_id)
    if not manages(person(request), row.pk):
        raise PermissionDenied("Only admins of the tenant and operators may do this.")
    return row


def tenant(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """One tenant: its projects and people, and for operators how its work is recognised."""
    row, user = _seen(request, tenant_id), person(request)
    context = {
        "tenant": row,
        "manages": manages(user, row.pk),
        "projects": Project.objects.visible_to(user).filter(tenant=row),
        "members": Membership.objects.visible_to(user)
        .filter(tenant=row)
        .select_related("user", "project")
        .order_by("user__username", "project__name"),
        "mapping_rules": MappingRule.objects.filter(tenant=row).select_related("cluster__site", "project")
        if user.sees_all_tenants
        else None,
    }
    return render(request, "pools/tenant.html", context)


@operator_page
def tenant_add(request: HttpRequest) -> HttpResponse:
    """A new tenant."""
    form = TenantForm(request.POST or None)
    return edit(
        request, form, lambda: services.save_tenant(None, values=form.values(), actor=person(request)),
        title=_("Add a tenant"), back="tenants",
    )  # fmt: skip


@operator_page
def tenant_edit(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """Change a tenant."""
    row = get_object_or_404(Tenant, pk=tenant_id)
    form = TenantForm(request.POST or None, instance=row)

    def save() -> Tenant:
        return services.save_tenant(Tenant.objects.get(pk=tenant_id), values=form.values(), actor=person(request))

    return edit(request, form, save, title=str(row.name), back="tenant", back_args=(tenant_id,))


def project_add(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """A new project of a tenant, by its admins and operators."""
    row = _managed(request, tenant_id)
    form = ProjectForm(request.POST or None)
    form.instance.tenant = row

    def save() -> Project:
        return services.save_project(None, values={**form.values(), "tenant": row}, actor=person(request))

    title = _("Add a project to %(tenant)s") % {"tenant": row}
    return edit(request, form, save, title=title, back="tenant", back_args=(tenant_id,))


def project_edit(request: HttpRequest, tenant_id: UUID, project_id: UUID) -> HttpResponse:
    """Change a project."""
    tenant_row = _managed(request, tenant_id)
    row = get_object_or_404(Project, pk=project_id, tenant=tenant_row)
    form = ProjectForm(request.POST or None, instance=row)

    def save() -> Project:
        return services.save_project(Project.objects.get(pk=project_id), values=form.values(), actor=person(request))

    return edit(request, form, save, title=str(row.name), back="tenant", back_args=(tenant_id,))


def member_add(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """A person joins a tenant or project."""
    row = _managed(request, tenant_id)
    form = MemberAddForm(request.POST or None, tenant=row)

    def save() -> Membership:
        data = form.cleaned_data
        return services.add_member(
            tenant=row, user=data["username"], project=data["project"], role=data["role"], actor=person(request)
        )

    title = _("Add a person to %(tenant)s") % {"tenant": row}
    return edit(request, form, save, title=title, back="tenant", back_args=(tenant_id,), act=_("Add"))


def member_delete(request: HttpRequest, tenant_id: UUID, membership_id: UUID) -> HttpResponse:
    """A person leaves."""
    tenant_row = _managed(request, tenant_id)
    found = Membership.objects.select_related("user", "project", "tenant")
    row = get_object_or_404(found, pk=membership_id, tenant=tenant_row)
    return confirm(
        request, row, lambda: services.remove_member(row, actor=person(request)), back="tenant", back_args=(tenant_id,),
        question=_("Take %(name)s out of %(place)s?") % {"name": row.user, "place": row.project or row.tenant},
        effect=_("The person no longer sees it or asks for it. What was submitted stays and goes on."),
        button=_("Take out"), done=_("%(name)s is no longer in it.") % {"name": row.user},
    )  # fmt: skip


@operator_page
def mapping_add(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """One more way in which the tenant's work is recognised in a cluster."""
    row = get_object_or_404(Tenant, pk=tenant_id)
    form = MappingRuleForm(request.POST or None, tenant=row)

    def save() -> MappingRule:
        return services.save_mapping_rule(None, values={**form.cleaned_data, "tenant": row}, actor=person(request))

    lead = _("Jobs that people submit to their own scheduler count as the tenant's when they carry this.")
    title = _("Recognise work of %(tenant)s") % {"tenant": row}
    return edit(request, form, save, title=title, back="tenant", back_args=(tenant_id,), lead=lead)


@require_POST
@operator_page
def mapping_delete(request: HttpRequest, tenant_id: UUID, rule_id: UUID) -> HttpResponse:
    """One less. What it assigned stays assigned."""
    rule = get_object_or_404(MappingRule, pk=rule_id, tenant=tenant_id)
    name = str(rule)
    services.remove_mapping_rule(rule, actor=person(request))
    messages.success(request, _("The rule is gone: %(rule)s.") % {"rule": name})
    return redirect("tenant", tenant_id)
