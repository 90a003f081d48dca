"""Agent and BMC of one machine become one node with one set of cards, whoever comes first (I5)."""

import pytest

from inventory.models import Agent, Bmc, Card, JournalEntry, Node, Site
from inventory.services.nodes import find_or_create_node
from tests.inventory.tree.building import START, Machine, at, bmc, bmc_sees, card, out_of_band, uuid

pytestmark = pytest.mark.django_db
EIGHT = range(1, 9)


def in_band() -> list[object]:
    return [card(number) for number in EIGHT]


def by_bmc() -> list[object]:
    return [out_of_band(number) for number in EIGHT]


def one_machine() -> Node:
    [node] = Node.objects.all()
    assert Card.objects.exclude(state="retired").count() == 8
    assert set(Card.objects.exclude(state="retired").values_list("state", "node")) == {("present", node.id)}
    return node


def test_agent_first_with_the_same_serial() -> None:
    """I5: the BMC finds the agent's node by the system's serial, and its cards by theirs."""
    n01 = Machine("n01", serial="SER1")
    n01.sees(0, *in_band())
    row = bmc()
    bmc_sees(row, 10, *by_bmc(), system_serial="ser1", hostname="other")
    node = one_machine()
    assert (node.name, Bmc.objects.get().node) == ("n01", node)
    assert Card.objects.get(uuid=uuid(3)).slot == "3", "the agent's name of the slot stands"
    assert not JournalEntry.objects.filter(kind__in=["card_moved", "card_vanished", "card_identified"]).exists()


def test_bmc_first_with_the_same_serial() -> None:
    """I5: the agent enrols into the node that the BMC made, whose name and cards it completes."""
    row = bmc()
    bmc_sees(row, 0, *by_bmc(), system_serial="SER1")
    assert Node.objects.get().name == "SER1"
    assert Card.objects.get(serial="01650003").uuid == f"GPU-{uuid(3).removeprefix('GPU-')}"
    n01 = Machine("n01", serial="SER1")
    n01.sees(10, *in_band())
    node = one_machine()
    assert node.name == "n01"
    assert JournalEntry.objects.get(kind="node_renamed").text == "Node SER1 is now called n01."
    row_3 = Card.objects.get(uuid=uuid(3))
    assert (row_3.slot, row_3.pci_address) == ("3", "0000:13:00.0")
    assert n01.sees(40, *in_band()).events == ()
    assert bmc_sees(row, 41, *by_bmc(), system_serial="SER1").events == ()


def test_bmc_first_only_it_knows_the_serial() -> None:
    """I5: an agent that can't read the serial makes its own node; its cards show that both are one machine."""
    row = bmc()
    bmc_sees(row, 0, *by_bmc(), system_serial="SER1", power=1200.0)
    n01 = Machine("n01", serial="")
    assert Node.objects.count() == 2
    n01.sees(10, *in_band())
    node = one_machine()
    assert (node.id, node.name, node.system_serial) == (n01.node.id, "n01", "SER1")
    assert Bmc.objects.get().node_id == node.id
    told = JournalEntry.objects.get(detail__has_key="joined").text
    assert told == f"Nodes n01 and SER1 are one machine, because both list card {uuid(1)}; their records were joined."
    assert not JournalEntry.objects.filter(kind__in=["card_moved", "card_vanished"]).exists()


def test_the_number_of_a_name_goes_when_the_record_that_had_the_name_is_joined() -> None:
    """I5: the BMC's record was called as the host is, so the agent's got a number; one is left, and it needs none."""
    row = bmc()
    bmc_sees(row, 0, *by_bmc(), system_serial="SER1", hostname="n01")
    n01 = Machine("n01", serial="")
    assert n01.node.name == "n01~2"
    n01.sees(10, *in_band())
    assert one_machine().name == "n01"
    told = JournalEntry.objects.get(detail__has_key="joined")
    assert told.text.startswith("Nodes n01~2 and n01 are one machine, because both list card ")
    assert told.text.endswith("; their records were joined. It is called n01.")
    assert told.detail == {"joined": "n01", "before": "n01~2", "after": "n01"}


def test_agent_first_only_the_bmc_knows_the_serial() -> None:
    """I5: a new BMC is tied to the node whose operating system lists the same cards."""
    n01 = Machine("n01", serial="")
    n01.sees(0, *in_band())
    bmc_sees(bmc(), 10, *by_bmc(), system_serial="SER1")
    node = one_machine()
    assert (node.name, node.system_serial) == ("n01", "SER1")


