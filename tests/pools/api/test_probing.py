"""Every endpoint of the pools, probed by people who have no business there (issue 4: another tenant sees nothing)."""

from typing import Any

import pytest
from django.urls import URLPattern, URLResolver

from pools.api.urls import router, urlpatterns
from pools.models import (
    ClusterMode,
    Extension,
    Hold,
    IdleCase,
    IdleExemption,
    MaintenanceWindow,
    MappingRule,
    Membership,
    Pool,
    PoolMember,
    PoolRule,
    PriorityClass,
    Quota,
    QuotaLimit,
    Spec,
)
from tests.pools.api.conftest import Clients
from tests.pools.building import NOW, World, allocation, at, request

PREFIXES = [prefix for prefix, _view, _name in router.registry]
# what operators and auditors alone may read
OVERSEERS = {"pool-rules", "pool-members", "mapping-rules", "cluster-modes", "maintenance-windows"}
TENANTS = sorted(set(PREFIXES) - OVERSEERS)


@pytest.fixture
def red(place: World) -> dict[str, Any]:
    """One row behind every address, all of the red team's or of nobody's."""
    team = place.red
    wish = request(place, team.project, submitter=team.member, name="red-secret", state="running", started_at=NOW)
    pool = Pool.objects.create(name="red-only")
    pool.tenants.add(team.tenant)
    spec = Spec.objects.create(name="red-spec")
    spec.card_models.add(place.model)
    spec.pools.add(pool)
    urgent = PriorityClass.objects.create(name="red-urgent")
    urgent.tenants.add(team.tenant)
    quota = Quota.objects.create(tenant=team.tenant)
    QuotaLimit.objects.create(quota=quota, resource="cards", nominal=4)
    held = allocation(place.cards[0], team, request=wish)
    return {
        "pools": pool,
        "pool-rules": PoolRule.objects.create(pool=pool, cluster=place.cluster),
        "pool-members": PoolMember.objects.create(pool=pool, card=place.cards[0]),
        "specs": spec,
        "priority-classes": urgent,
        "tenants": team.tenant,
        "projects": team.project,
        "members": Membership.objects.get(user=team.member),
        "mapping-rules": MappingRule.objects.create(
            cluster=place.cluster, kind="account", value="red", tenant=team.tenant
        ),
        "cluster-modes": ClusterMode.objects.create(cluster=place.cluster),
        "quotas": quota,
        "requests": wish,
        "extensions": Extension.objects.create(request=wish, seconds=3600, justification="red-reason"),
        "allocations": held,
        "reclaims": IdleCase.objects.create(
            allocation=held, since=NOW, first_warned_at=NOW, extension_asked_at=NOW, justification="red-time"
        ),
        "idle-exemptions": IdleExemption.objects.create(project=team.project, reason="red-demo", until=at(3600)),
        "maintenance-windows": MaintenanceWindow.objects.create(
            name="m", node=place.nodes[0], starts_at=at(0), ends_at=at(3600)
        ),
        "holds": Hold.objects.create(project=team.project, reason="red-hold", source="operator"),
    }


def test_every_address_has_a_row_to_probe(red: dict[str, Any]) -> None:
    assert set(red) == set(PREFIXES)


def actions() -> list[tuple[str, str, str]]:
    """(prefix, action, method) of every sub-resource of a row."""
    found = []
    for prefix, viewset, _name in router.registry:
        for extra in viewset.get_extra_actions():
            if extra.detail:
                found += [(prefix, extra.url_path, method) for method in extra.mapping]
    return found


@pytest.mark.parametrize("prefix", PREFIXES)
def test_nobody_gets_in_without_signing_in(as_: Clients, red: dict[str, Any], prefix: str) -> None:
    nobody = as_("nobody")
    row = f"/api/v1/{prefix}/{red[prefix].pk}/"
    for answer in (
        nobody.get(f"/api/v1/{prefix}/"), nobody.post(f"/api/v1/{prefix}/", {}), nobody.get(row),
        nobody.patch(row, {}), nobody.delete(row),
    ):  # fmt: skip
        assert answer.status_code == 401
        assert answer.json()["status"] == 401


