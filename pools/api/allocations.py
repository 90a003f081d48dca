"""The ledger of allocations over REST, to read."""

from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django_filters import rest_framework as filters
from rest_framework import serializers

from pools.api.base import ScopedReadViewSet
from pools.models import Allocation


class AllocationSerializer(serializers.ModelSerializer[Allocation]):
    """One card, or a share of it, held from `start` to `end` (null: still). `units` is the part of the card."""

    units = serializers.SerializerMethodField()
    start = serializers.DateTimeField(source="span.lower", read_only=True)
    end = serializers.DateTimeField(source="span.upper", read_only=True, allow_null=True)
    share_start = serializers.IntegerField(source="share.lower", read_only=True, help_text="thousandths of the card")
    share_end = serializers.IntegerField(source="share.upper", read_only=True, help_text="thousandths of the card")
    card_uuid = serializers.CharField(source="card.uuid", read_only=True)
    node_name = serializers.CharField(source="node.name", read_only=True)

    class Meta:
        model = Allocation
        fields = [
            "id", "request", "job", "tenant", "project", "pool", "spec", "priority", "unit", "attempt", "units", "card",
            "card_uuid", "slice", "node", "node_name", "share_start", "share_end", "start", "end", "ends_at", "source",
            "outcome",
        ]  # fmt: skip
        read_only_fields = fields

    def get_units(self, allocation: Allocation) -> float:
        """The part of the card: 1.0 for a whole one."""
        return float(allocation.share.upper - allocation.share.lower) / 1000


class AllocationFilter(filters.FilterSet):
    """`open` at the moment; `at` a time; `unassigned`: held, but nobody knows by whom."""

    tenant = filters.UUIDFilter(field_name="tenant")
    project = filters.UUIDFilter(field_name="project")
    request = filters.UUIDFilter(field_name="request")  # type: ignore[assignment] # taken out by the metaclass
    job = filters.UUIDFilter(field_name="job")
    pool = filters.UUIDFilter(field_name="pool")
    spec = filters.UUIDFilter(field_name="spec")
    card = filters.UUIDFilter(field_name="card")
    node = filters.UUIDFilter(field_name="node")
    unassigned = filters.BooleanFilter(field_name="tenant", lookup_expr="isnull")
    at = filters.IsoDateTimeFilter(method="by_time")
    open = filters.BooleanFilter(method="by_open")

    class Meta:
        model = Allocation
        fields = ["source"]

    def by_time(self, rows: QuerySet[Any], name: str, value: datetime) -> QuerySet[Any]:
        """Held at a time. Nothing is at the ends of the calendar, where no other zone has a date."""
        try:
            return rows.filter(span__contains=value.astimezone(UTC))
        except OverflowError:
            return rows.none()

    def by_open(self, rows: QuerySet[Any], name: str, value: bool) -> QuerySet[Any]:
        """Held now, or not."""
        now = timezone.now()
        return rows.filter(span__contains=now) if value else rows.exclude(span__contains=now)


class AllocationViewSet(ScopedReadViewSet):
    """Who holds which card when. People see what is held for their tenants and projects."""

    queryset = Allocation.objects.select_related("card", "node").order_by("id")
    serializer_class = AllocationSerializer
    filterset_class = AllocationFilter
