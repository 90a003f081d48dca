"""The pages of pools: who gets them, what they show, what their forms do (P1-P4, U2)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, reverse
from django.utils import timezone

from inventory.models import JournalEntry
from pools import urls
from pools.models import (
    MaintenanceWindow,
    MappingRule,
    Membership,
    Pool,
    PoolMember,
    PoolRule,
    PriorityClass,
    Project,
    Quota,
    QuotaLimit,
    Spec,
    Tenant,
)
from sensaka.identity.models import Role, User
from tests.pools.building import World, allocation, person

SignIn = Callable[[User], Client]
# pages that a person of a tenant may open, each only for what is their own
OWN = {"team", "my-usage", "tenant", "project-add", "project-edit", "member-add", "member-delete"}
POST_ONLY = {"pool-rule-add", "pool-rule-delete", "pool-member-add", "pool-member-delete", "mapping-delete"}


@pytest.fixture
def sign_in() -> SignIn:
    def signed(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return signed


@pytest.fixture
def rows(place: World) -> dict[str, Any]:
    """Something behind every kind of address, of the red team where it is a team's."""
    quota = Quota.objects.create(tenant=place.red.tenant)
    QuotaLimit.objects.create(quota=quota, resource="cards", nominal=2)
    QuotaLimit.objects.create(quota=quota, resource="memory", nominal=100 * 2**30, borrowing=None)
    QuotaLimit.objects.create(quota=quota, resource="hours", nominal=500)
    now = timezone.now()
    for card in place.cards[:3]:
        allocation(card, place.red, span=(now - timedelta(hours=1), None))
    return {
        "pool_id": place.pool.pk,
        "rule_id": PoolRule.objects.get().pk,
        "member_id": PoolMember.objects.create(pool=place.pool, card=place.cards[7], included=False).pk,
        "spec_id": place.spec.pk,
        "class_id": place.normal.pk,
        "quota_id": quota.pk,
        "window_id": MaintenanceWindow.objects.create(
            name="firmware", node=place.nodes[0], starts_at=now, ends_at=now + timedelta(hours=2)
        ).pk,
        "tenant_id": place.red.tenant.pk,
        "project_id": place.red.project.pk,
        "membership_id": Membership.objects.get(user=place.red.member).pk,
        "mapping": MappingRule.objects.create(
            cluster=place.cluster, kind="account", value="red", tenant=place.red.tenant
        ).pk,
    }


def address(pattern: URLPattern, rows: dict[str, Any]) -> str:
    names = dict(rows)
    if pattern.name == "mapping-delete":
        names["rule_id"] = rows["mapping"]
    return reverse(pattern.name, kwargs={name: names[name] for name in pattern.pattern.converters})


PATTERNS = [pattern for pattern in urls.urlpatterns if isinstance(pattern, URLPattern)]
READING = {"pools", "pool", "rule-preview", "specs", "priority-classes", "quotas", "maintenance", "tenants", *OWN}


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: str(pattern.name))
class TestAccess:
    """Every address, for everybody."""

    def test_an_operator_gets_it(
        self, rows: dict[str, Any], operator: User, sign_in: SignIn, pattern: URLPattern
    ) -> None:
        status = sign_in(operator).get(address(pattern, rows)).status_code
        assert status == (405 if pattern.name in POST_ONLY else 200)

    def test_an_auditor_reads_and_changes_nothing(
        self, rows: dict[str, Any], auditor: User, sign_in: SignIn, pattern: URLPattern
    ) -> None:
        client, where = sign_in(auditor), address(pattern, rows)
        before = (Pool.objects.count(), Membership.objects.count(), PoolRule.objects.count())
        readable = pattern.name in READING and "add" not in str(pattern.name) and "edit" not in str(pattern.name)
        readable = readable and pattern.name != "member-delete"
        status = client.get(where).status_code
        assert status == (200 if readable else 405 if pattern.name in POST_ONLY else 403)
        client.post(where, {})
        assert (Pool.objects.count(), Membership.objects.count(), PoolRule.objects.count()) == before

    @pytest.mark.parametrize("who", ["blue", "stranger"])
    def test_others_get_nothing_of_it(
        self, place: World, rows: dict[str, Any], sign_in: SignIn, pattern: URLPattern, who: str
    ) -> None:
        user = place.blue.admin if who == "blue" else person("stranger")
        client, where = sign_in(user), address(pattern, rows)
        for method in (client.get, client.post):
            answer = method(where, follow=True)
            assert answer.status_code in {200, 403, 404, 405}
            assert answer.status_code != 200 or pattern.name in {"team", "my-usage"}
            content = answer.content.decode()
            assert "Red" not in content
            assert "red-" not in content
            assert "H100" not in content
        assert Membership.objects.filter(user=place.red.member).exists()

    def test_nobody_gets_it_without_signing_in(self, rows: dict[str, Any], pattern: URLPattern) -> None:
        answer = Client().get(address(pattern, rows))
        assert answer.status_code == 302
        assert answer["Location"].startswith(reverse("sign-in"))


