"""Tenants, projects, members, and the rules by which seen work is told to be theirs."""

from collections.abc import Mapping
from typing import Any
from zoneinfo import available_timezones

from django.db import transaction

from inventory.models import Cluster
from pools.models import ClusterMode, MappingRule, MemberRole, Membership, Mode, Project, Tenant
from pools.selectors.access import require_manager, require_operator
from pools.services.catalogue import checked, remove, store, tell
from sensaka.identity.models import User
from sensaka.kernel.errors import InvalidInput


def save_tenant(tenant: Tenant | None, *, values: Mapping[str, Any], actor: User | None) -> Tenant:
    """A new tenant, or a changed one. Raises InvalidInput with the field."""
    require_operator(actor)
    return store(tenant or Tenant(), values=values, actor=actor)


def remove_tenant(tenant: Tenant, *, actor: User | None) -> None:
    """Deletes a tenant without projects. Raises ProtectedError else."""
    require_operator(actor)
    remove(tenant, actor=actor)


def save_project(project: Project | None, *, values: Mapping[str, Any], actor: User | None) -> Project:
    """A new project, or a changed one, by an admin of its tenant. A project stays in its tenant."""
    row = project or Project()
    tenant = values.get("tenant") or row.tenant
    require_manager(actor, tenant.pk)
    if project is not None and project.tenant_id != tenant.pk:
        raise InvalidInput(f"{project} belongs to {project.tenant} for good: its history is there", field="tenant")
    return store(row, values=values, actor=actor)


def remove_project(project: Project, *, actor: User | None) -> None:
    """Deletes a project that nothing was ever requested for. Raises ProtectedError else."""
    require_manager(actor, project.tenant_id)
    remove(project, actor=actor)


def add_member(
    *, tenant: Tenant, user: User, project: Project | None = None, role: str = MemberRole.MEMBER, actor: User | None
) -> Membership:
    """Makes a person a member of a tenant or of one of its projects, or an admin of the tenant.

    Raises InvalidInput when the project is another tenant's, or the person is a member already.
    """
    require_manager(actor, tenant.pk)
    _check_project(tenant, project)
    row = Membership(tenant=tenant, project=project, user=user, role=role)
    with transaction.atomic():
        checked(row)
        row.save()
        tell(row, f"{user} became {row.get_role_display().lower()} of {_place(row)}.", actor)
    return row


def change_role(membership: Membership, *, role: str, actor: User | None) -> Membership:
    """Makes a member an admin or the other way round. Raises InvalidInput for an admin of one project."""
    require_manager(actor, membership.tenant_id)
    if membership.role == role:
        return membership
    membership.role = role
    with transaction.atomic():
        checked(membership)
        membership.save()
        tell(membership, f"{membership.user} is now {membership.get_role_display().lower()} of {_place(membership)}.",
             actor)  # fmt: skip
    return membership


def remove_member(membership: Membership, *, actor: User | None) -> None:
    """Ends a membership. What the person submitted stays with the project."""
    require_manager(actor, membership.tenant_id)
    with transaction.atomic():
        tell(membership, f"{membership.user} is no longer in {_place(membership)}.", actor)
        membership.delete()


def _place(membership: Membership) -> str:
    return f"{membership.tenant}, project {membership.project}" if membership.project else str(membership.tenant)


def _check_project(tenant: Tenant, project: Project | None) -> None:
    if project is not None and project.tenant_id != tenant.pk:
        raise InvalidInput(f"{project} is not a project of {tenant}", field="project")


def save_mapping_rule(rule: MappingRule | None, *, values: Mapping[str, Any], actor: User | None) -> MappingRule:
    """A new rule, or a changed one. It holds for what is seen from now on."""
    require_operator(actor)
    row = rule or MappingRule()
    merged = {name: values.get(name, getattr(row, name, None)) for name in ("tenant", "project")}
    if merged["tenant"] is not None:
        _check_project(merged["tenant"], merged["project"])
    return store(row, values=values, actor=actor)


def remove_mapping_rule(rule: MappingRule, *, actor: User | None) -> None:
    """Deletes a rule. What it assigned stays assigned."""
    require_operator(actor)
    remove(rule, actor=actor)


def set_mode(*, cluster: Cluster, mode: str, actor: User | None) -> ClusterMode:
    """Says who decides in a cluster. Doing it again changes nothing."""
    require_operator(actor)
    if mode not in Mode.values:
        raise InvalidInput(f"mode is {' or '.join(Mode.values)}", field="mode")
    with transaction.atomic():
        row, made = ClusterMode.objects.select_for_update().get_or_create(cluster=cluster, defaults={"mode": mode})
        if not made and row.mode == mode:
            return row
        row.mode = mode
        row.save(update_fields=["mode", "updated_at"])
        tell(row, f"Cluster {cluster} is now {mode}.", actor)
    return row


def known_time_zone(value: str) -> str:
    """The IANA name. Raises InvalidInput for what is none."""
    if value not in available_timezones():
        raise InvalidInput("use an IANA name such as Europe/Zurich or UTC", field="time_zone")
    return value
