"""Exporter pages of the simulated fleet, read by the product's own exporter driver (I4)."""

from datetime import UTC, datetime

import pytest

from inventory.drivers.cards.exporters import read_page
from sensaka.fleet.acts import perform
from sensaka.fleet.layout import Door
from sensaka.fleet.pages import page
from sensaka.fleet.readings import node_reading
from sensaka.fleet.world import World

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def test_every_page_gives_the_cards_that_the_agent_would_give(world: World) -> None:
    """I4: dcgm and AMD pages; identity and values agree with the in-band reading of the same moment."""
    nodes = [node for node in world.plan.nodes if node.door is Door.EXPORTER]
    for node in nodes:
        reading, flavour = read_page(page(world, node), what=node.name, observed_at=NOW)
        expected = node_reading(world, node)
        assert flavour == ("amd" if node.kind.vendor == "amd" else "dcgm")
        assert reading.failures == ()
        assert reading.hostname == node.name
        assert {card.uuid for card in reading.cards} == {card.uuid for card in expected.cards}
        for card, truth in zip(reading.cards, expected.cards, strict=True):
            assert card.values is not None
            assert truth.values is not None
            assert card.values.power == pytest.approx(truth.values.power, abs=0.01)
            assert card.values.temperature == truth.values.temperature
            assert card.values.energy == pytest.approx(truth.values.energy, rel=1e-6)
            assert card.values.utilization == truth.values.utilization
            assert len(card.slices) == len(truth.slices)


def test_slices_on_a_page_have_their_own_activity_and_memory(world: World) -> None:
    node = world.plan.by_name["sin-a100-01"]
    reading, _ = read_page(page(world, node), what=node.name, observed_at=NOW)

    for card, truth in zip(reading.cards, node_reading(world, node).cards, strict=True):
        for part, expected in zip(card.slices, sorted(truth.slices, key=lambda s: s.instance_id), strict=True):
            assert part.profile == expected.profile
            assert part.values is not None
            assert expected.values is not None
            assert part.values.sm_activity == pytest.approx(expected.values.sm_activity, abs=0.01)


def test_pages_name_jobs_and_pods(world: World) -> None:
    pods, _ = read_page(page(world, world.plan.by_name["fra-h200-07"]), what="p", observed_at=NOW)

    assert {process.namespace for process in pods.processes} == {"serving"}
    assert all(process.pod for process in pods.processes)


def test_a_page_says_that_it_is_simulated(world: World) -> None:
    for node in world.plan.nodes[:40:10]:
        assert "\nsensaka_simulated 1\n" in page(world, node)


def test_a_lost_card_leaves_its_last_error(world: World) -> None:
    node = world.plan.by_name["fra-h100-11"]
    perform(world, {"do": "lose_card", "node": node.name, "slot": 3})

    reading, _ = read_page(page(world, node), what=node.name, observed_at=NOW)

    lost = next(card for card in reading.cards if card.pci_address == node.pci_addresses[3][4:].lower())
    assert lost.values is not None
    assert (lost.values.xid, lost.values.power) == (79, None)
