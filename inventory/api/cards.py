"""Cards (`accelerators`), their slices and their catalogue over REST."""

from collections.abc import Iterable
from typing import Any, cast

import msgspec
from django.db.models import Prefetch, QuerySet
from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from inventory.api.journal import JournalEntrySerializer
from inventory.api.nodes import ProcessSerializer
from inventory.api.paging import page_of
from inventory.api.samples import HistoryQuery, HistorySerializer, history_body
from inventory.models import BusyThreshold, Card, CardModel, JournalEntry, Placement, ProcessBinding, Sighting, Slice
from inventory.observations import VALUE_FIELDS
from inventory.selectors import samples
from inventory.selectors.coverage import recent_coverage
from sensaka.platform.rest.viewsets import EditViewSet, ReadViewSet

# Values that every list row carries; the rest stands under `values` of the detail.
_FLAT = ("utilization", "memory_used", "temperature", "power")


class SliceSerializer(serializers.ModelSerializer[Slice]):
    class Meta:
        model = Slice
        fields = ["id", "kind", "uuid", "profile", "instance_id", "memory_total", "opened_at", "closed_at"]


class SightingSerializer(serializers.ModelSerializer[Sighting]):
    """One collector that sees this card; `collector` is the id of the agent, exporter or BMC."""

    collector = serializers.UUIDField(source="collector_id")

    class Meta:
        model = Sighting
        fields = ["source", "collector", "node", "seen_at", "identity"]


class AcceleratorListSerializer(serializers.ListSerializer[Any]):
    """Looks up the current samples and coverage of a whole page at once."""

    def to_representation(self, data: Any) -> list[dict[str, Any]]:
        cards = list(cast(Iterable[Card], data))
        context: dict[str, Any] = cast(Any, self.child).context
        context.update(_readings(cards))
        return cast(list[dict[str, Any]], super().to_representation(cards))


def _readings(cards: list[Card]) -> dict[str, Any]:
    keys = [card.series for card in cards]
    return {"current": samples.current_samples(keys), "coverage": recent_coverage(keys)}


class AcceleratorSerializer(serializers.ModelSerializer[Card]):
    """A card and its last sample. Absent values are null; `stale` says that the sample is too old to count.

    `coverage` is the share (percent) of the last hour that is covered by samples with an activity.
    """

    node_name = serializers.CharField(source="node.name", read_only=True, default=None)
    site = serializers.UUIDField(source="node.site_id", read_only=True, default=None, allow_null=True)
    cluster = serializers.UUIDField(source="node.cluster_id", read_only=True, default=None, allow_null=True)
    rack = serializers.UUIDField(source="node.rack_id", read_only=True, default=None, allow_null=True)
    utilization = serializers.FloatField(read_only=True, allow_null=True, help_text="percent")
    activity = serializers.FloatField(read_only=True, allow_null=True, help_text="percent; SM activity where known")
    activity_source = serializers.CharField(read_only=True, allow_null=True)
    memory_used = serializers.IntegerField(read_only=True, allow_null=True, help_text="bytes")
    temperature = serializers.FloatField(read_only=True, allow_null=True, help_text="degrees C")
    power = serializers.FloatField(read_only=True, allow_null=True, help_text="W")
    sampled_at = serializers.DateTimeField(read_only=True, allow_null=True)
    sample_source = serializers.CharField(read_only=True, allow_null=True, help_text="agent, exporter or bmc")
    stale = serializers.BooleanField(read_only=True)
    coverage = serializers.FloatField(read_only=True, allow_null=True, help_text="percent of the last hour")

    class Meta:
        model = Card
        list_serializer_class = AcceleratorListSerializer
        fields = [
            "id", "uuid", "serial", "pci_address", "pci_id", "vendor", "model", "model_name", "part_number", "node",
            "node_name", "site", "cluster", "rack", "slot", "minor", "state", "state_since", "conflict", "mig_enabled",
            "partition_mode", "nvlink_active", "pcie_generation", "pcie_width", "memory_total", "utilization",
            "activity", "activity_source", "memory_used", "temperature", "power", "sampled_at", "sample_source",
            "stale", "coverage", "first_seen_at", "simulated",
        ]  # fmt: skip
        read_only_fields = fields

    def to_representation(self, instance: Card) -> dict[str, Any]:
        context = cast(dict[str, Any], self.context)
        if "current" not in context:
            context.update(_readings([instance]))
        sample = self.context["current"].get(instance.series)
        reading = {
            **{name: getattr(sample.values, name) if sample else None for name in _FLAT},
            "activity": sample.activity if sample else None,
            "activity_source": sample.activity_source if sample else None,
            "sampled_at": sample.sampled_at if sample else None,
            "sample_source": sample.source if sample else None,
            "stale": not (sample and sample.fresh(timezone.now())),
            "coverage": self.context["coverage"].get(instance.series),
        }
        for name, value in reading.items():
            setattr(instance, name, value)
        return super().to_representation(instance)


class AcceleratorDetailSerializer(AcceleratorSerializer):
    """A card with every value of its last sample, its slices and who sees it."""

    values = serializers.SerializerMethodField()
    slices = SliceSerializer(many=True, read_only=True, source="open_slices")
    sightings = SightingSerializer(many=True, read_only=True)

    class Meta(AcceleratorSerializer.Meta):
        fields = [*AcceleratorSerializer.Meta.fields, "values", "slices", "sightings"]
        read_only_fields = fields

    def get_values(self, card: Card) -> dict[str, float | int | None]:
        """Every signal of the last sample; null where its source does not have it."""
        sample = self.context["current"].get(card.series)
        return {name: getattr(sample.values, name) if sample else None for name in VALUE_FIELDS}


