"""Sites and racks over REST, and what every place has. Clusters have a file of their own."""

from typing import Any
from zoneinfo import available_timezones

from django.db.models import Count, Q, QuerySet
from rest_framework import serializers

from inventory.models import Rack, Site
from sensaka.platform.rest.viewsets import EditViewSet

_INSTALLED = ~Q(nodes__state="retired")


def known_time_zone(value: str) -> None:
    """An IANA name such as Europe/Zurich; ValidationError names the kind of value."""
    if value not in available_timezones():
        raise serializers.ValidationError("use an IANA name such as Europe/Zurich or UTC")


class SiteSerializer(serializers.ModelSerializer[Site]):
    time_zone = serializers.CharField(max_length=64, default="UTC", validators=[known_time_zone])
    nodes = serializers.IntegerField(read_only=True, source="node_count", help_text="Nodes that are not retired")

    class Meta:
        model = Site
        fields = ["id", "name", "kind", "time_zone", "simulated", "nodes", "created_at", "updated_at"]


class RackSerializer(serializers.ModelSerializer[Rack]):
    height = serializers.IntegerField(min_value=1, max_value=100, default=42, help_text="Rack units")
    nodes = serializers.IntegerField(read_only=True, source="node_count", help_text="Nodes that are not retired")

    class Meta:
        model = Rack
        fields = ["id", "site", "name", "height", "design_power", "nodes", "created_at", "updated_at"]


class PlaceViewSet(EditViewSet):
    """Counts nodes in the same query and gives a fresh row its zero."""

    def get_queryset(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset()
        counted: QuerySet[Any] = rows.annotate(node_count=Count("nodes", filter=_INSTALLED)).order_by("id")
        return counted

    def perform_create(self, serializer: serializers.BaseSerializer[Any]) -> None:
        serializer.save().node_count = 0


class SiteViewSet(PlaceViewSet):
    """Data centres and machine rooms."""

    queryset = Site.objects.all()
    serializer_class = SiteSerializer
    filterset_fields = ["name", "kind", "simulated"]


class RackViewSet(PlaceViewSet):
    """Racks with their height and the power that they are built for."""

    queryset = Rack.objects.all()
    serializer_class = RackSerializer
    filterset_fields = ["site", "name"]
