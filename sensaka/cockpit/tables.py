"""Lists on the server: sort, cut into pages, keep the filters in the address."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from django.core.paginator import Page, Paginator
from django.http import HttpRequest

T = TypeVar("T")
PAGE = 100
Key = Callable[[T], Any]


def in_order(request: HttpRequest, rows: Sequence[T], keys: Mapping[str, Key[T]], default: str) -> tuple[list[T], str]:
    """All of `rows` in the order that `?sort=` names, and its name.

    A key that gives None puts the row last, whichever the direction. An unknown sort is the default.
    """
    sort = request.GET.get("sort", default)
    if sort.removeprefix("-") not in keys:
        sort = default
    key = keys[sort.removeprefix("-")]
    known = [row for row in rows if key(row) is not None]
    absent = [row for row in rows if key(row) is None]
    known.sort(key=key, reverse=sort.startswith("-"))
    return [*known, *absent], sort


def sorted_page(
    request: HttpRequest, rows: Sequence[T], keys: Mapping[str, Key[T]], default: str, per_page: int = PAGE
) -> tuple[Page[T], str]:
    """The page that `?page=` names of `rows` in order, and the order's name."""
    ordered, sort = in_order(request, rows, keys, default)
    return Paginator(ordered, per_page).get_page(request.GET.get("page")), sort