@pytest.mark.parametrize("role", ["admin", "member"])
def test_a_team_sees_its_own_pages(place: World, rows: dict[str, Any], sign_in: SignIn, role: str) -> None:
    client = sign_in(getattr(place.red, role))
    page = client.get(reverse("team"), follow=True)
    assert page.redirect_chain == [(reverse("tenant", args=[place.red.tenant.pk]), 302)]
    content = page.content.decode()
    assert "red-member" in content
    assert ("Add a person" in content) == (role == "admin")
    assert "How its work is recognised" not in content
    usage = client.get(reverse("my-usage")).content.decode()
    assert "H100 80GB" in usage
    assert "GPU-hours" in usage
    assert reverse("quota-edit", args=[rows["quota_id"]]) not in usage
    for entry in ("My usage", "Team"):
        assert entry in content
    assert "Credentials" not in content


def test_who_is_in_two_teams_chooses(place: World, sign_in: SignIn) -> None:
    Membership.objects.create(tenant=place.blue.tenant, user=place.red.admin)
    content = sign_in(place.red.admin).get(reverse("team")).content.decode()
    assert "Red" in content
    assert "Blue" in content


def test_the_pools_page_has_the_ladder(place: World, rows: dict[str, Any], operator: User, sign_in: SignIn) -> None:
    page = sign_in(operator).get(reverse("pools"))
    (line,) = page.context["lines"]
    counts = line["counts"]
    assert (counts.installed, counts.available, counts.allocated, counts.unknown, counts.free) == (7, 7, 3, 3, 4)
    assert page.context["outside"].installed == 1
    assert "In no pool" in page.content.decode()


@pytest.mark.parametrize("name", ["pools", "specs", "quotas", "tenants", "priority-classes", "maintenance", "team"])
def test_an_empty_page_says_what_to_do_next(db: None, operator: User, sign_in: SignIn, name: str) -> None:
    content = sign_in(operator).get(reverse(name), follow=True).content.decode()
    assert "empty-state" in content
    if name != "team":
        assert 'class="btn btn-primary"' in content


def test_a_pool_is_made_with_its_first_rule(place: World, operator: User, sign_in: SignIn) -> None:
    client = sign_in(operator)
    seen = client.get(reverse("rule-preview"), {"cluster": place.cluster.pk}).content.decode()
    assert "8 cards" in seen
    assert "8 of them in another pool" in seen
    body = {"name": "Inference", "description": "", "model": "", "cluster": place.cluster.pk, "labels": ""}
    assert client.post(reverse("pool-add"), body).status_code == 302
    pool = Pool.objects.get(name="Inference")
    assert str(pool.rules.get()) == "train"
    texts = set(JournalEntry.objects.values_list("text", flat=True))
    assert texts == {"Pool Inference was added.", "Pool Inference takes cards by a new rule: train."}
    again = client.post(reverse("pool-add"), body)
    assert again.status_code == 200
    assert "There is a pool of this name." in again.content.decode()
    bad = client.post(reverse("pool-add"), {**body, "name": "Other", "labels": "tier"})
    assert "tier: write name=value." in bad.content.decode()
    assert not Pool.objects.filter(name="Other").exists()


