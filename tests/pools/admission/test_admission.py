"""Admission from the database to the database: what starts, what waits and why, and nothing twice (P4, P5, P7)."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inventory.models import Card, CardModel, Job, Slice
from pools.models import Allocation, ClusterMode, Hold, Quota, QuotaLimit, Request, RequestEvent, SharingMode, Spec
from pools.rules.plan import admit as plan_for
from pools.selectors.frozen import freeze
from pools.services import admission
from pools.services.ledger import entries
from pools.services.requests import cancel
from tests.pools.admission.building import Managed

pytestmark = pytest.mark.django_db


def test_a_request_gets_all_of_it_or_waits_with_the_reason(managed: Managed) -> None:
    first, second = managed.ask(6, name="first"), managed.ask(3, name="second")
    assert managed.admit() == admission.Admitted(started=1, waiting=1)
    first.refresh_from_db()
    assert (first.state, first.attempt, first.reasons, first.position) == ("starting", 1, [], None)
    assert first.mark.startswith("sensaka:")
    assert first.explanation
    assert len(managed.held(first)) == 6
    row = Allocation.objects.filter(request=first).select_related("tenant", "spec").first()
    assert row is not None
    assert (row.tenant, row.project, row.source, row.job) == (
        managed.ledger.red.tenant, managed.ledger.red.project, "managed", None,
    )  # fmt: skip
    assert row.ends_at is not None
    assert abs(row.ends_at - timezone.now() - timedelta(hours=1)) < timedelta(seconds=10)
    (why,) = [one for one in managed.reasons(second) if one.code == "NO_FREE_CARDS"]
    assert why.detail.startswith("needs 3 H100 80GB; 2 free")
    assert second.position == 2
    assert second.expected_start is not None
    assert abs(second.expected_start - row.ends_at) < timedelta(seconds=2)
    assert managed.history(first) == ["admit"]


def test_a_pass_over_the_same_changes_nothing(managed: Managed) -> None:
    managed.ask(6)
    managed.ask(3)
    managed.admit()
    managed.admit()  # now the reason names whose end is waited for
    before = list(Request.objects.order_by("id").values_list("state", "attempt", "mark", "reasons"))
    rows = set(Allocation.objects.values_list("id", flat=True))
    assert managed.admit().started == 0
    assert list(Request.objects.order_by("id").values_list("state", "attempt", "mark", "reasons")) == before
    assert set(Allocation.objects.values_list("id", flat=True)) == rows


def test_a_plan_applied_twice_changes_nothing(managed: Managed) -> None:
    managed.ask(2)
    now = timezone.now()
    snapshot = freeze(managed.ledger.pool, now)
    plan = plan_for(snapshot)
    for started in (1, 0):
        with transaction.atomic():
            entries.take_turns()
            assert admission.apply(managed.ledger.pool, snapshot, plan, now=now).started == started
    assert (Allocation.objects.count(), RequestEvent.objects.count()) == (2, 1)


def test_what_was_cancelled_after_the_snapshot_gets_nothing(managed: Managed) -> None:
    request = managed.ask(2)
    now = timezone.now()
    snapshot = freeze(managed.ledger.pool, now)
    plan = plan_for(snapshot)
    cancel(request, actor=None)
    with transaction.atomic():
        entries.take_turns()
        assert admission.apply(managed.ledger.pool, snapshot, plan, now=now).started == 0
    assert not Allocation.objects.exists()


def test_an_observed_cluster_is_never_placed_on(managed: Managed) -> None:
    ClusterMode.objects.update(mode="observed")
    request = managed.ask()
    assert managed.admit().started == 0
    assert managed.reasons(request)


def test_what_is_observed_to_run_is_not_given_out(managed: Managed) -> None:
    managed.ledger.lab.submit(cards=3)
    managed.ledger.follow()
    request = managed.ask(5)
    managed.admit()
    assert managed.held(request) == [("n1", 3), ("n2", 0), ("n2", 1), ("n2", 2), ("n2", 3)]


def test_a_node_with_work_on_unknown_cards_is_left_alone(managed: Managed) -> None:
    managed.ledger.lab.submit(cards=1)
    managed.ledger.lab.sync()
    Job.objects.update(cards_known=False)
    request = managed.ask(4)
    managed.admit()
    assert {node for node, _ in managed.held(request)} == {"n2"}


def test_quotas_and_holds_keep_it_waiting(managed: Managed) -> None:
    quota = Quota.objects.create(tenant=managed.ledger.red.tenant)
    QuotaLimit.objects.create(quota=quota, resource="cards", nominal=2)
    over = managed.ask(3)
    managed.admit()
    assert "QUOTA_CONCURRENT" in [one.code for one in managed.reasons(over)]
    Hold.objects.create(project=managed.ledger.red.project, reason="over budget", source="budget")
    fits = managed.ask(2)
    managed.admit()
    assert next(iter(managed.reasons(fits))).code == "HELD"
    Hold.objects.update(lifted_at=timezone.now())
    assert managed.admit().started == 1


def test_a_lower_class_is_told_to_leave(managed: Managed) -> None:
    low = managed.ask(8, name="low")
    managed.admit()
    high = managed.ask(4, name="high", priority=managed.urgent)
    assert managed.admit().told == 1
    low.refresh_from_db()
    assert low.signalled_at is not None
    assert low.leaves_at is not None
    assert 58 <= (low.leaves_at - low.signalled_at).total_seconds() <= 61
    assert managed.history(low) == ["admit", "preempt_asked"]
    assert "PREEMPTING" in [one.code for one in managed.reasons(high)]
    assert managed.admit().told == 0


def test_instances_of_divided_cards_are_given_out_one_by_one(managed: Managed) -> None:
    CardModel.objects.update(mig_profiles=[{"name": "3g.40gb", "count": 2}, {"name": "7g.80gb", "count": 1}])
    card = Card.objects.order_by("node__name", "minor").first()
    assert card is not None
    Card.objects.filter(pk=card.pk).update(mig_enabled=True)
    now = timezone.now()
    slices = {Slice.objects.create(card=card, uuid=f"MIG-{n}", profile="3g.40gb", opened_at=now).pk for n in (1, 2)}
    spec = Spec.objects.create(name="half", mode=SharingMode.MIG, profile="3g.40gb")
    spec.card_models.add(*CardModel.objects.all())
    spec.pools.add(managed.ledger.pool)
    requests = [managed.ask(1, spec=spec) for _ in range(3)]
    whole = managed.ask(8)
    assert managed.admit().started == 2
    rows = Allocation.objects.values_list("slice", "share", "card")
    assert {row[0] for row in rows} == slices
    assert sorted((row[1].lower, row[1].upper) for row in rows) == [(0, 500), (500, 1000)]
    assert {row[2] for row in rows} == {card.pk}
    assert managed.reasons(requests[2])
    # 7 cards are whole: a divided one stays divided
    assert managed.reasons(whole)


def test_what_somebody_wrote_by_hand_stands(managed: Managed) -> None:
    request = managed.ask(8)
    now = timezone.now()
    snapshot = freeze(managed.ledger.pool, now)
    plan = plan_for(snapshot)
    card = managed.ledger.cards["n1", 0]
    Allocation.objects.create(card=card, node_id=card.node_id, span=(now, None), source="observed")

    def write() -> None:
        with transaction.atomic():
            entries.take_turns()
            admission.apply(managed.ledger.pool, snapshot, plan, now=now)
            entries.check_turn()

    with pytest.raises(IntegrityError):
        write()
    request.refresh_from_db()
    assert request.state == "queued"
    assert managed.admit().started == 0


@pytest.mark.parametrize("number", [9, 60])
def test_queries_do_not_grow_with_the_queue(managed: Managed, number: int) -> None:
    for place in range(number):
        managed.ask(1 + place % 2)
    with CaptureQueriesContext(connection) as queries:
        assert managed.admit().started >= 2
    assert len(queries) == 33


def test_of_a_long_queue_a_pass_decides_about_its_head(managed: Managed) -> None:
    """By class, of equal ones the tenants in turn; what is held takes nobody's place."""
    first = [managed.ask(1, priority=managed.normal, name=f"n{number}") for number in range(4)]
    held = managed.ask(1, priority=managed.urgent, held=True)
    later = managed.ask(1, priority=managed.normal, project=managed.ledger.blue.project, name="other team")
    urgent = managed.ask(1, priority=managed.urgent, name="urgent")
    assert admission.admit(managed.ledger.pool, window=3).started == 3
    started = set(Request.objects.filter(state="starting").values_list("pk", flat=True))
    assert started == {urgent.pk, first[0].pk, later.pk}
    held.refresh_from_db()
    assert held.reasons == []  # it was not looked at


def test_all_of_a_long_queue_is_told_and_what_fits_further_back_starts(managed: Managed) -> None:
    big = [managed.ask(9, name=f"big {number}") for number in range(3)]
    small = managed.ask(1, priority=managed.normal, project=managed.ledger.blue.project, name="small", boost=-1)
    assert admission.admit(managed.ledger.pool, window=2).started == 0
    (done,) = admission.look_through_all(window=2).values()
    assert done.started == 1
    small.refresh_from_db()
    assert small.state == "starting"
    assert all(managed.reasons(one) for one in big)
    assert [one.position for one in big] == [1, 2, 3]
    assert admission.look_through_all(window=10) == {}
