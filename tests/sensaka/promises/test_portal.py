"""The tenant's pages: what is offered, the form, my work, one request, and the acts on it (P14)."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from pools.models import Extension, Pool, PriorityClass, Project, Request
from pools.services.admission import admit
from sensaka.identity.models import User
from sensaka.live import snapshots
from tests.pools.building import World, allocation, request
from tests.sensaka.promises.conftest import SignIn, running, waiting

CARDS = {"count": "1", "time_limit": "2", "launch": "cards", "key": "k1"}


def queries(client: Client, where: str) -> int:
    snapshots.forget()
    client.get(where)
    snapshots.forget()
    with CaptureQueriesContext(connection) as caught:
        assert client.get(where).status_code == 200
    return len(caught)


def offered(client: Client, **query: str) -> dict[str, Any]:
    page = client.get(reverse("offers"), query)
    return {offer.spec.name: (offer, plan) for offer, plan, _why in page.context["offers"]}


def test_spec_cards_say_what_is_free_and_what_the_plan_expects(place: World, sign_in: SignIn) -> None:
    client = sign_in(place.red.member)
    offer, plan = offered(client)["1 x H100"]
    assert (offer.free, offer.waiting, plan) == (8, 0, None)
    assert offered(client, expected="1")["1 x H100"][1].at_once
    now = timezone.now()
    for card in place.cards:
        allocation(card, place.blue, span=(now, None), ends_at=now + timedelta(hours=3), pool=place.pool)
    request(place, place.blue.project, name="blue-secret", count=2)
    snapshots.forget()
    offer, plan = offered(client, expected="1")["1 x H100"]
    assert (offer.free, offer.waiting) == (0, 1)
    assert not plan.at_once
    assert abs(plan.start - (now + timedelta(hours=3))) < timedelta(seconds=2)
    content = client.get(reverse("offers"), {"expected": "1"}).content.decode()
    assert "blue" not in content
    assert "none declared" in content


def test_without_a_plan_the_start_is_not_known(place: World, sign_in: SignIn) -> None:
    """What runs without an end gives no expectation, and none is made up."""
    now = timezone.now()
    for card in place.cards:
        allocation(card, None, span=(now, None))
    client = sign_in(place.red.member)
    plan = offered(client, expected="1")["1 x H100"][1]
    assert (plan.at_once, plan.start, plan.unknown) == (False, None, "")
    assert "not known" in client.get(reverse("offers"), {"expected": "1"}).content.decode()
    fragment = client.get(reverse("ask-expected", args=[place.spec.pk]), {
        "project": place.red.project.pk, "count": "2", "time_limit": "4",
    }).content.decode()  # fmt: skip
    assert "not known" in fragment
    assert "2 H100" in fragment
    assert "Fill in" in client.get(reverse("ask-expected", args=[place.spec.pk]), {"count": "x"}).content.decode()
    assert not Request.objects.exists()


def test_the_price_is_shown_where_one_is_declared(place: World, sign_in: SignIn) -> None:
    place.spec.price, place.spec.currency = "2.9", "EUR"
    place.spec.save()
    assert "2.90 EUR" in sign_in(place.red.member).get(reverse("offers")).content.decode()


def test_what_may_not_be_asked_for_is_not_offered(place: World, sign_in: SignIn) -> None:
    client = sign_in(place.red.member)
    place.pool.tenants.add(place.blue.tenant)
    assert offered(client) == {}
    assert client.get(reverse("ask", args=[place.spec.pk])).status_code == 404
    place.pool.tenants.add(place.red.tenant)
    Pool.objects.update(accepting=False)
    assert "Nothing is offered" in client.get(reverse("offers")).content.decode()


def test_just_the_cards_are_asked_for_once(place: World, sign_in: SignIn) -> None:
    client, where = sign_in(place.red.member), reverse("ask", args=[place.spec.pk])
    form = client.get(where).context["form"]
    assert form["project"].value() == place.red.project.pk or form.initial["project"] == place.red.project
    body = {**CARDS, "project": place.red.project.pk}
    answer = client.post(where, body, follow=True)
    row = Request.objects.get()
    assert answer.redirect_chain == [(reverse("request", args=[row.pk]), 302)]
    assert (row.state, row.count, row.time_limit, row.launch, row.submitter) == (
        "queued", 1, 7200, "cards", place.red.member,
    )  # fmt: skip
    client.post(where, body)  # sent twice
    assert Request.objects.count() == 1


def test_a_script_and_an_image(place: World, sign_in: SignIn) -> None:
    client, where = sign_in(place.red.member), reverse("ask", args=[place.spec.pk])
    body = {"project": place.red.project.pk, "count": "2", "time_limit": "0.5"}
    script = {"launch": "script", "script": "#!/bin/bash\r\nsrun train\r\n", "key": "a"}
    assert client.post(where, {**body, **script}).status_code == 302
    image = {"launch": "image", "image": "example.org/train:1", "command": "python -m 'my train'", "key": "b",
             "environment": "A=1\nB=x=y", "script": "#!/bin/bash\n", "held": "on", "near": "rack"}  # fmt: skip
    assert client.post(where, {**body, **image}).status_code == 302
    made = {row.launch: row for row in Request.objects.all()}
    assert made["script"].script == "#!/bin/bash\nsrun train\n"
    assert (made["image"].script, made["image"].command) == ("", ["python", "-m", "my train"])
    assert made["image"].environment == {"A": "1", "B": "x=y"}
    assert (made["image"].held, made["image"].near, made["image"].time_limit) == (True, "rack", 1800)


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"launch": "script", "script": "#!/bin/bash\n"}, "script", "Write what is to run"),
        ({"launch": "script", "script": "srun x"}, "script", "names its interpreter"),
        ({"launch": "image", "image": ""}, "image", "Name the image"),
        ({"launch": "image", "image": "a b"}, "image", "registry/name:tag"),
        ({"launch": "image", "image": "a", "command": "'x"}, "command", "be read as a command"),
        ({"count": "0"}, "count", "greater than or equal to 1"),
        ({"time_limit": "0.001"}, "time_limit", "from a minute to a year"),
        ({"time_limit": "48"}, "time_limit", "86,400 seconds"),
        ({"environment": "A"}, "environment", "write NAME=value"),
        ({"environment": "1=2"}, "environment", "no name of a variable"),
    ],
)
def test_an_error_stands_beside_its_field_and_nothing_is_lost(
    place: World, sign_in: SignIn, fields: dict[str, str], field: str, said: str
) -> None:
    Pool.objects.update(longest_run=86_400)
    client, where = sign_in(place.red.member), reverse("ask", args=[place.spec.pk])
    answer = client.post(where, {**CARDS, "project": place.red.project.pk, "name": "keep me", **fields})
    assert answer.status_code == 200
    assert said in str(answer.context["form"].errors[field])
    content = answer.content.decode()
    assert f'id="id_{field}_error"' in content
    assert 'value="keep me"' in content
    for value in fields.values():
        assert value.strip() in content.replace("&#x27;", "'")
    assert not Request.objects.exists()


def test_other_teams_projects_pools_and_classes_can_not_be_named(place: World, sign_in: SignIn) -> None:
    other = Pool.objects.create(name="Theirs")
    other.tenants.add(place.blue.tenant)
    secret = PriorityClass.objects.create(name="urgent", value=99)
    secret.tenants.add(place.blue.tenant)
    client, where = sign_in(place.red.member), reverse("ask", args=[place.spec.pk])
    for fields in ({"project": place.blue.project.pk}, {"pool": other.pk}, {"priority": secret.pk}):
        answer = client.post(where, {**CARDS, "project": place.red.project.pk, **fields})
        assert answer.status_code == 200
        assert next(iter(fields)) in answer.context["form"].errors
    page = client.get(where).content.decode()
    assert "Theirs" not in page
    assert "urgent" not in page


def test_my_work_tells_reasons_places_and_cards(place: World, sign_in: SignIn) -> None:
    waits, runs = waiting(place), running(place, cards=2)
    request(place, place.red.project, name="of-the-admin", submitter=place.red.admin)
    request(place, place.red.project, name="done", submitter=place.red.member, state="completed",
            ended_at=timezone.now(), outcome="Ended by itself.")  # fmt: skip
    client = sign_in(place.red.member)
    page = client.get(reverse("my-work"))
    lines = {line["request"].name: line for line in page.context["lines"]}
    assert lines.keys() == {"red-waits", "red-runs"}
    assert lines["red-runs"]["cards"] == 2
    assert [act.name for act in lines["red-runs"]["acts"]] == ["extend", "release", "cancel"]
    assert [act.name for act in lines["red-waits"]["acts"]] == ["hold", "cancel"]
    content = page.content.decode()
    assert "Needs 8 H100; 3 free, largest block 2; 4 come free at" in content
    assert "2 requests ahead in the queue wait for the same cards, first one of another team" in content
    assert "or ask an operator to move this one up." in content
    assert page.context["cells"][f"request.{waits.pk}.position"].text == "3"
    assert page.context["cells"][f"request.{waits.pk}.expected"].at == waits.expected_start
    assert page.context["cells"][f"request.{runs.pk}.state"].text == "Running"
    team = client.get(reverse("my-work"), {"whose": "team"})
    assert {line["request"].name for line in team.context["lines"]} == {"red-waits", "red-runs", "of-the-admin"}
    assert not next(line["acts"] for line in team.context["lines"] if line["request"].name == "of-the-admin")
    over = client.get(reverse("my-work"), {"state": "over"})
    assert [line["request"].name for line in over.context["lines"]] == ["done"]
    assert "Ended by itself." in over.content.decode()


def test_a_request_says_what_it_holds_and_what_happened(place: World, sign_in: SignIn, operator: User) -> None:
    client = sign_in(place.red.member)
    client.post(reverse("ask", args=[place.spec.pk]), {**CARDS, "project": place.red.project.pk, "count": "3"})
    row = Request.objects.get()
    assert admit(place.pool).started == 1
    page = client.get(reverse("request", args=[row.pk]))
    assert len(page.context["held"]) == 3
    assert page.context["cards"] == 3
    assert {one.kind.text for one in page.context["held"]} == {"Unknown"}
    content = page.content.decode()
    assert "red-member asked for 3 x 1 x H100 in Training." in content
    assert "Placed on" in content
    assert "n1 0" in content or "n2 0" in content
    assert reverse("card", args=[place.cards[0].pk]) not in content
    assert "/fleet/cards/" in sign_in(operator).get(reverse("request", args=[row.pk])).content.decode()


def test_more_time_is_asked_for_and_decided(place: World, sign_in: SignIn) -> None:
    Pool.objects.update(longest_run=4 * 3600)
    runs = running(place)
    member, admin = sign_in(place.red.member), sign_in(place.red.admin)
    where = reverse("request-act", args=[runs.pk, "extend"])
    bad = member.post(where, {"seconds": "1", "justification": ""})
    assert "This field is required." in bad.content.decode()
    assert member.post(where, {"seconds": "1.5", "justification": "last epoch"}).status_code == 302
    twice = member.post(where, {"seconds": "1", "justification": "more"})
    assert "is asked already" in twice.content.decode()
    assert (
        "2 h more" in member.get(reverse("my-work")).content.decode()
        or "90" in member.get(reverse("my-work")).content.decode()
    )
    asked = Extension.objects.get()
    assert not member.get(reverse("extensions")).context["lines"][0]["may"]
    assert member.post(reverse("extension-decision", args=[asked.pk, "grant"])).status_code == 403
    assert admin.get(reverse("my-work")).context["to_decide"] == 1
    assert admin.get(reverse("extensions")).context["lines"][0]["may"]
    needed = admin.post(reverse("extension-decision", args=[asked.pk, "refuse"]), {"why": ""})
    assert needed.status_code == 200
    assert admin.post(reverse("extension-decision", args=[asked.pk, "grant"]), {"why": "fine"}).status_code == 302
    runs.refresh_from_db()
    assert runs.time_limit == 3600 + 5400
    assert "last epoch" in member.get(reverse("request", args=[runs.pk])).content.decode()
    too_long = member.post(where, {"seconds": "10", "justification": "a lot"})
    assert too_long.status_code == 302
    assert not admin.get(reverse("extensions")).context["lines"][0]["may"]
    second = Extension.objects.get(state="asked")
    assert admin.post(reverse("extension-decision", args=[second.pk, "grant"]), {"why": "x"}).status_code == 403


def test_hold_resume_release_and_cancel(place: World, sign_in: SignIn) -> None:
    waits, runs = waiting(place), running(place)
    client = sign_in(place.red.member)

    def act(row: Request, name: str, **headers: str) -> Any:
        return client.post(reverse("request-act", args=[row.pk, name]), {"why": "because"}, headers=headers)

    assert "2 cards become free." in client.get(reverse("request-act", args=[runs.pk, "release"])).content.decode()
    act(waits, "hold")
    waits.refresh_from_db()
    assert waits.held
    assert "On hold" in client.get(reverse("request", args=[waits.pk])).content.decode()
    act(waits, "resume")
    dialog = act(waits, "cancel", **{"HX-Request": "true"})
    assert (dialog.status_code, dialog["HX-Redirect"]) == (204, reverse("request", args=[waits.pk]))
    again = act(waits, "cancel")
    assert again.status_code == 200
    assert again.context["form"].errors
    act(runs, "release")
    runs.refresh_from_db()
    waits.refresh_from_db()
    assert (waits.state, waits.held, runs.end_asked) == ("cancelled", False, "complete")
    assert "red-member cancelled it: because." in client.get(reverse("request", args=[waits.pk])).content.decode()
    assert "Ending" in client.get(reverse("my-work")).content.decode()


def test_who_displaced_it_is_named_to_who_may_see_it(place: World, sign_in: SignIn, operator: User) -> None:
    """A plan tells a preemptible run to leave; neither the page nor REST says to its owner for whom."""
    PriorityClass.objects.update(preemptible=True)
    urgent = PriorityClass.objects.create(name="urgent", value=50)
    now = timezone.now() - timedelta(hours=1)
    runs = running(place, cards=8, priority=place.normal, started_at=now)
    runs.allocations.update(priority=place.normal, ends_at=now + timedelta(hours=40))
    request(place, place.blue.project, name="blue-secret", priority=urgent, count=2)
    assert admit(place.pool).told == 1
    for where in (reverse("request", args=[runs.pk]), f"/api/v1/requests/{runs.pk}/events/"):
        content = sign_in(place.red.member).get(where).content.decode()
        assert "work of a higher class needs its cards" in content
        assert "blue" not in content
    assert "(blue-secret)" in sign_in(operator).get(reverse("request", args=[runs.pk])).content.decode()


@pytest.mark.parametrize("name", ["offers", "my-work"])
def test_queries_do_not_grow(place: World, sign_in: SignIn, name: str) -> None:
    client = sign_in(place.red.member)
    waiting(place)
    running(place)
    where = reverse(name)
    few = queries(client, where)
    for number in range(12):
        waiting(place, name=f"more-{number}")
        spec = type(place.spec).objects.create(name=f"spec {number}", cards=1)
        spec.card_models.add(place.model)
        spec.pools.add(place.pool)
        Project.objects.create(tenant=place.red.tenant, name=f"P{number}", slug=f"p{number}")
    assert queries(client, where) == few


def test_queries_of_one_request_do_not_grow(place: World, sign_in: SignIn) -> None:
    client = sign_in(place.red.member)
    small, large = running(place, cards=1, name="small"), request(place, place.red.project, state="running")
    now = timezone.now()
    for card in place.cards[2:]:
        allocation(card, place.red, span=(now, None), request=large)
    for number in range(20):
        large.events.create(at=now, event="hold", target="running", cause=f"line {number}")
    assert queries(client, reverse("request", args=[large.pk])) <= queries(client, reverse("request", args=[small.pk]))
