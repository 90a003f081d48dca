"""Asking for capacity over REST (P2, P4, P9): what is stored, refused, changed, and who may."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from pools.models import Allocation, Extension, Pool, PriorityClass, Project, Request, RequestEvent, Spec
from tests.pools.api.conftest import Clients
from tests.pools.building import NOW, World, allocation, request


def body(place: World, **fields: Any) -> dict[str, Any]:
    return {
        "project": str(place.red.project.pk), "spec": str(place.spec.pk), "launch": "script",
        "script": "#!/bin/bash\nsrun train.py\n", "time_limit": 3600, **fields,
    }  # fmt: skip


def test_a_member_asks_and_it_is_queued_with_its_history(as_: Clients, place: World) -> None:
    answer = as_("red-member").post("/api/v1/requests/", body(place, count=2, name="train"))
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert (made["state"], made["submitter"], made["count"]) == ("queued", "red-member", 2)
    assert (made["pool"], made["priority"]) == (str(place.pool.pk), str(place.normal.pk))
    assert (made["tenant"], made["reasons"]) == (str(place.red.tenant.pk), [])
    events = as_("red-member").get(f"/api/v1/requests/{made['id']}/events/").json()["results"]
    assert [(one["event"], one["source"], one["target"]) for one in events] == [
        ("submit", "", "submitted"), ("accept", "submitted", "queued"),
    ]  # fmt: skip
    assert events[0]["cause"] == "red-member asked for 2 x 1 x H100 in Training."


@pytest.mark.parametrize(
    ("fields", "status", "field"),
    [
        ({"count": 0}, 400, "count"),
        ({"count": 10_001}, 400, "count"),
        ({"time_limit": 59}, 400, "time_limit"),
        ({"time_limit": 366 * 86_400 + 1}, 400, "time_limit"),
        ({"script": ""}, 422, "script"),
        ({"script": "python train.py"}, 422, "script"),
        ({"image": "pytorch"}, 422, "image"),
        ({"launch": "image", "script": "", "image": "bad image; rm"}, 422, "image"),
        ({"launch": "image", "script": ""}, 422, "image"),
        ({"launch": "cards"}, 422, "script"),
        ({"launch": "dance"}, 400, "launch"),
        ({"environment": {"1BAD": "x"}}, 422, "environment"),
        ({"environment": {"GOOD": "x" * 10_001}}, 400, "environment"),
        ({"near": "far"}, 400, "near"),
        ({"spec": "not-an-id"}, 400, "spec"),
        ({"not_before": "2999-01-01T00:00:00Z"}, 422, "not_before"),
        ({"name": "x" * 101}, 400, "name"),
    ],
)
def test_what_can_not_be_is_refused_beside_its_field(
    as_: Clients, place: World, fields: dict[str, Any], status: int, field: str
) -> None:
    answer = as_("red-member").post("/api/v1/requests/", body(place, **fields))
    assert answer.status_code == status, answer.content
    errors = answer.json()["errors"]
    assert field in (errors if status == 400 else [errors["field"]])
    assert not Request.objects.exists()


def test_the_pools_longest_run_bounds_the_time_limit(as_: Clients, place: World) -> None:
    Pool.objects.update(longest_run=7200)
    assert as_("red-member").post("/api/v1/requests/", body(place, time_limit=7201)).status_code == 422
    assert as_("red-member").post("/api/v1/requests/", body(place, time_limit=7200)).status_code == 201


def test_a_withdrawn_spec_or_a_closed_pool_is_a_conflict(as_: Clients, place: World) -> None:
    Spec.objects.update(active=False)
    answer = as_("red-member").post("/api/v1/requests/", body(place))
    assert (answer.status_code, answer.json()["detail"]) == (409, "1 x H100 is no longer offered: choose another spec")
    Spec.objects.update(active=True)
    Pool.objects.update(accepting=False)
    assert as_("red-member").post("/api/v1/requests/", body(place)).status_code == 409


def test_the_lowest_rank_that_offers_it_is_the_pool_unless_one_is_named(as_: Clients, place: World) -> None:
    first = Pool.objects.create(name="First", rank=1)
    place.spec.pools.add(first)
    foreign = Pool.objects.create(name="Foreign")
    assert as_("red-member").post("/api/v1/requests/", body(place)).json()["pool"] == str(first.pk)
    named = as_("red-member").post("/api/v1/requests/", body(place, pool=str(place.pool.pk))).json()
    assert named["pool"] == str(place.pool.pk)
    refused = as_("red-member").post("/api/v1/requests/", body(place, pool=str(foreign.pk)))
    assert (refused.status_code, refused.json()["errors"]["field"]) == (422, "pool")


def test_without_a_default_class_one_must_be_named(as_: Clients, place: World) -> None:
    PriorityClass.objects.update(default=False)
    assert as_("red-member").post("/api/v1/requests/", body(place)).status_code == 409
    assert as_("red-member").post("/api/v1/requests/", body(place, priority=str(place.normal.pk))).status_code == 201


def test_a_closed_project_or_tenant_asks_for_nothing_new(as_: Clients, place: World) -> None:
    Project.objects.filter(pk=place.red.project.pk).update(active=False)
    assert as_("red-member").post("/api/v1/requests/", body(place)).status_code == 403
    assert as_("operator").post("/api/v1/requests/", body(place)).status_code == 403


def test_an_auditor_asks_for_nothing(as_: Clients, place: World) -> None:
    assert as_("auditor").post("/api/v1/requests/", body(place)).status_code == 403


def test_sent_twice_with_a_key_it_is_stored_once(as_: Clients, place: World) -> None:
    client = as_("red-member")
    headers = {"Idempotency-Key": "k1"}
    first = client.post("/api/v1/requests/", body(place), headers=headers)
    second = client.post("/api/v1/requests/", body(place), headers=headers)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] == second.json()["id"]
    other = client.post("/api/v1/requests/", body(place, count=3), headers=headers)
    assert other.status_code == 422
    assert as_("red-admin").post("/api/v1/requests/", body(place), headers=headers).json()["id"] != first.json()["id"]
    assert Request.objects.count() == 2


def test_a_waiting_request_is_changed_a_running_one_is_not(as_: Clients, place: World) -> None:
    waiting = request(place, place.red.project, submitter=place.red.member)
    address = f"/api/v1/requests/{waiting.pk}/"
    changed = as_("red-member").patch(address, {"time_limit": 1800, "count": 4, "state": "running", "boost": 9})
    assert changed.status_code == 200, changed.content
    assert [changed.json()[name] for name in ("time_limit", "count", "state", "boost")] == [1800, 4, "queued", 0]
    assert RequestEvent.objects.get().cause == "red-member changed count, time limit."
    assert as_("red-member").patch(address, {"time_limit": 1800}).status_code == 200
    assert RequestEvent.objects.count() == 1
    Request.objects.update(state="running")
    assert as_("red-member").patch(address, {"count": 5}).status_code == 409


def test_holding_and_resuming_changes_once(as_: Clients, place: World) -> None:
    row = request(place, place.red.project, submitter=place.red.member)
    address = f"/api/v1/requests/{row.pk}"
    for _ in range(2):
        assert as_("red-member").post(f"{address}/hold/").json()["held"] is True
    for _ in range(2):
        assert as_("red-member").post(f"{address}/resume/").json()["held"] is False
    assert list(RequestEvent.objects.values_list("event", flat=True)) == ["hold", "resume"]


def test_what_waits_is_cancelled_at_once(as_: Clients, place: World) -> None:
    row = request(place, place.red.project, submitter=place.red.member, reasons=[{"code": "HELD", "args": {}}])
    answer = as_("red-member").post(f"/api/v1/requests/{row.pk}/cancel/", {"why": "typo"}).json()
    assert (answer["state"], answer["outcome"]) == ("cancelled", "red-member cancelled it: typo.")
    assert answer["ended_at"] is not None
    assert answer["reasons"] == []
    again = as_("red-member").post(f"/api/v1/requests/{row.pk}/cancel/")
    assert (again.status_code, again.json()["code"]) == (409, "illegal_transition")


@pytest.mark.parametrize(("act", "meaning"), [("cancel", "cancel"), ("release", "complete")])
def test_of_what_runs_the_end_is_asked_for_and_the_first_wish_counts(
    as_: Clients, place: World, act: str, meaning: str
) -> None:
    row = request(place, place.red.project, submitter=place.red.member, state="running")
    answer = as_("red-member").post(f"/api/v1/requests/{row.pk}/{act}/").json()
    assert (answer["state"], answer["end_asked"]) == ("running", meaning)
    other = "release" if act == "cancel" else "cancel"
    assert as_("red-member").post(f"/api/v1/requests/{row.pk}/{other}/").json()["end_asked"] == meaning


def test_what_waits_has_nothing_to_release(as_: Clients, place: World) -> None:
    row = request(place, place.red.project, submitter=place.red.member)
    assert as_("red-member").post(f"/api/v1/requests/{row.pk}/release/").status_code == 409


@pytest.mark.parametrize(
    ("who", "status"), [("red-member", 403), ("red-admin", 200), ("operator", 200), ("auditor", 403)]
)
def test_who_may_cancel_what_somebody_else_of_the_team_asked_for(
    as_: Clients, place: World, who: str, status: int
) -> None:
    row = request(place, place.red.project, submitter=place.red.admin)
    assert as_(who).post(f"/api/v1/requests/{row.pk}/cancel/").status_code == status


def test_who_left_the_project_may_no_longer_act(as_: Clients, place: World) -> None:
    row = request(place, place.red.project, submitter=place.blue.member)
    assert as_("blue-member").post(f"/api/v1/requests/{row.pk}/cancel/").status_code == 404


def test_only_operators_move_requests_up(as_: Clients, place: World) -> None:
    row = request(place, place.red.project, submitter=place.red.admin)
    assert as_("red-admin").post(f"/api/v1/requests/{row.pk}/boost/", {"boost": 5}).status_code == 403
    assert as_("operator").post(f"/api/v1/requests/{row.pk}/boost/", {"boost": 5}).json()["boost"] == 5


def test_reasons_are_told_with_what_unblocks_them(as_: Clients, place: World) -> None:
    args = {"needed": 16, "what": "H100", "where": " on 2 nodes", "free": 11, "out": 0, "largest": 6, "released": 8,
            "release_at": int(NOW.timestamp()), "release_by": "job 4711"}  # fmt: skip
    row = request(place, place.red.project, reasons=[{"code": "NO_FREE_CARDS", "args": args}, {"code": "NEW_ONE"}])
    first, second = as_("red-member").get(f"/api/v1/requests/{row.pk}/").json()["reasons"]
    assert first["detail"].startswith("needs 16 H100 on 2 nodes; 11 free, largest block 6; 8 come free at ")
    assert first["unblock"]
    assert second == {"code": "NEW_ONE", "detail": "new one", "unblock": ""}


def test_requests_are_filtered(as_: Clients, place: World) -> None:
    request(place, place.red.project, held=True)
    request(place, place.blue.project, state="running")
    operator = as_("operator")

    def number(query: str) -> int:
        answer = operator.get(f"/api/v1/requests/?{query}")
        assert answer.status_code == 200, answer.content
        return len(answer.json()["results"])

    assert [number(query) for query in (
        "", "state=running", "state=running&state=queued", f"tenant={place.red.tenant.pk}", "held=true",
        f"spec={place.spec.pk}", "submitter=nobody",
    )] == [2, 1, 2, 1, 1, 2, 0]  # fmt: skip


class TestExtensions:
    """More time, asked with a reason and decided (P9)."""

    @pytest.fixture
    def running(self, place: World) -> Request:
        row = request(
            place, place.red.project, submitter=place.red.member, state="running", started_at=NOW,
            ends_at=NOW + timedelta(hours=1),
        )  # fmt: skip
        allocation(place.cards[0], place.red, request=row, ends_at=row.ends_at)
        return row

    def ask(self, as_: Clients, row: Request, who: str = "red-member", **fields: Any) -> Any:
        wish = {"seconds": 1800, "justification": "last epoch", **fields}
        return as_(who).post(f"/api/v1/requests/{row.pk}/extend/", wish)

    def test_granted_everything_ends_later(self, as_: Clients, place: World, running: Request) -> None:
        asked = self.ask(as_, running)
        assert (asked.status_code, asked.json()["state"]) == (201, "asked")
        assert self.ask(as_, running).status_code in {409, 422}
        done = as_("operator").post(f"/api/v1/extensions/{asked.json()['id']}/grant/").json()
        assert (done["state"], done["decided_by"]) == ("granted", "operator")
        running.refresh_from_db()
        assert running.time_limit == 5400
        assert running.ends_at == Allocation.objects.get().ends_at == NOW + timedelta(minutes=90)
        again = as_("operator").post(f"/api/v1/extensions/{asked.json()['id']}/refuse/", {"why": "no"})
        assert again.status_code == 409

    def test_refused_with_a_reason_nothing_changes(self, as_: Clients, running: Request) -> None:
        asked = self.ask(as_, running).json()["id"]
        assert as_("operator").post(f"/api/v1/extensions/{asked}/refuse/").status_code == 422
        done = as_("operator").post(f"/api/v1/extensions/{asked}/refuse/", {"why": "maintenance"}).json()
        assert (done["state"], done["decision"]) == ("refused", "maintenance")
        running.refresh_from_db()
        assert running.time_limit == 3600

    def test_an_admin_decides_up_to_the_pools_longest_run(self, as_: Clients, running: Request) -> None:
        asked = self.ask(as_, running).json()["id"]
        assert as_("red-admin").post(f"/api/v1/extensions/{asked}/grant/").status_code == 403
        Pool.objects.update(longest_run=5399)
        assert as_("red-admin").post(f"/api/v1/extensions/{asked}/grant/").status_code == 403
        Pool.objects.update(longest_run=5400)
        assert as_("red-member").post(f"/api/v1/extensions/{asked}/grant/").status_code == 403
        assert as_("red-admin").post(f"/api/v1/extensions/{asked}/grant/").status_code == 200

    def test_an_operators_own_wish_is_granted_at_once(self, as_: Clients, running: Request) -> None:
        assert self.ask(as_, running, "operator").json()["state"] == "granted"

    @pytest.mark.parametrize("fields", [{"seconds": 59}, {"justification": " "}, {"seconds": 10**9}])
    def test_it_needs_a_span_and_a_reason(self, as_: Clients, running: Request, fields: dict[str, Any]) -> None:
        assert self.ask(as_, running, **fields).status_code in {400, 422}
        assert not Extension.objects.exists()

    def test_what_waits_is_not_extended(self, as_: Clients, place: World) -> None:
        row = request(place, place.red.project, submitter=place.red.member)
        assert self.ask(as_, row).status_code == 409

    def test_what_ended_meanwhile_is_not_extended(self, as_: Clients, running: Request) -> None:
        asked = self.ask(as_, running).json()["id"]
        Request.objects.update(state="completed", ended_at=timezone.now())
        assert as_("operator").post(f"/api/v1/extensions/{asked}/grant/").status_code == 409
        assert Extension.objects.get().state == "asked"
