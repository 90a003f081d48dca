"""What the database refuses, whoever writes: pools, specs, memberships, quotas, requests, holds, windows."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from pools import models
from pools.models import (
    Extension,
    Hold,
    MaintenanceWindow,
    MappingRule,
    MemberRole,
    Membership,
    PoolMember,
    PoolRule,
    PriorityClass,
    Quota,
    QuotaLimit,
    Spec,
    UsageRecord,
)
from pools.rules import demand, fleet, tenancy
from tests.pools.building import NOW, World, at, request

pytestmark = pytest.mark.django_db


def quota(place: World) -> Quota:
    return Quota.objects.get_or_create(tenant=place.red.tenant, project=None)[0]


Act = Callable[[World], Any]
REFUSED: dict[str, tuple[str, Act]] = {
    "a rule without a condition": ("pool_rule_has_condition", lambda w: PoolRule.objects.create(pool=w.pool)),
    "the same rule twice": ("pool_rule_once", lambda w: PoolRule.objects.create(pool=w.pool, model=w.model)),
    "a member that is nothing": ("pool_member_card_or_node", lambda w: PoolMember.objects.create(pool=w.pool)),
    "a member that is a card and a node": (
        "pool_member_card_or_node",
        lambda w: PoolMember.objects.create(pool=w.pool, card=w.cards[0], node=w.nodes[0]),
    ),
    "a MIG spec without a profile": ("spec_mig_has_profile", lambda w: Spec.objects.create(name="s", mode="mig")),
    "a whole card in parts": ("spec_shares_divide", lambda w: Spec.objects.create(name="s", shares_per_card=2)),
    "a time slice of a card in one part": (
        "spec_shares_divide",
        lambda w: Spec.objects.create(name="s", mode="time_slice"),
    ),
    "a share of several cards": (
        "spec_share_is_of_one_card",
        lambda w: Spec.objects.create(name="s", mode="mps", shares_per_card=4, cards=2),
    ),
    "a unit of no card": ("spec_share_is_of_one_card", lambda w: Spec.objects.create(name="s", cards=0)),
    "a price without a currency": ("spec_price_has_currency", lambda w: Spec.objects.create(name="s", price=2)),
    "two default classes": (
        "one_default_priority_class",
        lambda w: PriorityClass.objects.create(name="other", default=True),
    ),
    "an admin of a project": (
        "membership_admin_of_whole_tenant",
        lambda w: Membership.objects.create(
            tenant=w.red.tenant, project=w.red.project, user=w.blue.admin, role=MemberRole.ADMIN
        ),
    ),
    "a membership twice": (
        "membership_once",
        lambda w: Membership.objects.create(tenant=w.red.tenant, user=w.red.admin),
    ),
    "a label without a key": (
        "mapping_rule_label_has_key",
        lambda w: MappingRule.objects.create(cluster=w.cluster, kind="label", value="x", tenant=w.red.tenant),
    ),
    "two quota records": (
        "quota_once",
        lambda w: [Quota.objects.create(tenant=w.red.tenant), Quota.objects.create(tenant=w.red.tenant)],
    ),
    "a negative limit": (
        "quota_limit_not_negative",
        lambda w: QuotaLimit.objects.create(quota=quota(w), resource="cards", nominal=-1),
    ),
    "tokens of a card model": (
        "quota_limit_model_of_cards",
        lambda w: QuotaLimit.objects.create(quota=quota(w), resource="tokens", nominal=1, model=w.model),
    ),
    "a usage record twice": (
        "usage_record_once",
        lambda w: [
            UsageRecord.objects.create(tenant=w.red.tenant, kind="tokens", amount=1, at=NOW, source="s", key="k")
            for _ in range(2)
        ],
    ),
    "an unknown state": ("request_state_known", lambda w: request(w, w.red.project, state="dreaming")),
    "ended without an end": ("request_ended_when_ended", lambda w: request(w, w.red.project, state="completed")),
    "an end without having ended": ("request_ended_when_ended", lambda w: request(w, w.red.project, ended_at=NOW)),
    "no units": ("request_count_positive", lambda w: request(w, w.red.project, count=0)),
    "a script without text": ("request_launches_something", lambda w: request(w, w.red.project, launch="script")),
    "an extension while one is asked": (
        "extension_asked_one_at_a_time",
        lambda w: [Extension.objects.create(request=r, seconds=60) for r in [request(w, w.red.project)] * 2],
    ),
    "a hold of nothing": ("hold_of_one_thing", lambda w: Hold.objects.create(reason="r", source="operator")),
    "a hold of two things": (
        "hold_of_one_thing",
        lambda w: Hold.objects.create(reason="r", source="operator", tenant=w.red.tenant, pool=w.pool),
    ),
    "a window that ends before it starts": (
        "maintenance_ends_after_start",
        lambda w: MaintenanceWindow.objects.create(name="m", site=w.site, starts_at=at(10), ends_at=at(10)),
    ),
    "a window of no place": (
        "maintenance_of_one_place",
        lambda w: MaintenanceWindow.objects.create(name="m", starts_at=at(0), ends_at=at(10)),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(place: World, case: str) -> None:
    name, act = REFUSED[case]
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        act(place)


@pytest.mark.parametrize(
    ("stored", "ruled"),
    [
        (models.SharingMode, fleet.Mode),
        (models.Near, demand.Near),
        (models.Resource, tenancy.Resource),
    ],
)
def test_stored_words_are_those_of_the_rules(stored: Any, ruled: Any) -> None:
    assert [choice.value for choice in stored] == [choice.value for choice in ruled]


def test_holds_have_the_scopes_of_the_rules() -> None:
    assert set(models.HOLD_TARGETS) == {scope.value for scope in demand.Scope}
