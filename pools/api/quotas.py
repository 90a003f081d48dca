"""Quotas with their limits and use, over REST."""

from typing import Any, cast

from rest_framework import serializers

from inventory.models import CardModel
from pools.api.base import ScopedEditViewSet, VisibleField
from pools.api.tenants import TenantFilter
from pools.models import UNITS, Project, Quota, QuotaLimit, Resource, Tenant
from pools.selectors.quotas import use_of
from pools.services import quotas as services
from sensaka.identity.models import User


class QuotaLimitSerializer(serializers.ModelSerializer[QuotaLimit]):
    """In `unit`: GPU-hours, cards, bytes or tokens. `borrowing` and `lending` null: without a bound."""

    model = serializers.PrimaryKeyRelatedField(queryset=CardModel.objects.all(), required=False, allow_null=True)
    unit = serializers.SerializerMethodField()
    used = serializers.DecimalField(max_digits=25, decimal_places=3, read_only=True)
    borrowed = serializers.DecimalField(max_digits=25, decimal_places=3, read_only=True)
    period_start = serializers.DateTimeField(read_only=True, allow_null=True)
    period_end = serializers.DateTimeField(read_only=True, allow_null=True)

    class Meta:
        model = QuotaLimit
        fields = [
            "resource", "model", "nominal", "borrowing", "lending", "unit", "used", "borrowed", "period_start",
            "period_end",
        ]  # fmt: skip
        validators: list[Any] = []

    def get_unit(self, limit: QuotaLimit) -> str:
        """What the amounts count."""
        return UNITS[Resource(limit.resource)]


class QuotaListSerializer(serializers.ListSerializer[Any]):
    """Reads the use of a whole page at once."""

    def to_representation(self, data: Any) -> list[dict[str, Any]]:
        rows = list(data)
        cast(Any, self.child).context["use"] = use_of(rows)
        return cast(list[dict[str, Any]], super().to_representation(rows))


class QuotaSerializer(serializers.ModelSerializer[Quota]):
    """The one quota record of a tenant or project. `limits`, when sent, replace all of its lines."""

    tenant = VisibleField(queryset=Tenant.objects)
    project = VisibleField(queryset=Project.objects, required=False, allow_null=True)
    limits = QuotaLimitSerializer(many=True, required=False)

    class Meta:
        model = Quota
        list_serializer_class = QuotaListSerializer
        fields = [
            "id", "tenant", "project", "period", "time_zone", "over_quota", "limits", "created_at", "updated_at",
        ]  # fmt: skip
        validators: list[Any] = []

    def to_representation(self, instance: Quota) -> dict[str, Any]:
        context = cast(dict[str, Any], self.context)
        use = context["use"] if instance.pk in context.get("use", {}) else use_of([instance])
        for one in use[instance.pk]:
            values: Any = one.limit
            values.used, values.borrowed = one.used, one.borrowed
            values.period_start, values.period_end = one.period or (None, None)
        return super().to_representation(instance)


class QuotaViewSet(ScopedEditViewSet):
    """Quotas with their use. People see those of their tenants and projects; operators set them."""

    queryset = Quota.objects.prefetch_related("limits").order_by("id")
    serializer_class = QuotaSerializer
    filterset_class = TenantFilter

    def save(self, row: Any, values: dict[str, Any], actor: User) -> Quota:
        limits = values.pop("limits", None)
        return services.save_quota(row, values=values, limits=limits, actor=actor)

    def remove(self, row: Any, actor: User) -> None:
        services.remove_quota(row, actor=actor)
