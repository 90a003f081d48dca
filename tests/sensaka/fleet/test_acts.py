"""Acts: each changes every door of a node at once (agent, BMC, exporter page); senseless ones are refused."""

import re

import pytest

from sensaka.fleet.acts import ACTS, ActError, perform
from sensaka.fleet.pages import page
from sensaka.fleet.plan import NodePlan
from sensaka.fleet.readings import node_reading
from sensaka.fleet.trees import make_tree
from sensaka.fleet.trees.base import ROOT
from sensaka.fleet.world import World

AGENT, EXPORTER = "fra-h100-05", "fra-h100-11"


def serials_by_agent(world: World, node: NodePlan) -> list[str]:
    return [card.serial for card in node_reading(world, node).cards]


def serials_by_bmc(world: World, node: NodePlan) -> list[str]:
    tree = make_tree(world, node)
    found: list[str] = []
    for system in tree.get(f"{ROOT}/Systems")["Members"]:  # type: ignore[index]
        processors = tree.get(f"{system['@odata.id'].rstrip('/')}/Processors") or {"Members": []}
        for member in processors["Members"]:
            processor = tree.get(member["@odata.id"].rstrip("/"))
            if processor and processor["ProcessorType"] == "GPU":
                found.append(processor["SerialNumber"])
    return found


def uuids_on_page(world: World, node: NodePlan) -> set[str]:
    return set(re.findall(r'DCGM_FI_DEV_GPU_TEMP\{[^}]*UUID="([^"]+)"', page(world, node)))


@pytest.mark.parametrize("name", [AGENT, EXPORTER, "fra-h200-01", "fra-mi300x-01"])
def test_a_pulled_card_is_gone_from_every_door_and_returns_in_another_slot(world: World, name: str) -> None:
    """I3: pull, return elsewhere: the same card at another place."""
    node = world.plan.by_name[name]
    card = world.card_at(node, 2)
    assert card is not None

    perform(world, {"do": "pull_card", "node": name, "slot": 2})
    perform(world, {"do": "pull_card", "node": name, "slot": 6})

    assert card.serial not in serials_by_agent(world, node)
    assert card.serial not in serials_by_bmc(world, node)
    assert card.uuid not in page(world, node)
    perform(world, {"do": "return_card", "node": name, "slot": 6, "serial": card.serial})
    reading = next(c for c in node_reading(world, node).cards if c.serial == card.serial)
    assert (reading.slot, reading.pci_address) == ("7", node.pci_addresses[6][4:].lower())
    assert card.serial in serials_by_bmc(world, node)
    assert card.uuid in page(world, node)


def test_swapped_cards_change_places_at_every_door(world: World) -> None:
    first, second = world.plan.by_name[AGENT], world.plan.by_name[EXPORTER]
    one, other = world.card_at(first, 1), world.card_at(second, 4)
    assert one is not None
    assert other is not None

    told = perform(world, {"do": "swap_cards", "a": f"{AGENT}:1", "b": f"{EXPORTER}:4"})

    assert one.serial in told
    assert other.serial in serials_by_agent(world, first)
    assert other.serial in serials_by_bmc(world, first)
    assert one.uuid in uuids_on_page(world, second)
    assert one.serial in serials_by_bmc(world, second)
    assert world.sensors.energy[one.number] == 0, "its driver was loaded anew"


def test_a_moved_card_needs_an_empty_slot(world: World) -> None:
    with pytest.raises(ActError, match="not empty"):
        perform(world, {"do": "move_card", "a": f"{AGENT}:0", "b": "fra-h100-06:0"})
    perform(world, {"do": "pull_card", "node": "fra-h100-06", "slot": 0})

    perform(world, {"do": "move_card", "a": f"{AGENT}:0", "b": "fra-h100-06:0"})

    assert world.card_at(world.plan.by_name[AGENT], 0) is None
    assert len(serials_by_agent(world, world.plan.by_name["fra-h100-06"])) == 8


def test_a_lost_card_is_counted_but_not_read_in_band_and_critical_at_the_bmc(world: World) -> None:
    node = world.plan.by_name[AGENT]
    card = world.card_at(node, 3)
    assert card is not None

    perform(world, {"do": "lose_card", "node": AGENT, "slot": 3})

    reading = node_reading(world, node)
    assert not reading.complete
    assert [failure.kind for failure in reading.failures] == ["lost"]
    assert card.serial not in serials_by_agent(world, node)
    assert card.serial in serials_by_bmc(world, node)
    assert 'err_code="79"' in page(world, node)


def test_the_bmc_answers_while_the_system_is_down(world: World) -> None:
    node = world.plan.by_name[AGENT]
    perform(world, {"do": "os_down", "node": AGENT})

    assert not world.runs(node)
    assert len(serials_by_bmc(world, node)) == 8
    assert make_tree(world, node).get(f"{ROOT}/Systems/1")["PowerState"] == "On"  # type: ignore[index]
    before = world.boot_id(node)
    perform(world, {"do": "os_up", "node": AGENT})
    assert world.runs(node)
    assert world.boot_id(node) != before


