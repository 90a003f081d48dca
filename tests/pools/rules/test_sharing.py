"""Dividing cards: only layouts that the hardware has, equal parts, and a card is whole or divided."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pools.rules.demand import Spec
from pools.rules.fleet import Mode, Slice
from pools.rules.sharing import (
    WHOLE,
    Division,
    Geometry,
    division_for,
    free_ranges,
    geometry,
    layout_for,
    parts,
    ranges,
    share_of,
)  # fmt: skip
from sensaka.kernel.errors import InvalidInput

H100 = {"1g.10gb": 7, "1g.10gb+me": 1, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1}
A30 = {"1g.6gb": 4, "1g.6gb+me": 1, "2g.12gb": 2, "2g.12gb+me": 1, "4g.24gb": 1}


def of(profiles: dict[str, int]) -> Geometry:
    found = geometry(profiles)
    assert found is not None
    return found


STARTS = {
    "1g.10gb": (1, (0, 1, 2, 3, 4, 5, 6)), "1g.10gb+me": (1, (0, 1, 2, 3, 4, 5, 6)), "1g.20gb": (2, (0, 2, 4, 6)),
    "2g.20gb": (2, (0, 2, 4)), "3g.40gb": (4, (0, 4)), "4g.40gb": (4, (0,)), "7g.80gb": (8, (0,)),
}  # fmt: skip
"""As `nvidia-smi mig -lgipp` lists them for an H100 80 GB."""


def test_places_are_those_that_the_driver_lists() -> None:
    assert {one.name: (one.size, one.starts) for one in of(H100).profiles} == STARTS
    assert {one.name: (one.size, one.starts) for one in of(A30).profiles} == {
        "1g.6gb": (1, (0, 1, 2, 3)), "1g.6gb+me": (1, (0, 1, 2, 3)), "2g.12gb": (2, (0, 2)),
        "2g.12gb+me": (2, (0, 2)), "4g.24gb": (4, (0,)),
    }  # fmt: skip
    assert geometry({}) is None


LAYOUTS = {
    "seven of the smallest": ([("1g.10gb", slot) for slot in range(7)], True),
    "an eighth": ([("1g.10gb", slot) for slot in range(8)], False),
    "4g and 3g": ([("4g.40gb", 0), ("3g.40gb", 4)], True),
    "two 3g": ([("3g.40gb", 0), ("3g.40gb", 4)], True),
    "3g where it does not begin": ([("3g.40gb", 2)], False),
    "three 2g and 1g": ([("2g.20gb", 0), ("2g.20gb", 2), ("2g.20gb", 4), ("1g.10gb", 6)], True),
    "1g under 2g": ([("2g.20gb", 0), ("1g.10gb", 1)], False),
    "7g and anything": ([("7g.80gb", 0), ("1g.10gb", 6)], False),
    "two with media engines": ([("1g.10gb+me", 0), ("1g.10gb+me", 1)], False),
}


@pytest.mark.parametrize(("layout", "valid"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_layouts(layout: list[tuple[str, int]], valid: bool) -> None:
    assert of(H100).valid(Slice(*one) for one in layout) is valid


def test_the_most_instances_of_each_profile_fit_together() -> None:
    for profile in of(H100).profiles:
        fits = max(
            len(chosen)
            for count in range(len(profile.starts) + 1)
            for chosen in combinations(profile.starts, count)
            if of(H100).valid(Slice(profile.name, slot) for slot in chosen)
        )
        assert fits == profile.most


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"no MIG profile '5g.50gb'; known: 7g.80gb, 3g.40gb"):
        of(H100).share_of("5g.50gb")


@given(
    st.sampled_from(sorted(H100)),
    st.dictionaries(st.sampled_from(sorted(H100)), st.integers(0, 8), max_size=4),
)
def test_a_planned_layout_is_valid_and_serves_what_was_wanted(wanted: str, demand: dict[str, int]) -> None:
    layout = layout_for(of(H100), wanted, demand)
    assert of(H100).valid(layout)
    assert wanted in {one.profile for one in layout}


@pytest.mark.parametrize(
    ("wanted", "demand", "served"),
    [
        ("1g.10gb", {}, {"1g.10gb": 7}),
        ("3g.40gb", {"3g.40gb": 1, "4g.40gb": 1}, {"3g.40gb": 1, "4g.40gb": 1}),
        ("2g.20gb", {"2g.20gb": 2, "1g.10gb": 3}, {"2g.20gb": 2, "1g.10gb": 3}),
        ("3g.40gb", {"3g.40gb": 1, "1g.10gb": 9}, {"3g.40gb": 1, "1g.10gb": 4}),
    ],
)
def test_a_layout_serves_the_most_of_what_waits(wanted: str, demand: dict[str, int], served: dict[str, int]) -> None:
    layout = layout_for(of(H100), wanted, demand)
    assert {name: sum(one.profile == name for one in layout) for name in served} == served


@given(st.integers(2, 200))
def test_equal_parts_fill_the_card_without_overlap(shares: int) -> None:
    found = parts(shares)
    assert found[0][0] == 0
    assert found[-1][1] == 1000
    assert all(left[1] == right[0] for left, right in pairwise(found))


MIG = Spec("mig", frozenset({"H100"}), mode=Mode.MIG, profile="2g.20gb")
SLICE = Spec("slice", frozenset({"H100"}), mode=Mode.TIME_SLICE, shares=4)
MPS = Spec("mps", frozenset({"H100"}), mode=Mode.MPS, shares=4)
CARD = Spec("card", frozenset({"H100"}))


def test_a_divided_card_offers_only_its_own_parts() -> None:
    divided = Division(Mode.MIG, (Slice("2g.20gb", 0), Slice("1g.10gb", 2), Slice("2g.20gb", 4)))
    assert ranges(MIG, divided, H100) == [(0, 250), (500, 750)]
    assert free_ranges(ranges(MIG, divided, H100), [(0, 250)]) == [(500, 750)]
    assert ranges(CARD, divided, H100) == [], "a card is whole or divided, never both"
    assert ranges(SLICE, Division(Mode.TIME_SLICE, shares=4), {}) == parts(4)
    assert ranges(SLICE, Division(Mode.TIME_SLICE, shares=2), {}) == []
    assert ranges(MPS, Division(Mode.TIME_SLICE, shares=4), {}) == []
    assert ranges(CARD, WHOLE, {}) == [(0, 1000)]


def test_what_an_empty_card_becomes() -> None:
    assert division_for(MIG, {}, {}) is None, "the model has no MIG"
    assert division_for(MIG, A30, {}) is None, "the model has no such profile"
    assert division_for(SLICE, {}, {}) == Division(Mode.TIME_SLICE, shares=4)
    assert division_for(CARD, {}, {}) == WHOLE
    made = division_for(MIG, H100, {"2g.20gb": 3, "5g.50gb": 1})
    assert made is not None
    assert made.mode is Mode.MIG
    assert sum(one.profile == "2g.20gb" for one in made.layout) == 3


def test_the_share_of_a_unit() -> None:
    assert share_of(MIG, H100) == 250
    assert share_of(MIG, A30) is None
    assert share_of(SLICE, {}) == 250
    assert share_of(CARD, {}) == 1000
