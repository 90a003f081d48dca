"""Whatever is read in whatever order, the tree stays sound (I5)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from inventory.rules.changes import ObservedCard, ObservedSlice
from inventory.rules.identity import CardIdentity
from tests.inventory.rules.tree_model import Tree, card, gpu, seen

_SLICES = st.none() | st.lists(
    st.sampled_from(
        [
            ObservedSlice("MIG-1", "1g.10gb", "7"),
            ObservedSlice("MIG-2", "1g.10gb", "8"),
            ObservedSlice("MIG-1", "2g.20gb", "7"),
        ]
    ),
    max_size=2,
).map(tuple)


@st.composite
def cards(draw: st.DrawFn) -> tuple[int, ObservedCard]:
    """A card as some source may tell it: with any part of its identity missing, in any slot."""
    number, slot = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    whole = card(number, slot)
    form = draw(
        st.sampled_from(["whole", "no serial", "no uuid", "no slot", "place only", "bare", "slot only", "board serial"])
    )
    identity = {
        "whole": whole,
        "no serial": CardIdentity(whole.uuid, "", whole.pci_address, whole.slot),
        "no uuid": CardIdentity("", whole.serial, "", f"GPU_SXM_{slot}"),
        "no slot": CardIdentity(whole.uuid, whole.serial, whole.pci_address, ""),
        "place only": CardIdentity("", "", whole.pci_address, ""),
        "bare": CardIdentity(gpu(number).removeprefix("GPU-"), whole.serial, "", f"GPU_SXM_{slot}"),
        "slot only": CardIdentity("", "", "", f"GPU_SXM_{slot}"),
        "board serial": CardIdentity(whole.uuid, "7777", whole.pci_address, whole.slot),
    }[form]
    return number, seen(identity, lost=draw(st.booleans()) and draw(st.booleans()), slices=draw(_SLICES))


looks = st.tuples(
    st.integers(0, 2),
    st.integers(0, 400),
    st.lists(cards(), max_size=4, unique_by=lambda one: one[0]).map(lambda listed: [card for _, card in listed]),
    st.sampled_from(["agent", "agent", "bmc", "exporter"]),
    st.booleans(),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(looks, min_size=1, max_size=12), st.booleans())
def test_any_sequence_of_readings_leaves_a_sound_tree(
    readings: list[tuple[int, int, list[ObservedCard], str, bool]], ordered: bool
) -> None:
    """I5: one open stay a card, no two cards at one address, no UUID twice; in any order of time."""
    tree = Tree()
    for node, second, listed, source, complete in sorted(readings, key=lambda one: one[1]) if ordered else readings:
        tree.look(node, second, *listed, source=source, complete=complete)
        tree.check()


@settings(max_examples=200, deadline=None)
@given(st.lists(looks, min_size=1, max_size=10))
def test_the_same_reading_again_changes_nothing(readings: list[tuple[int, int, list[ObservedCard], str, bool]]) -> None:
    """I5: applying one reading twice is applying it once."""
    tree = Tree()
    for node, second, listed, source, complete in sorted(readings, key=lambda one: one[1]):
        tree.look(node, second, *listed, source=source, complete=complete)
        again = tree.look(node, second, *listed, source=source, complete=complete)
        assert again.changes == ()
        tree.check()
