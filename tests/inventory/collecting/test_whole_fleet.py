"""The acts of the simulated fleet, read as in service: agents in band, BMCs over Redfish (I5, I12)."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from django.utils import timezone

from inventory.models import Agent, Bmc, Card, JournalEntry, Placement, Site
from inventory.observations import NodeReading
from inventory.services import polling
from inventory.services.nodes import find_or_create_node
from inventory.services.observe import record_node_reading
from sensaka.fleet.acts import perform
from sensaka.fleet.plan import NodePlan, make_plan
from sensaka.fleet.readings import node_reading
from sensaka.fleet.world import World
from tests.inventory.collecting.conftest import NOON, Peers

pytestmark = pytest.mark.django_db
LEFT, RIGHT = "fra-h100-02", "fra-h100-12"


class Fleet:
    """Two nodes, each with an agent and a BMC; `read` lets all four sources report in a given order."""

    def __init__(self, peers: Peers, site: Site, add_bmc: Callable[..., Bmc]) -> None:
        self.world = World.fresh(make_plan(seed=1, nodes=64, ipmi=True), NOON)
        self.clock = timezone.now() - timedelta(hours=2)
        self.agents: dict[str, Agent] = {}
        for name in (LEFT, RIGHT):
            plan = self.world.plan.by_name[name]
            node = find_or_create_node(
                machine_id=f"machine-{name}", system_serial=plan.system_serial, system_uuid=plan.system_uuid,
                hostname=name, site=site, at=self.clock, source="agent",
            )  # fmt: skip
            self.agents[name] = Agent.objects.create(node=node, token_digest=name)
            add_bmc(peers.bmc(self.world, plan).port)

    def report(self, name: str) -> None:
        self.clock += timedelta(seconds=5)
        plan: NodePlan = self.world.plan.by_name[name]
        seen = node_reading(self.world, plan)
        reading: NodeReading = msgspec.structs.replace(seen, observed_at=self.clock)
        agent = self.agents[name]
        record_node_reading(node=agent.node, source="agent", collector_id=agent.id, reading=reading)
        Agent.objects.filter(pk=agent.pk).update(succeeded_at=self.clock)

    def poll(self) -> None:
        Bmc.objects.update(due_at=datetime.now(UTC), leased_until=None, discovered_at=None)
        polling.poll_due_bmcs()
        assert not Bmc.objects.exclude(error_kind="").exists()

    def settle(self) -> None:
        for name in (LEFT, RIGHT):
            self.report(name)


@pytest.fixture
def fleet(peers: Peers, site: Site, add_bmc: Any) -> Fleet:
    made = Fleet(peers, site, add_bmc)
    made.settle()
    JournalEntry.objects.all().delete()
    return made


def told() -> list[str]:
    return list(JournalEntry.objects.order_by("created_at", "id").values_list("text", flat=True))


def placed(uuid: str) -> list[tuple[str, str]]:
    rows = Placement.objects.filter(card__uuid=uuid).order_by("span").select_related("node")
    return [(row.node.name, row.slot) for row in rows]


@pytest.mark.parametrize("order", [(LEFT, RIGHT), (RIGHT, LEFT)], ids=["left first", "right first"])
def test_a_swap_is_told_exactly(fleet: Fleet, order: tuple[str, str]) -> None:
    """I5: swap two cards between nodes: two moves, and the replacement in between, in either order of reports."""
    world = fleet.world
    left, right = world.plan.by_name[LEFT], world.plan.by_name[RIGHT]
    one, other = world.card_at(left, 2), world.card_at(right, 5)
    assert one is not None
    assert other is not None
    slots = {uuid: Card.objects.get(uuid=uuid).slot for uuid in (one.uuid, other.uuid)}
    perform(world, {"do": "swap_cards", "a": f"{LEFT}:2", "b": f"{RIGHT}:5"})
    for name in order:
        fleet.report(name)
    fleet.settle()
    there = {"left": (LEFT, slots[one.uuid]), "right": (RIGHT, slots[other.uuid])}
    moves = {
        f"Card {one.uuid} moved from {LEFT} slot {slots[one.uuid]} to {RIGHT} slot {slots[other.uuid]}.",
        f"Card {other.uuid} moved from {RIGHT} slot {slots[other.uuid]} to {LEFT} slot {slots[one.uuid]}.",
    }
    found = told()
    assert moves <= set(found)
    [rest] = [text for text in found if text not in moves]
    assert "was replaced by" in rest
    assert placed(one.uuid) == [there["left"], there["right"]]
    assert placed(other.uuid) == [there["right"], there["left"]]


def test_pulled_and_returned_elsewhere_is_told_exactly(fleet: Fleet) -> None:
    """I5: pull one, return it in another slot; history stays with the card."""
    world = fleet.world
    card = world.card_at(world.plan.by_name[LEFT], 2)
    assert card is not None
    row = Card.objects.get(uuid=card.uuid)
    perform(world, {"do": "pull_card", "node": LEFT, "slot": 2})
    fleet.settle()
    fleet.settle()
    first_slot = row.slot
    assert told() == [f"Card {card.uuid} vanished from {LEFT} slot {first_slot}: its agent no longer lists it."]
    perform(world, {"do": "pull_card", "node": RIGHT, "slot": 6})
    fleet.settle()
    perform(world, {"do": "return_card", "serial": card.serial, "node": RIGHT, "slot": 6})
    fleet.settle()
    row.refresh_from_db()
    assert row.state == "present"
    assert row.node is not None
    assert row.node.name == RIGHT
    assert told()[-1].startswith(f"Card {card.uuid} moved from {LEFT} slot {first_slot} to {RIGHT} slot ")


def test_bmcs_and_agents_see_the_same_cards(fleet: Fleet) -> None:
    """I5: sixteen cards from both sides are sixteen cards; the polls in between tell nothing."""
    fleet.clock = timezone.now() - timedelta(seconds=30)
    fleet.settle()
    JournalEntry.objects.all().delete()
    fleet.poll()
    fleet.settle()
    fleet.poll()
    assert Card.objects.count() == 16
    assert Card.objects.filter(sightings__source="bmc").distinct().count() == 16
    assert Bmc.objects.exclude(node=None).values("node").distinct().count() == 2
    kinds = set(JournalEntry.objects.values_list("kind", flat=True))
    assert kinds <= {"firmware_changed", "card_identified"}, told()


def test_a_lost_card_has_failed(fleet: Fleet) -> None:
    """I5: lost from the bus but named: failed, not missing."""
    card = fleet.world.card_at(fleet.world.plan.by_name[LEFT], 3)
    assert card is not None
    perform(fleet.world, {"do": "lose_card", "node": LEFT, "slot": 3})
    fleet.settle()
    assert Card.objects.get(uuid=card.uuid).state == "failed"


def test_many_bmcs_are_read_at_once(peers: Peers, world: World, site: Site, add_bmc: Any) -> None:
    """I3: the time of a round is that of a few BMCs, not the sum of all."""
    plans = [plan for plan in world.plan.nodes if plan.chassis.style in ("dell", "supermicro")][:12]
    for plan in plans:
        add_bmc(peers.bmc(world, plan).port)
    started = time.monotonic()
    assert polling.poll_due_bmcs().read == len(plans)
    took = time.monotonic() - started
    spent = [row.elapsed or 0.0 for row in Bmc.objects.all()]
    assert not Bmc.objects.exclude(error_kind="").exists()
    assert took < sum(spent)
    assert Card.objects.filter(state="present").count() == sum(
        world.card_at(plan, slot) is not None for plan in plans for slot in range(8)
    )
