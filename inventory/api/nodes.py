"""Nodes, what runs on them and what they hold, over REST."""

from typing import Any

from django.db.models import Count, Q, QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from inventory.api.cordons import CordonActs
from inventory.api.journal import JournalEntrySerializer
from inventory.api.paging import page_of
from inventory.models import FirmwareComponent, JournalEntry, Node, ProcessBinding, Rack
from sensaka.platform.rest.viewsets import EditViewSet


class NodeSerializer(serializers.ModelSerializer[Node]):
    """`cards` counts cards that are not retired. Labels are free key/value text."""

    cards = serializers.IntegerField(read_only=True, source="card_count")
    labels = serializers.DictField(child=serializers.CharField(max_length=200, allow_blank=True), required=False)

    class Meta:
        model = Node
        fields = [
            "id", "site", "cluster", "rack", "rack_position", "name", "state", "machine_id", "system_serial",
            "system_uuid", "manufacturer", "product", "boot_id", "driver_version", "runtime_version", "power_state",
            "power", "inlet_temperature", "read_at", "labels", "simulated", "cards", "created_at", "updated_at",
        ]  # fmt: skip
        read_only_fields = [
            "site", "state", "machine_id", "system_serial", "system_uuid", "manufacturer", "product", "boot_id",
            "driver_version", "runtime_version", "power_state", "power", "inlet_temperature", "read_at", "simulated",
        ]  # fmt: skip

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        assert self.instance is not None
        for field in ("rack", "cluster"):
            place = attrs.get(field)
            if place is not None and place.site_id != self.instance.site_id:
                raise serializers.ValidationError({field: f"is at another site than the node ({self.instance.site})"})
        rack: Rack | None = attrs.get("rack", self.instance.rack)
        position = attrs.get("rack_position", self.instance.rack_position)
        if position is not None and rack is not None and not 1 <= position <= rack.height:
            raise serializers.ValidationError({"rack_position": f"use 1 to {rack.height}, the rack's height"})
        return attrs


class FirmwareSerializer(serializers.ModelSerializer[FirmwareComponent]):
    class Meta:
        model = FirmwareComponent
        fields = ["id", "card", "component", "version", "source", "read_at"]


class ProcessSerializer(serializers.ModelSerializer[ProcessBinding]):
    """A process on a card and the job or pod that it belongs to; empty text means not known."""

    class Meta:
        model = ProcessBinding
        fields = [
            "id", "node", "card", "slice", "pid", "name", "user", "memory_used", "container_id", "pod_uid", "pod",
            "namespace", "slurm_job_id", "first_seen_at", "seen_at",
        ]  # fmt: skip


class NodeFilter(filters.FilterSet):
    model = filters.UUIDFilter(field_name="cards__model", distinct=True)

    class Meta:
        model = Node
        fields = ["site", "cluster", "rack", "name", "state", "system_serial", "machine_id", "power_state", "simulated"]


class NodeViewSet(CordonActs, EditViewSet):
    """Servers. They come from enrolment, discovery and schedulers, so none is made here."""

    http_method_names = ["get", "post", "patch", "head", "options"]
    queryset = Node.objects.all()
    serializer_class = NodeSerializer
    filterset_class = NodeFilter

    def get_queryset(self) -> QuerySet[Node]:
        cards = Count("cards", filter=~Q(cards__state="retired"), distinct=True)
        return Node.objects.select_related("site", "rack").annotate(card_count=cards).order_by("id")

    @extend_schema(exclude=True)
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        self.http_method_not_allowed(request)
        raise AssertionError("unreachable")

    @extend_schema(responses=JournalEntrySerializer(many=True), filters=False)
    @action(detail=True)
    def journal(self, request: Request, pk: str) -> Response:
        """The life of this node, newest first."""
        entries = JournalEntry.objects.filter(node=self.get_object())
        return page_of(self, entries, JournalEntrySerializer, ordering=("-at", "-id"))

    @extend_schema(responses=FirmwareSerializer(many=True), filters=False)
    @action(detail=True)
    def firmware(self, request: Request, pk: str) -> Response:
        """Firmware and driver versions as last read."""
        return page_of(self, FirmwareComponent.objects.filter(node=self.get_object()), FirmwareSerializer)

    @extend_schema(responses=ProcessSerializer(many=True), filters=False)
    @action(detail=True)
    def processes(self, request: Request, pk: str) -> Response:
        """What holds the cards of this node."""
        return page_of(self, ProcessBinding.objects.filter(node=self.get_object()), ProcessSerializer)
