"""Cursor pagination: lists answer {next, previous, results} and never count the whole table."""

from typing import Any

from django.core.exceptions import ValidationError
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination


class TimeCursorPagination(CursorPagination):
    """Ordered by the identifier, which PostgreSQL makes in order of time; `limit` up to 1000."""

    ordering: str | tuple[str, ...] = "id"
    page_size_query_param = "limit"
    max_page_size = 1000

    def paginate_queryset(self, queryset: Any, request: Any, view: Any = None) -> list[Any] | None:
        """The page that `?cursor=` names. A cursor that was made up or cut names none: NotFound."""
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValidationError, ValueError, OverflowError):
            # REST framework checks the cursor's outer form only; what is inside goes to the column as it came
            raise NotFound(self.invalid_cursor_message) from None


class NewestFirstPagination(TimeCursorPagination):
    """For things that happened: ordered by when, newest first."""

    ordering = ("-at", "-id")
