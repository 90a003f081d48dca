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
_BLOCK = re.compile(r'\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\}')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "\\": "\\", '"': '"'}


class Truncated(ValueError):
    """The page ends in the middle: the exporter or the network broke off."""


@dataclass(frozen=True, slots=True)
class Row:
    """One sample. `spelled` is the number as printed: its form tells integers from doubles. `labels` is
    the same object in all rows with the same labels: look, but don't touch."""

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


def _labels(block: str) -> dict[str, str] | None:
    """The labels of a block in braces, or None when it is not made of labels."""
    labels: dict[str, str] = {}
    position = 1
    while match := _LABEL.match(block, position):
        labels[match[1]] = _unescape(match[2])
        position = match.end()
        if not match[3]:
            break
    return labels if block[position:].strip() == "}" else None


class _Reader:
    """Reads lines. All series of a card carry the same labels: each block is taken apart once a page."""

    def __init__(self) -> None:
        self._blocks: dict[str, dict[str, str] | None] = {}

    def row(self, line: str) -> Row | None:
        """The sample of a line, None when it can't be understood."""
        name = _NAME.match(line)
        if name is None:
            return None
        labels: dict[str, str] | None = {}
        rest = line[name.end() :].lstrip()
        if rest[:1] == "{":
            block = _BLOCK.match(rest)
            labels = self._block(block[0]) if block is not None else None
            rest = rest[block.end() :] if block is not None else ""
        words = rest.split("#", 1)[0].split()  # a `#` after the value starts an exemplar
        # float() accepts digit groups such as 1_000, which the format does not.
        if labels is None or not 1 <= len(words) <= 2 or "_" in words[0]:
            return None
        try:
            return Row(name[0], labels, float(words[0]), words[0])
        except ValueError:
            return None

    def _block(self, block: str) -> dict[str, str] | None:
        if block not in self._blocks:
            self._blocks[block] = _labels(block)
        return self._blocks[block]


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
    page, reader = Page(), _Reader()
    for raw in _lines(text):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        row = reader.row(line) if len(line) <= MAX_LINE else None
        if row is not None:
            page.rows.append(row)
            continue
        page.misread += 1
        page.first_misread = page.first_misread or line[:120]
    return page