def test_a_preview_of_nothing_and_of_nonsense(operator: User, sign_in: SignIn) -> None:
    client = sign_in(operator)
    assert "Choose a model" in client.get(reverse("rule-preview")).content.decode()
    assert "No card meets" in client.get(reverse("rule-preview"), {"labels": "a=b"}).content.decode()
    assert (
        "Complete the conditions" in client.get(reverse("rule-preview"), {"model": "x", "pool": "y"}).content.decode()
    )


def test_rules_and_single_cards_are_set_on_the_pools_page(place: World, operator: User, sign_in: SignIn) -> None:
    client, args = sign_in(operator), [place.pool.pk]
    refused = client.post(reverse("pool-rule-add", args=args), {"model": "", "cluster": "", "labels": ""})
    assert "a rule without any takes nothing" in refused.content.decode()
    twice = client.post(reverse("pool-rule-add", args=args), {"model": place.model.pk})
    assert "The pool has this rule already." in twice.content.decode()
    assert client.post(reverse("pool-rule-add", args=args), {"labels": "tier=gold"}).status_code == 302
    assert client.post(reverse("pool-member-add", args=args), {"named": "n1", "included": "0"}).status_code == 302
    assert (
        client.post(reverse("pool-member-add", args=args), {"named": place.cards[4].uuid, "included": "1"}).status_code
        == 302
    )
    unknown = client.post(reverse("pool-member-add", args=args), {"named": "n99", "included": "1"})
    assert "No node or card is called that." in unknown.content.decode()
    page = client.get(reverse("pool", args=args))
    assert page.context["counts"].installed == 4
    for row in PoolMember.objects.all():
        client.post(reverse("pool-member-delete", args=[*args, row.pk]))
    for rule in PoolRule.objects.all():
        client.post(reverse("pool-rule-delete", args=[*args, rule.pk]))
    assert client.get(reverse("pool", args=args)).context["counts"].installed == 0


def test_editing_a_pool_tells_what_changed(place: World, operator: User, sign_in: SignIn) -> None:
    client, where = sign_in(operator), reverse("pool-edit", args=[place.pool.pk])
    form = client.get(where).context["form"]
    body = {name: form[name].value() for name in form.fields}
    body = {name: value for name, value in body.items() if value not in (None, False)}
    assert body["idle_after"] == 120
    assert client.post(where, {**body, "idle_after": "180", "longest_run": "48"}).status_code == 302
    place.pool.refresh_from_db()
    assert (place.pool.idle_after, place.pool.longest_run, place.pool.idle_grace) == (10_800, 172_800, 1800)
    assert JournalEntry.objects.get().text == "Pool Training was changed: idle after, longest run."
    refused = client.post(where, {**body, "idle_coverage": "20"})
    assert refused.status_code == 200
    assert refused.context["form"].errors["idle_coverage"]


def test_a_pool_in_use_stays(place: World, rows: dict[str, Any], operator: User, sign_in: SignIn) -> None:
    from tests.pools.building import request

    request(place, place.red.project)
    answer = sign_in(operator).post(reverse("pool-delete", args=[place.pool.pk]), follow=True)
    assert "cancel them" in answer.content.decode()
    assert Pool.objects.filter(pk=place.pool.pk).exists()


SPEC = {"name": "half", "mode": "time_slice", "cards": "1", "shares_per_card": "2", "near": "cluster", "active": "on"}


