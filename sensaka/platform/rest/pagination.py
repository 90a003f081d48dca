"""Cursor pagination: lists answer {next, previous, results} and never count the whole table."""

from rest_framework.pagination import CursorPagination


class TimeCursorPagination(CursorPagination):
    """Ordered by the identifier, which PostgreSQL makes in order of time; `limit` up to 1000."""

    ordering: str | tuple[str, ...] = "id"
    page_size_query_param = "limit"
    max_page_size = 1000


class NewestFirstPagination(TimeCursorPagination):
    """For things that happened: ordered by when, newest first."""

    ordering = ("-at", "-id")
