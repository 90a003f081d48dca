"""Pools, specs, tenants, members, quotas, windows and usage over REST: made, changed, refused, told in the journal."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inventory.models import JournalEntry
from pools.models import Membership, Pool, PriorityClass, Project, Quota, Spec, Tenant, UsageRecord
from tests.pools.api.conftest import Clients
from tests.pools.building import World, allocation, card_model, request

QUERY_COUNTS = json.loads((Path(__file__).parent / "query_counts.json").read_text())


def journal() -> list[str]:
    return list(JournalEntry.objects.order_by("id").values_list("text", flat=True))


def test_a_pool_is_made_ruled_filled_and_counted(as_: Clients, place: World) -> None:
    client = as_("operator")
    made = client.post("/api/v1/pools/", {"name": "Inference", "rank": 1, "sharing": ["whole", "mig"]})
    assert made.status_code == 201, made.content
    pool = made.json()["id"]
    seen = client.post("/api/v1/pools/preview/", {"cluster": str(place.cluster.pk)}).json()
    assert (seen["cards"], seen["elsewhere"], seen["groups"][0]["nodes"]) == (8, 8, 2)
    rule = client.post("/api/v1/pool-rules/", {"pool": pool, "cluster": str(place.cluster.pk)})
    assert rule.status_code == 201
    counts = client.get(f"/api/v1/pools/{pool}/").json()["counts"]
    assert (counts["installed"], counts["available"], counts["allocated"], counts["free"]) == (8, 8, 0, 8)
    out = client.post("/api/v1/pool-members/", {"pool": pool, "card": str(place.cards[0].pk), "included": False})
    assert out.status_code == 201
    assert client.get(f"/api/v1/pools/{pool}/").json()["counts"]["installed"] == 7
    back = client.post("/api/v1/pool-members/", {"pool": pool, "card": str(place.cards[0].pk), "included": True})
    assert back.json()["id"] == out.json()["id"]
    assert client.delete(f"/api/v1/pool-rules/{rule.json()['id']}/").status_code == 204
    assert client.get(f"/api/v1/pools/{pool}/").json()["counts"]["installed"] == 1
    assert journal()[0] == "Pool Inference was added."
    assert journal()[1] == "Pool Inference takes cards by a new rule: train."


@pytest.mark.parametrize(
    ("address", "fields", "field"),
    [
        ("pools", {"name": "Training"}, "name"),
        ("pools", {"name": "P", "sharing": []}, "sharing"),
        ("pools", {"name": "P", "sharing": ["halves"]}, "sharing"),
        ("pools", {"name": "P", "idle_coverage": 20}, "idle_coverage"),
        ("specs", {"name": "S", "card_models": []}, "card_models"),
        ("specs", {"name": "S", "card_models": ["model"], "mode": "mig", "profile": "9g.90gb"}, "profile"),
        ("specs", {"name": "S", "card_models": ["model"], "price": "2.5"}, None),
        ("specs", {"name": "S", "card_models": ["model"], "mode": "time_slice"}, None),
        ("specs", {"name": "S", "card_models": ["model"], "price": "2.5", "currency": "euro"}, "currency"),
        ("tenants", {"name": "Red", "slug": "red2"}, "name"),
        ("tenants", {"name": "Green", "slug": "green team"}, "slug"),
        ("tenants", {"name": "Green", "slug": "green", "weight": 0}, "weight"),
        ("priority-classes", {"name": "high", "price_factor": "-1"}, None),
    ],
)
def test_what_can_not_be_is_refused(
    as_: Clients, place: World, address: str, fields: dict[str, Any], field: str | None
) -> None:
    if fields.get("card_models") == ["model"]:
        fields = {**fields, "card_models": [str(place.model.pk)]}
    answer = as_("operator").post(f"/api/v1/{address}/", fields)
    assert answer.status_code in {400, 422}, answer.content
    if field is not None:
        errors = answer.json()["errors"]
        assert field in errors or errors["field"] == field
    assert answer["Content-Type"].startswith("application/problem+json")
    assert journal() == []


def test_a_mig_profile_is_one_of_the_models(as_: Clients, place: World) -> None:
    place.model.mig_profiles = [{"name": "3g.40gb", "count": 2}]
    place.model.save()
    body = {"name": "half", "card_models": [str(place.model.pk)], "mode": "mig", "profile": "4g.40gb"}
    refused = as_("operator").post("/api/v1/specs/", body)
    assert refused.json()["detail"] == "H100 80GB has no MIG profile 4g.40gb: it has 3g.40gb"
    made = as_("operator").post("/api/v1/specs/", {**body, "profile": "3g.40gb"})
    assert made.status_code == 201
    moved = as_("operator").patch(f"/api/v1/specs/{made.json()['id']}/", {"card_models": [str(card_model("A100").pk)]})
    assert (moved.status_code, moved.json()["errors"]["field"]) == (422, "profile")


def test_a_tenant_sees_what_is_free_and_not_what_others_hold(as_: Clients, place: World) -> None:
    hidden = Pool.objects.create(name="blue only")
    hidden.tenants.add(place.blue.tenant)
    place.spec.pools.add(hidden)
    allocation(place.cards[0], place.blue)
    (spec,) = as_("red-member").get("/api/v1/specs/").json()["results"]
    assert spec["pools"] == [str(place.pool.pk)]
    assert spec["in_pools"] == [{"pool": str(place.pool.pk), "held": None, "free_units": 7, "counts": None}]
    (pool,) = as_("red-member").get("/api/v1/pools/").json()["results"]
    assert (pool["counts"], pool["tenants"], pool["rank"]) == (None, None, None)
    (seen,) = as_("operator").get("/api/v1/specs/").json()["results"]
    assert seen["in_pools"][0]["counts"]["allocated"] == 1


def test_what_was_used_is_not_deleted(as_: Clients, place: World) -> None:
    request(place, place.red.project)
    client = as_("operator")
    for prefix, row in (
        ("specs", place.spec), ("priority-classes", place.normal), ("pools", place.pool),
        ("projects", place.red.project), ("tenants", place.red.tenant),
    ):  # fmt: skip
        assert client.delete(f"/api/v1/{prefix}/{row.pk}/").status_code == 409
    assert journal() == []


def test_a_new_default_class_takes_the_mark(as_: Clients, place: World) -> None:
    made = as_("operator").post("/api/v1/priority-classes/", {"name": "spot", "value": -10, "default": True})
    assert made.status_code == 201, made.content
    assert list(PriorityClass.objects.filter(default=True).values_list("name", flat=True)) == ["spot"]
    address = f"/api/v1/priority-classes/{made.json()['id']}/"
    refused = as_("operator").patch(address, {"tenants": [str(place.red.tenant.pk)]})
    assert (refused.status_code, refused.json()["errors"]["field"]) == (422, "tenants")


def test_an_admin_runs_the_tenant_and_nothing_else(as_: Clients, place: World) -> None:
    admin, tenant = as_("red-admin"), str(place.red.tenant.pk)
    made = admin.post("/api/v1/projects/", {"tenant": tenant, "name": "Vision", "slug": "vision"})
    assert made.status_code == 201, made.content
    member = admin.post("/api/v1/members/", {"tenant": tenant, "project": made.json()["id"], "username": "stranger"})
    assert member.status_code == 201, member.content
    assert as_("stranger").get("/api/v1/projects/").json()["results"][0]["name"] == "Vision"
    address = f"/api/v1/members/{member.json()['id']}/"
    assert admin.patch(address, {"role": "admin"}).status_code == 422
    assert admin.delete(address).status_code == 204
    assert as_("stranger").get("/api/v1/projects/").json()["results"] == []
    assert admin.patch(f"/api/v1/tenants/{tenant}/", {"weight": 100}).status_code == 403
    assert admin.post("/api/v1/quotas/", {"tenant": tenant}).status_code == 403
    assert journal() == [
        "Project Vision was added.",
        "stranger became member of Red, project Vision.",
        "stranger is no longer in Red, project Vision.",
    ]


def test_a_member_does_not_run_the_tenant(as_: Clients, place: World) -> None:
    member, tenant = as_("red-member"), str(place.red.tenant.pk)
    own = Membership.objects.get(user=place.red.member)
    for answer in (
        member.post("/api/v1/projects/", {"tenant": tenant, "name": "n", "slug": "n"}),
        member.patch(f"/api/v1/projects/{place.red.project.pk}/", {"name": "Mine"}),
        member.post("/api/v1/members/", {"tenant": tenant, "username": "nobody-of-this-name"}),
        member.post("/api/v1/members/", {"tenant": tenant, "username": "stranger"}),
        member.patch(f"/api/v1/members/{own.pk}/", {"role": "admin"}),
    ):
        assert answer.status_code == 403
    assert Project.objects.count() == 2


def test_a_project_stays_in_its_tenant(as_: Clients, place: World) -> None:
    answer = as_("operator").patch(f"/api/v1/projects/{place.red.project.pk}/", {"tenant": str(place.blue.tenant.pk)})
    assert (answer.status_code, answer.json()["errors"]["field"]) == (422, "tenant")


def test_a_quota_has_its_limits_and_their_use(as_: Clients, place: World) -> None:
    limits = [
        {"resource": "cards", "nominal": "4", "borrowing": None},
        {"resource": "cards", "model": str(place.model.pk), "nominal": "2"},
        {"resource": "hours", "nominal": "100.5"},
    ]
    made = as_("operator").post("/api/v1/quotas/", {"tenant": str(place.red.tenant.pk), "limits": limits})
    assert made.status_code == 201, made.content
    allocation(place.cards[0], place.red, span=(timezone.now() - timedelta(hours=1), None))
    (quota,) = as_("red-member").get("/api/v1/quotas/").json()["results"]
    used = {(one["resource"], one["model"]): (one["used"], one["unit"], one["borrowing"]) for one in quota["limits"]}
    assert used["cards", None] == ("1.000", "cards", None)
    assert used["cards", str(place.model.pk)] == ("1.000", "cards", "0.000")
    hours, unit, _borrowing = used["hours", None]
    assert (unit, float(hours)) == ("GPU-hours", pytest.approx(1.0, abs=0.01))
    address = f"/api/v1/quotas/{quota['id']}/"
    changed = as_("operator").patch(address, {"limits": limits[:1]})
    assert len(changed.json()["limits"]) == 1
    assert as_("operator").patch(address, {"over_quota": "stop"}).json()["limits"] == changed.json()["limits"]
    twice = as_("operator").patch(address, {"limits": [limits[0], limits[0]]})
    assert twice.status_code == 422
    assert Quota.objects.get().limits.count() == 1
    assert as_("operator").post("/api/v1/quotas/", {"tenant": str(place.red.tenant.pk)}).status_code == 422


def test_a_quota_of_a_foreign_project_is_refused(as_: Clients, place: World) -> None:
    body = {"tenant": str(place.red.tenant.pk), "project": str(place.blue.project.pk)}
    assert as_("operator").post("/api/v1/quotas/", body).json()["errors"]["field"] == "project"
    body = {"tenant": str(place.red.tenant.pk), "time_zone": "Mars/Olympus"}
    assert as_("operator").post("/api/v1/quotas/", body).json()["errors"]["field"] == "time_zone"


def test_a_window_is_made_moved_and_called_off(as_: Clients, place: World) -> None:
    client, now = as_("operator"), timezone.now()
    body = {"name": "firmware", "node": str(place.nodes[0].pk), "starts_at": now.isoformat(),
            "ends_at": (now + timedelta(hours=2)).isoformat()}  # fmt: skip
    made = client.post("/api/v1/maintenance-windows/", body)
    assert made.status_code == 201, made.content
    address = f"/api/v1/maintenance-windows/{made.json()['id']}/"
    assert client.patch(address, {"ends_at": (now - timedelta(hours=1)).isoformat()}).status_code == 422
    assert client.patch(address, {"cluster": str(place.cluster.pk)}).status_code == 422
    for _ in range(2):
        assert client.post(f"{address}cancel/").json()["cancelled_at"] is not None
    assert client.patch(address, {"name": "again"}).status_code == 409
    assert len([line for line in journal() if "called off" in line]) == 1


def test_a_hold_is_placed_and_lifted(as_: Clients, place: World) -> None:
    client = as_("operator")
    made = client.post("/api/v1/holds/", {"tenant": str(place.red.tenant.pk), "reason": "over budget"})
    assert made.status_code == 201, made.content
    assert len(as_("red-member").get("/api/v1/holds/?open=true").json()["results"]) == 1
    assert client.post(f"/api/v1/holds/{made.json()['id']}/lift/").json()["lifted_at"] is not None
    assert as_("red-member").get("/api/v1/holds/?open=true").json()["results"] == []
    two = {"tenant": str(place.red.tenant.pk), "pool": str(place.pool.pk), "reason": "r"}
    assert client.post("/api/v1/holds/", two).status_code == 422


def test_usage_is_stored_once(as_: Clients, place: World) -> None:
    line = {"key": "1", "tenant": str(place.red.tenant.pk), "kind": "tokens", "amount": 1000, "subject": "llama",
            "at": timezone.now().isoformat()}  # fmt: skip
    push = {"source": "meter", "records": [line, {**line, "key": "2", "project": str(place.red.project.pk)}]}
    first, second = (as_("operator").post("/api/v1/usage/", push) for _ in range(2))
    assert (first.status_code, first.json(), second.json()) == (
        201, {"stored": 2, "repeated": 0}, {"stored": 0, "repeated": 2},
    )  # fmt: skip
    assert UsageRecord.objects.count() == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"amount": -1}, {"kind": "kilos"}, {"at": "2999-01-01T00:00:00Z"}, {"amount": 2**63},
        {"tenant": "00000000-0000-7000-8000-000000000000"}, {"project": "00000000-0000-7000-8000-000000000000"},
    ],
)  # fmt: skip
def test_one_bad_record_stores_nothing(as_: Clients, place: World, fields: dict[str, Any]) -> None:
    line = {"key": "1", "tenant": str(place.red.tenant.pk), "kind": "tokens", "amount": 1,
            "at": timezone.now().isoformat()}  # fmt: skip
    push = {"source": "meter", "records": [line, {**line, "key": "2", **fields}]}
    assert as_("operator").post("/api/v1/usage/", push).status_code in {400, 422}
    assert not UsageRecord.objects.exists()


@pytest.mark.parametrize("path", QUERY_COUNTS)
def test_a_list_costs_the_same_for_any_number_of_rows(as_: Clients, place: World, path: str) -> None:
    client = as_("operator")

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(path).status_code == 200
        return len(queries)

    few = cost()
    for number in range(5):
        tenant = Tenant.objects.create(name=f"T{number}", slug=f"t{number}")
        project = Project.objects.create(tenant=tenant, name="p", slug="p")
        Membership.objects.create(tenant=tenant, user=place.red.member)
        Quota.objects.create(tenant=tenant).limits.create(resource="cards", nominal=1)
        Pool.objects.create(name=f"P{number}").tenants.add(tenant)
        spec = Spec.objects.create(name=f"S{number}")
        spec.card_models.add(place.model)
        spec.pools.add(place.pool)
        allocation(place.cards[number], None, tenant=tenant, request=request(place, project))
    many = cost()
    assert many <= QUERY_COUNTS[path]
    assert few <= many
