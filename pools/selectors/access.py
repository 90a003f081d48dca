"""Who may act: operators everywhere, tenant admins in their tenant, members for their projects.

What a person may see is decided by `visible_to`; these say what may be changed of it. The `require_`
functions raise PermissionDenied; an actor None is Sensaka itself.
"""

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet

from pools.models import MemberRole, Project, Request, Tenant, memberships_of
from sensaka.identity.models import User


def manages(user: User, tenant: UUID) -> bool:
    """Whether the person may change projects, members and requests of the tenant."""
    return user.operates or memberships_of(user).filter(tenant=tenant, role=MemberRole.ADMIN).exists()


def managed_tenants(user: User) -> QuerySet[Tenant]:
    """The tenants whose projects and members the person may change."""
    if user.operates:
        return Tenant.objects.all()
    return Tenant.objects.filter(pk__in=memberships_of(user).filter(role=MemberRole.ADMIN).values("tenant"))


def requestable_projects(user: User) -> QuerySet[Project]:
    """The projects that the person may ask for capacity for: active ones, in active tenants."""
    projects = Project.objects.filter(active=True, tenant__active=True).select_related("tenant")
    return projects if user.operates else projects.filter(Project.scope(user))


def may_change(user: User, request: Request) -> bool:
    """Whether the person may hold, cancel, release or extend a request: its submitter while a member, or an admin."""
    if user.operates:
        return True
    if request.submitter_id == user.pk:
        return Request.objects.filter(Request.scope(user), pk=request.pk).exists()
    return manages(user, request.project.tenant_id)


def require_operator(actor: User | None) -> None:
    """Raises PermissionDenied for everybody but operators."""
    if actor is not None and not actor.operates:
        raise PermissionDenied("Only operators may do this.")


def require_manager(actor: User | None, tenant: UUID) -> None:
    """Raises PermissionDenied for everybody but operators and the tenant's admins."""
    if actor is not None and not manages(actor, tenant):
        raise PermissionDenied("Only admins of the tenant and operators may do this.")


def require_owner(actor: User | None, request: Request) -> None:
    """Raises PermissionDenied for who is neither the submitter nor an admin of the tenant nor an operator."""
    if actor is not None and not may_change(actor, request):
        raise PermissionDenied("Only who submitted it, admins of the tenant and operators may do this.")