def test_cards_without_serial_or_uuid_are_joined_by_slot() -> None:
    """I5: a BMC that only numbers its modules, from 1 where the driver counts from 0."""
    n01 = Machine("n01")
    n01.sees(0, *(card(number, slot=number - 1, serial="") for number in EIGHT))
    row = bmc(node=n01.node)
    bmc_sees(row, 10, *(out_of_band(number, uuid="", serial="", model_name="") for number in EIGHT))
    assert Card.objects.count() == 8
    assert Card.objects.filter(sightings__source="bmc").count() == 8
    seen = Card.objects.get(uuid=uuid(3)).sightings.get(source="bmc")
    assert seen.identity["slot"] == "GPU_SXM_3"


def test_serials_that_only_the_bmc_knows_are_added() -> None:
    """I5: identity is completed across sources, and the journal says so once."""
    n01 = Machine("n01")
    n01.sees(0, *(card(number, serial="") for number in EIGHT))
    row = bmc(node=n01.node)
    for second in (10, 40):
        bmc_sees(row, second, *(out_of_band(number, uuid="") for number in EIGHT))
    assert Card.objects.count() == 8
    assert Card.objects.get(uuid=uuid(3)).serial == "01650003"
    assert JournalEntry.objects.filter(kind="card_identified").count() == 8


def test_two_records_of_one_card_become_one() -> None:
    """I5: the record with the UUID goes on, with the earlier first sight; the other is retired, not deleted."""
    n01 = Machine("n01", serial="SER1")
    row = bmc(node=n01.node)
    bmc_sees(row, 0, out_of_band(1, uuid="", vendor="", slot=5), out_of_band(2, uuid="", vendor="", slot=6))
    # Neither serial nor slot fit yet, so the driver's cards are new ...
    n01.sees(10, card(1, serial="", slot=1), card(2, serial="", slot=2), card(3, serial="", slot=3), complete=False)
    before = Card.objects.exclude(state="retired").count()
    # ... until a newer driver tells the serials.
    n01.sees(40, card(1, slot=1), card(2, slot=2), card(3, slot=3), complete=False)
    assert Card.objects.exclude(state="retired").count() == 3 <= before
    kept = Card.objects.get(uuid=uuid(1))
    assert kept.serial
    assert kept.state == "present"
    assert n01.sees(50, card(1, slot=1), card(2, slot=2), card(3, slot=3)).events == ()


@pytest.mark.parametrize(
    ("known", "said", "same"),
    [
        pytest.param({"system_serial": "A1"}, {"system_serial": " a1 "}, True, id="serial in another case"),
        pytest.param({"system_serial": "A1"}, {"system_serial": "A2", "machine_id": "m"}, False, id="another serial"),
        pytest.param({"machine_id": "m"}, {"machine_id": "M"}, True, id="machine id alone"),
        pytest.param(
            {"machine_id": "m", "system_serial": "A1"},
            {"machine_id": "m", "system_serial": "A2"},
            False,
            id="a cloned disk image has the machine id of its origin",
        ),
        pytest.param(
            {"system_uuid": "03020100-0504-0706-0809-0a0b0c0d0e0f"},
            {"system_uuid": "00010203-0405-0607-0809-0A0B0C0D0E0F"},
            True,
            id="UUID in the other byte order",
        ),
        pytest.param({"system_serial": "Default string"}, {"system_serial": "Default string"}, False, id="placeholder"),
        pytest.param({"system_serial": "0000000"}, {"system_serial": "0000000"}, False, id="zeros"),
        pytest.param(
            {"machine_id": "m1", "system_serial": "CH", "system_uuid": "11111111-1111-4111-8111-111111111112"},
            {"machine_id": "m2", "system_serial": "CH", "system_uuid": "11111111-1111-4111-8111-111111111113"},
            False,
            id="twins with the serial of their chassis",
        ),
        pytest.param(
            {"machine_id": "m1", "system_serial": "A1", "system_uuid": "11111111-1111-4111-8111-111111111112"},
            {"system_serial": "A1", "system_uuid": "22222222-1111-4111-8111-111111111113"},
            True,
            id="a BMC that made up its own UUID",
        ),
    ],
)  # fmt: skip
def test_a_node_is_found_again(known: dict[str, str], said: dict[str, str], same: bool) -> None:
    """I5: by serial, UUID or machine id; never by its name."""
    site = Site.objects.create(name="S")
    first = find_or_create_node(hostname="n01", site=site, at=START, source="agent", **known)
    second = find_or_create_node(hostname="n01", site=site, at=at(5), source="bmc", **said)
    assert (first.pk == second.pk) is same
    if not same:
        assert second.name == "n01~2"


def test_agents_of_a_joined_node_keep_their_token() -> None:
    """The agent's node survives the joining, whichever record is older."""
    row = bmc()
    bmc_sees(row, 0, *by_bmc(), system_serial="SER1")
    n01 = Machine("n01", serial="")
    agent = Agent.objects.create(id=n01.collector, node=n01.node, token_digest="d")
    n01.sees(10, *in_band())
    agent.refresh_from_db()
    assert agent.node_id == n01.node.id == one_machine().id