def test_specs_drop_what_their_way_of_sharing_hides(place: World, operator: User, sign_in: SignIn) -> None:
    client = sign_in(operator)
    body = {**SPEC, "card_models": [place.model.pk], "pools": [place.pool.pk], "cards": "4", "memory": "64.5",
            "price": "1.25", "currency": "eur"}  # fmt: skip
    assert client.post(reverse("spec-add"), body).status_code == 302
    spec = Spec.objects.get(name="half")
    assert (spec.cards, spec.shares_per_card, spec.profile, spec.memory) == (1, 2, "", int(64.5 * 2**30))
    assert (str(spec.price), spec.currency, list(spec.pools.all())) == ("1.2500", "EUR", [place.pool])
    edited = client.post(reverse("spec-edit", args=[spec.pk]), {**body, "mode": "whole", "price": ""})
    assert edited.status_code == 302
    spec.refresh_from_db()
    assert (spec.mode, spec.cards, spec.shares_per_card, spec.price, spec.currency) == ("whole", 4, 1, None, "")
    assert "64.5" in client.get(reverse("spec-edit", args=[spec.pk])).content.decode()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"shares_per_card": ""}, "Say into how many parts a card is divided."),
        ({"mode": "mig", "profile": "1g.10gb"}, "has no MIG profile 1g.10gb: it has none"),
        ({"price": "3"}, "A price needs its currency."),
        ({"card_models": []}, "This field is required."),
        ({"name": "1 x H100"}, "already exists"),
    ],
)
def test_a_spec_that_can_not_be_says_why(
    place: World, operator: User, sign_in: SignIn, fields: dict[str, Any], said: str
) -> None:
    body = {**SPEC, "card_models": [place.model.pk], **fields}
    answer = sign_in(operator).post(reverse("spec-add"), body)
    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert Spec.objects.count() == 1


def test_the_default_class_moves(place: World, operator: User, sign_in: SignIn) -> None:
    body = {"name": "high", "value": "10", "price_factor": "1.5", "minimum_run": "30", "grace": "60", "default": "on"}
    answer = sign_in(operator).post(reverse("priority-class-add"), body)
    assert answer.status_code == 302, answer.context["form"].errors
    assert PriorityClass.objects.get(default=True).name == "high"
    assert PriorityClass.objects.get(name="high").minimum_run == 1800


def test_an_operator_sets_up_a_tenant(place: World, operator: User, sign_in: SignIn) -> None:
    client = sign_in(operator)
    assert (
        client.post(
            reverse("tenant-add"), {"name": "Green", "slug": "green", "weight": "2", "active": "on"}
        ).status_code
        == 302
    )
    tenant = Tenant.objects.get(name="Green")
    assert (
        client.post(reverse("project-add", args=[tenant.pk]), {"name": "P", "slug": "p", "active": "on"}).status_code
        == 302
    )
    twice = client.post(reverse("project-add", args=[tenant.pk]), {"name": "P", "slug": "p2", "active": "on"})
    assert "The tenant has a project of this name." in twice.content.decode()
    added = client.post(reverse("member-add", args=[tenant.pk]), {"username": "blue-member", "role": "admin"})
    assert added.status_code == 302
    again = client.post(reverse("member-add", args=[tenant.pk]), {"username": "blue-member", "role": "member"})
    assert "This person is a member already." in again.content.decode()
    nobody = client.post(reverse("member-add", args=[tenant.pk]), {"username": "nobody", "role": "member"})
    assert "Nobody of this name may sign in" in nobody.content.decode()
    rule = {"cluster": place.cluster.pk, "kind": "label", "key": "team", "value": "green"}
    assert client.post(reverse("mapping-add", args=[tenant.pk]), {**rule, "key": ""}).status_code == 200
    assert client.post(reverse("mapping-add", args=[tenant.pk]), rule).status_code == 302
    page = client.get(reverse("tenant", args=[tenant.pk])).content.decode()
    assert "Label team=green" in page


