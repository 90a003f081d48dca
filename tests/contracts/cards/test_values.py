"""Bounds that every source of card readings keeps."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.drivers.cards.values import BOUNDS, bounded, card_values, pci_address
from inventory.observations import VALUE_FIELDS, CardValues


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("00000000:18:00.0", "0000:18:00.0"),
        ("0000:C1:00.0", "0000:c1:00.0"),
        ("0018:01:00", "0018:01:00.0"),
        ("2a:00.0", "0000:2a:00.0"),
        ("0000:c1:00.3", "0000:c1:00.3"),
        ("", ""),
        ("GPU-1", ""),
    ],
)
def test_a_pci_address_has_one_spelling(text, expected):
    assert pci_address(text) == expected


def test_every_value_field_has_its_bounds():
    assert set(BOUNDS) == set(VALUE_FIELDS)


def test_a_little_over_a_hundred_percent_is_rounding():
    assert (bounded("sm_activity", 100.4), bounded("sm_activity", 102)) == (100, None)


def test_nan_is_absent_without_a_failure():
    assert card_values({"power": math.nan}, what="x") == (None, ())


@given(st.dictionaries(st.sampled_from(VALUE_FIELDS), st.floats() | st.integers() | st.none()))
def test_any_numbers_fit_the_struct_after_it(raw):
    import msgspec

    values, _ = card_values(raw, what="x" * 300)
    if values is not None:
        assert msgspec.convert(msgspec.to_builtins(values), CardValues) == values
