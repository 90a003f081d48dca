"""The operator's pages: the queue and its order, who holds what, wishes for more time (P5, P13)."""

from datetime import timedelta
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from inventory.models import Job
from pools.models import Allocation, Pool, Request
from pools.services.admission import admit
from sensaka.identity.models import User
from sensaka.live import snapshots
from tests.pools.building import World, allocation, request
from tests.sensaka.promises.conftest import SignIn, running, waiting


def queries(client: Client, where: str, **query: Any) -> int:
    client.get(where, query)
    snapshots.forget()
    with CaptureQueriesContext(connection) as caught:
        assert client.get(where, query).status_code == 200
    return len(caught)


def line_of(page: Any, name: str) -> dict[str, Any]:
    lines = [line for queue in page.context["queues"] for line in queue["lines"]]
    found: dict[str, Any] = next(line for line in lines if line["request"].name == name)
    return found


def order(client: Client, **query: Any) -> list[str]:
    page = client.get(reverse("queue"), query)
    return [line["request"].name for queue in page.context["queues"] for line in queue["lines"]]


def test_the_queue_is_in_its_order_with_all_reasons(place: World, operator: User, sign_in: SignIn) -> None:
    for number, name in ((2, "second"), (1, "first"), (3, "third")):
        waiting(place, name=name, position=number)
    request(place, place.blue.project, name="blue-secret", position=4)
    client = sign_in(operator)
    assert order(client) == ["first", "second", "third", "blue-secret"]
    page = client.get(reverse("queue"))
    assert line_of(page, "first")["reasons"][1].detail.endswith("first blue-secret")
    content = page.content.decode()
    assert "4 requests wait" in content
    assert content.count("Needs 8 H100; 3 free") == 3
    assert content.count('draggable="true"') == 4


def test_an_auditor_reads_it_without_acts(place: World, auditor: User, sign_in: SignIn) -> None:
    waiting(place)
    content = sign_in(auditor).get(reverse("queue")).content.decode()
    assert "red-waits" in content
    assert "draggable" not in content
    assert "request-act" not in content


def test_a_request_is_moved_with_a_reason(place: World, operator: User, sign_in: SignIn) -> None:
    rows = [waiting(place, name=f"r{number}", position=number + 1) for number in range(4)]
    client = sign_in(operator)
    where = reverse("request-move", args=[rows[3].pk])
    form = client.get(where, {"before": str(rows[1].pk)})
    assert form.context["form"]["before"].value() == str(rows[1].pk)
    refused = client.post(where, {"before": str(rows[1].pk), "why": ""})
    assert "This field is required." in refused.content.decode()
    assert order(client) == ["r0", "r1", "r2", "r3"]
    assert client.post(where, {"before": str(rows[1].pk), "why": "a deadline"}).status_code == 302
    assert order(client) == ["r0", "r3", "r1", "r2"]
    assert (
        "moved it in the queue (boost +1): a deadline"
        in client.get(reverse("request", args=[rows[3].pk])).content.decode()
    )
    client.post(reverse("request-move", args=[rows[0].pk]), {"before": "", "why": "can wait"})
    assert order(client) == ["r3", "r1", "r2", "r0"]
    foreign = Pool.objects.create(name="Other")
    other = waiting(place, name="elsewhere", pool=foreign)
    bad = client.post(where, {"before": str(other.pk), "why": "x"})
    assert "before" in bad.context["form"].errors


def test_the_next_plan_follows_the_order(place: World, operator: User, sign_in: SignIn) -> None:
    """What is shown at once is what admission does: the plan's places are those of the page."""
    now = timezone.now()
    for card in place.cards:
        allocation(card, place.blue, span=(now, None), ends_at=now + timedelta(hours=1), pool=place.pool)
    rows = [
        request(place, place.red.project, name=f"r{number}", waited_since=now + timedelta(seconds=number))
        for number in range(4)
    ]
    admit(place.pool)
    client = sign_in(operator)
    assert order(client) == ["r0", "r1", "r2", "r3"]
    for moved, before in ((3, 1), (0, 2), (1, None)):
        body = {"before": "" if before is None else str(rows[before].pk), "why": "x"}
        assert client.post(reverse("request-move", args=[rows[moved].pk]), body).status_code == 302
    shown = order(client)
    assert shown == ["r3", "r0", "r2", "r1"]
    admit(place.pool)
    by_plan = Request.objects.filter(state="queued").order_by("position")
    assert [row.name for row in by_plan] == shown == order(client)
    assert [row.position for row in by_plan] == [1, 2, 3, 4]


def test_pools_by_themselves_and_long_queues(place: World, operator: User, sign_in: SignIn) -> None:
    other = Pool.objects.create(name="Other", rank=5)
    for number in range(60):
        waiting(place, name=f"r{number}", position=number + 1)
    waiting(place, name="elsewhere", pool=other, position=1)
    client = sign_in(operator)
    page = client.get(reverse("queue"))
    assert [(queue["pool"].name, len(queue["lines"]), queue["more"]) for queue in page.context["queues"]] == [
        ("Other", 1, 0), ("Training", 50, 10),
    ]  # fmt: skip
    assert order(client, pool=other.pk) == ["elsewhere"]
    assert len(order(client, pool=place.pool.pk)) == 60
    for number in range(60, 230):
        waiting(place, name=f"r{number}", position=number + 1)
    assert order(client, pool=place.pool.pk, start=200) == [f"r{number}" for number in range(200, 230)]
    assert order(client, pool=place.pool.pk, start="x")[0] == "r0"
    page = client.get(reverse("queue"), {"pool": place.pool.pk, "start": 100})
    (queue,) = page.context["queues"]
    assert (queue["lines"][0]["place"], queue["more"], queue["next"].name) == (101, 30, "r200")
    last, far = Request.objects.get(name="r229"), Request.objects.get(name="r220")
    where = reverse("request-move", args=[last.pk])
    assert client.post(where, {"before": str(far.pk), "why": "near the end"}).status_code == 302
    assert order(client, pool=place.pool.pk, start=200)[20:22] == ["r229", "r220"]


