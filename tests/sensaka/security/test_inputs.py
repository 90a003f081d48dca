"""Input that was made to break something gets a refusal with a reason, never a server error (X2, X3)."""

import base64
import json
from typing import Any

import pytest
from django.http import HttpResponseBase
from django.test import Client
from django.urls import reverse

from inventory.models import Site
from sensaka.asgi import pages
from sensaka.live import fleet, snapshots
from sensaka.platform.limits import LARGEST_BODY
from tests.sensaka.pages import seed


@pytest.fixture
def seeded(db: None) -> seed.Seeded:
    fleet.forget()
    snapshots.forget()
    return seed.build(nodes_a_rack=1)


@pytest.fixture
def operator(seeded: seed.Seeded) -> Client:
    client = Client()
    client.force_login(seeded.users["operator"])
    return client


@pytest.fixture
def alone(db: None) -> Client:
    """An operator of an empty installation."""
    client = Client()
    client.force_login(seed.people()["operator"])
    return client


def cursor(position: str) -> str:
    return base64.b64encode(f"p={position}".encode()).decode()


LISTS = ["sites", "nodes", "accelerators", "bmcs", "exporters", "journal", "tokens", "enrolment-tokens"]
CURSORS = {
    "another column's value": cursor("x"),
    "NUL": cursor("%00"),
    "half a surrogate": cursor("%ED%A0%80"),
    "a cut identifier": cursor("00000000-0000-0000"),
}


@pytest.mark.parametrize("position", CURSORS.values(), ids=CURSORS.keys())
def test_a_cursor_that_was_made_up_names_no_page(alone: Client, position: str) -> None:
    for name in LISTS:
        answer = alone.get(f"/api/v1/{name}/", {"cursor": position})
        assert answer.status_code == 404, name
        assert answer["Content-Type"] == "application/problem+json"


def test_the_cursors_of_what_belongs_to_a_row_are_checked_too(operator: Client, seeded: seed.Seeded) -> None:
    for part in ("journal", "placements", "processes"):
        address = f"/api/v1/accelerators/{seeded.cards[0].pk}/{part}/"
        assert operator.get(address, {"cursor": cursor("x")}).status_code == 404


BODIES: dict[str, bytes] = {
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"name":' * 50_000,
    "not UTF-8": b'{"name": "\xff"}',
    "NaN": b'{"name": NaN}',
    "beyond a float": b'{"name": 1e400}',
    "a number without end": b'{"name": ' + b"9" * 5000 + b"}",
    "a list": b"[]",
    "nothing": b"",
    "half a surrogate": b'{"name": "\\ud800"}',
    "half a surrogate where a word is wanted": b'{"name": "n", "kind": "\\ud800"}',
    "NUL": b'{"name": "\\u0000"}',
    "NUL in a key": b'{"name": "n", "\\u0000": 1}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_that_cannot_be_used_is_refused(alone: Client, body: bytes) -> None:
    before = Site.objects.count()
    answer = alone.post("/api/v1/sites/", body, content_type="application/json")
    refused = answer.status_code == 400
    # 1e400 reads as infinity, which is a name like any other text
    assert refused or (body == BODIES["beyond a float"] and answer.status_code == 201), answer.content
    assert answer["Content-Type"] == ("application/problem+json" if refused else "application/json")
    json.loads(answer.content)
    assert Site.objects.count() == before + (not refused)


@pytest.mark.parametrize("key", ["a\\u0000b", "\\udfff"])
def test_labels_that_no_column_can_hold_are_refused(operator: Client, seeded: seed.Seeded, key: str) -> None:
    address = f"/api/v1/nodes/{seeded.nodes['a01-gpu01'].pk}/"
    body = f'{{"labels": {{"{key}": "x"}}}}'
    assert operator.patch(address, body, content_type="application/json").status_code == 400


QUERIES = {
    "NUL in a search": ("search", {"q": "\x00"}),
    "NUL in the journal": ("journal", {"q": "\x00"}),
    "SQL in a search": ("search", {"q": "'; DROP TABLE inventory_card; --"}),
    "SQL in a sort": ("cards", {"sort": "id; DROP TABLE inventory_card"}),
    "a wildcard": ("search", {"q": "%_\\"}),
    "a page beyond all": ("cards", {"page": "9" * 400}),
    "a page in other digits": ("journal", {"page": "\u0661"}),
    "a long search": ("cards", {"q": "x" * 5000}),
    "an identifier that is none": ("nodes", {"site": "1 OR 1=1"}),
}


@pytest.mark.parametrize(("name", "query"), QUERIES.values(), ids=QUERIES.keys())
def test_a_senseless_query_opens_the_page(alone: Client, name: str, query: dict[str, str]) -> None:
    assert alone.get(reverse(name), query).status_code == 200


HISTORY = {
    "the year 1": {"end": "0001-01-01T00:00:00Z"},
    "the year 1 in the east": {"end": "0001-01-01T00:00:00+14:00"},
    "the year 9999": {"start": "9999-12-31T23:00:00Z", "end": "9999-12-31T23:59:59-14:00"},
    "a leap second": {"end": "2016-12-31T23:59:60Z"},
    "too many points": {"points": "99999999999999999999"},
    "no slice of this card": {"slice": "00000000-0000-0000-0000-000000000000"},
    "no signal": {"fields": "power;drop"},
}


@pytest.mark.parametrize("query", HISTORY.values(), ids=HISTORY.keys())
def test_a_history_at_the_edge_of_time_is_refused(operator: Client, seeded: seed.Seeded, query: dict[str, str]) -> None:
    answer = operator.get(f"/api/v1/accelerators/{seeded.cards[0].pk}/history/", query)
    assert answer.status_code == 400, answer.content


def test_the_chart_of_a_slice_that_is_not_there(operator: Client, seeded: seed.Seeded) -> None:
    address = reverse("card-history", args=[seeded.cards[0].pk])
    for slice_id in (seed.missing_id(), seeded.slices[0].pk, "x"):
        assert operator.get(address, {"slice": str(slice_id)}).status_code == 404


async def exchange(messages: list[dict[str, Any]], headers: list[tuple[bytes, bytes]]) -> list[dict[str, Any]]:
    """What the application in front of Django answers to a request that arrives as `messages`."""
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": "/sign-in/", "raw_path": b"/sign-in/", "query_string": b"", "root_path": "",
        "headers": [(b"host", b"localhost"), *headers], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await pages(scope, receive, send)
    return sent


async def test_a_body_that_is_announced_too_long_is_not_read() -> None:
    sent = await exchange([], [(b"content-length", str(LARGEST_BODY + 1).encode())])
    assert sent[0]["status"] == 413
    assert json.loads(sent[1]["body"])["code"] == "too_large"


async def test_a_body_that_grows_too_long_is_cut_off() -> None:
    part = {"type": "http.request", "body": b"x" * 1_000_000, "more_body": True}
    messages = [dict(part) for _ in range(10)]
    sent = await exchange(messages, [])
    assert sent[0]["status"] == 413
    assert len(messages) == 7, "it went on reading"


def test_an_answer_without_a_body_is_given_again(operator: Client, seeded: seed.Seeded) -> None:
    address = f"/api/v1/bmcs/{seeded.bmcs['a01-gpu01'].pk}/read/"

    def read() -> HttpResponseBase:
        return operator.post(address, "{}", content_type="application/json", headers={"Idempotency-Key": "again"})

    first, second = read(), read()
    assert (first.status_code, second.status_code) == (202, 202)
    assert second["Idempotent-Replay"] == "true"
