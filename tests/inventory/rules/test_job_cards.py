"""Which cards a scheduler means; what is not told stays unknown."""

from uuid import UUID

import pytest

from inventory.rules.job_cards import Binding, CardHere, NodeCards, SliceHere, resolve
from inventory.rules.jobs import CardKind

A, B, S1, S2, S3 = (UUID(int=number) for number in range(1, 6))
U1, U2 = "GPU-11111111-0000-0000-0000-000000000000", "GPU-22222222-0000-0000-0000-000000000000"
M1, M2 = "MIG-aaaaaaaa-0000-0000-0000-000000000000", "MIG-bbbbbbbb-0000-0000-0000-000000000000"
# NVML lists A first; its minor number is 1.
NODE = NodeCards("n1", (CardHere(A, U1, "0000:01:00.0", 1), CardHere(B, U2, "0000:02:00.0", 0)))
MIG = NodeCards(
    "n1",
    (
        CardHere(A, U1, minor=0, slices=(SliceHere(S1, M1, "1g.10gb"), SliceHere(S2, M2, "1g.10gb"))),
        CardHere(B, U2, minor=1, slices=(SliceHere(S3, "MIG-cccccccc-0000-0000-0000-000000000000", "3g.40gb"),)),
    ),
)


def cards(binding: Binding, node: NodeCards = NODE) -> tuple[list[UUID | None], str]:
    found = resolve(binding, node)
    return [one.card for one in found.held], found.unknown


def test_a_number_is_the_minor_and_never_the_order() -> None:
    assert cards(Binding(CardKind.CARD, "a100", 1, indices=(0,))) == ([B], "")
    assert cards(Binding(CardKind.CARD, "a100", 2, indices=(0, 1))) == ([B, A], "")


@pytest.mark.parametrize("name", [U1, U1.lower(), U1.removeprefix("GPU-"), f"{U1}::3"])
def test_uuids_in_every_spelling(name: str) -> None:
    assert cards(Binding(CardKind.CARD, "", 1, uuids=(name,), indices=(0,))) == ([A], "")


def test_uuids_of_instances_name_card_and_slice() -> None:
    found = resolve(Binding(CardKind.MIG, "1g.10gb", 1, uuids=(M2,)), MIG)
    assert [(one.card, one.slice) for one in found.held] == [(A, S2)]
    assert found.unknown == ""


def test_pci_addresses() -> None:
    assert cards(Binding(CardKind.CARD, "", 1, addresses=("00000000:02:00.0",))) == ([B], "")


def test_a_number_that_no_card_has() -> None:
    found, why = cards(Binding(CardKind.CARD, "a100", 2, indices=(0, 7)))
    assert found == [B, None]
    assert why == "no card is known with minor number 7 on node n1"


def test_a_number_that_two_cards_have() -> None:
    node = NodeCards("n1", (CardHere(A, minor=0), CardHere(B, minor=0)))
    found, why = cards(Binding(CardKind.CARD, "", 1, indices=(0,)), node)
    assert found == [None]
    assert why == "two cards have minor number 0 on node n1"


def test_numbers_from_before_a_restart_say_nothing() -> None:
    node = NodeCards("n1", NODE.cards, numbered=False)
    found, why = cards(Binding(CardKind.CARD, "", 1, indices=(0,)), node)
    assert found == [None]
    assert why == "node n1 was restarted, and its cards were not read since"
    assert cards(Binding(CardKind.CARD, "", 1, uuids=(U1,)), node) == ([A], "")


def test_numbers_of_cards_that_only_a_bmc_told_say_nothing() -> None:
    node = NodeCards("n1", NODE.cards, numbered=False, read=False)
    found, why = cards(Binding(CardKind.CARD, "", 1, indices=(0,)), node)
    assert found == [None]
    assert why == "neither agent nor exporter has read the cards of node n1 yet"
    assert cards(Binding(CardKind.CARD, "", 1, uuids=(U1,)), node) == ([A], "")


def test_counted_and_not_told() -> None:
    found, why = cards(Binding(CardKind.CARD, "a100", 2))
    assert found == [None, None]
    assert why == "the scheduler does not tell which cards of node n1"


def test_a_uuid_of_no_card_here() -> None:
    found, why = cards(Binding(CardKind.CARD, "", 1, uuids=("GPU-33333333-0000-0000-0000-000000000000",)))
    assert found == [None]
    assert why.endswith("is not known on node n1")


def test_places_of_instances_are_not_guessed() -> None:
    found = resolve(Binding(CardKind.MIG, "a100_1g.10gb", 1, indices=(1,)), MIG)
    assert [(one.card, one.slice, one.index) for one in found.held] == [(None, None, 1)]
    assert found.unknown == "which MIG instances are 1 on node n1 stands in its own table of gres"


def test_all_instances_of_a_profile_are_known_without_their_places() -> None:
    found = resolve(Binding(CardKind.MIG, "a100_1g.10gb", 2, indices=(0, 1)), MIG)
    assert [(one.card, one.slice) for one in found.held] == [(A, S1), (A, S2)]
    assert found.unknown == ""
    assert [one.slice for one in resolve(Binding(CardKind.MIG, "3g.40gb", 1), MIG).held] == [S3]


def test_shares_of_one_card_and_of_several() -> None:
    one = resolve(Binding(CardKind.SHARD, "", 3, indices=(1,)), NODE)
    assert [(held.card, held.shares) for held in one.held] == [(A, 3)]
    two = resolve(Binding(CardKind.SHARD, "", 3, indices=(0, 1)), NODE)
    assert [(held.card, held.shares) for held in two.held] == [(B, None), (A, None)]
    assert (one.unknown, two.unknown) == ("", "")
    assert resolve(Binding(CardKind.MPS, "", 50), NODE).unknown == "the scheduler does not tell which cards of node n1"
