"""The page of idle cards: who sees what of it, what each may do, and that it says what will happen (P10, X3)."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from pools.models import IdleCase, IdleExemption, Reclaim, Request
from sensaka.cockpit import idle_urls
from sensaka.identity.models import User
from sensaka.live.snapshots import own
from sensaka.live.topics import parse
from tests.pools.building import World, allocation, person
from tests.sensaka.promises.conftest import SignIn, running

ACTS = ("release", "extend", "grant", "refuse", "leave", "reclaim")
SENT = {"why": "x", "seconds": "2", "justification": "x"}


@pytest.fixture
def case(place: World) -> IdleCase:
    """The red member's request holds two cards and uses none of them; more time is asked for."""
    runs, now = running(place), timezone.now()
    return IdleCase.objects.create(
        allocation=runs.allocations.order_by("unit", "id")[0], cards=2, since=now - timedelta(hours=5),
        first_warned_at=now - timedelta(hours=3), coverage=97.0, highest_activity=0.4, memory_held=60 * 2**30,
        processes=2, extension_asked_at=now, extension_asked_by=place.red.member, extension_seconds=7200,
        justification="red data is late",
    )  # fmt: skip


@pytest.fixture
def spared(place: World) -> IdleExemption:
    until = timezone.now() + timedelta(days=1)
    return IdleExemption.objects.create(project=place.red.project, reason="red demo", until=until)


def state() -> list[Any]:
    return [
        list(model.objects.order_by("pk").values()) for model in (IdleCase, Reclaim, IdleExemption, Request)
    ]  # fmt: skip


def page(client: Client) -> str:
    answer = client.get(reverse("idle"))
    assert answer.status_code == 200
    return answer.content.decode()


def test_every_address_is_tried_below() -> None:
    names = {pattern.name for pattern in idle_urls.urlpatterns}
    assert names == {"idle", "idle-act", "idle-exemption-add", "idle-exemption-lift"}


def test_an_operator_sees_who_holds_what_and_how_far_it_went(
    case: IdleCase, spared: IdleExemption, operator: User, sign_in: SignIn
) -> None:
    content = page(sign_in(operator))
    for said in (
        "red-runs", "red-member", "Red: Main", "2 \u00d7 H100 80GB", "Idle, memory held", "60.0\u202fGiB, 2 processes",
        "97\u202f%", "Its owner was warned once", "red-member asks to keep them for 2\u202fh", "red data is late",
        "red demo", "Grant", "Refuse", "Leave", "Reclaim", "2 cards are held and not used",
    ):  # fmt: skip
        assert said in content, said


def test_its_owner_sees_theirs_and_others_nothing(
    place: World, case: IdleCase, spared: IdleExemption, sign_in: SignIn
) -> None:
    content = page(sign_in(place.red.member))
    assert "red-runs" in content
    assert "Release" in content
    assert "Reclaim<" not in content
    assert "/fleet/nodes/" not in content
    for user in (place.blue.admin, place.blue.member, person("stranger")):
        content = page(sign_in(user))
        assert "No card is held idle" in content
        assert "red" not in content.replace("considered", "")