def test_a_tenants_admin_runs_it_on_the_pages(place: World, sign_in: SignIn) -> None:
    client, tenant = sign_in(place.red.admin), place.red.tenant
    project = Project.objects.create(tenant=place.blue.tenant, name="Theirs", slug="theirs")
    person("new")
    assert (
        client.post(reverse("member-add", args=[tenant.pk]), {"username": "new", "role": "member"}).status_code == 302
    )
    foreign = {"username": "new", "role": "member", "project": project.pk}
    assert client.post(reverse("member-add", args=[tenant.pk]), foreign).status_code == 200
    membership = Membership.objects.get(user__username="new")
    assert client.post(reverse("member-delete", args=[tenant.pk, membership.pk])).status_code == 302
    assert not Membership.objects.filter(user__username="new").exists()
    theirs = Membership.objects.get(user=place.blue.member)
    for where in (
        reverse("member-delete", args=[tenant.pk, theirs.pk]),
        reverse("project-edit", args=[tenant.pk, project.pk]),
        reverse("member-add", args=[place.blue.tenant.pk]),
    ):
        assert client.post(where, {"name": "x", "slug": "x"}).status_code == 404
    assert client.post(reverse("tenant-edit", args=[tenant.pk]), {}).status_code == 403


def test_a_member_does_not(place: World, sign_in: SignIn) -> None:
    client, tenant = sign_in(place.red.member), place.red.tenant
    for name in ("project-add", "member-add"):
        assert client.get(reverse(name, args=[tenant.pk])).status_code == 403


def limits(*lines: dict[str, Any], initial: int = 0) -> dict[str, Any]:
    body: dict[str, Any] = {"limits-TOTAL_FORMS": len(lines), "limits-INITIAL_FORMS": initial}
    for number, line in enumerate(lines):
        body |= {f"limits-{number}-{name}": value for name, value in line.items()}
    return body


def test_a_quota_is_given_and_changed(place: World, operator: User, sign_in: SignIn) -> None:
    client = sign_in(operator)
    head = {"tenant": place.red.tenant.pk, "period": "month", "time_zone": "Europe/Zurich", "over_quota": "wait"}
    lines = limits(
        {"resource": "cards", "nominal": "8", "borrowing": "", "lending": "2"},
        {"resource": "memory", "nominal": "640", "borrowing": "0"},
        {"resource": "", "nominal": ""},
    )
    assert client.post(reverse("quota-add"), {**head, **lines}).status_code == 302
    quota = Quota.objects.get()
    stored = {row.resource: (row.nominal, row.borrowing, row.lending) for row in quota.limits.all()}
    assert stored == {"cards": (8, None, 2), "memory": (640 * 2**30, 0, None)}
    shown = client.get(reverse("quota-edit", args=[quota.pk])).content.decode()
    assert 'value="640"' in shown
    where = reverse("quota-edit", args=[quota.pk])
    missing = client.post(where, {**head, **limits({"resource": "tokens", "nominal": ""})})
    assert "Give an amount" in missing.content.decode()
    twice = client.post(
        where, {**head, **limits({"resource": "tokens", "nominal": "1"}, {"resource": "tokens", "nominal": "2"})}
    )
    assert "is limited twice" in twice.content.decode()
    mars = client.post(where, {**head, "time_zone": "Mars", **limits()})
    assert "IANA name" in mars.content.decode()
    assert quota.limits.count() == 2
    assert client.post(where, {**head, **limits({"resource": "tokens", "nominal": "5"})}).status_code == 302
    assert [str(row) for row in quota.limits.all()] == ["tokens in a period: 5.000"]
    page = client.get(reverse("quotas")).content.decode()
    assert "tokens" in page


def test_use_beyond_the_limit_is_shown_as_borrowed(
    place: World, rows: dict[str, Any], operator: User, sign_in: SignIn
) -> None:
    (line,) = sign_in(operator).get(reverse("quotas")).context["lines"]
    cards = next(one for one in line["limits"] if one["limit"].resource == "cards")
    assert (cards["used"], cards["nominal"], cards["borrowed"], cards["over"], cards["fill"]) == (3, 2, 1, True, 100)
    memory = next(one for one in line["limits"] if one["limit"].resource == "memory")
    assert (memory["used"], memory["nominal"], memory["unit"]) == (240, 100, "GiB")


