"""The live line: who may listen, what is sent, how often, and what happens when things break (U6)."""

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.test import Client
from django.urls import reverse

from pools.models import Membership, Request
from pools.services import requests
from sensaka.identity.models import Role, User
from sensaka.live import consumer, snapshots
from sensaka.live.consumer import LiveConsumer
from sensaka.live.hub import announce
from sensaka.live.topics import Change, Topic, affected, parse
from sensaka.settings.base import redis_settings
from tests.pools.building import request, world
from tests.sensaka.live.line import Line
from tests.sensaka.pages import seed

KEY = UUID("01890000-0000-7000-8000-000000000001")


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("fleet", Topic("fleet")),
        (f"node:{KEY}", Topic("node", KEY)),
        (f"cards:{KEY},{KEY}", Topic("cards", ids=(KEY, KEY))),
        ("fleet:1", None),
        ("node", None),
        ("node:", None),
        ("node:not-an-id", None),
        (f"node:{KEY},{KEY}", None),
        ("cards:", None),
        ("cards:" + ",".join([str(KEY)] * 300), None),
        ("secrets", None),
        ("", None),
    ],
)
def test_topics_are_parsed_strictly(text: str, topic: Topic | None) -> None:
    assert parse(text) == topic
    if topic is not None:
        assert str(topic) == text


def test_a_change_touches_the_topics_that_show_it() -> None:
    topics = [Topic("fleet"), Topic("card", KEY), Topic("collectors"), Topic("discovery", KEY)]
    assert affected(topics, "samples") == topics[:2]
    assert affected(topics, "collectors") == [topics[0], topics[2]]
    assert affected(topics, "discovery") == [topics[3]]


Opener = Callable[[Any], Awaitable[Line]]


@pytest.fixture
async def connected(people: dict[str, User]) -> AsyncIterator[Opener]:
    lines: list[Line] = []

    async def opened(user: Any) -> Line:
        line = Line(LiveConsumer.as_asgi(), user)
        lines.append(line)
        assert (await line.open())["type"] == "websocket.accept"
        return line

    yield opened
    for line in lines:
        await line.close()


async def receive(line: Line, wait: float = 5) -> dict[str, Any]:
    body: dict[str, Any] = json.loads((await line.receive_output(wait))["text"])
    return body


pytestmark = pytest.mark.django_db(transaction=True, available_apps=settings.INSTALLED_APPS)


@pytest.fixture
def people(transactional_db: None) -> Iterator[dict[str, User]]:
    snapshots.forget()
    yield seed.people()
    with connection.cursor() as cursor:  # raw tables that Django's flush does not know
        cursor.execute("TRUNCATE inventory_sample")
    snapshots.forget()


@pytest.fixture
def through_redis(settings: Any) -> None:
    """The channel layer of production: that of the tests carries no word from one thread's loop to another's."""
    layers: Any = redis_settings(os.environ["REDIS_URL"])["CHANNEL_LAYERS"]
    layers["default"]["CONFIG"]["prefix"] = f"test-{uuid4()}"
    settings.CHANNEL_LAYERS = layers


async def test_nobody_listens_without_signing_in(people: dict[str, User], connected: Opener) -> None:
    """X3: an anonymous user gets no data."""
    line = await connected(AnonymousUser())
    closed = await line.receive_output(5)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4401)


INVENTORY = [
    "fleet", "collectors", "clusters", "holdings", f"node:{KEY}", f"card:{KEY}", f"cluster:{KEY}", f"job:{KEY}",
    f"discovery:{KEY}", f"cards:{KEY}", f"nodes:{KEY}", f"jobs:{KEY}", "branches:",
]  # fmt: skip


async def test_a_member_follows_nothing_of_the_inventory(people: dict[str, User], connected: Opener) -> None:
    """X3: there are no such topics for them; their own are there, in the same message too."""
    line = await connected(people["member"])
    for name in INVENTORY:
        await line.say(json.dumps({"subscribe": [name]}))
        assert await receive(line) == {"error": f"no such topic: {name}"}
        assert await line.receive_nothing(0.1)
    await line.say(json.dumps({"subscribe": ["fleet", "work"]}))
    assert "fleet" in (await receive(line))["error"]
    told = await receive(line)
    assert (told["topic"], set(told["values"])) == ("work", {"requests.version"})