def test_what_comes_next_is_said_with_its_time(place: World, case: IdleCase, sign_in: SignIn) -> None:
    def after(**changes: Any) -> str:
        IdleCase.objects.update(**changes)
        return page(sign_in(place.red.member))

    assert "Still idle," not in after()  # somebody has to decide
    first = timezone.now() - timedelta(minutes=20)
    due = (first + timedelta(minutes=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
    content = after(extension_asked_at=None, first_warned_at=first)
    assert "the second warning comes at" in content
    assert due in content
    content = after(first_warned_at=first - timedelta(minutes=30), second_warned_at=first)
    assert "an operator is asked to take them back at" in content
    place.pool.idle_policy = "reclaim"
    place.pool.save()
    content = after()
    assert "they are taken back at" in content
    assert due in content
    until = first + timedelta(hours=5)
    assert until.strftime("%Y-%m-%dT%H:%M:%SZ") in after(state="extended", extended_until=until)


def test_an_empty_page_says_what_would_be_there(place: World, operator: User, sign_in: SignIn) -> None:
    assert "No card is held idle" in page(sign_in(operator))


@pytest.mark.parametrize("name", ACTS)
def test_nobody_acts_without_the_right_to(
    place: World, case: IdleCase, auditor: User, sign_in: SignIn, name: str
) -> None:
    where, before = reverse("idle-act", args=[case.pk, name]), state()
    for user, status in ((auditor, 403), (place.blue.admin, 404), (person("stranger"), 404)):
        assert sign_in(user).get(where).status_code == status
        assert sign_in(user).post(where, SENT).status_code == status
    if name not in ("release", "extend"):
        assert sign_in(place.red.admin).post(where, SENT).status_code == 403
    assert Client().post(where, SENT).status_code == 302
    assert state() == before


def test_exemptions_are_operators(place: World, spared: IdleExemption, auditor: User, sign_in: SignIn) -> None:
    before = state()
    for where in (reverse("idle-exemption-add"), reverse("idle-exemption-lift", args=[spared.pk])):
        for user in (auditor, place.red.admin, place.blue.admin):
            assert sign_in(user).get(where).status_code == 403
            assert sign_in(user).post(where, {"reason": "x"}).status_code == 403
        assert Client().get(where).status_code == 302
    assert state() == before


@pytest.mark.parametrize("name", ACTS)
def test_an_act_says_what_will_happen_first(case: IdleCase, operator: User, sign_in: SignIn, name: str) -> None:
    answer = sign_in(operator).get(reverse("idle-act", args=[case.pk, name]))
    content = answer.content.decode()
    assert answer.status_code == 200
    for said in ("red-runs", "What will happen", "To undo it:"):
        assert said in content
    assert ("2 cards become free." in content) == (name in ("release", "reclaim"))
    assert sign_in(operator).get(reverse("idle-act", args=[case.pk, "explode"])).status_code == 404


def test_an_operator_reclaims_with_a_reason(case: IdleCase, operator: User, sign_in: SignIn) -> None:
    client, where = sign_in(operator), reverse("idle-act", args=[case.pk, "reclaim"])
    refused = client.post(where, {"why": ""})
    assert "This field is required." in refused.content.decode()
    assert Request.objects.get().end_asked == ""
    done = client.post(where, {"why": "a gang waits"}, follow=True)
    assert "are taken back" in done.content.decode()
    assert "Its cluster was told to end it" in done.content.decode()
    assert Request.objects.get().end_asked == "cancel"


def test_an_operator_decides_and_the_owner_reads_it(
    place: World, case: IdleCase, operator: User, sign_in: SignIn
) -> None:
    client = sign_in(operator)
    assert client.post(reverse("idle-act", args=[case.pk, "refuse"]), {"why": "others wait"}).status_code == 302
    owner = page(sign_in(place.red.member))
    assert "operator refused more time:" in owner
    assert "others wait" in owner
    assert "Ask for time" not in owner
    late = client.post(reverse("idle-act", args=[case.pk, "grant"]), {"why": ""})
    assert "No wish for more time waits for a decision" in late.content.decode()


def test_an_owner_asks_for_hours(place: World, case: IdleCase, sign_in: SignIn) -> None:
    IdleCase.objects.update(extension_asked_at=None, extension_seconds=None)
    where = reverse("idle-act", args=[case.pk, "extend"])
    short = sign_in(place.red.member).post(where, {"seconds": "0.1", "justification": "x"})
    assert "Ask for 600 to " in short.content.decode()
    asked = sign_in(place.red.member).post(where, {"seconds": "1.5", "justification": "x"})
    assert asked.status_code == 302
    assert IdleCase.objects.get().extension_seconds == 5400


def test_a_job_of_the_cluster_is_the_operators_to_end(place: World, operator: User, sign_in: SignIn) -> None:
    held = allocation(place.cards[0], place.red, span=(timezone.now() - timedelta(hours=9), None), pool=place.pool)
    IdleCase.objects.create(allocation=held, since=timezone.now() - timedelta(hours=3))
    content = page(sign_in(operator))
    assert "unknown work" in content
    assert "Reclaim" not in content.replace("reclaimed", "")


def test_an_operator_spares_a_project_and_ends_it(place: World, operator: User, sign_in: SignIn) -> None:
    client, where = sign_in(operator), reverse("idle-exemption-add")
    body = {"kind": "project", "until": "2999-01-01T08:00", "reason": "a demo"}
    assert "Say which one." in client.post(where, body).content.decode()
    assert client.post(where, {**body, "project": place.red.project.pk}).status_code == 302
    row = IdleExemption.objects.get()
    assert (row.project, row.spec, row.request) == (place.red.project, None, None)
    past = client.post(where, {**body, "project": place.red.project.pk, "until": "2020-01-01T08:00"})
    assert "The end lies in the past" in past.content.decode()
    where = reverse("idle-exemption-lift", args=[row.pk])
    assert "No longer spare Main?" in client.get(where).content.decode()
    assert client.post(where).status_code == 302
    row.refresh_from_db()
    assert row.lifted_by == operator


def test_the_page_costs_the_same_for_any_number(place: World, case: IdleCase, operator: User, sign_in: SignIn) -> None:
    def queries(user: User) -> int:
        client = sign_in(user)
        page(client)  # what the frame of all pages keeps for some seconds is read by now
        with CaptureQueriesContext(connection) as caught:
            page(client)
        return len(caught)

    few = {user: queries(user) for user in (operator, place.red.admin)}
    for card in place.cards[2:]:
        held = allocation(card, place.red, span=(timezone.now() - timedelta(hours=9), None), pool=place.pool)
        IdleCase.objects.create(allocation=held, since=timezone.now() - timedelta(hours=3))
    for user, number in few.items():
        assert queries(user) == number


def test_the_live_topic_is_ones_own(place: World, case: IdleCase, operator: User) -> None:
    topic = parse("idle")
    assert topic is not None
    assert topic.own
    before = {user.username: own(topic, user)["idle.version"] for user in (operator, place.red.admin, place.blue.admin)}
    IdleCase.objects.get().save()
    after = {user.username: own(topic, user)["idle.version"] for user in (operator, place.red.admin, place.blue.admin)}
    assert {name for name in before if before[name] != after[name]} == {"operator", "red-admin"}
