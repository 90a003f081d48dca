"""What a person sees of every model that tenants share (DESIGN 6a: scope is applied in one place)."""

from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import AnonymousUser

from pools.models import (
    Allocation,
    Extension,
    Hold,
    IdleCase,
    IdleExemption,
    Membership,
    Pool,
    PriorityClass,
    Project,
    Quota,
    Reclaim,
    Request,
    RequestEvent,
    Spec,
    Tenant,
    UsageRecord,
)
from sensaka.identity.models import User
from sensaka.platform.scope import ScopedRecord
from tests.pools.building import NOW, Team, World, allocation, person, request

Rows = tuple[dict[type[Any], Any], dict[type[Any], Any]]
MODELS = [model for model in apps.get_app_config("pools").get_models() if issubclass(model, ScopedRecord)]


def fill(place: World, team: Team, card: int) -> dict[type[Any], Any]:
    """One row of each model that is this team's."""
    wish = request(place, team.project, submitter=team.member)
    held = allocation(place.cards[card], team, request=wish)
    case = IdleCase.objects.create(allocation=held, since=NOW)
    pool = Pool.objects.create(name=f"Only {team.tenant}")
    pool.tenants.add(team.tenant)
    spec = Spec.objects.create(name=f"Only {team.tenant}")
    spec.pools.add(pool)
    urgent = PriorityClass.objects.create(name=f"Only {team.tenant}")
    urgent.tenants.add(team.tenant)
    return {
        PriorityClass: urgent,
        Tenant: team.tenant,
        Project: team.project,
        Membership: Membership.objects.get(user=team.member),
        Pool: pool,
        Spec: spec,
        Request: wish,
        RequestEvent: RequestEvent.objects.create(request=wish, at=NOW, event="submit", target="queued", cause="c"),
        Extension: Extension.objects.create(request=wish, seconds=60, justification="j"),
        Allocation: held,
        IdleCase: case,
        IdleExemption: IdleExemption.objects.create(project=team.project, reason="r", until=NOW),
        Reclaim: Reclaim.objects.create(allocation=held, case=case, source="operator", reason="r"),
        Quota: Quota.objects.create(tenant=team.tenant, project=team.project),
        UsageRecord: UsageRecord.objects.create(
            tenant=team.tenant, project=team.project, kind="tokens", amount=1, at=NOW, source="s", key=str(team.tenant)
        ),
        Hold: Hold.objects.create(project=team.project, reason="r", source="operator"),
    }


@pytest.fixture
def rows(place: World) -> Rows:
    return fill(place, place.red, 0), fill(place, place.blue, 1)


def test_every_scoped_model_is_tried(rows: Rows) -> None:
    assert set(MODELS) == set(rows[0])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("role", ["admin", "member"])
def test_a_team_sees_its_own_and_nothing_of_the_other(place: World, rows: Rows, model: type[Any], role: str) -> None:
    red, blue = rows
    seen = set(model.objects.visible_to(getattr(place.red, role)))
    assert red[model] in seen
    assert blue[model] not in seen


@pytest.mark.parametrize("model", MODELS)
def test_who_belongs_to_nobody_sees_nothing_but_what_is_open_to_all(place: World, rows: Rows, model: type[Any]) -> None:
    open_to_all = {Pool: {place.pool}, Spec: {place.spec}, PriorityClass: {place.normal}}.get(model, set())
    assert set(model.objects.visible_to(person("stranger"))) == open_to_all


@pytest.mark.parametrize("model", MODELS)
def test_nobody_is_shown_anything_without_signing_in_or_after_leaving(
    place: World, rows: Rows, model: type[Any]
) -> None:
    place.red.admin.is_active = False
    assert not model.objects.visible_to(AnonymousUser()).exists()
    assert not model.objects.visible_to(place.red.admin).exists()


@pytest.mark.parametrize("model", MODELS)
def test_operators_and_auditors_see_all(
    place: World, rows: Rows, model: type[Any], operator: User, auditor: User
) -> None:
    for user in (operator, auditor):
        seen = set(model.objects.visible_to(user))
        assert {rows[0][model], rows[1][model]} <= seen


def test_a_member_of_one_project_does_not_see_the_other_projects_of_the_tenant(place: World) -> None:
    other = Project.objects.create(tenant=place.red.tenant, name="Other", slug="other")
    request(place, other)
    Quota.objects.create(tenant=place.red.tenant, project=other)
    whole = Quota.objects.create(tenant=place.red.tenant)
    assert set(Project.objects.visible_to(place.red.member)) == {place.red.project}
    assert not Request.objects.visible_to(place.red.member).exists()
    assert set(Quota.objects.visible_to(place.red.member)) == {whole}
    assert Request.objects.visible_to(place.red.admin).count() == 1
    assert Quota.objects.visible_to(place.red.admin).count() == 2


def test_unassigned_allocations_are_nobodys(place: World) -> None:
    allocation(place.cards[0])
    assert not Allocation.objects.visible_to(place.red.admin).exists()


def test_a_row_that_several_memberships_show_is_there_once(place: World) -> None:
    Membership.objects.create(tenant=place.red.tenant, project=place.red.project, user=place.red.admin)
    request(place, place.red.project)
    assert Request.objects.visible_to(place.red.admin).count() == 1
    assert Tenant.objects.visible_to(place.red.admin).count() == 1
