"""Every address of requests, queue and ledger, for everybody: a team sees its own, others nothing of it (X3, P14)."""

from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, reverse

from pools.models import Allocation, Extension, Request, RequestEvent
from sensaka.cockpit import promise_urls
from sensaka.identity.models import User
from tests.pools.building import World, person
from tests.sensaka.promises.conftest import SignIn

PATTERNS = [pattern for pattern in promise_urls.urlpatterns if isinstance(pattern, URLPattern)]
PARTS = {"request-part": ["facts", "why", "held", "history"]}
ACTS = {
    "request-act": ["hold", "resume", "release", "cancel", "extend"],
    "extension-decision": ["grant", "refuse"],
}
OWN = {"offers", "ask", "ask-expected", "my-work", "request", "request-part", "request-act", "extensions"}
LISTS = {"offers", "my-work", "extensions"}
OPERATORS = {"queue", "allocations", "allocations-timeline", "allocation"}


def addresses(pattern: URLPattern, rows: dict[str, Any]) -> list[str]:
    names = [{}] if pattern.name not in PARTS | ACTS else [
        {("part" if pattern.name in PARTS else "name"): one} for one in (PARTS | ACTS)[str(pattern.name)]
    ]  # fmt: skip
    wanted = {key: rows[key] for key in pattern.pattern.converters if key in rows}
    return [reverse(pattern.name, kwargs=wanted | one) for one in names]


def state() -> tuple[Any, ...]:
    return (
        list(Request.objects.order_by("id").values_list("state", "held", "boost", "end_asked", "time_limit")),
        list(Extension.objects.order_by("id").values_list("state", "seconds")),
        RequestEvent.objects.count(), Allocation.objects.count(),
    )  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: str(pattern.name))
class TestAccess:
    """One address, for everybody."""

    def test_an_operator_gets_it(
        self, rows: dict[str, Any], operator: User, sign_in: SignIn, pattern: URLPattern
    ) -> None:
        for where in addresses(pattern, rows):
            status = sign_in(operator).get(where).status_code
            assert status == (302 if pattern.name == "allocation" else 200)

    def test_an_auditor_reads_and_changes_nothing(
        self, rows: dict[str, Any], auditor: User, sign_in: SignIn, pattern: URLPattern
    ) -> None:
        before = state()
        reads = pattern.name not in {"ask", "ask-expected", "request-act", "request-move", "extension-decision"}
        for where in addresses(pattern, rows):
            status = sign_in(auditor).get(where).status_code
            assert status == (302 if pattern.name == "allocation" else 200 if reads else 403)
            assert sign_in(auditor).post(where, {"why": "x", "seconds": "1", "justification": "x"}).status_code in {
                200, 302, 403,
            }  # fmt: skip
        assert state() == before

    def test_the_team_gets_its_own(
        self, place: World, rows: dict[str, Any], sign_in: SignIn, pattern: URLPattern
    ) -> None:
        for where in addresses(pattern, rows):
            answer = sign_in(place.red.member).get(where)
            assert answer.status_code == (200 if pattern.name in OWN else 403)
            assert "blue" not in answer.content.decode()

    @pytest.mark.parametrize("who", ["blue", "stranger"])
    def test_others_get_nothing_of_it(
        self, place: World, rows: dict[str, Any], sign_in: SignIn, pattern: URLPattern, who: str
    ) -> None:
        user = place.blue.admin if who == "blue" else person("stranger")
        client, before = sign_in(user), state()
        for where in addresses(pattern, rows):
            for method in (client.get, client.post):
                answer = method(where, {"why": "x", "seconds": "1", "justification": "x"}, follow=True)
                content = answer.content.decode()
                if pattern.name in LISTS or (who == "blue" and pattern.name in {"ask", "ask-expected"}):
                    assert answer.status_code == 200
                else:
                    assert answer.status_code in {403, 404}
                assert "red-" not in content
                assert "Red" not in content
                assert who == "blue" or "H100" not in content
        assert state() == before

    def test_nobody_gets_it_without_signing_in(self, rows: dict[str, Any], pattern: URLPattern) -> None:
        for where in addresses(pattern, rows):
            for answer in (Client().get(where), Client().post(where)):
                assert answer.status_code == 302
                assert answer["Location"].startswith(reverse("sign-in"))


def test_what_is_not_there_is_not_found(rows: dict[str, Any], operator: User, sign_in: SignIn) -> None:
    client = sign_in(operator)
    assert client.get(reverse("request-part", args=[rows["request_id"], "secrets"])).status_code == 404
    assert client.get(reverse("request-act", args=[rows["request_id"], "explode"])).status_code == 404
    assert client.get(reverse("extension-decision", args=[rows["extension_id"], "maybe"])).status_code == 404
    assert client.get(reverse("ask", args=[rows["request_id"]])).status_code == 404


def test_a_member_acts_on_their_own_requests_only(place: World, rows: dict[str, Any], sign_in: SignIn) -> None:
    """Of one team: who did not ask for it sees it, and its admin acts on it."""
    other = person("red-other")
    place.red.tenant.memberships.create(user=other, project=place.red.project)
    where = reverse("request-act", args=[rows["request_id"], "cancel"])
    assert sign_in(other).get(reverse("request", args=[rows["request_id"]])).status_code == 200
    assert sign_in(other).post(where, {"why": ""}).status_code == 403
    assert Request.objects.get(pk=rows["request_id"]).state == "queued"
    assert sign_in(place.red.admin).post(where, {"why": "not needed"}).status_code == 302
    assert Request.objects.get(pk=rows["request_id"]).outcome == "red-admin cancelled it: not needed."


def test_what_people_find_is_theirs(place: World, rows: dict[str, Any], sign_in: SignIn) -> None:
    def found(user: User, query: str) -> str:
        return sign_in(user).get(reverse("search"), {"q": query}, headers={"HX-Request": "true"}).content.decode()

    assert "red-waits" in found(place.red.member, "red-")
    assert "Request" in found(place.red.member, "")
    assert reverse("ask", args=[place.spec.pk]) in found(place.red.member, "H100")
    for query in ("red-", "H100", "n1", "GPU-"):
        assert "red-waits" not in found(place.blue.admin, query)
        assert "/fleet/" not in found(place.blue.admin, query)
    assert reverse("ask", args=[place.spec.pk]) not in found(person("stranger"), "H100")
