"""The doors of agents and programs: which token opens what, and what one node can do to another (I4, I5, X3)."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.db import connections
from django.test import Client
from django.utils import timezone

from inventory.ingest import TelemetryApplication
from inventory.models import Agent, Card, EnrolmentToken, JournalEntry, Node, Site
from sensaka import asgi
from sensaka.identity.models import Role, Scope, User
from sensaka.identity.services import create_token
from sensaka.platform.models import IdempotencyRecord
from tests.inventory.test_agents_api import ENROL, REPORT, SELF, UUIDS, enrol, enrolment_token, machine, post, reading

TELEMETRY = "/api/v1/telemetry/"
OTHER = {"hostname": "gpu-02", "machine_id": "1" * 32, "system_serial": "S2", "system_uuid": ""}


@pytest.fixture
def site(db: None) -> Site:
    return Site.objects.create(name="Central")


def person_token(role: Role = Role.OPERATOR) -> str:
    user = User.objects.create_user(username="program", password="x" * 20, role=role)
    return create_token(user=user, name="t", scope=Scope.WRITE, expires_at=timezone.now() + timedelta(days=1))[1]


def get(path: str, token: str) -> int:
    return Client().get(path, headers={"Authorization": f"Token {token}"}).status_code


def test_a_node_token_opens_nothing_but_the_agents_doors(site: Site) -> None:
    told = enrol(site)
    for path in ("/api/v1/sites/", "/api/v1/credentials/", "/api/v1/tokens/", "/api/schema/", "/api/v1/counts/"):
        assert get(path, told["token"]) == 401, path
    assert get(SELF, told["token"]) == 200


def test_an_enrolment_token_opens_nothing_but_enrolment(site: Site) -> None:
    token = enrolment_token(site)
    assert get("/api/v1/sites/", token) == 401
    assert post(REPORT, reading(), token=token).status_code == 401


def test_a_persons_token_reports_nothing(site: Site) -> None:
    token = person_token()
    assert get("/api/v1/sites/", token) == 200
    assert post(REPORT, reading(*UUIDS), token=token).status_code == 401
    assert not Card.objects.exists()


def test_a_session_is_no_agent(site: Site, client: Client) -> None:
    client.force_login(User.objects.create_user(username="o", password="x" * 20, role=Role.OPERATOR))
    assert client.post(REPORT, "{}", content_type="application/json").status_code == 401
    assert client.get(SELF).status_code == 401


def test_a_session_changes_nothing_over_rest_without_its_csrf_token(site: Site) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_user(username="o", password="x" * 20, role=Role.OPERATOR))
    assert client.post("/api/v1/sites/", '{"name": "x"}', content_type="application/json").status_code == 403
    assert Site.objects.count() == 1


def test_a_node_that_reports_anothers_card_is_told_of(site: Site) -> None:
    """I5: the claim shows in the journal as a move, and as a conflict once the first node reports the card again."""
    first, second = enrol(site), enrol(site, **OTHER)
    now = timezone.now()

    def report(told: dict[str, Any], name: str, ago: int) -> None:
        body = reading(UUIDS[0], hostname=name, observed_at=(now - timedelta(seconds=ago)).isoformat())
        assert post(REPORT, body, token=told["token"]).status_code == 200

    report(first, "gpu-01", 60)
    report(second, "gpu-02", 40)
    moved = JournalEntry.objects.get(kind="card_moved")
    assert "gpu-01" in moved.text
    assert "gpu-02" in moved.text
    report(first, "gpu-01", 20)
    assert Card.objects.get().conflict
    assert JournalEntry.objects.filter(kind="card_duplicate").count() == 1


def test_a_machine_that_poses_as_another_leaves_a_warning(site: Site) -> None:
    """Whoever holds an enrolment token may claim a known machine's identity: it is never done in silence."""
    first = enrol(site)
    assert post(REPORT, reading(UUIDS[0]), token=first["token"]).status_code == 200
    second = enrol(site)
    assert second["node"] == first["node"]
    assert post(REPORT, reading(UUIDS[0]), token=first["token"]).status_code == 401
    assert JournalEntry.objects.filter(node=first["node"], text__contains="another poses as it").count() == 1