async def test_a_member_follows_their_own_requests_only(
    through_redis: None, people: dict[str, User], connected: Opener
) -> None:
    mine, theirs = await database_sync_to_async(two_teams)(people["member"])
    line = await connected(people["member"])
    await line.say(json.dumps({"subscribe": [f"requests:{mine},{theirs}", f"request:{theirs}"]}))
    got = {message["topic"]: message for message in [await receive(line), await receive(line)]}
    shown = got[f"requests:{mine},{theirs}"]["values"]
    assert {key.split(".")[1] for key in shown if key.startswith("request.")} == {mine}
    assert shown[f"request.{mine}.state"]["t"] == "Waiting"
    assert got[f"request:{theirs}"]["values"] == {}
    await database_sync_to_async(hold)(mine)
    changed = await receive(line)
    while "values" not in changed or f"request.{mine}.state" not in changed["values"]:
        changed = await receive(line)
    assert changed["values"][f"request.{mine}.state"]["t"] == "On hold"


def two_teams(member: User) -> tuple[str, str]:
    """A request of the member's team and one of another."""
    place = world()
    Membership.objects.create(tenant=place.red.tenant, user=member)
    return str(request(place, place.red.project).pk), str(request(place, place.blue.project).pk)


def hold(key: str) -> None:
    requests.hold(Request.objects.get(pk=key), actor=None)


async def test_who_becomes_a_member_is_cut_off_from_the_inventory(
    people: dict[str, User], connected: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer, "REREAD", 0.2)
    line = await connected(people[Role.OPERATOR])
    await line.say(json.dumps({"subscribe": ["fleet"]}))
    await receive(line)
    await User.objects.filter(pk=people[Role.OPERATOR].pk).aupdate(role=Role.MEMBER)
    assert await closed(line) == 4403


async def test_the_first_message_is_whole_and_later_ones_are_changes(
    people: dict[str, User], connected: Opener
) -> None:
    """The snapshot that serves the first paint is what is sent; then only cells that differ."""
    made = await database_sync_to_async(seed.build_tree)()
    line = await connected(people[Role.AUDITOR])
    await line.say(json.dumps({"subscribe": ["fleet"]}))
    first = await receive(line)
    assert first["full"] is True
    assert first["values"]["all.installed"]["t"] == "2"
    assert first["values"]["all.unknown"]["t"] == "2"
    assert first["values"].keys() == (await database_sync_to_async(snapshots.wire)(Topic("fleet"))).keys()
    await database_sync_to_async(seed.one_more)(made[0], 80.0)
    await database_sync_to_async(snapshots.forget)()
    await announce(Change.SAMPLES)
    second = await receive(line)
    assert second["full"] is False
    assert second["values"]["all.busy"]["t"] == "1"
    assert "all.installed" not in second["values"]


