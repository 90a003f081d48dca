"""Throttle reasons are shown as words (I1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.rules.throttling import REASONS, level, reasons, words

CASES = {
    "nothing": (0, "none", ""),
    "idle": (0x1, "idle", ""),
    "capped": (0x4, "power cap", ""),
    "warm and capped": (0x24, "thermal slowdown by the driver, power cap", "warn"),
    "hot": (0x48, "hardware slowdown, thermal slowdown by the hardware", "bad"),
    "brake before warmth": (0xA0, "power brake, thermal slowdown by the driver", "bad"),
    "a bit of a later driver": (0x1004, "other (0x1000), power cap", "warn"),
}


@pytest.mark.parametrize(("mask", "text", "worst"), CASES.values(), ids=CASES)
def test_words_and_level(mask: int, text: str, worst: str) -> None:
    assert (words(mask), level(mask)) == (text, worst)


@given(st.integers(0, 2**63 - 1))
def test_every_bit_is_named(mask: int) -> None:
    known = sum(1 for bit in REASONS if mask & bit)
    other = bool(mask & ~sum(REASONS))
    assert len(reasons(mask)) == known + other
    assert (words(mask) == "none") == (mask == 0)
