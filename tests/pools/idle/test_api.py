"""Idle work over REST: what each sees of it, and what is done about it (P10)."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from pools.models import IdleCase, IdleExemption, Request
from tests.pools.api.conftest import Clients, as_
from tests.pools.building import World
from tests.pools.idle.building import GIB, Idling

__all__ = ["as_"]


@pytest.fixture
def wish(idling: Idling) -> Request:
    card = idling.place.cards[0]
    made = idling.request([card])
    idling.feed(card, 0, since=240, until=-300, memory=20 * GIB)
    idling.look()
    return made


def row(client: Any) -> dict[str, Any]:
    (found,) = client.get("/api/v1/reclaims/").json()["results"]
    return dict(found)


def test_what_a_case_says(idling: Idling, wish: Request, as_: Clients) -> None:
    seen = row(as_("red-member"))
    assert seen == row(as_("operator"))
    told = {name: seen[name] for name in ("request", "job", "tenant", "cards", "state", "source", "reclaim")}
    assert told == {
        "request": str(wish.pk), "job": None, "tenant": str(idling.place.red.tenant.pk), "cards": 1, "state": "open",
        "source": "managed", "reclaim": None,
    }  # fmt: skip
    assert (seen["coverage"], seen["highest_activity"], seen["second_warned_at"]) == (100.0, 0.0, None)
    assert as_("blue-admin").get("/api/v1/reclaims/").json()["results"] == []


def test_filters(idling: Idling, wish: Request, as_: Clients) -> None:
    client, place = as_("operator"), idling.place
    for query, number in (
        ("open=true", 1), ("open=false", 0), ("state=open", 1), ("state=busy", 0), (f"tenant={place.red.tenant.pk}", 1),
        (f"tenant={place.blue.tenant.pk}", 0), (f"pool={place.pool.pk}", 1), (f"request={wish.pk}", 1),
    ):  # fmt: skip
        assert len(client.get(f"/api/v1/reclaims/?{query}").json()["results"]) == number, query


def test_an_owner_asks_and_an_operator_decides(idling: Idling, wish: Request, as_: Clients) -> None:
    where = f"/api/v1/reclaims/{idling.case().pk}/"
    bad = as_("red-member").post(f"{where}extend/", {"seconds": 10, "justification": "x"})
    assert (bad.status_code, list(bad.json()["errors"])) == (400, ["seconds"])
    asked = as_("red-member").post(f"{where}extend/", {"seconds": 7200, "justification": "data is late"})
    assert (asked.status_code, asked.json()["extension_asked_by"]) == (200, "red-member")
    for who in ("red-member", "red-admin", "auditor"):
        assert as_(who).post(f"{where}grant/", {}).status_code == 403
    assert as_("operator").post(f"{where}refuse/", {}).status_code == 400
    granted = as_("operator").post(f"{where}grant/", {"why": "once"}).json()
    assert (granted["state"], granted["decided_by"], granted["decision"]) == ("extended", "operator", "once")
    assert as_("operator").post(f"{where}grant/", {}).status_code == 409


def test_an_owner_releases_and_an_operator_reclaims(idling: Idling, wish: Request, as_: Clients) -> None:
    where = f"/api/v1/reclaims/{idling.case().pk}/"
    assert as_("red-member").post(f"{where}reclaim/", {"why": "x"}).status_code == 403
    assert as_("operator").post(f"{where}reclaim/", {}).status_code == 400
    key = {"HTTP_IDEMPOTENCY_KEY": "once"}
    first = as_("operator").post(f"{where}reclaim/", {"why": "a gang waits"}, **key)
    again = as_("operator").post(f"{where}reclaim/", {"why": "a gang waits"}, **key)
    assert first.json() == again.json()
    assert first.json()["reclaim"]["state"] == "releasing"
    wish.refresh_from_db()
    assert wish.end_asked == "cancel"
    assert as_("red-member").post(f"{where}release/", {}).status_code == 200
    wish.refresh_from_db()
    assert wish.end_asked == "cancel", "the first wish counts"


def test_exemptions(idling: Idling, wish: Request, place: World, as_: Clients) -> None:
    until = (timezone.now() + timedelta(days=1)).isoformat()
    body = {"project": str(place.red.project.pk), "reason": "a demo", "until": until}
    assert as_("red-admin").post("/api/v1/idle-exemptions/", body).status_code == 403
    assert as_("operator").post("/api/v1/idle-exemptions/", {**body, "until": "2020-01-01T00:00Z"}).status_code == 422
    both = {**body, "spec": str(place.spec.pk)}
    assert as_("operator").post("/api/v1/idle-exemptions/", both).status_code == 422
    made = as_("operator").post("/api/v1/idle-exemptions/", body)
    assert (made.status_code, made.json()["placed_by"]) == (201, "operator")
    assert len(as_("red-member").get("/api/v1/idle-exemptions/").json()["results"]) == 1
    assert idling.look(1).closed == 1
    lifted = as_("operator").post(f"/api/v1/idle-exemptions/{made.json()['id']}/lift/")
    assert lifted.json()["lifted_at"] is not None
    assert IdleExemption.objects.get().lifted_at is not None


def test_a_list_costs_the_same_for_any_number(idling: Idling, wish: Request, as_: Clients) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            assert as_("operator").get("/api/v1/reclaims/").status_code == 200
        return len(caught)

    few = queries()
    for card in idling.place.cards[1:]:
        idling.request([card])
        idling.feed(card, 0, since=150)
    idling.look()
    assert IdleCase.objects.count() == 8
    assert queries() == few