@pytest.mark.parametrize(("prefix", "name", "method"), actions())
def test_nobody_acts_without_signing_in(as_: Clients, red: dict[str, Any], prefix: str, name: str, method: str) -> None:
    answer = getattr(as_("nobody"), method)(f"/api/v1/{prefix}/{red[prefix].pk}/{name}/")
    assert answer.status_code == 401


@pytest.mark.parametrize("who", ["blue-admin", "blue-member", "stranger"])
@pytest.mark.parametrize("prefix", TENANTS)
def test_others_find_nothing_in_a_list_whatever_they_filter_by(
    as_: Clients, red: dict[str, Any], place: World, prefix: str, who: str
) -> None:
    client, own = as_(who), str(red[prefix].pk)
    queries = ["", f"?tenant={place.red.tenant.pk}", f"?project={place.red.project.pk}", "?limit=1000"]
    for query in queries:
        answer = client.get(f"/api/v1/{prefix}/{query}")
        assert answer.status_code == 200, answer.content
        assert own not in answer.content.decode()
        assert str(place.red.tenant.pk) not in answer.content.decode()
        assert "red" not in answer.content.decode()


@pytest.mark.parametrize("who", ["blue-admin", "blue-member", "stranger"])
@pytest.mark.parametrize("prefix", TENANTS)
def test_somebody_elses_row_is_not_found(as_: Clients, red: dict[str, Any], prefix: str, who: str) -> None:
    client, row = as_(who), f"/api/v1/{prefix}/{red[prefix].pk}/"
    made_up = f"/api/v1/{prefix}/00000000-0000-7000-8000-000000000000/"
    assert client.get(row).status_code == 404
    for method in ("get", "patch", "delete"):
        real, unreal = getattr(client, method)(row, {}), getattr(client, method)(made_up, {})
        assert real.status_code in {403, 404, 405}
        # nothing tells a row that is not one's own from one that does not exist
        assert (real.status_code, real.json()) == (unreal.status_code, unreal.json())


@pytest.mark.parametrize("who", ["blue-admin", "blue-member", "stranger"])
@pytest.mark.parametrize(("prefix", "name", "method"), actions())
def test_nobody_acts_on_somebody_elses_row(
    as_: Clients, red: dict[str, Any], prefix: str, name: str, method: str, who: str
) -> None:
    body = {"seconds": 600, "justification": "j", "boost": 1, "why": "w"}
    arguments = (body,) if method == "post" else ()
    answer = getattr(as_(who), method)(f"/api/v1/{prefix}/{red[prefix].pk}/{name}/", *arguments)
    assert answer.status_code in {403, 404}
    red[prefix].refresh_from_db()
    assert getattr(red[prefix], "end_asked", "") == ""
    assert getattr(red[prefix], "lifted_at", None) is None
    assert getattr(red[prefix], "cancelled_at", None) is None
    assert getattr(red[prefix], "decided_at", None) is None


@pytest.mark.parametrize("who", ["blue-admin", "blue-member", "stranger", "red-admin", "red-member"])
@pytest.mark.parametrize("prefix", sorted(OVERSEERS))
def test_what_names_the_inventory_is_for_operators_and_auditors(
    as_: Clients, red: dict[str, Any], prefix: str, who: str
) -> None:
    for address in (f"/api/v1/{prefix}/", f"/api/v1/{prefix}/{red[prefix].pk}/"):
        assert as_(who).get(address).status_code == 403
    assert as_(who).post(f"/api/v1/{prefix}/", {}).status_code == 403
    assert as_(who).post("/api/v1/pools/preview/", {}).status_code == 403


@pytest.mark.parametrize("prefix", PREFIXES)
def test_an_auditor_sees_all_and_changes_nothing(as_: Clients, red: dict[str, Any], prefix: str) -> None:
    auditor, row = as_("auditor"), f"/api/v1/{prefix}/{red[prefix].pk}/"
    assert str(red[prefix].pk) in auditor.get(f"/api/v1/{prefix}/").content.decode()
    assert auditor.get(row).status_code == 200
    for answer in (auditor.post(f"/api/v1/{prefix}/", {}), auditor.patch(row, {}), auditor.delete(row)):
        assert answer.status_code in {400, 403, 405}
    before = type(red[prefix]).objects.values().get(pk=red[prefix].pk)
    for named, name, method in actions():
        if named == prefix and method == "post":
            body = {"seconds": 600, "justification": "j", "boost": 1, "why": "w"}
            assert auditor.post(f"{row}{name}/", body).status_code == 403
    assert type(red[prefix]).objects.values().get(pk=red[prefix].pk) == before


