"""The counts add up, whatever the cards are (U4)."""

from hypothesis import given
from hypothesis import strategies as st

from inventory.rules.counts import CardFacts, Counts, count
from inventory.rules.lifecycle import CARD, NODE

facts = st.builds(
    CardFacts,
    state=st.sampled_from(sorted(CARD.states)),
    node_state=st.sampled_from(["", *sorted(NODE.states)]),
    conflict=st.booleans(),
    activity=st.none() | st.floats(0, 100),
    threshold=st.floats(0, 100),
)


def card(
    state: str = "present", node: str = "active", activity: float | None = 50.0, conflict: bool = False
) -> CardFacts:
    return CardFacts(state, node, conflict, activity, 5.0)


def test_every_kind_once() -> None:
    """U4: no activity is unknown, never idle."""
    found = count([
        card(), card(activity=5.0), card(activity=4.9), card(activity=0.0), card(activity=None),
        card(node="asleep", activity=None),
        card("failed"), card("missing"), card("retired"), card(node="retired"), card(node="maintenance"),
        card(conflict=True),
    ])  # fmt: skip
    assert found == Counts(
        installed=10, available=6, standby=1, allocated=None, busy=2, idle=2, unknown=2, out=2, failed=1, missing=1
    )
    assert found.coverage == 100 * 4 / 6
    assert count([]).coverage is None


@given(st.lists(facts), st.lists(facts))
def test_counts_add_up(left: list[CardFacts], right: list[CardFacts]) -> None:
    """installed >= available = busy + idle + unknown; the whole is the sum of its parts."""
    whole = count([*left, *right])
    assert whole.available == whole.busy + whole.idle + whole.unknown
    assert whole.installed == whole.available + whole.out + whole.failed + whole.missing
    assert count(left) + count(right) == whole


def test_a_cordoned_card_is_installed_and_not_available() -> None:
    cordoned = CardFacts("present", "active", conflict=False, activity=80.0, threshold=5.0, cordoned=True)
    assert (cordoned.installed, cordoned.available, cordoned.kind) == (True, False, "out")
    failed = CardFacts("failed", "active", conflict=False, activity=None, threshold=5.0, cordoned=True)
    found = count([cordoned, failed])
    assert (found.installed, found.available, found.out, found.failed, found.cordoned) == (2, 0, 1, 1, 2)