async def test_many_changes_make_one_message_a_second(
    people: dict[str, User], connected: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = itertools.count()
    monkeypatch.setattr(snapshots, "wire", lambda topic: {"n": {"t": str(next(reads))}})
    line = await connected(people[Role.OPERATOR])
    await line.say(json.dumps({"subscribe": ["collectors"]}))
    await receive(line)
    clock = asyncio.get_running_loop().time
    began = clock()
    while clock() - began < 2.5:
        await announce(Change.COLLECTORS)
        await asyncio.sleep(0.02)
    received = 0
    while not await line.receive_nothing(0.05):
        await receive(line)
        received += 1
    assert 1 <= received <= 3


async def test_a_cache_older_than_the_change_is_not_the_last_word(
    people: dict[str, User], connected: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first read after a nudge may come from a cache made before it: the topic is read once more unasked."""
    state = {"reads_after": 0, "nudged": False}

    def wire(topic: Topic) -> dict[str, Any]:
        state["reads_after"] += state["nudged"]
        return {"n": {"t": "new" if state["reads_after"] >= 2 else "old"}}

    monkeypatch.setattr(snapshots, "wire", wire)
    line = await connected(people[Role.OPERATOR])
    await line.say(json.dumps({"subscribe": ["fleet"]}))
    assert (await receive(line))["values"]["n"]["t"] == "old"
    state["nudged"] = True
    await announce(Change.SAMPLES)
    assert (await receive(line, wait=4))["values"]["n"]["t"] == "new"


async def test_a_lost_nudge_is_made_good(
    people: dict[str, User], connected: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis wiped or away: the topic is read again without being told."""
    monkeypatch.setattr(consumer, "REREAD", 0.3)
    line = await connected(people[Role.OPERATOR])
    await line.say(json.dumps({"subscribe": ["fleet"]}))
    assert (await receive(line))["full"] is True
    assert (await receive(line))["full"] is False


async def test_a_person_who_may_no_longer_look_is_cut_off(
    people: dict[str, User], connected: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer, "REREAD", 0.2)
    line = await connected(people[Role.OPERATOR])
    await line.say(json.dumps({"subscribe": ["fleet"]}))
    await receive(line)
    await User.objects.filter(pk=people[Role.OPERATOR].pk).aupdate(is_active=False)
    assert await closed(line) == 4403


async def closed(line: Line) -> int:
    """The code with which the line is closed; what it sent before is passed over."""
    deadline = asyncio.get_running_loop().time() + 10
    while (event := await line.receive_output(5))["type"] != "websocket.close":
        assert asyncio.get_running_loop().time() < deadline
    code: int = event["code"]
    return code


@database_sync_to_async
def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


async def opened_by(client: Client, user: User) -> Line:
    """A line that a browser's cookie opened and that has received its first message."""
    line = Line(LiveConsumer.as_asgi(), user, client.session)
    assert (await line.open())["type"] == "websocket.accept"
    await line.say(json.dumps({"subscribe": ["fleet"]}))
    assert (await receive(line))["full"] is True
    return line


async def test_signing_out_closes_the_lines_of_that_sign_in_at_once(
    through_redis: None, people: dict[str, User]
) -> None:
    """X3: every tab of the browser, long before the round of 10 s; another browser of the person stays."""
    user = people[Role.OPERATOR]
    browser, other = await signed_in(user), await signed_in(user)
    tabs = [await opened_by(browser, user), await opened_by(browser, user)]
    elsewhere = await opened_by(other, user)
    began = asyncio.get_running_loop().time()
    await database_sync_to_async(browser.post)(reverse("sign-out"))
    assert [await closed(tab) for tab in tabs] == [4401, 4401]
    assert asyncio.get_running_loop().time() - began < 3
    assert await elsewhere.receive_nothing(0.5)
    for line in (*tabs, elsewhere):
        await line.close()


@pytest.mark.parametrize("how", ["lost word", "new password"])
async def test_a_sign_in_that_ended_unheard_closes_with_the_next_round(
    people: dict[str, User], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """X3: Redis lost the word of a sign-out, or a new password ended the session."""
    monkeypatch.setattr(consumer, "REREAD", 0.2)
    user = people[Role.AUDITOR]
    client = await signed_in(user)
    line = await opened_by(client, user)
    if how == "lost word":
        await client.session.adelete()
    else:
        user.set_password("another one altogether")
        await user.asave()
    assert await closed(line) == 4401
    await line.close()


async def test_trouble_of_the_database_is_said_and_overcome(
    people: dict[str, User], connected: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer, "REREAD", 0.2)
    working = snapshots.wire
    monkeypatch.setattr(snapshots, "wire", lambda topic: 1 / 0)
    line = await connected(people[Role.OPERATOR])
    await line.say(json.dumps({"subscribe": ["fleet"]}))
    assert "trouble" in await receive(line)
    monkeypatch.setattr(snapshots, "wire", working)
    deadline = asyncio.get_running_loop().time() + 10
    while "trouble" in (answer := await receive(line)):
        assert asyncio.get_running_loop().time() < deadline
    assert answer["full"] is True


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"subscribe": "fleet"}', '{"subscribe": ' + json.dumps(["fleet"] * 61) + "}", "x" * 70_000]
)
async def test_nonsense_gets_an_error_and_no_data(people: dict[str, User], connected: Opener, text: str) -> None:
    line = await connected(people[Role.OPERATOR])
    await line.say(text)
    assert "error" in await receive(line)


async def test_a_thing_that_is_gone_has_no_cells(people: dict[str, User], connected: Opener) -> None:
    line = await connected(people[Role.OPERATOR])
    await line.say(json.dumps({"subscribe": [f"node:{uuid4()}", "no-such-topic"]}))
    assert "no such topic" in (await receive(line))["error"]
    assert (await receive(line))["values"] == {}


async def test_a_page_that_leaves_while_something_is_on_its_way_ends_the_line_quietly(
    people: dict[str, User], connected: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the server tells it: sending raises an OSError."""
    line = await connected(people[Role.OPERATOR])
    await line.say(json.dumps({"subscribe": ["fleet"]}))
    await receive(line)
    [pump] = [task for task in asyncio.all_tasks() if "LiveConsumer._send" in repr(task.get_coro())]

    async def gone(consumer: LiveConsumer, *_: Any, **__: Any) -> None:
        raise ConnectionResetError("the page is gone")

    monkeypatch.setattr(LiveConsumer, "send", gone)
    await line.say(json.dumps({"subscribe": ["collectors"]}))
    await asyncio.wait([pump], timeout=5)
    assert (pump.done(), pump.cancelled(), pump.exception()) == (True, False, None)
