"""Enrolment and reports over HTTP (I4): tokens, adoption, refusals, and that no body is ever half stored."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inventory.models import Agent, Card, EnrolmentToken, JournalEntry, Node, Rack, Site
from inventory.services.agents import authenticate_node, create_enrolment_token, digest, revoke_agent
from sensaka.kernel.errors import InvalidInput

pytestmark = pytest.mark.django_db

ENROL, REPORT, SELF = "/api/v1/agents/enrol/", "/api/v1/agents/report/", "/api/v1/agents/self/"


@pytest.fixture
def site() -> Site:
    return Site.objects.create(name="Central")


def enrolment_token(
    site: Site, *, uses: int = 1, life: timedelta = timedelta(hours=1), rack: Rack | None = None
) -> str:
    return create_enrolment_token(
        name="install", site=site, rack=rack, uses=uses, expires_at=timezone.now() + life, actor=None
    )[1]


def machine(**changes: str) -> dict[str, str]:
    return {
        "hostname": "gpu-01",
        "machine_id": "8f3c2b1a0d9e4c7fb6a5948372615040",
        "system_serial": "S391234X0A01",
        "system_uuid": "30393137-3436-584d-5132-323830304b4d",
        "version": "0.1.0",
    } | changes


def post(path: str, body: Any, *, token: str = "", **extra: Any) -> Any:
    headers = {"Authorization": f"Token {token}"} if token else {}
    raw = body if isinstance(body, bytes) else json.dumps(body)
    kind = extra.pop("content_type", "application/json")
    return Client().post(path, raw, content_type=kind, headers=headers | extra.pop("headers", {}))


def enrol(site: Site, **changes: str) -> dict[str, Any]:
    answer = post(ENROL, machine(**changes) | {"token": enrolment_token(site)})
    assert answer.status_code == 201, answer.content
    told: dict[str, Any] = answer.json()
    return told


def reading(*uuids: str, **facts: Any) -> dict[str, Any]:
    return {
        "observed_at": timezone.now().isoformat(),
        "hostname": "gpu-01",
        "cards": [{"uuid": uuid, "vendor": "NVIDIA", "model_name": "NVIDIA H100 80GB HBM3"} for uuid in uuids],
    } | facts


UUIDS = [f"GPU-{n:08x}-1111-4222-8333-444444444444" for n in range(1, 9)]


def test_enrolment_makes_a_node_in_the_place_of_the_token_and_puts_it_in_service(site: Site) -> None:
    rack = Rack.objects.create(site=site, name="R1")
    token = enrolment_token(site, rack=rack)
    answer = post(ENROL, machine() | {"token": token})
    assert answer.status_code == 201
    told = answer.json()
    assert set(told) == {"agent", "node", "name", "token", "interval"}
    node = Node.objects.get(pk=told["node"])
    assert (node.name, node.site, node.rack, node.state) == ("gpu-01", site, rack, "active")
    assert node.machine_id == machine()["machine_id"]
    agent = Agent.objects.get(pk=told["agent"])
    assert (agent.node, agent.version, agent.interval) == (node, "0.1.0", told["interval"])
    assert agent.token_digest == digest(told["token"])
    assert told["token"] not in JournalEntry.objects.values_list("text", flat=True)
    assert authenticate_node(told["token"]) == agent
    entry = JournalEntry.objects.get(node=node)
    assert entry.text == f"Node gpu-01 was enrolled by its agent at site {node.site.name} and is in service."
    assert entry.detail["agent"] == str(agent.pk)


def test_a_one_time_token_serves_once(site: Site) -> None:
    token = enrolment_token(site)
    assert post(ENROL, machine() | {"token": token}).status_code == 201
    answer = post(ENROL, machine(machine_id="0" * 31 + "1", system_serial="other", system_uuid="") | {"token": token})
    assert answer.status_code == 410
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "token_used_up"
    assert Node.objects.count() == 1


def test_a_token_for_several_counts_down(site: Site) -> None:
    token = enrolment_token(site, uses=2)
    for number in (1, 2):
        body = machine(
            hostname=f"gpu-{number}", machine_id=f"{number:032x}", system_serial=f"S{number}", system_uuid=""
        )
        assert post(ENROL, body | {"token": token}).status_code == 201
    assert EnrolmentToken.objects.get().uses_left == 0


REFUSED_TOKENS = {
    "never issued": (lambda site: "ske_unknown", 401, "unknown_token"),
    "empty": (lambda site: "", 401, "unknown_token"),
    "expired": (lambda site: enrolment_token(site, life=timedelta(seconds=-1)), 410, "token_expired"),
}


@pytest.mark.parametrize(("make", "status", "code"), REFUSED_TOKENS.values(), ids=REFUSED_TOKENS.keys())
def test_a_token_that_does_not_hold_is_refused_by_name(site: Site, make: Any, status: int, code: str) -> None:
    answer = post(ENROL, machine() | {"token": make(site)})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer["Content-Type"] == "application/problem+json"
    assert not Node.objects.exists()


def test_enrolling_again_keeps_the_node_and_voids_the_old_token(site: Site) -> None:
    first, second = enrol(site), enrol(site)
    assert second["node"] == first["node"]
    assert second["agent"] == first["agent"]
    assert authenticate_node(first["token"]) is None
    assert authenticate_node(second["token"]) is not None
    assert JournalEntry.objects.filter(text__contains="enrolled again").count() == 1


def test_a_revoked_agent_may_enrol_again(site: Site) -> None:
    first = enrol(site)
    revoke_agent(agent=Agent.objects.get(), actor=None)
    revoke_agent(agent=Agent.objects.get(), actor=None)
    assert JournalEntry.objects.filter(text__contains="was revoked").count() == 1
    assert post(REPORT, reading(), token=first["token"]).status_code == 401
    second = enrol(site)
    assert post(REPORT, reading(), token=second["token"]).status_code == 200


SAME_MACHINE = {
    "by serial, found by its BMC": {"system_serial": "S391234X0A01"},
    "by UUID, found by its BMC": {"system_uuid": "30393137-3436-584d-5132-323830304b4d"},
    "by UUID in the other byte order": {"system_uuid": "37313930-3634-4d58-5132-323830304b4d"},
    "by machine id only": {"machine_id": "8f3c2b1a0d9e4c7fb6a5948372615040"},
}


@pytest.mark.parametrize("known", SAME_MACHINE.values(), ids=SAME_MACHINE.keys())
@pytest.mark.parametrize("state", ["enrolled", "active"])
def test_a_known_machine_is_the_same_node(site: Site, known: dict[str, str], state: str) -> None:
    """I3, I4: a node that its BMC showed first gets its agent, and a node that already serves is adopted."""
    node = Node.objects.create(site=site, name="from-bmc", state=state, **known)
    told = enrol(site)
    assert told["node"] == str(node.pk)
    node.refresh_from_db()
    assert node.state == "active"
    assert node.system_serial == machine()["system_serial"]


def test_another_machine_of_the_same_name_gets_a_number_and_the_journal_says_so(site: Site) -> None:
    enrol(site)
    told = enrol(site, machine_id="f" * 31 + "0", system_serial="S391234X0A02", system_uuid="")
    node = Node.objects.get(pk=told["node"])
    assert Node.objects.count() == 2
    assert node.name == told["name"] == "gpu-01~2"
    assert JournalEntry.objects.filter(node=node, text__contains="as another machine of this site does").exists()


def test_a_machine_that_nothing_tells_apart_is_refused_and_costs_no_use(site: Site) -> None:
    token = enrolment_token(site)
    answer = post(ENROL, {"token": token, "hostname": "gpu-01"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert EnrolmentToken.objects.get().uses_left == 1


def test_a_place_of_another_site_makes_no_token(site: Site) -> None:
    rack = Rack.objects.create(site=Site.objects.create(name="Edge"), name="R1")
    with pytest.raises(InvalidInput, match="not at site"):
        enrolment_token(site, rack=rack)


def test_a_report_puts_the_cards_into_the_tree(site: Site) -> None:
    """I4: what an agent reports is in the tree when it is answered."""
    told = enrol(site)
    headers = {"User-Agent": "sensaka-agent/0.2.1", "X-Sensaka-Spooled": "17", "X-Sensaka-Dropped": "3"}
    failure = {"what": UUIDS[0], "kind": "not_supported", "detail": "fan"}
    answer = post(REPORT, reading(*UUIDS, failures=[failure]), token=told["token"], headers=headers)
    assert answer.status_code == 200, answer.content
    assert answer.json() == {"known": 8}
    assert set(Card.objects.filter(node=told["node"]).values_list("uuid", flat=True)) == set(UUIDS)
    agent = Agent.objects.get()
    assert (agent.version, agent.spooled, agent.dropped, agent.cards_seen) == ("0.2.1", 17, 3, 8)
    assert agent.failures == [failure]
    assert agent.succeeded_at is not None


def test_a_report_that_waited_changes_nothing_newer(site: Site) -> None:
    told = enrol(site)
    post(REPORT, reading(*UUIDS), token=told["token"])
    old = reading(*UUIDS[:4], observed_at=(timezone.now() - timedelta(hours=20)).isoformat())
    assert post(REPORT, old, token=told["token"]).status_code == 200
    assert Card.objects.filter(node=told["node"], state="present").count() == 8
    assert Agent.objects.get().cards_seen == 8


def test_self_names_the_node_of_the_token(site: Site) -> None:
    told = enrol(site)
    answer = Client().get(SELF, headers={"Authorization": f"Token {told['token']}"})
    assert answer.status_code == 200
    assert answer.json() == {name: told[name] for name in ("agent", "node", "name", "interval")}


BAD_TOKENS = {
    "none": {},
    "a person's": {"Authorization": "Token sk_abcdef"},
    "unknown": {"Authorization": "Token ska_abcdef"},
    "no scheme": {"Authorization": "ska_abcdef"},
    "another scheme": {"Authorization": "Bearer ska_abcdef"},
    "not ASCII": {"Authorization": "Token ska_\u00e9"},
}


@pytest.mark.parametrize("headers", BAD_TOKENS.values(), ids=BAD_TOKENS.keys())
@pytest.mark.parametrize("path", [REPORT, SELF])
def test_without_a_node_token_there_is_nothing(site: Site, path: str, headers: dict[str, str]) -> None:
    enrol(site)
    client = Client()
    answer = client.get(path, headers=headers) if path == SELF else post(path, reading(*UUIDS), headers=headers)
    assert answer.status_code == 401
    assert answer["Content-Type"] == "application/problem+json"
    assert not Card.objects.exists()


NOW = datetime.now(UTC)
BODIES: dict[str, tuple[Any, int, str]] = {
    "empty": (b"", 400, ""),
    "not JSON": (b"\x00\x01garbage", 400, ""),
    "cut off": (b'{"observed_at": "2026-', 400, ""),
    "deep": (b"[" * 200_000, 422, ""),
    "deep in an unknown field": (b'{"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}", 400, ""),
    "not UTF-8": (b'{"observed_at":"2026-01-01T00:00:00Z","hostname":"\xff"}', 400, ""),
    "half a surrogate": (b'{"observed_at":"2026-01-01T00:00:00Z","hostname":"\\ud800"}', 400, ""),
    "a list": ([], 422, "object"),
    "no time": ({}, 422, "observed_at"),
    "time without zone": (reading(observed_at="2026-01-01T00:00:00"), 422, "$.observed_at"),
    "from the future": (reading(observed_at=(NOW + timedelta(days=2)).isoformat()), 422, "$.observed_at"),
    "before everything": (reading(observed_at="0001-01-01T00:00:00+14:00"), 422, "$.observed_at"),
    "after everything": (reading(observed_at="9999-12-31T23:59:59-14:00"), 422, "$.observed_at"),
    "NUL": (reading(driver_version="550\x00"), 422, "NUL"),
    "too large a number": (reading(cards=[{"uuid": UUIDS[0], "memory_total": 2**70}]), 422, "$.cards[0].memory_total"),
    "a wrong type": (reading(cards=[{"uuid": 7}]), 422, "$.cards[0].uuid"),
    "a negative pid": (reading(processes=[{"pid": -1, "card_uuid": UUIDS[0]}]), 422, "$.processes[0].pid"),
    "a value outside physics": (reading(cards=[{"values": {"power": -5}}]), 422, "$.cards[0].values.power"),
    "a name too long": (reading(hostname="x" * 201), 422, "$.hostname"),
    "a megabyte": (b" " * 1_000_001, 413, "1000000"),
    "beyond what is kept in memory": (b" " * 3_000_000, 413, "1000000"),
}


@pytest.mark.parametrize(("body", "status", "says"), BODIES.values(), ids=BODIES.keys())
def test_a_body_that_cannot_be_used_is_refused_clearly(site: Site, body: Any, status: int, says: str) -> None:
    told = enrol(site)
    answer = post(REPORT, body, token=told["token"])
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    assert says in answer.json()["detail"]
    assert not Card.objects.exists()


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
@pytest.mark.parametrize("path", [ENROL, REPORT])
def test_another_content_type_is_refused(site: Site, path: str, kind: str) -> None:
    answer = post(path, b"{}", token=enrol(site)["token"], content_type=kind)
    assert answer.status_code == 415
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("field", ["hostname", "machine_id", "system_serial"])
def test_control_characters_do_not_enrol(site: Site, field: str) -> None:
    answer = post(ENROL, machine(**{field: "a\x00b"}) | {"token": enrolment_token(site)})
    assert answer.status_code == 422
    assert f"$.{field}" in answer.json()["detail"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300) | st.datetimes().map(str),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=12,
)
CARD_FIELDS = st.sampled_from(
    ["uuid", "serial", "pci_address", "vendor", "model_name", "slot", "minor", "memory_total", "slices", "failures",
     "mig_enabled", "pcie_width", "vbios", "firmware", "part_number", "present"]
)  # fmt: skip
WORD = st.text(max_size=210) | st.sampled_from([*UUIDS, "N/A", "0000:3b:00.0", "3b:00.0", "-1", "'; --", "\x00"])
LOOSE = WORD | st.integers(-(2**70), 2**70) | st.booleans() | st.none()
SLICES = st.lists(st.fixed_dictionaries({"uuid": WORD, "profile": WORD}), max_size=3)
CARDS = st.lists(
    st.dictionaries(CARD_FIELDS, LOOSE, max_size=5)
    | st.fixed_dictionaries(
        {"uuid": WORD}, optional={"serial": WORD, "slot": WORD, "pci_address": WORD, "slices": SLICES}
    ),
    max_size=4,
)
PROCESSES = st.lists(
    st.fixed_dictionaries({"pid": LOOSE | st.integers(1, 10), "card_uuid": WORD}, optional={"name": WORD, "user": WORD,
                          "pod": WORD, "container_id": WORD, "slurm_job_id": WORD, "slice_uuid": WORD}),
    max_size=3,
)  # fmt: skip
TIMES = st.datetimes(timezones=st.just(UTC)).map(lambda t: t.isoformat()) | st.sampled_from(
    [(NOW - timedelta(seconds=n)).isoformat() for n in (0, 10, 86_400)]
)
READINGS = st.fixed_dictionaries(
    {"observed_at": TIMES},
    optional={"cards": CARDS, "processes": PROCESSES, "hostname": WORD, "machine_id": WORD, "boot_id": WORD,
              "system_serial": WORD, "driver_version": WORD, "complete": st.booleans(), "simulated": LOOSE},
)  # fmt: skip
FUZZ = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


def _counts() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (Node, Card, JournalEntry, Agent))


@pytest.fixture
def fuzzed_token(site: Site) -> Iterator[str]:
    yield enrol(site)["token"]
    assert not connections["default"].needs_rollback


@FUZZ
@given(body=READINGS | JSON)
def test_no_report_is_a_server_error_or_half_stored(fuzzed_token: str, body: Any) -> None:
    before = _counts()
    answer = post(REPORT, body, token=fuzzed_token)
    assert answer.status_code in (200, 400, 413, 422), (answer.content, body)
    if answer.status_code != 200:
        assert answer["Content-Type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code
        assert _counts() == before


@FUZZ
@given(body=st.binary(max_size=400) | READINGS.map(lambda r: json.dumps(r).encode()).flatmap(
    lambda raw: st.integers(0, len(raw)).map(lambda cut: raw[:cut])))  # fmt: skip
def test_no_bytes_are_a_server_error(fuzzed_token: str, body: bytes) -> None:
    assert post(REPORT, body, token=fuzzed_token).status_code in (200, 400, 422)


@FUZZ
@given(
    body=JSON
    | st.fixed_dictionaries(
        {"token": st.sampled_from(["ske_wrong", "good"]), "hostname": WORD},
        optional={"machine_id": WORD, "system_serial": WORD, "system_uuid": WORD, "version": WORD, "simulated": LOOSE},
    )
)
def test_no_enrolment_is_a_server_error_or_half_done(site: Site, body: Any) -> None:
    if isinstance(body, dict) and body.get("token") == "good":
        body = body | {"token": enrolment_token(site)}
    before = _counts()
    answer = post(ENROL, body)
    assert answer.status_code in (201, 400, 401, 422), (answer.content, body)
    if answer.status_code != 201:
        assert _counts() == before