def test_queries_of_the_queue_do_not_grow(place: World, operator: User, sign_in: SignIn) -> None:
    client = sign_in(operator)
    waiting(place)
    few = queries(client, reverse("queue"))
    for number in range(8):
        pool = Pool.objects.create(name=f"P{number}")
        for place_in in range(4):
            waiting(place, name=f"r{number}-{place_in}", pool=pool)
    assert queries(client, reverse("queue")) == few


def held(place: World) -> dict[str, Allocation]:
    """A request on two cards of a node, an observed job on one, an unassigned card, one that was given back."""
    now = timezone.now()
    running(place, cards=2)
    job = Job.objects.create(cluster=place.cluster, key="77", job_id="77", name="sim", state="running",
                             submitted_at=now, seen_at=now)  # fmt: skip
    return {
        "job": allocation(place.cards[4], place.blue, span=(now - timedelta(hours=1), None), job=job, pool=place.pool),
        "nobody": allocation(place.cards[5], None, span=(now - timedelta(hours=2), None), pool=place.pool),
        "over": allocation(place.cards[6], place.blue, pool=place.pool,
                           span=(now - timedelta(hours=3), now - timedelta(hours=2))),
    }  # fmt: skip


def test_who_holds_what(place: World, operator: User, sign_in: SignIn) -> None:
    rows = held(place)
    client = sign_in(operator)

    def shown(**query: Any) -> set[str]:
        page = client.get(reverse("allocations"), query)
        return {f"{row.node.name}/{row.card.slot}" for row in page.context["page"].object_list}

    assert shown() == {"n1/0", "n1/1", "n2/0", "n2/1"}
    assert shown(tenant="none") == {"n2/1"}
    assert shown(tenant=place.blue.tenant.pk) == {"n2/0"}
    assert shown(state="over") == {"n2/2"}
    assert shown(q="red") == {"n1/0", "n1/1"}
    assert shown(state="all", card=place.cards[6].pk) == {"n2/2"}
    content = client.get(reverse("allocations")).content.decode()
    assert "Unassigned" in content
    assert "job 77" in content
    for name, where in (("job", "job"), ("nobody", "card")):
        target = getattr(rows[name], f"{where}_id")
        assert client.get(reverse("allocation", args=[rows[name].pk]))["Location"] == reverse(where, args=[target])
    of_request = Allocation.objects.filter(request__isnull=False)[0]
    assert client.get(reverse("allocation", args=[of_request.pk]))["Location"] == reverse(
        "request", args=[of_request.request_id]
    )


def test_the_picture_of_the_ledger(place: World, operator: User, sign_in: SignIn) -> None:
    held(place)
    client = sign_in(operator)
    nodes = client.get(reverse("allocations-timeline"), {"span": "6h"}).json()
    assert [lane["name"] for lane in nodes["lanes"]] == ["n1", "n2"]
    assert [len(lane["bars"]) for lane in nodes["lanes"]] == [1, 3]
    told = {holder["name"]: holder for holder in nodes["jobs"]}
    assert told["red-runs"]["cards"] == 2
    assert (told["red-runs"]["job"], told["red-runs"]["user"], told["red-runs"]["kind"]) == ("Main", "Red", "busy")
    assert told["job 77 sim"]["state"] == "Held"
    unassigned = [holder for holder in nodes["jobs"] if holder["kind"] == "unknown"]
    assert [holder["job"] for holder in unassigned] == ["unassigned"]
    before = [holder for holder in nodes["jobs"] if holder["over"]]
    assert [holder["state"] for holder in before] == ["Held before"]
    index, start, end, _row = nodes["lanes"][0]["bars"][0]
    assert nodes["jobs"][index]["name"] == "red-runs"
    assert abs(end - start - 300) <= 2  # seconds, held for five minutes
    cards = client.get(reverse("allocations-timeline"), {"span": "6h", "by": "card"}).json()
    assert [len(lane["bars"]) for lane in cards["lanes"]] == [1, 1, 0, 0, 1, 1, 1, 0]
    mine = client.get(reverse("allocations-timeline"), {"span": "6h", "tenant": "none"}).json()
    assert sum(len(lane["bars"]) for lane in mine["lanes"]) == 1


def test_queries_of_the_ledger_do_not_grow(place: World, operator: User, sign_in: SignIn) -> None:
    client = sign_in(operator)
    running(place, cards=1)
    few = [queries(client, reverse(name)) for name in ("allocations", "allocations-timeline")]
    held_cards = Request.objects.get().allocations.count()
    now = timezone.now()
    for number, card in enumerate(place.cards[held_cards:]):
        row = request(place, place.red.project, name=f"r{number}", state="running")
        allocation(card, place.red, span=(now - timedelta(hours=1), None), request=row, pool=place.pool)
    assert [queries(client, reverse(name)) for name in ("allocations", "allocations-timeline")] == few


def test_empty_pages_say_what_comes_there(db: None, operator: User, sign_in: SignIn) -> None:
    client = sign_in(operator)
    for name in ("queue", "allocations", "my-work", "offers"):
        assert "empty-state" in client.get(reverse(name)).content.decode(), name
    assert "Nobody asks for more time." in client.get(reverse("extensions")).content.decode()
