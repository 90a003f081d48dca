"""The Prometheus text format, read as lines of name, labels and value.

Tolerant where exporters differ (timestamps, exemplars, NaN, odd spacing, unknown comments); strict
where a mistake would be a wrong number: a page without its final newline was cut off, and sums over
a cut page look like counters that fell, so nothing of it is used.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_PAGE = 8 * 1024 * 1024
MAX_LINE = 64 * 1024
MAX_LINES = 200_000

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(,?)')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "\\": "\\", '"': '"'}


class Truncated(ValueError):
    """The page ends in the middle: the exporter or the network broke off."""


@dataclass(frozen=True, slots=True)
class Row:
    """One sample. `spelled` is the number as printed: its form tells integers from doubles."""

    name: str
    labels: dict[str, str]
    value: float
    spelled: str


@dataclass(slots=True)
class Page:
    """All samples of a page, and how many of its lines could not be understood."""

    rows: list[Row] = field(default_factory=list)
    misread: int = 0
    first_misread: str = ""


def _unescape(text: str) -> str:
    # An escape that the format does not know keeps its backslash, as Prometheus itself does.
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[0]), text) if "\\" in text else text


def _labels(line: str, start: int) -> tuple[dict[str, str], int] | None:
    """The labels after `{` at `start` and where they end, or None when they don't."""
    labels: dict[str, str] = {}
    while True:
        match = _LABEL.match(line, start)
        if match is None:
            break
        labels[match[1]] = _unescape(match[2])
        start = match.end()
        if not match[3]:
            break
    while line[start : start + 1].isspace():
        start += 1
    return (labels, start + 1) if line[start : start + 1] == "}" else None


def _row(line: str) -> Row | None:
    name = _NAME.match(line)
    if name is None:
        return None
    labels: dict[str, str] = {}
    position = name.end()
    while line[position : position + 1].isspace():
        position += 1
    if line[position : position + 1] == "{":
        found = _labels(line, position + 1)
        if found is None:
            return None
        labels, position = found
    words = line[position:].split("#", 1)[0].split()  # a `#` after the value starts an exemplar
    if not 1 <= len(words) <= 2:
        return None
    try:
        # int() and float() accept digit groups such as 1_000, which the format does not.
        value = float(words[0]) if "_" not in words[0] else None
    except ValueError:
        return None
    return None if value is None else Row(name[0], labels, value, words[0])


def _lines(text: str) -> Iterator[str]:
    for count, line in enumerate(text.split("\n")):
        if count >= MAX_LINES:
            raise ValueError(f"more than {MAX_LINES} lines")
        yield line


def parse(text: str) -> Page:
    """Every sample of a page.

    Raises Truncated when the final newline is missing and ValueError when the page is too long;
    a line that can't be understood is counted and left out.
    """
    if len(text) > MAX_PAGE:
        raise ValueError(f"more than {MAX_PAGE} characters")
    if text and not text.endswith("\n"):
        raise Truncated("the page does not end with a newline: it was cut off")
    page = Page()
    for raw in _lines(text):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        row = _row(line) if len(line) <= MAX_LINE else None
        if row is not None:
            page.rows.append(row)
            continue
        page.misread += 1
        page.first_misread = page.first_misread or line[:120]
    return page
