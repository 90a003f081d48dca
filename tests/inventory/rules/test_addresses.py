"""Address ranges as people write them (I3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.rules.addresses import expand


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("10.0.0.1", ["10.0.0.1"]),
        ("10.0.0.0/30", ["10.0.0.1", "10.0.0.2"]),
        ("10.0.0.5/30", ["10.0.0.5", "10.0.0.6"]),
        ("10.0.0.7/32", ["10.0.0.7"]),
        ("10.0.0.9-10.0.0.11", ["10.0.0.9", "10.0.0.10", "10.0.0.11"]),
        ("10.0.0.9 - 11", ["10.0.0.9", "10.0.0.10", "10.0.0.11"]),
        ("10.0.0.255-10.0.1.0", ["10.0.0.255", "10.0.1.0"]),
        ("10.0.0.1, 10.0.0.3;10.0.0.5\n10.0.0.7", ["10.0.0.1", "10.0.0.3", "10.0.0.5", "10.0.0.7"]),
        ("fd00::1-fd00::3", ["fd00::1", "fd00::2", "fd00::3"]),
        ("fd00::a-c", ["fd00::a", "fd00::b", "fd00::c"]),
        ("[fd00::1]", ["fd00::1"]),
        ("2001:db8::/126", ["2001:db8::1", "2001:db8::2", "2001:db8::3"]),
    ],
)  # fmt: skip
def test_what_is_accepted(text: str, addresses: list[str]) -> None:
    assert expand(text) == addresses


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no address given"),
        ("bmc-01", "'bmc-01' is no address; use networks"),
        ("10.0.0.256", "is no address"),
        ("10.0.0.0/33", "is no network"),
        ("10.0.0.9-10.0.0.1", "lower to a higher"),
        ("10.0.0.9-fd00::1", "lower to a higher"),
        ("10.0.0.1,10.0.0.0/30", "10.0.0.1 is named twice"),
        ("10.0.0.0/16", "more than 4096"),
        ("fd00::/64", "more than 4096"),
        ("0.0.0.0-255.255.255.255", "more than 4096"),
    ],
)  # fmt: skip
def test_what_is_refused_and_why(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        expand(text)


@given(st.text(alphabet="0123456789abcdef.:/-, []", max_size=40))
def test_any_text_gives_addresses_or_a_reason(text: str) -> None:
    try:
        found = expand(text)
    except ValueError as error:
        assert str(error)  # noqa: PT017
    else:
        assert 0 < len(found) == len(set(found)) <= 4096