def test_enrolling_a_silent_machine_again_warns_of_nothing(site: Site) -> None:
    first = enrol(site)
    Agent.objects.update(succeeded_at=timezone.now() - timedelta(hours=1))
    enrol(site)
    assert not JournalEntry.objects.filter(node=first["node"], text__contains="poses").exists()


def test_a_token_of_one_site_takes_no_machine_of_another(site: Site) -> None:
    first = enrol(site)
    token = enrolment_token(Site.objects.create(name="Edge"))
    answer = post(ENROL, machine() | {"token": token})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert "Central" in answer.json()["detail"]
    assert get(SELF, first["token"]) == 200
    assert set(EnrolmentToken.objects.values_list("uses_left", flat=True)) == {0, 1}


def at_once(*acts: Any) -> list[Any]:
    """The acts' results; all begin together, each on a connection of its own."""
    barrier = threading.Barrier(len(acts))

    def run(act: Any) -> Any:
        try:
            barrier.wait(10)
            return act()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        return [one.result(60) for one in [pool.submit(run, act) for act in acts]]


RACES = pytest.mark.django_db(transaction=True, available_apps=settings.INSTALLED_APPS)


@RACES
def test_a_one_time_token_serves_one_of_many_at_once() -> None:
    site = Site.objects.create(name="Central")
    token = enrolment_token(site)

    def claim(number: int) -> Any:
        body = machine(hostname=f"n{number}", machine_id=f"{number:032x}", system_serial=f"S{number}", system_uuid="")
        return lambda: post(ENROL, body | {"token": token}).status_code

    assert sorted(at_once(*(claim(number) for number in range(1, 5)))) == [201, 410, 410, 410]
    assert (Node.objects.count(), Agent.objects.count()) == (1, 1)


@RACES
def test_one_key_at_once_makes_one_row() -> None:
    """X2: two posts with one Idempotency-Key make one site; the other is told to wait or gets the same answer."""
    token = person_token()

    def make() -> int:
        headers = {"Authorization": f"Token {token}", "Idempotency-Key": "once"}
        return Client().post("/api/v1/sites/", {"name": "Basel"}, "application/json", headers=headers).status_code

    told = at_once(make, make, make)
    assert 201 in told
    assert set(told) <= {201, 409}
    assert (Site.objects.count(), IdempotencyRecord.objects.count()) == (1, 1)


async def send(app: TelemetryApplication, token: str, card: str) -> httpx.Response:
    now = timezone.now().isoformat()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:  # type: ignore[arg-type]
        body = {"interval": 10, "samples": [{"card": card, "sampled_at": now, "power": 100.0}]}
        return await client.post(TELEMETRY, json=body, headers={"authorization": f"Token {token}"})


@RACES
def test_samples_of_another_nodes_card_and_with_a_persons_token_are_refused() -> None:
    site = Site.objects.create(name="Central")
    first, second = enrol(site), enrol(site, **OTHER)
    post(REPORT, reading(UUIDS[0]), token=first["token"])
    program = person_token()

    async def tried() -> list[tuple[int, str]]:
        app = TelemetryApplication()
        answers = [await send(app, told, UUIDS[0]) for told in (second["token"], program, first["token"])]
        await app.close()
        return [(answer.status_code, answer.json().get("code", "")) for answer in answers]

    assert asyncio.run(tried()) == [(409, "unknown_cards"), (401, "unauthorized"), (200, "")]


def test_the_end_of_a_worker_writes_down_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last posts of agents are written when the server stops, before it says that it has stopped."""
    order: list[str] = []

    async def close() -> None:
        order.append("closed")

    async def told(message: Any) -> None:
        order.append(message["type"])

    messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

    async def receive() -> dict[str, str]:
        return messages.pop(0)

    monkeypatch.setattr(asgi.ingest.application, "close", close)
    asyncio.run(asgi.application({"type": "lifespan"}, receive, told))
    assert order == ["lifespan.startup.complete", "closed", "lifespan.shutdown.complete"]