@pytest.mark.parametrize("prefix", TENANTS)
def test_the_team_itself_sees_its_rows(as_: Clients, red: dict[str, Any], prefix: str) -> None:
    for who in ("red-admin", "red-member"):
        assert as_(who).get(f"/api/v1/{prefix}/{red[prefix].pk}/").status_code == 200
        assert str(red[prefix].pk) in as_(who).get(f"/api/v1/{prefix}/").content.decode()


FOREIGN: dict[str, dict[str, Any]] = {
    "projects": {"tenant": "tenants", "body": {"name": "n", "slug": "n"}},
    "members": {"tenant": "tenants", "body": {"username": "blue-member"}},
    "requests": {"project": "projects", "body": {"launch": "cards", "time_limit": 60}},
}


@pytest.mark.parametrize("prefix", FOREIGN)
def test_somebody_elses_tenant_can_not_be_named(as_: Clients, red: dict[str, Any], place: World, prefix: str) -> None:
    wanted = dict(FOREIGN[prefix])
    body = wanted.pop("body")
    if prefix == "requests":
        body["spec"] = str(place.spec.pk)
    made_up = "00000000-0000-7000-8000-000000000000"
    field, source = next(iter(wanted.items()))
    real = as_("blue-admin").post(f"/api/v1/{prefix}/", {**body, field: str(red[source].pk)})
    unreal = as_("blue-admin").post(f"/api/v1/{prefix}/", {**body, field: made_up})
    assert (real.status_code, unreal.status_code) == (400, 400)
    assert field in real.json()["errors"]
    assert real.content.decode().replace(str(red[source].pk), "?") == unreal.content.decode().replace(made_up, "?")


def test_a_restricted_pool_can_not_be_asked_for_by_others(as_: Clients, red: dict[str, Any], place: World) -> None:
    body = {"project": str(place.blue.project.pk), "launch": "cards", "time_limit": 3600}
    named = as_("blue-admin").post("/api/v1/requests/", {**body, "spec": str(red["specs"].pk)})
    assert (named.status_code, list(named.json()["errors"])) == (400, ["spec"])
    pool = as_("blue-admin").post(
        "/api/v1/requests/", {**body, "spec": str(place.spec.pk), "pool": str(red["pools"].pk)}
    )
    assert (pool.status_code, list(pool.json()["errors"])) == (400, ["pool"])


def test_a_class_that_is_not_open_to_the_tenant_can_not_be_asked_with(
    as_: Clients, red: dict[str, Any], place: World
) -> None:
    body = {"launch": "cards", "time_limit": 3600, "spec": str(place.spec.pk)}
    urgent = str(red["priority-classes"].pk)
    blue = {**body, "project": str(place.blue.project.pk), "priority": urgent}
    refused = as_("blue-member").post("/api/v1/requests/", blue)
    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["priority"])
    # an operator sees the class; the tenant still may not use it
    told = as_("operator").post("/api/v1/requests/", blue)
    assert (told.status_code, told.json()["errors"]["field"]) == (422, "priority")
    red_body = {**body, "project": str(place.red.project.pk), "priority": urgent}
    assert as_("red-member").post("/api/v1/requests/", red_body).status_code == 201


def test_usage_is_pushed_by_operators_alone(as_: Clients, place: World) -> None:
    for who in ("red-admin", "red-member", "auditor", "stranger"):
        assert as_(who).post("/api/v1/usage/", {}).status_code == 403
    assert as_("nobody").post("/api/v1/usage/", {}).status_code == 401


def test_every_address_is_covered() -> None:
    """A new address under /api/v1/ that no test above probes fails here."""
    plain = [one for one in urlpatterns if isinstance(one, (URLPattern, URLResolver)) and one not in router.urls]
    assert [str(one.pattern) for one in plain if str(one.pattern).split("/")[0] not in PREFIXES] == ["usage/"]
