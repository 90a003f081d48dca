"""The Prometheus text format (I4)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.drivers.cards.exporters import exposition
from inventory.drivers.cards.exporters.exposition import Truncated, parse

CASES = [
    ("plain", "up 1\n", ("up", {}, 1.0)),
    ("labels", 'a{b="c",d="e"} 2.5\n', ("a", {"b": "c", "d": "e"}, 2.5)),
    ("timestamp", 'a{b="c"} 2 1732953600000\n', ("a", {"b": "c"}, 2.0)),
    ("trailing comma", 'a{b="c",} 2\n', ("a", {"b": "c"}, 2.0)),
    ("empty braces", "a{} 2\n", ("a", {}, 2.0)),
    ("spaces", '  a { b = "c" , d="e" }  2  \n', ("a", {"b": "c", "d": "e"}, 2.0)),
    ("carriage return", 'a{b="c"} 2\r\n', ("a", {"b": "c"}, 2.0)),
    ("escapes", r'a{b="q\"w\\e\nr"} 2' + "\n", ("a", {"b": 'q"w\\e\nr'}, 2.0)),
    ("unknown escape", r'a{b="\d"} 2' + "\n", ("a", {"b": r"\d"}, 2.0)),
    ("brace and hash in a label", 'a{b="}#{"} 2\n', ("a", {"b": "}#{"}, 2.0)),
    ("exponent", "a 9.223372036854776e+18\n", ("a", {}, 9.223372036854776e18)),
    ("infinity", "a +Inf\n", ("a", {}, math.inf)),
    ("exemplar", 'a_bucket{le="1"} 2 # {id="x"} 0.5\n', ("a_bucket", {"le": "1"}, 2.0)),
    ("colon in the name", "job:a:sum 2\n", ("job:a:sum", {}, 2.0)),
]


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_line_is_read_as_prometheus_reads_it(text, expected):
    page = parse(text)
    assert [(row.name, row.labels, row.value) for row in page.rows] == [expected]
    assert page.misread == 0


def test_nan_is_a_value_of_its_own():
    assert math.isnan(parse("a NaN\n").rows[0].value)


def test_a_page_without_its_last_newline_was_cut_off():
    """Trap: sums over half a page look like counters that fell."""
    with pytest.raises(Truncated):
        parse('a{b="c"} 1\na{b="d"} 12')


@pytest.mark.parametrize("line", ["a", "a b", "a{b} 1", 'a{b="c} 1', 'a{b="c" 1', "1a 1", "a 1 2 3", "a 1_000", "{} 1"])
def test_a_line_that_can_not_be_understood_is_counted(line):
    page = parse(f"ok 1\n{line}\nok 2\n")
    assert (len(page.rows), page.misread, page.first_misread) == (2, 1, line)


def test_comments_and_empty_lines_are_no_samples():
    assert parse("# HELP a b\n# TYPE a gauge\n\n# EOF\n").rows == []


def test_a_page_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(exposition, "MAX_PAGE", 10)
    with pytest.raises(ValueError, match="more than 10"):
        parse("a 1\n" * 10)
    monkeypatch.setattr(exposition, "MAX_PAGE", 1000)
    monkeypatch.setattr(exposition, "MAX_LINES", 5)
    with pytest.raises(ValueError, match="lines"):
        parse("a 1\n" * 10)


@given(st.text())
def test_any_text_is_read_or_refused_as_cut_off(text):
    try:
        page = parse(text)
    except Truncated:
        assert text[-1:] not in ("", "\n")
    else:
        assert len(page.rows) + page.misread <= text.count("\n")


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


@given(
    st.dictionaries(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True), st.text(max_size=20), max_size=6),
    st.floats(allow_nan=False),
)
def test_what_is_written_is_read_back(labels, value):
    written = ",".join(f'{name}="{_escape(text)}"' for name, text in labels.items())
    (row,) = parse(f"metric{{{written}}} {value!r}\n").rows
    # The format ends a line at a newline only; other line breaks belong to the label.
    assert (row.labels, row.value) == (labels, value)