def test_power_off_shows_at_the_bmc_and_its_log(world: World) -> None:
    node = world.plan.by_name["fra-mi300x-01"]
    perform(world, {"do": "power_off", "node": node.name})
    tree = make_tree(world, node)

    assert tree.get(f"{ROOT}/Systems/1")["PowerState"] == "Off"  # type: ignore[index]
    entries = tree.get(f"{ROOT}/Systems/1/LogServices/PlatformLog/Entries")
    assert entries is not None
    assert entries["Members"][-1]["Message"] == f"{node.name} is off"
    assert entries["Members"][-1]["Severity"] == "Critical"


def test_mig_instances_made_anew_have_new_uuids(world: World) -> None:
    node = world.plan.by_name["sin-a100-04"]
    before = {part.uuid for part in node_reading(world, node).cards[0].slices}

    perform(world, {"do": "reconfigure_mig", "node": node.name, "slot": 0, "profiles": "1g.10gb,2g.20gb"})
    world.advance(world.at + 1)

    after = node_reading(world, node).cards[0].slices
    assert [part.profile for part in after] == ["1g.10gb", "2g.20gb"]
    assert not before & {part.uuid for part in after}
    perform(world, {"do": "reconfigure_mig", "node": node.name, "slot": 0, "profiles": "off"})
    world.advance(world.at + 1)
    card = node_reading(world, node).cards[0]
    assert (card.mig_enabled, card.slices) == (False, ())


def test_restore_mends_everything_of_a_node(world: World) -> None:
    node = world.plan.by_name[AGENT]
    for act in ("stop_bmc", "stop_agent", "cut_agent_line", "os_down"):
        perform(world, {"do": act, "node": AGENT})
    perform(world, {"do": "lose_card", "node": AGENT, "slot": 0})

    perform(world, {"do": "restore", "node": AGENT})

    state = world.nodes[node.number]
    assert state.bmc_up
    assert state.agent_up
    assert state.line_up
    assert world.runs(node)
    assert node_reading(world, node).complete


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "there is no act None"),
        ({"do": "explode"}, "there is no act 'explode'; there are: cancel_job, cut_agent_line"),
        ({"do": "pull_card"}, "'slot' is missing"),
        ({"do": "pull_card", "slot": 1}, "'node' is missing"),
        ({"do": "pull_card", "node": "nowhere", "slot": 1}, "no node 'nowhere'"),
        ({"do": "pull_card", "node": AGENT, "slot": 8}, "no slot: use 0 to 7"),
        ({"do": "pull_card", "node": AGENT, "slot": "x"}, "no slot"),
        ({"do": "pull_card", "node": AGENT, "slot": -1}, "no slot"),
        ({"do": "return_card", "node": AGENT, "slot": 1}, "no card lies on the shelf"),
        ({"do": "swap_cards", "a": AGENT, "b": AGENT}, "a place: NODE:SLOT"),
        ({"do": "swap_cards", "a": f"{AGENT}:1", "b": f"{AGENT}:1"}, "same place"),
        ({"do": "swap_cards", "a": f"{AGENT}:1", "b": "fra-mi300x-01:1"}, "does not fit"),
        ({"do": "stop_agent", "node": EXPORTER}, "has no agent"),
        ({"do": "silence_exporter", "node": AGENT}, "has no exporter"),
        ({"do": "start_agent", "node": AGENT}, "nothing to do"),
        ({"do": "os_up", "node": AGENT}, "runs already"),
        ({"do": "reconfigure_mig", "node": "fra-mi300x-01", "slot": 0}, "can't be cut"),
        ({"do": "reconfigure_mig", "node": AGENT, "slot": 0, "profiles": "9g.90gb"}, "profiles are a list"),
        ({"do": "reconfigure_mig", "node": AGENT, "slot": 0, "profiles": "4g.40gb,4g.40gb"}, "more than one card"),
        ({"do": "reconfigure_mig", "node": AGENT, "slot": 0, "profiles": "off"}, "off on SIM.* already"),
    ],
)
def test_senseless_acts_are_refused_with_the_reason(world: World, arguments: dict[str, object], reason: str) -> None:
    before = world.dump()

    with pytest.raises(ActError, match=reason):
        perform(world, arguments)

    assert world.dump() == before


def test_a_card_is_never_in_two_places_whatever_is_done(world: World) -> None:
    nodes = [AGENT, "fra-h100-06", "fra-h100-07"]
    for turn in range(60):
        a, b = f"{nodes[turn % 3]}:{turn % 8}", f"{nodes[(turn * 7 + 1) % 3]}:{(turn * 5) % 8}"
        for act in (
            {"do": "swap_cards", "a": a, "b": b},
            {"do": "pull_card", "node": nodes[turn % 3], "slot": (turn * 3) % 8},
            {"do": "move_card", "a": b, "b": a},
            {"do": "return_card", "node": nodes[(turn + 1) % 3], "slot": turn % 8},
        ):
            try:
                perform(world, act)
            except ActError:
                continue
        everywhere = [number for row in world.places for number in row if number is not None] + world.shelf
        assert sorted(everywhere) == list(range(512))


def test_every_act_is_documented() -> None:
    from pathlib import Path

    text = (Path(__file__).parents[3] / "docs" / "demo.md").read_text()
    assert [name for name in ACTS if f"`{name}" not in text] == []
