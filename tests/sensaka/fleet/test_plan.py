"""The fleet as it is built: sizes, doors, identities. Proves the counts that the demo promises (I1, I3)."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sensaka.fleet.layout import FULL_SIZE, GROUPS, LARGEST, Door
from sensaka.fleet.plan import SLOTS, make_plan


def test_full_fleet_has_the_promised_sites_nodes_cards_and_models() -> None:
    """I1: three sites, 64 nodes, 512 cards of four models."""
    plan = make_plan(seed=1, nodes=64, ipmi=True)

    assert (len(plan.sites), len(plan.nodes), len(plan.cards)) == (3, 64, 512)
    assert {site.kind for site in plan.sites} == {"central", "regional", "edge"}
    assert len({site.time_zone for site in plan.sites}) == 3
    assert Counter(node.kind.key for node in plan.nodes) == {"h100": 32, "h200": 12, "a100": 12, "mi300x": 8}
    assert Counter(node.protocol for node in plan.nodes) == {"redfish": 48, "ipmi": 16}
    assert Counter(node.door for node in plan.nodes) == {
        Door.AGENT: 52, Door.EXPORTER: 10, Door.REAL_AGENT: 1, Door.NONE: 1,
    }  # fmt: skip
    assert {node.chassis.style for node in plan.nodes} == {"dell", "hpe", "supermicro", "lenovo", "ipmi"}


def test_some_things_are_wrong_once_each() -> None:
    """The node without a system, the silent exporter and the node that only its BMC reads exist once."""
    plan = make_plan(seed=1, nodes=64, ipmi=True)

    assert sum(node.os_down for node in plan.nodes) == 1
    assert sum(node.silent_exporter for node in plan.nodes) == 1
    assert sum(node.kind.vendor == "amd" and node.door is Door.EXPORTER for node in plan.nodes) == 2


@pytest.mark.parametrize("nodes", [3, 4, 8, 63, FULL_SIZE, LARGEST])
def test_every_size_has_three_sites_and_eight_cards_a_node(nodes: int) -> None:
    plan = make_plan(seed=5, nodes=nodes, ipmi=True)

    assert (len(plan.nodes), len(plan.cards), len(plan.sites)) == (nodes, nodes * SLOTS, 3)
    assert len({node.address for node in plan.nodes}) == nodes
    assert len({node.name for node in plan.nodes}) == nodes


@pytest.mark.parametrize("nodes", [0, 2, LARGEST + 1])
def test_other_sizes_are_refused_with_the_bounds(nodes: int) -> None:
    with pytest.raises(ValueError, match="3 to 200"):
        make_plan(seed=1, nodes=nodes, ipmi=True)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31), other=st.integers(0, 2**31))
def test_identities_repeat_for_a_seed_and_differ_between_seeds(seed: int, other: int) -> None:
    """I3: identities are stable and unique, and say that they are simulated."""
    plan = make_plan(seed=seed, nodes=8, ipmi=True)

    assert make_plan(seed=seed, nodes=8, ipmi=True) == plan
    assert len({card.uuid for card in plan.cards}) == len({card.serial for card in plan.cards}) == 64
    assert all(card.serial.startswith("SIM") for card in plan.cards)
    assert all(node.system_serial.startswith("SIM") for node in plan.nodes)
    if other != seed:
        assert not {c.uuid for c in plan.cards} & {c.uuid for c in make_plan(seed=other, nodes=8, ipmi=True).cards}


def test_without_ipmi_all_bmcs_speak_redfish_and_say_why() -> None:
    plan = make_plan(seed=1, nodes=64, ipmi=False)

    assert {node.protocol for node in plan.nodes} == {"redfish"}
    assert sum(node.ipmi_missing for node in plan.nodes) == 16
    with_ipmi = make_plan(seed=1, nodes=64, ipmi=True)
    assert [node.address for node in plan.nodes] == [node.address for node in with_ipmi.nodes], "no BMC moves"


def test_nodes_with_an_exporter_have_a_bmc_that_gives_their_cards_uuids() -> None:
    """Else the page and the BMC could not be told to be one node."""
    plan = make_plan(seed=1, nodes=64, ipmi=True)

    styles = {node.chassis.style for node in plan.nodes if node.door is Door.EXPORTER}

    assert styles <= {"dell", "supermicro", "lenovo"}


def test_groups_have_their_special_nodes_inside() -> None:
    for group in GROUPS:
        special = {*group.mig, *group.interactive, *group.exporters} | {
            index for index in (group.real_agent, group.bmc_only, group.os_down, group.silent) if index >= 0
        }
        assert all(index < group.size for index in special), group
