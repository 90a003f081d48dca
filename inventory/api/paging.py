"""One page of the rows that belong to something."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers, viewsets
from rest_framework.response import Response


def page_of(
    view: viewsets.GenericViewSet[Any],
    rows: QuerySet[Any],
    serializer: type[serializers.BaseSerializer[Any]],
    *,
    ordering: tuple[str, ...] = ("id",),
) -> Response:
    """Rows that belong to a detail view, paged like every list."""
    paginator: Any = view.paginator
    paginator.ordering = ordering
    page = paginator.paginate_queryset(rows.order_by(*ordering), view.request, view=view)
    return Response(paginator.get_paginated_response(serializer(page, many=True).data).data)
