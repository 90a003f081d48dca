"""Slurm's node lists, there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.drivers.clusters.slurm.hostlist import HostlistError, compress, expand

CASES = [
    ("", ()),
    ("login", ("login",)),
    ("a1,b2", ("a1", "b2")),
    ("h100-[001-003]", ("h100-001", "h100-002", "h100-003")),
    ("h100-[001-002,007],mi300x-001", ("h100-001", "h100-002", "h100-007", "mi300x-001")),
    ("n[8-11]", ("n8", "n9", "n10", "n11")),
    ("n[08-11]", ("n08", "n09", "n10", "n11")),
    ("r[1-2]n[01-02]", ("r1n01", "r1n02", "r2n01", "r2n02")),
    ("r[1-2]-ib.site", ("r1-ib.site", "r2-ib.site")),
    (" a , b ,", ("a", "b")),
    ("n[5]", ("n5",)),
]


@pytest.mark.parametrize(("text", "names"), CASES)
def test_expands(text: str, names: tuple[str, ...]) -> None:
    """P11: the forms that Slurm prints."""
    assert expand(text) == names


@pytest.mark.parametrize(
    "text", ["n[1-", "n1-3]", "n[3-1]", "n[a-b]", "n[]", "n[[1]]", "n[1-999999999]", "n[1-9]x[1-99999]"]
)
def test_refuses(text: str) -> None:
    """P11: what is no list, or would fill the memory, is refused."""
    with pytest.raises(HostlistError):
        expand(text)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ((), ""),
        (("h100-001", "h100-002", "h100-007"), "h100-[001-002,007]"),
        (("n8", "n9", "n10"), "n[8-10]"),
        (("n08", "n09", "n10", "n100"), "n[08-10,100]"),
        (("a1", "b1", "a2"), "a1,b1,a2"),
        (("a-1-x", "a-2-x"), "a-[1-2]-x"),
        (("login", "n1"), "login,n1"),
    ],
)
def test_compresses(names: tuple[str, ...], text: str) -> None:
    """P11: what follows each other is folded."""
    assert compress(names) == text


NAMES = st.from_regex(r"[a-z]{1,4}(-?[0-9]{1,6})?([a-z.]{1,3}[0-9]{1,3})?", fullmatch=True)


@given(st.lists(NAMES, max_size=40))
def test_there_and_back(names: list[str]) -> None:
    """P11: no name and no order is lost."""
    assert expand(compress(names)) == tuple(names)


@given(st.integers(0, 900), st.integers(0, 60), st.integers(1, 4))
def test_a_run_folds_into_one_range(first: int, more: int, width: int) -> None:
    """P11: numbers in a row of one width are one range."""
    names = [f"n{number:0{width}d}" for number in range(first, first + more + 1)]
    text = compress(names)
    assert text.count(",") == 0
    assert expand(text) == tuple(names)


@given(st.text(alphabet="ab[]-,0123 ", max_size=30))
def test_any_text_expands_or_is_refused(text: str) -> None:
    """P11: nothing else comes of it."""
    try:
        names = expand(text)
    except HostlistError:
        return
    assert all(name and "[" not in name and "]" not in name and "," not in name for name in names)
