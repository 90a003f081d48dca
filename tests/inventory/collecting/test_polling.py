"""Polling of emulated BMCs over real HTTP and TLS (I3, I4)."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from inventory.models import Bmc, Card, JournalEntry, Node, Site
from inventory.selectors.samples import current_samples
from inventory.services import catalogue, polling
from sensaka.fleet.world import World
from tests.inventory.collecting.conftest import Peers

pytestmark = pytest.mark.django_db


def due(**filters: Any) -> None:
    Bmc.objects.filter(**filters).update(due_at=timezone.now(), leased_until=None)


def test_first_read_discovers_and_the_next_polls(peers: Peers, world: World, add_bmc: Any, site: Site) -> None:
    """I3: a BMC becomes a node with its eight cards; then a poll over known links renews values in few requests."""
    catalogue.load_catalogue()
    node = world.plan.by_name["fra-h100-12"]
    row = add_bmc(peers.bmc(world, node).port)
    assert polling.poll_due_bmcs().read == 1
    row.refresh_from_db()
    assert row.error_kind == ""
    assert row.node is not None
    assert (row.node.name, row.node.system_serial, row.node.state) == (node.name, node.system_serial, "active")
    assert row.node.simulated
    assert row.node.power_state == "on"
    assert row.tls_fingerprint
    assert row.links
    cards = Card.objects.filter(node=row.node)
    assert cards.count() == 8
    assert {card.state for card in cards} == {"present"}
    assert all(card.serial and card.model for card in cards.select_related("model"))
    assert row.node.firmware.count() > 2
    assert len(current_samples([card.series for card in cards])) == 8
    first = row.requests
    due()
    assert polling.poll_due_bmcs().read == 1
    row.refresh_from_db()
    assert row.error_kind == ""
    assert row.requests < first
    assert Card.objects.count() == 8
    assert JournalEntry.objects.filter(kind="card_appeared").count() == 8
    assert JournalEntry.objects.exclude(kind__in=["card_appeared", "node_enrolled"]).count() == 0


def test_a_dead_source_delays_nobody(peers: Peers, world: World, add_bmc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """I3: the one that says nothing is still waited for when all others are stored."""
    monkeypatch.setattr(polling, "DISCOVER_DEADLINE", 4.0)
    dead = add_bmc(peers.mute())
    alive = [
        add_bmc(peers.bmc(world, world.plan.by_name[name]).port)
        for name in ("fra-h100-12", "fra-h100-02", "fra-h200-01")
    ]
    started = time.monotonic()
    assert polling.poll_due_bmcs().read == 4
    took = time.monotonic() - started
    dead.refresh_from_db()
    assert dead.error_kind == "timeout"
    assert (dead.misses, dead.leased_until) == (1, None)
    assert dead.failing_since is not None
    for row in alive:
        row.refresh_from_db()
        assert row.error_kind == ""
        assert row.elapsed < took
        assert row.attempted_at < dead.attempted_at
    assert Node.objects.count() == 3


def test_only_the_third_miss_and_the_recovery_are_told(peers: Peers, world: World, add_bmc: Any) -> None:
    """I12: failures are data on the row; the journal has the transitions."""
    node = world.plan.by_name["fra-h100-12"]
    server = peers.bmc(world, node)
    row = add_bmc(server.port, interval=5)
    polling.poll_due_bmcs()
    peers.stop(server)
    for misses in (1, 2, 3, 4):
        due()
        polling.poll_due_bmcs()
        row.refresh_from_db()
        assert (row.misses, row.error_kind) == (misses, "unreachable")
        told = JournalEntry.objects.filter(kind="collector_failed")
        assert told.count() == (misses >= 3)
    assert Card.objects.filter(state="present").count() == 8, "a silent BMC removes nobody"
    peers.bmc(world, node, port=server.port)
    Bmc.objects.update(tls_fingerprint="")  # the new server made itself a new certificate
    due()
    polling.poll_due_bmcs()
    row.refresh_from_db()
    assert (row.misses, row.error_kind, row.failing_since) == (0, "", None)
    [back] = JournalEntry.objects.filter(kind="collector_recovered")
    assert back.text == f"The BMC of node {node.name} at 127.0.0.1 answers again after 4 misses."


def test_wrong_password_is_tried_less_and_less(peers: Peers, world: World, add_bmc: Any, credential: Any) -> None:
    """A wrong password on each turn would lock the account (TELEMETRY 6.8)."""
    credential.password = "wrong"
    credential.save()
    row = add_bmc(peers.bmc(world, world.plan.by_name["fra-h100-12"]).port)
    pauses = []
    for _ in range(3):
        due()
        polling.poll_due_bmcs()
        row.refresh_from_db()
        assert row.error_kind == "authentication"
        pauses.append((row.due_at - row.attempted_at).total_seconds())
    assert pauses == sorted(pauses)
    assert pauses[-1] >= 4 * row.interval


def test_a_killed_worker_leaves_a_lease_that_expires(peers: Peers, world: World, add_bmc: Any) -> None:
    """A leased source is left alone until its lease is over."""
    row = add_bmc(peers.bmc(world, world.plan.by_name["fra-h100-12"]).port)
    jobs = polling._claim_bmcs(10)
    assert [job.id for job in jobs] == [row.id]
    assert "secret" not in repr(jobs)
    assert polling.poll_due_bmcs().read == 0
    Bmc.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert polling.poll_due_bmcs().read == 1


def test_one_round_claims_at_a_time(peers: Peers, world: World, add_bmc: Any) -> None:
    """While another connection holds the lock of this kind, a tick does nothing."""
    add_bmc(peers.bmc(world, world.plan.by_name["fra-h100-12"]).port)
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [polling._BMC_LOCK])
        assert polling.poll_due_bmcs().read == 0
        with other.cursor() as cursor:  # a connection that is closed lets go of it some time later
            cursor.execute("SELECT pg_advisory_unlock(%s)", [polling._BMC_LOCK])
    finally:
        other.close()
    assert polling.poll_due_bmcs().read == 1


def test_disabled_is_not_read(peers: Peers, world: World, add_bmc: Any) -> None:
    add_bmc(peers.bmc(world, world.plan.by_name["fra-h100-12"]).port, enabled=False)
    assert polling.poll_due_bmcs().read == 0
