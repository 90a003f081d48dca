"""Specs and priority classes over REST."""

from typing import Any, cast

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from pools.api.base import OverseersOnly, ScopedEditViewSet, VisibleField, viewer
from pools.api.counts import HeldCountsSerializer, capacity_of
from pools.models import Pool, PriorityClass, Spec, Tenant
from pools.selectors.counts import SpecCounts
from pools.services import specs as services
from sensaka.identity.models import User


class SpecInPoolSerializer(serializers.Serializer[Any]):
    """A spec in one pool. `counts` are for operators and auditors."""

    pool = serializers.UUIDField()
    held = serializers.IntegerField(allow_null=True, help_text="units of it that are held")
    free_units = serializers.IntegerField(allow_null=True, help_text="could start now; null where layouts decide")
    counts = HeldCountsSerializer(allow_null=True)


class SpecSerializer(serializers.ModelSerializer[Spec]):
    """What a unit holds: memory in bytes, price per unit-hour. Tenants see the pools that are open to them."""

    pools = VisibleField(queryset=Pool.objects, many=True, required=False)
    in_pools = serializers.SerializerMethodField()
    cards = serializers.IntegerField(min_value=1, max_value=1024, required=False, help_text="per unit, on one node")
    shares_per_card = serializers.IntegerField(min_value=1, max_value=48, required=False)
    cpu_cores = serializers.FloatField(min_value=0, max_value=100_000, required=False, allow_null=True)
    memory = serializers.IntegerField(min_value=1, max_value=2**60, required=False, allow_null=True)
    currency = serializers.RegexField(r"^([A-Z]{3})?$", required=False, allow_blank=True, help_text="ISO 4217")

    class Meta:
        model = Spec
        fields = [
            "id", "name", "description", "card_models", "mode", "profile", "shares_per_card", "cards", "cpu_cores",
            "memory", "near", "price", "currency", "pools", "active", "in_pools", "created_at", "updated_at",
        ]  # fmt: skip

    @extend_schema_field(SpecInPoolSerializer(many=True))
    def get_in_pools(self, spec: Spec) -> Any:
        """What there is of it in each pool."""
        user = viewer(self)
        found = capacity_of(self).specs
        seen = self._visible_pools()
        rows = [(pool.pk, found.get((pool.pk, spec.pk))) for pool in spec.pools.all() if pool.pk in seen]
        return [_in_pool(pool, one, whole=bool(user and user.sees_all_tenants)) for pool, one in rows if one]

    def to_representation(self, instance: Spec) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(instance)
        seen = self._visible_pools()
        shown["pools"] = [pool for pool in shown["pools"] if pool in seen]
        return shown

    def _visible_pools(self) -> set[Any]:
        context = cast(dict[str, Any], self.context)
        if "visible_pools" not in context:
            user = viewer(self)
            rows = Pool.objects.none() if user is None else Pool.objects.visible_to(user)
            context["visible_pools"] = set(rows.values_list("pk", flat=True))
        found: set[Any] = context["visible_pools"]
        return found


def _in_pool(pool: Any, found: SpecCounts, *, whole: bool) -> dict[str, Any]:
    return {
        "pool": str(pool),
        "held": found.held if whole else None,
        "free_units": found.free_units,
        "counts": HeldCountsSerializer(found.counts).data if whole else None,
    }


class SpecViewSet(ScopedEditViewSet):
    """The sizes that are offered. Tenants see those of pools that are open to them."""

    queryset = Spec.objects.prefetch_related("card_models", "pools").order_by("id")
    serializer_class = SpecSerializer
    filterset_fields = ["name", "active", "mode"]

    def save(self, row: Any, values: dict[str, Any], actor: User) -> Spec:
        return services.save_spec(row, values=values, actor=actor)

    def remove(self, row: Any, actor: User) -> None:
        services.remove_spec(row, actor=actor)


class PriorityClassSerializer(OverseersOnly, serializers.ModelSerializer[PriorityClass]):
    """Times in seconds; a higher `value` goes first. The tenants are for operators and auditors; others get null."""

    overseers_only = ("tenants",)
    tenants = serializers.PrimaryKeyRelatedField(
        queryset=Tenant.objects.all(), many=True, required=False, help_text="Who may ask with it; empty: everybody"
    )
    value = serializers.IntegerField(min_value=-1_000_000, max_value=1_000_000, required=False)
    minimum_run = serializers.IntegerField(min_value=0, max_value=31_622_400, required=False)
    grace = serializers.IntegerField(min_value=0, max_value=86_400, required=False)
    default = serializers.BooleanField(required=False)

    class Meta:
        model = PriorityClass
        fields = [
            "id", "name", "description", "value", "price_factor", "preemptible", "may_preempt", "minimum_run", "grace",
            "tenants", "default", "created_at", "updated_at",
        ]  # fmt: skip
        validators: list[Any] = []


class PriorityClassViewSet(ScopedEditViewSet):
    """How urgent work is and at what price. Tenants see those that are open to them."""

    queryset = PriorityClass.objects.prefetch_related("tenants").order_by("id")
    serializer_class = PriorityClassSerializer
    filterset_fields = ["name", "preemptible", "default"]

    def save(self, row: Any, values: dict[str, Any], actor: User) -> PriorityClass:
        return services.save_priority_class(row, values=values, actor=actor)

    def remove(self, row: Any, actor: User) -> None:
        services.remove_priority_class(row, actor=actor)
