"""POST /api/v1/telemetry/ (I4, U1): acknowledged is committed, repeated is stored once, refusals name why."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.db import connection
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from inventory.ingest import TelemetryApplication, batcher, registry, wire
from inventory.models import Agent, Card, Placement, Slice
from inventory.observations import VALUE_FIELDS
from inventory.services.sample_rows import Packed, pack
from inventory.signals import samples_stored
from tests.inventory.samples.fleet import Enrolled, enrolled

pytestmark = [
    pytest.mark.django_db(transaction=True, available_apps=settings.INSTALLED_APPS),
    pytest.mark.usefixtures("committed"),
]
PATH = "/api/v1/telemetry/"


@pytest.fixture
def node(committed: None) -> Enrolled:
    return enrolled(cards=2)


@pytest.fixture
async def app(committed: None) -> AsyncIterator[TelemetryApplication]:
    application = TelemetryApplication()
    yield application
    await application.close()


def stamp(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def sample(card: str, *, ago: float = 5, **values: Any) -> dict[str, Any]:
    return {"card": card, "sampled_at": stamp(datetime.now(UTC) - timedelta(seconds=ago)), **values}


async def post(app: TelemetryApplication, token: str, body: bytes | dict[str, Any], **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        sent = {"authorization": f"Token {token}", "content-type": "application/json", **headers}
        return await client.post(PATH, content=content, headers=sent)


def stored(series: int, columns: str = "*") -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM inventory_sample WHERE series = %s ORDER BY ts", [series])
        return cursor.fetchall()


async def read(series: int, columns: str = "*") -> list[tuple[Any, ...]]:
    return await asyncio.to_thread(_in_thread, series, columns)


def _in_thread(series: int, columns: str) -> list[tuple[Any, ...]]:
    try:
        return stored(series, columns)
    finally:
        connection.close()


async def in_thread(action: Any, *args: Any, **kwargs: Any) -> Any:
    def run() -> Any:
        try:
            return action(*args, **kwargs)
        finally:
            connection.close()

    return await asyncio.to_thread(run)


async def test_every_field_is_stored_as_it_was_sent(app: TelemetryApplication, node: Enrolled) -> None:
    values: dict[str, float] = dict.fromkeys(VALUE_FIELDS, 12.5)
    whole = "memory_used throttle_reasons ecc_corrected ecc_uncorrected pcie_replays nvlink_errors remapped_rows xid"
    values |= dict.fromkeys(whole.split(), 85899345920)
    values |= {"throttle_reasons": 2**63 - 1, "ecc_corrected": 2**53 + 1, "energy": 123456789012.25}
    answer = await post(app, node.token, {"interval": 10, "samples": [sample(node.uuids[0], **values)]})
    assert (answer.status_code, answer.json()) == (200, {"stored": 1, "repeated": 0})
    ((*found, interval, source),) = await read(node.cards[0].series, f'{", ".join(VALUE_FIELDS)}, "interval", source')
    assert dict(zip(VALUE_FIELDS, found, strict=True)) == values
    assert (interval, source) == (10, 1)


async def test_absent_is_null_and_zero_is_zero(app: TelemetryApplication, node: Enrolled) -> None:
    """U4: rows of different shape in one batch keep what each did not say."""
    first, second = node.uuids
    body = {"interval": 10, "samples": [
        sample(first, utilization=0), sample(second, power=0.0), sample(first, ago=15), sample(first, ago=25, xid=None),
    ]}  # fmt: skip
    assert (await post(app, node.token, body)).json()["stored"] == 4
    assert await read(node.cards[0].series, "utilization, power, xid") == [(None,) * 3, (None,) * 3, (0, None, None)]
    assert await read(node.cards[1].series, "utilization, power") == [(None, 0)]


async def test_times_are_floored_to_whole_seconds(app: TelemetryApplication, node: Enrolled) -> None:
    moment = datetime.now(UTC).replace(microsecond=999_999) - timedelta(seconds=60)
    zoned = moment.astimezone(tz=None).isoformat()
    body = {"interval": 10, "samples": [{"card": node.uuids[0], "sampled_at": zoned, "power": 1}]}
    assert (await post(app, node.token, body)).status_code == 200
    assert await read(node.cards[0].series, "ts") == [(moment.replace(microsecond=0),)]


async def test_a_batch_sent_twice_is_stored_once(app: TelemetryApplication, node: Enrolled) -> None:
    samples = [sample(uuid, ago=10 * step, utilization=step) for uuid in node.uuids for step in range(1, 6)]
    body = {"interval": 10, "samples": samples}
    assert (await post(app, node.token, body)).json() == {"stored": 10, "repeated": 0}
    assert (await post(app, node.token, body)).json() == {"stored": 0, "repeated": 10}
    body["samples"] = [*samples, *samples, sample(node.uuids[0], ago=100, utilization=1)]
    assert (await post(app, node.token, body)).json() == {"stored": 1, "repeated": 20}
    assert len(await read(node.cards[0].series)) == 6


async def test_many_posts_at_once_are_each_answered_with_their_own_count(app: TelemetryApplication) -> None:
    nodes = [await in_thread(enrolled, cards=1) for _ in range(5)]
    bodies = [{"interval": 10, "samples": [sample(one.uuids[0], ago=step * 10) for step in range(3)]} for one in nodes]
    answers = await asyncio.gather(
        *(post(app, one.token, body) for one, body in zip(nodes, bodies, strict=True) for _ in range(2))
    )
    for first, second in zip(answers[::2], answers[1::2], strict=True):
        assert first.json()["stored"] + second.json()["stored"] == 3
        assert first.json()["repeated"] + second.json()["repeated"] == 3


async def test_compressed_bodies(app: TelemetryApplication, node: Enrolled) -> None:
    plain = json.dumps({"interval": 10, "samples": [sample(node.uuids[0])]}).encode()
    zipped = gzip.compress(plain)
    cases = {
        "whole": (zipped, "gzip", 200),
        "named in capitals": (zipped, "GZIP", 200),
        "cut": (zipped[:-4], "gzip", 400),
        "two members": (zipped + zipped, "gzip", 400),
        "not gzip": (plain, "gzip", 400),
        "unknown encoding": (zipped, "br", 415),
        "bomb": (gzip.compress(bytes(wire.MAX_DECOMPRESSED + 1)), "gzip", 413),
    }
    for name, (body, encoding, status) in cases.items():
        answer = await post(app, node.token, body, **{"content-encoding": encoding})
        assert answer.status_code == status, name


REFUSED = {
    "no json": (b"{", 400, "malformed"),
    "not utf-8": (b'{"interval": 10, "samples": [{"card": "\xff", "sampled_at": ""}]}', 400, "malformed"),
    "empty": (b"", 400, "malformed"),
    "deep": (b"[" * 5000, 422, "invalid"),
    "a list": (b"[]", 422, "invalid"),
    "no interval": (b'{"samples": []}', 422, "invalid"),
    "interval too long": (b'{"interval": 1201, "samples": []}', 422, "invalid"),
    "interval zero": (b'{"interval": 0, "samples": []}', 422, "invalid"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "status", "code"), REFUSED.values(), ids=REFUSED.keys())
async def test_bodies_that_are_refused(
    app: TelemetryApplication, node: Enrolled, body: bytes, status: int, code: str
) -> None:
    answer = await post(app, node.token, body)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


BAD_VALUES = {
    "percent over 100": {"utilization": 100.5},
    "negative memory": {"memory_used": -1},
    "too large for a counter": {"xid": 2**63},
    "a string": {"power": "700"},
    "naive time": {"sampled_at": "2026-01-01T00:00:00"},
    "no time": {"sampled_at": None},
    "no card": {"card": None},
}


@pytest.mark.parametrize("values", BAD_VALUES.values(), ids=BAD_VALUES.keys())
async def test_one_bad_value_refuses_the_post_and_names_it(
    app: TelemetryApplication, node: Enrolled, values: dict[str, Any]
) -> None:
    body = {"interval": 10, "samples": [sample(node.uuids[0]), {**sample(node.uuids[1]), **values}]}
    answer = await post(app, node.token, body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert "$.samples[1]" in answer.json()["detail"]
    assert await read(node.cards[0].series) == []


async def test_times_out_of_bounds_are_refused_by_name(app: TelemetryApplication, node: Enrolled) -> None:
    body = {"interval": 10, "samples": [
        sample(node.uuids[0]), sample(node.uuids[0], ago=-90), sample(node.uuids[1], ago=15 * 86_400),
        sample(node.uuids[1], ago=-30), sample(node.uuids[1], ago=14 * 86_400 - 60),
    ]}  # fmt: skip
    answer = await post(app, node.token, body)
    assert (answer.status_code, answer.json()["code"]) == (422, "refused")
    named = [(one["index"], one["card"], one["reason"]) for one in answer.json()["samples"]]
    assert named == [(1, node.uuids[0], "future"), (2, node.uuids[1], "too_old")]
    assert await read(node.cards[0].series) == []
    body["samples"] = [body["samples"][index] for index in (0, 3, 4)]
    assert (await post(app, node.token, body)).json()["stored"] == 3


async def test_an_unknown_card_asks_for_a_report_and_stores_nothing(app: TelemetryApplication, node: Enrolled) -> None:
    body = {"interval": 10, "samples": [sample(node.uuids[0]), sample("GPU-new")]}
    answer = await post(app, node.token, body)
    assert (answer.status_code, answer.json()["code"], answer.json()["cards"]) == (409, "unknown_cards", ["GPU-new"])
    assert await read(node.cards[0].series) == []
    now = datetime.now(UTC)
    await in_thread(Card.objects.create, node=node.node, uuid="GPU-new", first_seen_at=now, state_since=now)
    assert (await post(app, node.token, body)).json()["stored"] == 2


async def test_a_card_counts_where_it_was(app: TelemetryApplication, node: Enrolled) -> None:
    """I3, I12: a card that moved takes samples from its old node only for the time it was there."""
    other = await in_thread(enrolled, cards=0)
    moved_at = datetime.now(UTC) - timedelta(hours=1)
    card = node.cards[0]

    def move() -> None:
        stay = Placement.objects.get(card=card)
        Placement.objects.filter(pk=stay.pk).update(span=(stay.span.lower, moved_at))
        Placement.objects.create(card=card, node=other.node, span=(moved_at, None))
        Card.objects.filter(pk=card.pk).update(node=other.node)

    await in_thread(move)
    spooled = {"interval": 10, "samples": [sample(card.uuid, ago=3700)]}
    assert (await post(app, node.token, spooled)).json()["stored"] == 1
    answer = await post(app, node.token, {"interval": 10, "samples": [sample(card.uuid, ago=60)]})
    assert (answer.status_code, answer.json()["samples"][0]["reason"]) == (422, "elsewhere")
    assert (await post(app, other.token, {"interval": 10, "samples": [sample(card.uuid, ago=60)]})).status_code == 200


async def test_a_slice_that_was_made_again_is_another_one(app: TelemetryApplication, node: Enrolled) -> None:
    """I3: a MIG instance may get the same UUID again; readings go to the one that was open then."""
    now = datetime.now(UTC)

    def make() -> list[Slice]:
        made = [
            Slice.objects.create(
                card=node.cards[0], uuid="MIG-1", profile="1g.10gb", opened_at=opened, closed_at=closed
            )
            for opened, closed in (
                (now - timedelta(hours=3), now - timedelta(hours=1)),
                (now - timedelta(hours=1), None),
            )
        ]
        for one in made:
            one.refresh_from_db()
        return made

    old, new = await in_thread(make)
    body = {
        "interval": 10,
        "samples": [sample("MIG-1", ago=2 * 3600), sample("MIG-1", ago=60), sample("MIG-1", ago=4 * 3600)],
    }
    assert (await post(app, node.token, body)).json()["stored"] == 3
    assert len(await read(new.series)) == 2
    assert len(await read(old.series)) == 1


async def test_cards_without_a_uuid_report_by_serial_or_address(app: TelemetryApplication, node: Enrolled) -> None:
    now = datetime.now(UTC)
    for fields in ({"serial": "S1", "pci_address": "0000:01:00.0"}, {"pci_address": "0000:02:00.0"}):
        await in_thread(Card.objects.create, node=node.node, first_seen_at=now, state_since=now, **fields)
    body = {"interval": 10, "samples": [sample("S1"), sample("0000:02:00.0")]}
    assert (await post(app, node.token, body)).json()["stored"] == 2


@pytest.mark.parametrize("header", ["", "Token ", "Token ska_nonsense", "Bearer x", "Basic eDp5"])
async def test_without_a_valid_token_nothing_is_read(app: TelemetryApplication, header: str) -> None:
    answer = await post(app, "", b"not even looked at", authorization=header)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Token"


async def test_a_revoked_token_is_refused_within_ten_seconds(app: TelemetryApplication, node: Enrolled) -> None:
    assert registry.TOKENS_LIMIT < 10
    body = {"interval": 10, "samples": []}
    assert (await post(app, node.token, body)).status_code == 200
    await in_thread(Agent.objects.filter(pk=node.agent.pk).update, revoked_at=datetime.now(UTC))
    assert (await post(app, node.token, body)).status_code == 200  # from memory
    app._state().registry._tokens_read -= registry.TOKENS_LIMIT  # as if that time had passed
    assert (await post(app, node.token, body)).status_code == 401


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
async def test_other_methods(app: TelemetryApplication, method: str) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answer = await client.request(method, PATH)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert bool(answer.content) == (method != "HEAD")


async def test_other_content_types_and_sizes(app: TelemetryApplication, node: Enrolled) -> None:
    body = json.dumps({"interval": 10, "samples": []}).encode()
    assert (await post(app, node.token, body, **{"content-type": "text/plain"})).status_code == 415
    assert (await post(app, node.token, body, **{"content-type": "application/json; charset=utf-8"})).status_code == 200
    assert (await post(app, node.token, b" " * (wire.MAX_BODY + 1))).status_code == 413


async def test_a_chunked_body_is_bounded_too(app: TelemetryApplication, node: Enrolled) -> None:
    sent: list[dict[str, Any]] = []
    chunks = iter([{"type": "http.request", "body": bytes(300_000), "more_body": True}] * 9)

    async def receive() -> Any:
        return next(chunks)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "headers": [(b"authorization", f"Token {node.token}".encode())]}
    await app(scope, receive, send)
    assert sent[0]["status"] == 413


async def test_a_client_that_goes_away_stores_nothing(app: TelemetryApplication, node: Enrolled) -> None:
    sent: list[Any] = []
    messages: Iterator[dict[str, Any]] = iter(
        [{"type": "http.request", "body": b'{"inter', "more_body": True}, {"type": "http.disconnect"}]
    )

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "headers": [(b"authorization", f"Token {node.token}".encode())]}
    await app(scope, receive, send)
    assert sent == []


async def test_posts_are_turned_away_when_too_much_waits(
    app: TelemetryApplication, node: Enrolled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batcher, "MAX_WAITING", 1)
    answer = await post(app, node.token, {"interval": 10, "samples": [sample(uuid) for uuid in node.uuids]})
    assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (503, "overloaded", "1")


async def test_one_post_that_the_database_refuses_does_not_take_others_with_it(
    app: TelemetryApplication, node: Enrolled
) -> None:
    await post(app, node.token, {"interval": 10, "samples": []})
    worker = app._state()
    now = int(datetime.now(UTC).timestamp())
    good = pack([now - 5], [node.cards[0].series], 1, 10, [[1.0, *[None] * 22]])
    bad = Packed(good[:-8])  # a row of the wrong width
    results = await asyncio.gather(worker.batcher.store(good), worker.batcher.store(bad), return_exceptions=True)
    assert results[0] == 1
    assert getattr(results[1], "status", None) == 500


async def test_an_agents_row_is_written_seldom_and_says_what_it_sent(app: TelemetryApplication, node: Enrolled) -> None:
    body = {"interval": 15, "samples": [sample(node.uuids[0])]}
    heard: list[Any] = []

    def hear(**kwargs: Any) -> None:
        heard.append(kwargs["sender"])

    samples_stored.connect(hear)
    try:
        for _ in range(20):
            await post(app, node.token, body, **{"x-sensaka-spooled": "7", "x-sensaka-dropped": "3"})
        await app._state().attendance.write()
        await asyncio.sleep(0)
    finally:
        samples_stored.disconnect(hear)
    agent = await in_thread(Agent.objects.get, pk=node.agent.pk)
    assert (agent.interval, agent.spooled, agent.dropped, agent.error_kind) == (15, 7, 3, "")
    assert agent.succeeded_at > datetime.now(UTC) - timedelta(seconds=30)
    assert 1 <= len(heard) <= 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)


@st.composite
def near_misses(draw: st.DrawFn) -> bytes:
    """Bodies that are nearly right: a true batch with some parts replaced or bytes changed."""
    one: dict[str, Any] = {"card": "GPU-x", "sampled_at": "2026-01-01T00:00:00Z", "utilization": 5.0}
    for key in draw(st.lists(st.sampled_from([*one, *VALUE_FIELDS]), max_size=3)):
        one[key] = draw(JSON)
    batch: dict[str, Any] = {"interval": draw(st.just(10) | JSON), "samples": draw(st.just([one, one]) | JSON)}
    body = bytearray(json.dumps(batch).encode())
    for _ in range(draw(st.integers(0, 3))):
        body[draw(st.integers(0, len(body) - 1))] = draw(st.integers(0, 255))
    return bytes(body)


@hypothesis_settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()) | near_misses())
def test_fuzzed_bodies_are_refused_clearly(node: Enrolled, body: bytes) -> None:
    """No 500, nothing half stored; what is accepted is a batch without samples."""

    async def run() -> httpx.Response:
        application = TelemetryApplication()
        try:
            return await post(application, node.token, body)
        finally:
            await application.close()

    answer = asyncio.run(run())
    assert answer.status_code in (200, 400, 409, 422), answer.text
    if answer.status_code == 200:
        assert answer.json() == {"stored": 0, "repeated": 0}
    else:
        assert answer.json()["code"] in ("malformed", "invalid", "unknown_cards")