def test_windows_are_typed_in_the_persons_own_zone(place: World, sign_in: SignIn) -> None:
    user = User.objects.create_user(username="zurich", role=Role.OPERATOR, time_zone="Europe/Zurich")
    client = sign_in(user)
    body = {"name": "firmware", "starts_at": "2099-07-01T08:00", "ends_at": "2099-07-01T10:00", "kind": "site",
            "site": place.site.pk, "node_name": "left-over"}  # fmt: skip
    assert client.post(reverse("window-add"), body).status_code == 302
    row = MaintenanceWindow.objects.get()
    assert row.starts_at.isoformat() == "2099-07-01T06:00:00+00:00"
    where = reverse("window-edit", args=[row.pk])
    shown = client.get(where).content.decode()
    assert 'value="2099-07-01T08:00"' in shown
    assert "In the time zone Europe/Zurich." in shown
    moved = client.post(where, {**body, "kind": "node", "node_name": "n2"})
    assert moved.status_code == 302
    row.refresh_from_db()
    assert (row.site, row.node, row.place_words) == (None, place.nodes[1], "node n2, Basel")
    texts = list(JournalEntry.objects.order_by("id").values_list("text", flat=True))
    assert texts[-1] == "Maintenance window firmware was changed: node, site."
    assert client.post(reverse("window-cancel", args=[row.pk])).status_code == 302
    assert "Called off" in client.get(reverse("maintenance")).content.decode()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"ends_at": "2099-07-01T07:00"}, "The end lies after the start."),
        ({"ends_at": "2001-01-01T00:00", "starts_at": "2000-01-01T00:00"}, "The end lies in the past"),
        ({"kind": "node", "node_name": "n99"}, "There is no node of this name."),
        ({"kind": "rack"}, "Say which one."),
        ({"starts_at": "tomorrow"}, "Enter a valid date/time."),
    ],
)
def test_a_window_that_can_not_be_says_why(
    place: World, operator: User, sign_in: SignIn, wrong: dict[str, str], said: str
) -> None:
    body = {"name": "m", "starts_at": "2099-07-01T08:00", "ends_at": "2099-07-01T10:00", "kind": "site",
            "site": place.site.pk}  # fmt: skip
    answer = sign_in(operator).post(reverse("window-add"), {**body, **wrong})
    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert not MaintenanceWindow.objects.exists()


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("pools", 20),
        ("specs", 20),
        ("quotas", 9),
        ("tenants", 4),
        ("maintenance", 5),
        ("priority-classes", 5),
        ("my-usage", 9),
    ],
)
def test_a_page_costs_the_same_for_any_number_of_rows(
    place: World, rows: dict[str, Any], operator: User, sign_in: SignIn, name: str, most: int
) -> None:
    client = sign_in(operator)
    client.get(reverse(name))

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get(reverse(name))
        return len(queries)

    few = cost()
    for number in range(4):
        tenant = Tenant.objects.create(name=f"T{number}", slug=f"t{number}")
        QuotaLimit.objects.create(quota=Quota.objects.create(tenant=tenant), resource="cards", nominal=1)
        pool = Pool.objects.create(name=f"P{number}")
        pool.tenants.add(tenant)
        spec = Spec.objects.create(name=f"S{number}")
        spec.card_models.add(place.model)
        spec.pools.add(pool, place.pool)
        PriorityClass.objects.create(name=f"c{number}")
        MaintenanceWindow.objects.create(
            name=f"m{number}",
            cluster=place.cluster,
            starts_at=timezone.now(),
            ends_at=timezone.now() + timedelta(hours=1),
        )
    assert cost() == few
    assert few <= most
