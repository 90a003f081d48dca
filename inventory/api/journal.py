"""The journal over REST."""

from django_filters import rest_framework as filters
from rest_framework import serializers

from inventory.models import JournalEntry
from sensaka.platform.rest.pagination import NewestFirstPagination
from sensaka.platform.rest.viewsets import ReadViewSet


class JournalEntrySerializer(serializers.ModelSerializer[JournalEntry]):
    class Meta:
        model = JournalEntry
        fields = ["id", "at", "kind", "node", "card", "cluster", "actor", "source", "text", "detail"]


class JournalFilter(filters.FilterSet):
    since = filters.IsoDateTimeFilter(field_name="at", lookup_expr="gte")
    until = filters.IsoDateTimeFilter(field_name="at", lookup_expr="lt")

    class Meta:
        model = JournalEntry
        fields = ["kind", "node", "card", "cluster", "source"]


class JournalViewSet(ReadViewSet):
    """What happened to nodes and cards, newest first."""

    queryset = JournalEntry.objects.order_by("-at", "-id")
    serializer_class = JournalEntrySerializer
    filterset_class = JournalFilter
    pagination_class = NewestFirstPagination
