"""Searches of address ranges over real Redfish (I3)."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from inventory.models import Bmc, Card, Credential, Discovery, Node, Site
from inventory.services import discovery
from sensaka.fleet.world import World
from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, InvalidInput
from tests.inventory.collecting.conftest import Peers

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(db: None) -> User:
    return User.objects.create(username="op", role="operator")


@pytest.fixture
def start(site: Site, credential: Credential, operator: User) -> Any:
    def begin(**fields: Any) -> Discovery:
        base: dict[str, Any] = {"addresses": "127.0.0.1", "protocol": "redfish", "credential": credential}
        return discovery.start_discovery(**(base | fields), site=site, actor=operator)

    return begin


def test_a_range_becomes_nodes(peers: Peers, world: World, start: Any) -> None:
    """I3: each BMC that answers is a node with its cards; each address says what came of it."""
    names = ["fra-h100-12", "fra-h100-02", "fra-mi300x-02"]
    ports = [peers.bmc(world, world.plan.by_name[name]).port for name in names]
    row = start(ports=[*ports, 9])
    assert (row.total, row.state) == (4, "running")
    assert discovery.run_discoveries().read == 4
    row.refresh_from_db()
    assert (row.state, row.tried, row.found) == ("done", 4, 3)
    assert row.finished_at is not None
    outcomes = {result["port"]: result["outcome"] for result in row.results}
    assert outcomes == {**dict.fromkeys(ports, "found"), 9: "silent"}
    assert set(Node.objects.values_list("name", flat=True)) == set(names)
    assert Card.objects.filter(state="present").count() == 24
    bmc = Bmc.objects.get(port=ports[0])
    assert bmc.tls_fingerprint
    assert bmc.links
    assert bmc.due_at <= timezone.now() + timedelta(seconds=bmc.interval)
    assert discovery.run_discoveries().read == 0


def test_searching_again_knows_what_is_known(peers: Peers, world: World, start: Any) -> None:
    ports = [peers.bmc(world, world.plan.by_name["fra-h100-12"]).port]
    start(ports=ports)
    discovery.run_discoveries()
    row = start(ports=ports)
    discovery.run_discoveries()
    row.refresh_from_db()
    assert [result["outcome"] for result in row.results] == ["known"]
    assert (Bmc.objects.count(), Card.objects.count()) == (1, 8)


def test_a_search_goes_on_where_a_killed_worker_left_it(peers: Peers, world: World, start: Any) -> None:
    """I3: addresses with a result are not asked again; the lease of the dead worker expires."""
    port = peers.bmc(world, world.plan.by_name["fra-h100-12"]).port
    row = start(ports=[port, 9])
    Discovery.objects.update(
        results=[{"address": "127.0.0.1", "port": 9, "outcome": "silent", "detail": "", "bmc": None}],
        tried=1,
        leased_until=timezone.now() + timedelta(seconds=20),
    )
    assert discovery.run_discoveries().read == 0
    Discovery.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert discovery.run_discoveries().read == 1
    row.refresh_from_db()
    assert (row.state, row.tried, row.found) == ("done", 2, 1)


def test_a_short_round_leaves_the_rest_for_the_next(start: Any) -> None:
    """A round takes no more after its time; the search is free at once."""
    row = start(addresses="127.0.0.1-127.0.0.80", ports=[9])
    discovery.run_discoveries(seconds=0)
    row.refresh_from_db()
    assert row.state == "running"
    assert row.leased_until is None
    before = time.monotonic()
    discovery.run_discoveries()
    row.refresh_from_db()
    assert (row.state, row.tried, row.found) == ("done", 80, 0)
    assert time.monotonic() - before < 20


def test_a_wrong_password_says_so(peers: Peers, world: World, start: Any, credential: Credential) -> None:
    credential.password = "wrong"
    credential.save()
    row = start(ports=[peers.bmc(world, world.plan.by_name["fra-h100-12"]).port])
    discovery.run_discoveries()
    row.refresh_from_db()
    assert [result["outcome"] for result in row.results] == ["refused"]
    assert not Bmc.objects.exists()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"addresses": ""}, "no address"),
        ({"addresses": "10.0.0.0/8"}, "4096"),
        ({"addresses": "bmc-01"}, "no address"),
        ({"addresses": "10.0.0.1, 10.0.0.1"}, "named twice"),
        ({"addresses": "10.0.0.0/24", "ports": list(range(1, 20))}, "4096"),
        ({"ports": [0]}, "1 to 65535"),
        ({"ports": [443, 443]}, "each once"),
        ({"protocol": "snmp"}, "redfish"),
        ({"tls": "authority"}, "PEM"),
        ({"interval": 1}, "5 to 3600"),
    ],
)  # fmt: skip
def test_senseless_searches_are_refused(start: Any, fields: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        start(**fields)
    assert not Discovery.objects.exists()


def test_the_same_search_twice_at_once_is_refused(start: Any) -> None:
    start(ports=[9])
    with pytest.raises(Conflict):
        start(ports=[9])
