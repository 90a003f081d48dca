"""Redfish trees of the simulated fleet, served by the emulator and read by the product's Redfish driver (I4)."""

import pytest

from inventory.drivers.bmc.redfish import RedfishBmc
from inventory.drivers.fake.redfish import RedfishServer
from inventory.observations import BmcTarget, PowerState, TlsPolicy
from sensaka.fleet.acts import perform
from sensaka.fleet.plan import NodePlan
from sensaka.fleet.readings import card_values
from sensaka.fleet.trees import STYLES, behaviour_of, make_tree
from sensaka.fleet.trees.base import ROOT
from sensaka.fleet.world import World

DEADLINE = 30.0
FIRST_OF_STYLE = {"supermicro": "fra-h100-02", "dell": "fra-h100-12", "lenovo": "fra-mi300x-02", "hpe": "fra-h200-01"}


def node_of(world: World, style: str) -> NodePlan:
    node = world.plan.by_name[FIRST_OF_STYLE[style]]
    assert node.chassis.style == style
    return node


def served(world: World, node: NodePlan) -> RedfishServer:
    return RedfishServer(make_tree(world, node), "operator", "secret", behaviour=behaviour_of(node.chassis.style))


def driver(server: RedfishServer) -> RedfishBmc:
    target = BmcTarget(
        address="127.0.0.1", port=server.port, protocol="redfish", username="operator", password="secret",
        tls=TlsPolicy.FINGERPRINT, tls_fingerprint=server.fingerprint,
    )  # fmt: skip
    return RedfishBmc(target)


@pytest.mark.parametrize("style", list(STYLES))
async def test_the_driver_finds_eight_cards_with_their_identity(world: World, style: str) -> None:
    """I4: discovery over each vendor's shape gives the node and its cards as the fleet made them."""
    node = node_of(world, style)
    async with served(world, node) as server:
        bmc = driver(server)
        try:
            reading = await bmc.discover(deadline=DEADLINE)
        finally:
            await bmc.close()

    cards = world.plan.cards[node.number * 8 : node.number * 8 + 8]
    assert reading.failures == ()
    assert reading.reached
    assert reading.cards_known
    assert (reading.system_serial, reading.system_uuid) == (node.system_serial, node.system_uuid)
    assert reading.hostname == node.name
    assert reading.power_state is PowerState.ON
    assert reading.power == pytest.approx(world.node_power(node), abs=1)
    assert {card.serial for card in reading.cards} == {card.serial for card in cards}
    if style != "hpe":  # iLO gives no UUID
        assert {card.uuid.removeprefix("GPU-") for card in reading.cards} == {
            card.uuid.removeprefix("GPU-") for card in cards
        }
    assert {card.slot for card in reading.cards} == {node.kind.module.format(n=n) for n in range(1, 9)}
    assert any(item.version == node.kind.vbios for item in reading.firmware)


@pytest.mark.parametrize("style", ["supermicro", "dell", "lenovo"])
async def test_temperature_power_and_energy_are_those_of_the_card(world: World, style: str) -> None:
    """The margin (TEMP_1) of the HGX shape is not taken for a temperature."""
    node = node_of(world, style)
    async with served(world, node) as server:
        bmc = driver(server)
        try:
            await bmc.discover(deadline=DEADLINE)
            reading = await bmc.poll(deadline=DEADLINE)
        finally:
            await bmc.close()

    by_serial = {card.serial: card for card in world.plan.cards}
    for card in reading.cards:
        truth = card_values(world, by_serial[card.serial])
        assert card.values is not None
        assert card.values.temperature == truth.temperature
        assert card.values.power == pytest.approx(truth.power, abs=0.01)
        assert card.values.energy == pytest.approx(truth.energy, rel=1e-6)


@pytest.mark.parametrize("style", list(STYLES))
async def test_resets_over_redfish_move_the_simulated_node(world: World, style: str) -> None:
    node = node_of(world, style)
    tree = make_tree(world, node)
    action = f"{tree.system}/Actions/ComputerSystem.Reset"

    assert tree.act("POST", action, {"ResetType": "ForceOff"})[0] == 204
    assert not world.runs(node)
    boots = world.boot_id(node)
    assert tree.act("POST", action, {"ResetType": "On"})[0] == 204
    assert world.runs(node)
    assert world.boot_id(node) != boots
    assert tree.act("POST", action, {"ResetType": "Explode"})[0] == 400
    entries = [entry for number, entry in world.notes_of(node)]
    assert [entry["text"] for entry in entries] == ["System reset: ForceOff", "System reset: On"]


async def test_a_boot_override_is_used_once(world: World) -> None:
    tree = make_tree(world, node_of(world, "dell"))
    wanted = {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}

    status, system = tree.act("PATCH", tree.system, wanted)

    assert status == 200
    assert system is not None
    assert system["Boot"]["BootSourceOverrideTarget"] == "Pxe"
    tree.act("POST", f"{tree.system}/Actions/ComputerSystem.Reset", {"ResetType": "ForceRestart"})
    assert tree.get(tree.system)["Boot"]["BootSourceOverrideTarget"] == "None"  # type: ignore[index]
    assert tree.act("PATCH", tree.system, {"AssetTag": "x"})[0] == 400


@pytest.mark.parametrize("style", list(STYLES))
def test_every_link_leads_somewhere_and_the_root_says_simulated(world: World, style: str) -> None:
    tree = make_tree(world, node_of(world, style))
    root = tree.get(ROOT)
    assert root is not None
    assert root["Oem"]["Sensaka"] == {"Simulated": True}
    todo, seen = [ROOT], set()
    while todo:
        path = todo.pop()
        if path in seen or path.endswith("/SessionService/Sessions") or "/Oem/" in path:
            continue
        seen.add(path)
        found = tree.get(path)
        assert found is not None, path
        todo += [link.rstrip("/") for link in links_in(found) if "#" not in link]
    assert set(tree.routes) <= seen


def links_in(value: object) -> list[str]:
    if isinstance(value, dict):
        own = [value["@odata.id"]] if isinstance(value.get("@odata.id"), str) else []
        return own + [link for item in value.values() for link in links_in(item)]
    return [link for item in value for link in links_in(item)] if isinstance(value, list) else []


def test_the_baseboard_is_silent_while_its_host_is_off(world: World) -> None:
    node = node_of(world, "supermicro")
    perform(world, {"do": "power_off", "node": node.name})
    tree = make_tree(world, node)

    assert tree.get(f"{ROOT}/Systems/HGX_Baseboard_0/Processors") is None
    assert tree.get(f"{ROOT}/Systems/1") is not None
