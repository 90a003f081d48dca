"""Idle cases as pages and the API list them, and who owns them."""

from collections.abc import Collection, Iterable
from uuid import UUID

from django.db.models import Prefetch, Q, QuerySet

from pools.models import OPEN_IDLE, OPEN_RECLAIM, IdleCase, IdleExemption, Reclaim, memberships_of
from pools.selectors.access import managed_tenants
from sensaka.identity.models import User

_SHOWN = (
    "allocation__request__project", "allocation__request__spec", "allocation__request__submitter", "allocation__job",
    "allocation__tenant", "allocation__project", "allocation__pool", "allocation__spec", "allocation__node",
    "allocation__card__model", "extension_asked_by", "decided_by",
)  # fmt: skip


def with_details(rows: QuerySet[IdleCase]) -> QuerySet[IdleCase]:
    """Everything that a line of a list says, in one query more: `wanted` has the reclaims, newest first."""
    reclaims = Reclaim.objects.select_related("asked_by").order_by("-created_at")
    heavy = ("script", "environment", "command")
    return (
        rows.select_related(*_SHOWN)
        .defer(*(f"allocation__request__{name}" for name in heavy), "allocation__job__steps")
        .prefetch_related(Prefetch("reclaims", queryset=reclaims, to_attr="wanted"))
    )


def cases_seen(user: User) -> QuerySet[IdleCase]:
    """The cases that a person may see, with their details."""
    return with_details(IdleCase.objects.visible_to(user))


def open_cases(user: User) -> list[IdleCase]:
    """What is idle now, the longest first."""
    return list(cases_seen(user).filter(state__in=OPEN_IDLE).order_by("since", "id"))


def closed_cases(user: User, *, limit: int) -> list[IdleCase]:
    """What was idle last and how it ended."""
    return list(cases_seen(user).exclude(state__in=OPEN_IDLE).order_by("-closed_at", "-id")[:limit])


def under_way(case: IdleCase) -> Reclaim | None:
    """The reclaim that is asked for or at work; of a case with its details."""
    wanted: Iterable[Reclaim] = getattr(case, "wanted", ())
    return next((row for row in wanted if row.state in OPEN_RECLAIM), None)


def owned(user: User, cases: Collection[IdleCase]) -> set[UUID]:
    """Which of these a person may release and ask time for: who submitted them, admins of the tenant, operators.

    Of a job that Sensaka did not start the owner is the member who is called as its user is. Two queries.
    """
    if user.operates:
        return {case.pk for case in cases}
    if user.sees_all_tenants:
        return set()
    managed = set(managed_tenants(user).values_list("pk", flat=True))
    mine = list(memberships_of(user).values_list("tenant", "project"))
    tenants, projects = {tenant for tenant, project in mine if project is None}, {project for _tenant, project in mine}
    found = set()
    for case in cases:
        held = case.allocation
        member = held.tenant_id in tenants or (held.project_id is not None and held.project_id in projects)
        by = held.request.submitter_id == user.pk if held.request else bool(held.job and held.job.user == user.username)
        if (held.tenant_id is not None and held.tenant_id in managed) or (member and by):
            found.add(case.pk)
    return found


def owns(user: User, case: IdleCase) -> bool:
    """Whether a person may release a case and ask time for it."""
    return bool(owned(user, [case]))


def exemptions_seen(user: User) -> QuerySet[IdleExemption]:
    """The exemptions that a person may see, with what they are of."""
    rows = IdleExemption.objects.visible_to(user)
    return rows.select_related("project__tenant", "request__spec", "spec", "placed_by")


def holding(user: User) -> QuerySet[IdleExemption]:
    """Those that were not lifted, the first to end first."""
    return exemptions_seen(user).filter(Q(lifted_at=None)).order_by("until", "id")
