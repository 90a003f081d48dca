"""Named cases of reconciliation: what one reading after another means (I5)."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from inventory.rules.changes import ObservedSlice, Plan
from inventory.rules.identity import CardIdentity, pci_address
from tests.inventory.rules.tree_model import Tree, card, gpu, kinds, seen

A, B, C = card(1), card(2), card(3)


def bare(number: int, slot: int | None = None) -> CardIdentity:
    """As a BMC tells it."""
    return CardIdentity(gpu(number).removeprefix("GPU-"), f"0165{number:04d}", "", f"GPU_SXM_{slot or number}")


def slotless(number: int, bus: int) -> CardIdentity:
    """A card of a server that has no names for its slots."""
    return card(number, slot="", pci_address=f"0000:{bus:02x}:00.0")


@dataclass(frozen=True)
class Case:
    """Readings before, the one in question, and the kinds of change that it must bring, in order."""

    name: str
    before: Callable[[Tree], object]
    then: Callable[[Tree], Plan]
    changes: list[str]


def steps(*looks: Callable[[Tree], object]) -> Callable[[Tree], None]:
    def run(tree: Tree) -> None:
        for look in looks:
            look(tree)

    return run


NOTHING = steps()
KNOWN = steps(lambda tree: tree.look(0, 0, A, B))

CASES = [
    Case("a node's first reading", NOTHING, lambda tree: tree.look(0, 0, A, B), ["Appear", "Appear"]),
    Case("unchanged", KNOWN, lambda tree: tree.look(0, 10, A, B), []),
    Case("another order", KNOWN, lambda tree: tree.look(0, 10, B, A), []),
    Case("one pulled", KNOWN, lambda tree: tree.look(0, 10, A), ["Vanish"]),
    Case("all pulled", KNOWN, lambda tree: tree.look(0, 10), ["Vanish", "Vanish"]),
    Case("reboot with one card missing", KNOWN, lambda tree: tree.look(0, 400, B), ["Vanish"]),
    Case("incomplete reading", KNOWN, lambda tree: tree.look(0, 10, A, complete=False), []),
    Case(
        "back in its slot", steps(KNOWN, lambda tree: tree.look(0, 10, A)),
        lambda tree: tree.look(0, 20, A, B), ["Return"],
    ),
    Case(
        "back in another slot", steps(KNOWN, lambda tree: tree.look(0, 10, A)),
        lambda tree: tree.look(0, 20, A, card(2, 7)), ["Move"],
    ),
    Case("to another slot", KNOWN, lambda tree: tree.look(0, 10, A, card(2, 7)), ["Move"]),
    Case("two exchange slots", KNOWN, lambda tree: tree.look(0, 10, card(1, 2), card(2, 1)), ["Move", "Move"]),
    Case(
        "renumbered bus, same slots", KNOWN,
        lambda tree: tree.look(0, 10, card(1, pci_address="0000:41:00.0"), card(2, pci_address="0000:42:00.0")),
        ["Relocate", "Relocate"],
    ),
    Case(
        "without slots the address is the place", steps(lambda tree: tree.look(0, 0, slotless(1, 1))),
        lambda tree: tree.look(0, 10, slotless(1, 5)), ["Move"],
    ),
    Case("to another node", KNOWN, lambda tree: tree.look(1, 10, card(2, 5)), ["Move"]),
    Case(
        "the old node reports after the move", steps(KNOWN, lambda tree: tree.look(1, 10, card(2, 5))),
        lambda tree: tree.look(0, 20, A), [],
    ),
    Case(
        "the old node reports late what it saw before", steps(KNOWN, lambda tree: tree.look(1, 10, card(2, 5))),
        lambda tree: tree.look(0, 5, A, B), [],
    ),
    Case(
        "swap, first node", steps(KNOWN, lambda tree: tree.look(1, 0, C)),
        lambda tree: tree.look(0, 10, A, card(3, 2)), ["Move", "Vanish"],
    ),
    Case(
        "swap, second node",
        steps(KNOWN, lambda tree: tree.look(1, 0, C), lambda tree: tree.look(0, 10, A, card(3, 2))),
        lambda tree: tree.look(1, 12, card(2, 3)), ["Move"],
    ),
    Case("replaced in its slot", KNOWN, lambda tree: tree.look(0, 10, A, card(9, 2)), ["Appear", "Vanish"]),
    Case(
        "replaced, seen by an incomplete reading", KNOWN,
        lambda tree: tree.look(0, 10, card(9, 2), complete=False), ["Appear", "Vanish"],
    ),
    Case(
        "one UUID on two nodes in turn", steps(KNOWN, lambda tree: tree.look(1, 5, card(2, 5))),
        lambda tree: tree.look(0, 10, A, B), ["Conflict"],
    ),
    Case(
        "the conflict is told once",
        steps(KNOWN, lambda tree: tree.look(1, 5, card(2, 5)), lambda tree: tree.look(0, 10, A, B)),
        lambda tree: tree.look(0, 20, A, B), [],
    ),
    Case(
        "the conflict ends when one node is silent",
        steps(KNOWN, lambda tree: tree.look(1, 5, card(2, 5)), lambda tree: tree.look(0, 10, A, B)),
        lambda tree: tree.look(1, 200, card(2, 5)), ["ConflictEnd"],
    ),
    Case("lost, named by its UUID", KNOWN, lambda tree: tree.look(0, 10, A, seen(B, lost=True)), ["Fail"]),
    Case(
        "lost, only its address is named", KNOWN,
        lambda tree: tree.look(0, 10, A, complete=False, lost=frozenset({pci_address("00000000:02:00.0")})), ["Fail"],
    ),
    Case(
        "lost, counted by a complete reading that names it", KNOWN,
        lambda tree: tree.look(0, 10, A, lost=frozenset({gpu(2).removeprefix("GPU-")})), ["Fail"],
    ),
    Case(
        "answers again", steps(KNOWN, lambda tree: tree.look(0, 10, A, seen(B, lost=True))),
        lambda tree: tree.look(0, 20, A, B), ["Recover"],
    ),
    Case("lost before anybody knew it", NOTHING, lambda tree: tree.look(0, 0, seen(B, lost=True)), ["Appear"]),
    Case("the BMC lists them too", KNOWN, lambda tree: tree.look(0, 10, bare(1), bare(2), source="bmc"), []),
    Case(
        "the driver completes what the BMC knew", steps(lambda tree: tree.look(0, 0, bare(1), source="bmc")),
        lambda tree: tree.look(0, 10, A), ["Identify", "Relocate"],
    ),
    Case("a BMC that never listed them", KNOWN, lambda tree: tree.look(0, 500, source="bmc"), []),
    Case(
        "a BMC that lists one no more, no agent heard",
        steps(KNOWN, lambda tree: tree.look(0, 10, bare(1), bare(2), source="bmc")),
        lambda tree: tree.look(0, 500, bare(1), source="bmc"), ["Vanish"],
    ),
    Case(
        "a BMC that lists one no more while the agent sees it",
        steps(KNOWN, lambda tree: tree.look(0, 10, bare(1), bare(2), source="bmc")),
        lambda tree: tree.look(0, 20, bare(1), source="bmc"), [],
    ),
    Case(
        "an exporter that shows one card of two", KNOWN,
        lambda tree: tree.look(0, 10, A, source="exporter"), [],
    ),
    Case(
        "a BMC elsewhere claims a card that the system sees here", KNOWN,
        lambda tree: tree.look(1, 10, bare(2, 5), source="bmc"), [],
    ),
    Case(
        "a card between nodes without agents", steps(lambda tree: tree.look(0, 0, bare(1), bare(2), source="bmc")),
        lambda tree: tree.look(1, 200, bare(2, 5), source="bmc"), ["Move"],
    ),
    Case(
        "a board's serial on two cards", NOTHING,
        lambda tree: tree.look(0, 0, card(1, serial="77"), card(2, serial="77")), ["Appear", "Appear"],
    ),
    Case(
        "a board's serial does not move a card",
        steps(lambda tree: tree.look(0, 0, card(1, serial="77"), card(2, serial="77"))),
        lambda tree: tree.look(1, 10, card(3, serial="77")), ["Appear"],
    ),
    Case(
        "the same reading twice", steps(KNOWN, lambda tree: tree.look(0, 10, A)), lambda tree: tree.look(0, 10, A), [],
    ),
    Case("an old reading with a card that nobody knew", KNOWN, lambda tree: tree.look(0, -50, A, C), ["Appear"]),
    Case("a UUID twice in one reading", NOTHING, lambda tree: tree.look(0, 0, A, card(1, 5)), ["Appear"]),
    Case(
        "an address twice in one reading", NOTHING,
        lambda tree: tree.look(0, 0, A, card(2, pci_address=A.pci_address)), ["Appear", "Appear"],
    ),
    Case("nothing is known of a card", NOTHING, lambda tree: tree.look(0, 0, CardIdentity()), []),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    """I5: each named case brings exactly its changes, leaves a sound tree and settles at once."""
    tree = Tree()
    case.before(tree)
    plan = case.then(tree)
    assert kinds(plan) == case.changes
    tree.check()


def test_the_swap_ends_with_both_in_place() -> None:
    """I5: in between one of them is missing; afterwards each stands where it was put."""
    tree = Tree()
    tree.look(0, 0, A, B)
    tree.look(1, 0, C)
    first = tree.look(0, 10, A, card(3, 2))
    [vanish] = [change for change in first.changes if type(change).__name__ == "Vanish"]
    assert vanish.replaced_by == 1
    tree.look(1, 12, card(2, 3))
    assert [(tree.of(number).node, tree.of(number).state) for number in (2, 3)] == [
        (tree.cards[tree.of(2).id].node, "present"),
        (tree.of(1).node, "present"),
    ]


def test_slices_of_a_silent_source_stay() -> None:
    """A source that says nothing about slices closes none; an exporter does not overrule the agent."""
    parts = (ObservedSlice("MIG-1", "1g.10gb", "7"), ObservedSlice("MIG-2", "1g.10gb", "8"))
    tree = Tree()
    assert kinds(tree.look(0, 0, seen(A, slices=parts))) == ["Appear", "OpenSlice", "OpenSlice"]
    assert kinds(tree.look(0, 10, seen(A))) == []
    assert kinds(tree.look(0, 20, seen(A, slices=(ObservedSlice("7", "1g.10gb", "7"),)), source="exporter")) == []
    assert kinds(tree.look(0, 30, seen(A, slices=()))) == ["CloseSlice", "CloseSlice"]
    assert kinds(tree.look(0, 40, seen(A, slices=parts[:1]))) == ["OpenSlice"]
    again = (ObservedSlice("MIG-1", "2g.20gb", "7"),)
    assert kinds(tree.look(0, 50, seen(A, slices=again))) == ["CloseSlice", "OpenSlice"]


def test_records_that_can_not_be_compared_are_counted_once() -> None:
    """I5: eight cards of the system and eight nameless ones of its BMC are eight cards, whoever comes first."""
    nameless = [CardIdentity("", f"B{number}", "", "") for number in range(8)]
    driven = [card(number, serial="", slot="") for number in range(8)]
    driven = [CardIdentity(one.uuid, "", f"0000:{number + 1:02x}:00.0", "") for number, one in enumerate(driven)]
    agent_first, bmc_first = Tree(), Tree()
    agent_first.look(0, 0, *driven)
    plan = agent_first.look(0, 10, *nameless, source="bmc")
    assert len(plan.unmatched) == 8
    bmc_first.look(0, 0, *nameless, source="bmc")
    bmc_first.look(0, 10, *driven)
    for tree in (agent_first, bmc_first):
        tree.check()
        assert sum(row.stands for row in tree.cards.values()) == 8
        assert sum(row.state != "retired" for row in tree.cards.values()) == 8
    assert bmc_first.look(0, 40, *nameless, source="bmc").changes == ()
