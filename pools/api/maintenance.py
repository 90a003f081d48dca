"""Maintenance windows and holds over REST."""

from typing import Any

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api.base import ScopedEditViewSet, VisibleField
from pools.models import HOLD_TARGETS, Hold, MaintenanceWindow, Pool, Project, Tenant
from pools.models import Request as Wish
from pools.services import maintenance as services
from sensaka.identity.models import User
from sensaka.kernel.errors import InvalidInput
from sensaka.platform.rest.idempotency import once
from sensaka.platform.rest.viewsets import EditViewSet, acting_user


class MaintenanceWindowSerializer(serializers.ModelSerializer[MaintenanceWindow]):
    """Exactly one of site, cluster, rack and node."""

    class Meta:
        model = MaintenanceWindow
        fields = [
            "id", "name", "site", "cluster", "rack", "node", "starts_at", "ends_at", "reason", "cancelled_at",
            "created_at", "updated_at",
        ]  # fmt: skip
        read_only_fields = ["cancelled_at"]


class MaintenanceWindowViewSet(EditViewSet):
    """Times in which nodes must be empty. For operators and auditors; they are called off, not deleted."""

    http_method_names = ["get", "post", "patch", "head", "options"]
    queryset = MaintenanceWindow.objects.order_by("id")
    serializer_class = MaintenanceWindowSerializer
    filterset_fields = ["site", "cluster", "rack", "node"]
    lookup_value_converter = "uuid"

    def perform_create(self, serializer: serializers.BaseSerializer[Any]) -> None:
        values, actor = serializer.validated_data, acting_user(self.request)
        serializer.instance = services.save_window(None, values=values, actor=actor)

    def perform_update(self, serializer: serializers.BaseSerializer[Any]) -> None:
        values, actor = serializer.validated_data, acting_user(self.request)
        serializer.instance = services.save_window(serializer.instance, values=values, actor=actor)

    @extend_schema(request=None, responses=MaintenanceWindowSerializer)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """Call it off."""
        row = self.get_object()

        def act() -> Response:
            services.cancel_window(row, actor=acting_user(request))
            return Response(self.get_serializer(row).data)

        return once(request, act)


class HoldSerializer(serializers.ModelSerializer[Hold]):
    """Exactly one of tenant, project, request and pool."""

    tenant = VisibleField(queryset=Tenant.objects, required=False, allow_null=True)
    project = VisibleField(queryset=Project.objects, required=False, allow_null=True)
    request = VisibleField(queryset=Wish.objects, required=False, allow_null=True)
    pool = VisibleField(queryset=Pool.objects, required=False, allow_null=True)

    class Meta:
        model = Hold
        fields = [
            "id", "tenant", "project", "request", "pool", "reason", "source", "until", "lifted_at", "created_at",
        ]  # fmt: skip
        read_only_fields = ["source", "lifted_at"]


class HoldFilter(filters.FilterSet):
    tenant = filters.UUIDFilter(field_name="tenant")
    project = filters.UUIDFilter(field_name="project")
    pool = filters.UUIDFilter(field_name="pool")
    open = filters.BooleanFilter(field_name="lifted_at", lookup_expr="isnull")


class HoldViewSet(ScopedEditViewSet):
    """What keeps new work from starting. Operators place and lift holds."""

    http_method_names = ["get", "post", "head", "options"]
    queryset = Hold.objects.order_by("id")
    serializer_class = HoldSerializer
    filterset_class = HoldFilter

    def save(self, row: Any, values: dict[str, Any], actor: User) -> Hold:
        targets = [values[name] for name in HOLD_TARGETS if values.get(name) is not None]
        if len(targets) != 1:
            raise InvalidInput(f"name exactly one of {', '.join(HOLD_TARGETS)}")
        return services.place_hold(
            target=targets[0], reason=values["reason"], source="operator", until=values.get("until"), actor=actor
        )

    @extend_schema(request=None, responses=HoldSerializer)
    @action(detail=True, methods=["post"])
    def lift(self, request: Request, pk: str) -> Response:
        """Let work start again."""
        row = self.get_object()

        def act() -> Response:
            services.lift_hold(row, actor=acting_user(request))
            return Response(self.get_serializer(row).data)

        return once(request, act)
