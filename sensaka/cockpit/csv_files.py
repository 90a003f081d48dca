"""Tables as CSV files: every row that passes the filters, in the order of the page, sent while it is made.

Numbers are bare and in the unit that their heading names, times are UTC in ISO 8601, and what is not known is
empty. Text that a spreadsheet would run as a formula gets an apostrophe before it (OWASP, "CSV Injection").
"""

import csv
import io
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from asgiref.sync import sync_to_async
from django.http import HttpResponseBase, StreamingHttpResponse
from django.utils import timezone

T = TypeVar("T")
Value = str | int | float | bool | datetime | UUID | None
Column = tuple[str, Callable[[Any], Value]]
CHUNK = 500
"""Rows that are written at a time; between two chunks other requests get their turn."""
_FORMULA = ("=", "+", "-", "@")


def written(value: Value) -> str | int | float:
    """A value as it stands in the file."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, int):
        return value
    text = str(value)
    # Spreadsheets pass over white space before the sign; a tab or line end begins a cell of its own in some.
    return f"'{text}" if text.lstrip().startswith(_FORMULA) or text.startswith(("\t", "\r", "\n")) else text


def lines(columns: Sequence[Column], rows: Iterable[T]) -> Iterator[bytes]:
    """The file in pieces of at most CHUNK rows, the headings first."""
    yield _piece([[name for name, _ in columns]])
    left = iter(rows)
    while some := list(islice(left, CHUNK)):
        yield _piece([written(of(row)) for _, of in columns] for row in some)


def _piece(table: Iterable[Sequence[str | int | float]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(table)
    return text.getvalue().encode()


async def _stream(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    # rows may ask the database, which belongs to the request's own thread
    following = sync_to_async(lambda: next(pieces, None))
    while (piece := await following()) is not None:
        yield piece


def download(name: str, columns: Sequence[Column], rows: Iterable[T]) -> HttpResponseBase:
    """The answer that a browser keeps as `sensaka-<name>-<UTC time>.csv`."""
    response = StreamingHttpResponse(_stream(lines(columns, rows)), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="sensaka-{name}-{timezone.now():%Y%m%dT%H%M%SZ}.csv"'
    return response
