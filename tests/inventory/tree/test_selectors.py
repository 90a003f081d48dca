"""The tree and its counts agree on every level, in few queries (U1, U4, U5)."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inventory.models import BusyThreshold, Card, CardModel, Cluster, Node, Rack, Site
from inventory.observations import CardValues, SliceReading
from inventory.rules.counts import Counts
from inventory.selectors import samples as sample_selectors
from inventory.selectors.cards import card_detail
from inventory.selectors.counts import DIMENSIONS, counts, fleet_cells
from inventory.selectors.journal import journal_page
from inventory.selectors.nodes import node_detail
from inventory.selectors.tree import site_tree
from inventory.services.samples import Sample, write_samples
from tests.inventory.tree.building import Machine, card, uuid

pytestmark = pytest.mark.django_db


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> list[Machine]:
    """Two sites, three nodes with two cards each: busy, idle, unknown, missing, failed, out."""
    monkeypatch.setattr(sample_selectors, "CACHED_FOR", 0.0)
    north, south = Site.objects.create(name="North"), Site.objects.create(name="South")
    machines = [Machine("n1", north), Machine("n2", north), Machine("n3", south)]
    rack = Rack.objects.create(site=north, name="R1")
    Node.objects.filter(name="n1").update(rack=rack, cluster=Cluster.objects.create(site=north, name="C1"))
    for number, machine in enumerate(machines):
        machine.sees(0, card(2 * number + 1), card(2 * number + 2))
    machines[1].sees(60, card(3))
    Node.objects.filter(name="n3").update(state="maintenance")
    series = dict(Card.objects.values_list("uuid", "series"))
    now = timezone.now()
    write_samples([
        Sample(series[uuid(1)], now, "agent", 10, CardValues(utilization=80.0, power=500.0)),
        Sample(series[uuid(2)], now, "agent", 10, CardValues(utilization=1.0)),
        Sample(series[uuid(3)], now, "bmc", 30, CardValues(power=100.0)),
    ])  # fmt: skip
    return machines


def test_counts_of_the_whole_and_of_each_dimension_agree(fleet: list[Machine]) -> None:
    """U4: every dimension adds up to the whole."""
    [whole] = counts()
    assert whole.counts == Counts(installed=6, available=3, busy=1, idle=1, unknown=1, out=2, missing=1)
    assert whole.coverage == pytest.approx(200 / 3)
    for dimension in DIMENSIONS:
        assert sum((row.counts for row in counts(dimension)), Counts()) == whole.counts, dimension
    assert [(row.name, row.installed, row.busy) for row in counts("node")] == [("n1", 2, 1), ("n2", 2, 0), ("n3", 2, 0)]
    assert [(row.name, row.installed) for row in counts("rack")] == [("R1", 2), ("none", 4)]
    with pytest.raises(ValueError, match="group_by"):
        counts("colour")


def test_the_tree_adds_up(fleet: list[Machine]) -> None:
    """U1: sites, racks and nodes carry the counts of what is below them."""
    tree = site_tree()
    assert tree.counts == counts()[0].counts
    assert [(site.site.name, site.counts.installed) for site in tree.sites] == [("North", 4), ("South", 2)]
    for site in tree.sites:
        assert site.counts == sum((rack.counts for rack in site.racks), Counts())
        for rack in site.racks:
            assert rack.counts == sum((node.counts for node in rack.nodes), Counts())
    north = tree.sites[0]
    assert [(rack.rack.name if rack.rack else None, len(rack.nodes)) for rack in north.racks] == [("R1", 1), (None, 1)]


@pytest.mark.parametrize("read", [counts, site_tree, fleet_cells], ids=["counts", "tree", "cells"])
def test_queries_do_not_grow_with_the_fleet(fleet: list[Machine], read: Any) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as captured:
            read()
        return len(captured)

    before = cost()
    for number in range(4, 9):
        machine = Machine(f"n{number}", Site.objects.create(name=f"S{number}"))
        machine.sees(0, *(card(10 * number + place, slot=place) for place in range(8)))
    assert cost() == before <= 10


def test_the_threshold_of_model_and_cluster_decides(fleet: list[Machine]) -> None:
    """DESIGN 3: the most specific row wins."""
    model = CardModel.objects.create(slug="m", vendor="v", name="M")
    Card.objects.update(model=model)
    BusyThreshold.objects.create(activity=0.5)
    assert counts()[0].counts.busy == 2
    BusyThreshold.objects.create(model=model, cluster=Cluster.objects.get(), activity=90.0)
    assert counts()[0].counts.busy == 0


def test_cells_carry_only_fresh_values(fleet: list[Machine]) -> None:
    """U5: what is not known is None."""
    cells = {cell.kind: cell for cell in fleet_cells()}
    assert set(cells) == {"busy", "idle", "unknown", "out", "missing"}
    assert (cells["busy"].activity, cells["busy"].power) == (80.0, 500.0)
    assert (cells["unknown"].activity, cells["unknown"].power) == (None, 100.0)
    assert cells["missing"].power is None


def test_details_of_node_and_card_in_a_fixed_number_of_queries(fleet: list[Machine]) -> None:
    """U1: bundles for their pages, whatever stands on the node."""

    def cost(read: Any) -> int:
        with CaptureQueriesContext(connection) as captured:
            read()
        return len(captured)

    node, first = fleet[0].node, Card.objects.get(uuid=uuid(1))
    costs = cost(lambda: node_detail(node.id)), cost(lambda: card_detail(first.id))
    parts = tuple(SliceReading(uuid=f"MIG-{number}", profile="1g.10gb", instance_id=str(number)) for number in range(7))
    fleet[0].sees(
        120,
        *(
            card(number, slot=number, mig_enabled=number == 1, slices=parts if number == 1 else ())
            for number in range(1, 9)
            if number not in (3, 4, 5, 6)
        ),
    )
    found = node_detail(node.id)
    assert len(found.cards) == 4
    assert len(found.cards[0].open_slices) == 7
    assert [entry.node for entry in found.journal] == [node] * len(found.journal)
    detail = card_detail(first.id)
    assert len(detail.slices) == 7
    assert detail.placements[0].node == node
    assert detail.sightings[0].source == "agent"
    assert cost(lambda: node_detail(node.id)) <= costs[0] + 1
    assert cost(lambda: card_detail(first.id)) <= costs[1] + 1


def test_the_journal_page_by_page(fleet: list[Machine]) -> None:
    """I12: newest first, nothing twice, nothing left out."""
    whole = journal_page(limit=1000)
    assert [(entry.at, entry.id) for entry in whole] == sorted(((e.at, e.id) for e in whole), reverse=True)
    pages, before = [], None
    while page := journal_page(before=before, limit=3):
        pages += page
        before = (page[-1].at, page[-1].id)
    assert pages == whole
    assert {entry.node_id for entry in journal_page(node=fleet[0].node.id)} == {fleet[0].node.id}
    assert [entry.kind for entry in journal_page(kinds=("card_vanished",))] == ["card_vanished"]