class AcceleratorFilter(filters.FilterSet):
    site = filters.UUIDFilter(field_name="node__site")
    cluster = filters.UUIDFilter(field_name="node__cluster")
    rack = filters.UUIDFilter(field_name="node__rack")

    class Meta:
        model = Card
        fields = ["node", "model", "vendor", "state", "uuid", "serial", "pci_address", "mig_enabled", "simulated"]


class PlacementSerializer(serializers.ModelSerializer[Placement]):
    since = serializers.DateTimeField(source="span.lower")
    until = serializers.DateTimeField(source="span.upper", allow_null=True)

    class Meta:
        model = Placement
        fields = ["id", "node", "slot", "pci_address", "since", "until"]


class AcceleratorViewSet(ReadViewSet):
    """Every card of every vendor, with its last reading."""

    queryset = Card.objects.select_related("node").order_by("id")
    serializer_class = AcceleratorSerializer
    filterset_class = AcceleratorFilter

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        return AcceleratorDetailSerializer if self.action == "retrieve" else AcceleratorSerializer

    def get_queryset(self) -> QuerySet[Card]:
        rows: QuerySet[Card] = super().get_queryset()
        if self.action == "retrieve":
            rows = rows.prefetch_related(
                "sightings", Prefetch("slices", queryset=Slice.objects.filter(closed_at=None), to_attr="open_slices")
            )
        return rows

    @extend_schema(
        parameters=[
            OpenApiParameter("start", OpenApiTypes.DATETIME, description="Default: one hour before `end`"),
            OpenApiParameter("end", OpenApiTypes.DATETIME, description="Default: now"),
            OpenApiParameter("fields", OpenApiTypes.STR, description="Comma-separated signal names"),
            OpenApiParameter("points", OpenApiTypes.INT, description="At most this many buckets, 10 to 5000"),
            OpenApiParameter("slice", OpenApiTypes.UUID, description="A slice of this card instead of the card"),
        ],
        responses=HistorySerializer,
        filters=False,
    )
    @action(detail=True, pagination_class=None)
    def history(self, request: Request, pk: str) -> Response:
        """Min, mean and max of signals over time, from raw samples or rollups; gaps are null."""
        card = self.get_object()
        query = HistoryQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        series = card.series
        if (wanted := query.validated_data.get("slice")) is not None:
            series = serializers.PrimaryKeyRelatedField(queryset=card.slices.all()).to_internal_value(wanted).series
        return Response(history_body(series, query.validated_data))

    @extend_schema(responses=JournalEntrySerializer(many=True), filters=False)
    @action(detail=True)
    def journal(self, request: Request, pk: str) -> Response:
        """The life of this card, newest first."""
        entries = JournalEntry.objects.filter(card=self.get_object())
        return page_of(self, entries, JournalEntrySerializer, ordering=("-at", "-id"))

    @extend_schema(responses=PlacementSerializer(many=True), filters=False)
    @action(detail=True)
    def placements(self, request: Request, pk: str) -> Response:
        """Where this card has been."""
        return page_of(self, Placement.objects.filter(card=self.get_object()), PlacementSerializer)

    @extend_schema(responses=ProcessSerializer(many=True), filters=False)
    @action(detail=True)
    def processes(self, request: Request, pk: str) -> Response:
        """What holds this card."""
        return page_of(self, ProcessBinding.objects.filter(card=self.get_object()), ProcessSerializer)


class MigProfile(msgspec.Struct, forbid_unknown_fields=True):
    """One MIG profile of a model: how many fit on a card."""

    name: str
    count: int


class CardModelSerializer(serializers.ModelSerializer[CardModel]):
    name_strings = serializers.ListField(child=serializers.CharField(max_length=100), required=False)
    pci_ids = serializers.ListField(
        child=serializers.RegexField(r"^[0-9a-f]{4}:[0-9a-f]{4}$", help_text="vendor:device"), required=False
    )
    mig_profiles = serializers.JSONField(required=False, help_text="[{name, count}]")
    partition_modes = serializers.ListField(child=serializers.CharField(max_length=16), required=False)
    sources = serializers.DictField(child=serializers.CharField(max_length=300), required=False)

    class Meta:
        model = CardModel
        fields = [
            "id", "slug", "vendor", "name", "name_strings", "pci_ids", "memory", "tdp", "slowdown_temperature",
            "nvlink_links", "mig_profiles", "partition_modes", "sources", "shipped", "created_at", "updated_at",
        ]  # fmt: skip
        read_only_fields = ["shipped"]

    def validate_mig_profiles(self, value: Any) -> Any:
        try:
            msgspec.convert(value, list[MigProfile])
        except msgspec.ValidationError as error:
            raise serializers.ValidationError(f"use [{{name, count}}]: {error}") from None
        return value


class CardModelViewSet(EditViewSet):
    """The catalogue of models. Shipped rows can be read; sites add and change their own."""

    queryset = CardModel.objects.order_by("id")
    serializer_class = CardModelSerializer
    filterset_fields = ["slug", "vendor", "name", "shipped"]

    def perform_destroy(self, instance: CardModel) -> None:
        if instance.shipped:
            raise serializers.ValidationError("a shipped model can't be deleted; it would come back at the next start")
        instance.delete()


class BusyThresholdSerializer(serializers.ModelSerializer[BusyThreshold]):
    activity = serializers.FloatField(min_value=0, max_value=100, help_text="percent from which a card is busy")

    class Meta:
        model = BusyThreshold
        fields = ["id", "model", "cluster", "activity", "created_at", "updated_at"]


class BusyThresholdViewSet(EditViewSet):
    """From which activity a card counts as busy, by model and cluster; the most specific row wins."""

    queryset = BusyThreshold.objects.order_by("id")
    serializer_class = BusyThresholdSerializer
    filterset_fields = ["model", "cluster"]
