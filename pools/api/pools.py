"""Pools, their rules and what is set by hand, over REST."""

from typing import Any, cast

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from inventory.models import Card, CardModel, Cluster, Node
from pools.api.base import OverseersOnly, ScopedEditViewSet, viewer
from pools.api.counts import HeldCountsSerializer, capacity_of
from pools.models import Pool, PoolMember, PoolRule, SharingMode, Tenant
from pools.selectors.membership import preview
from pools.services import pools as services
from sensaka.identity.models import User
from sensaka.identity.permissions import InventoryAccess
from sensaka.platform.rest.viewsets import EditViewSet, acting_user


class PoolSerializer(OverseersOnly, serializers.ModelSerializer[Pool]):
    """Times in seconds. `counts` and the tenants are for operators and auditors; others get null."""

    overseers_only = ("tenants", "counts", "rank")
    tenants = serializers.PrimaryKeyRelatedField(
        queryset=Tenant.objects.all(), many=True, required=False, help_text="Who may use it; empty: everybody"
    )
    sharing = serializers.ListField(child=serializers.ChoiceField(choices=SharingMode.choices), required=False)
    longest_run = serializers.IntegerField(min_value=60, max_value=31_622_400, required=False, allow_null=True)
    idle_after = serializers.IntegerField(min_value=60, max_value=31_622_400, required=False)
    idle_grace = serializers.IntegerField(min_value=0, max_value=31_622_400, required=False)
    idle_warning_gap = serializers.IntegerField(min_value=60, max_value=31_622_400, required=False)
    idle_coverage = serializers.FloatField(min_value=50, max_value=100, required=False)
    counts = serializers.SerializerMethodField()

    class Meta:
        model = Pool
        fields = [
            "id", "name", "description", "rank", "tenants", "accepting", "sharing", "longest_run", "idle_policy",
            "idle_after", "idle_grace", "idle_warning_gap", "idle_coverage", "counts", "created_at", "updated_at",
        ]  # fmt: skip

    @extend_schema_field(HeldCountsSerializer(allow_null=True))
    def get_counts(self, pool: Pool) -> Any:
        """The four counts."""
        user = viewer(self)
        if user is None or not user.sees_all_tenants:
            return None
        found = capacity_of(self).pools.get(pool.pk)
        return None if found is None else HeldCountsSerializer(found).data


class RuleWishSerializer(serializers.Serializer[Any]):
    """The conditions of a rule that is tried out."""

    model = serializers.PrimaryKeyRelatedField(queryset=CardModel.objects.all(), required=False, allow_null=True)
    cluster = serializers.PrimaryKeyRelatedField(queryset=Cluster.objects.all(), required=False, allow_null=True)
    labels = serializers.DictField(child=serializers.CharField(max_length=317, allow_blank=True), required=False)
    pool = serializers.UUIDField(required=False, allow_null=True, help_text="The pool that would have the rule")


class PreviewGroupSerializer(serializers.Serializer[Any]):
    site = serializers.CharField(source="node__site__name")
    cluster = serializers.CharField(source="node__cluster__name", allow_null=True)
    model = serializers.CharField(source="model__name", allow_null=True)
    cards = serializers.IntegerField()
    nodes = serializers.IntegerField()


class PreviewSerializer(serializers.Serializer[Any]):
    """What a rule would take; `elsewhere` of the cards are in another pool now."""

    cards = serializers.IntegerField()
    elsewhere = serializers.IntegerField()
    groups = PreviewGroupSerializer(many=True)


class PoolViewSet(ScopedEditViewSet):
    """Cards that are offered together. Tenants see those that are open to them."""

    queryset = Pool.objects.prefetch_related("tenants").order_by("id")
    serializer_class = PoolSerializer
    filterset_fields = ["name", "accepting"]

    def save(self, row: Any, values: dict[str, Any], actor: User) -> Pool:
        return services.save_pool(row, values=values, actor=actor)

    def remove(self, row: Any, actor: User) -> None:
        services.remove_pool(row, actor=actor)

    @extend_schema(request=RuleWishSerializer, responses=PreviewSerializer, filters=False)
    @action(detail=False, methods=["post"], pagination_class=None, permission_classes=[InventoryAccess])
    def preview(self, request: Request) -> Response:
        """Which cards a rule would take. Changes nothing."""
        wish = RuleWishSerializer(data=request.data)
        wish.is_valid(raise_exception=True)
        data = wish.validated_data
        found = preview(
            model=data.get("model"), cluster=data.get("cluster"), labels=services.usable_labels(data.get("labels", {})),
            pool=data.get("pool"),
        )  # fmt: skip
        return Response(PreviewSerializer(found).data)


class PoolRuleSerializer(serializers.ModelSerializer[PoolRule]):
    """A rule takes every card that meets all of it; it is made and deleted, not changed."""

    labels = serializers.DictField(child=serializers.CharField(max_length=317, allow_blank=True), required=False)

    class Meta:
        model = PoolRule
        fields = ["id", "pool", "model", "cluster", "labels", "created_at"]
        validators: list[Any] = []


class _PartFilter(filters.FilterSet):
    pool = filters.UUIDFilter(field_name="pool")


class PoolRuleViewSet(EditViewSet):
    """By which rules pools take cards."""

    http_method_names = ["get", "post", "delete", "head", "options"]
    queryset = PoolRule.objects.order_by("id")
    serializer_class = PoolRuleSerializer
    filterset_class = _PartFilter
    lookup_value_converter = "uuid"

    def perform_create(self, serializer: serializers.BaseSerializer[Any]) -> None:
        serializer.instance = services.add_rule(**serializer.validated_data, actor=acting_user(self.request))

    def perform_destroy(self, instance: Any) -> None:
        services.remove_rule(instance, actor=acting_user(self.request))


class PoolMemberSerializer(serializers.ModelSerializer[PoolMember]):
    """A card or node that is taken in, or left out, by hand."""

    card = serializers.PrimaryKeyRelatedField(queryset=Card.objects.all(), required=False, allow_null=True)
    node = serializers.PrimaryKeyRelatedField(queryset=Node.objects.all(), required=False, allow_null=True)

    class Meta:
        model = PoolMember
        fields = ["id", "pool", "card", "node", "included", "created_at"]
        validators: list[Any] = []


class PoolMemberViewSet(EditViewSet):
    """Cards and nodes that are in or out by hand. Sending one again changes it."""

    http_method_names = ["get", "post", "delete", "head", "options"]
    queryset = PoolMember.objects.order_by("id")
    serializer_class = PoolMemberSerializer
    filterset_class = _PartFilter
    lookup_value_converter = "uuid"

    def perform_create(self, serializer: serializers.BaseSerializer[Any]) -> None:
        data = {"included": True, **serializer.validated_data}
        serializer.instance = services.set_member(**data, actor=acting_user(self.request))

    def perform_destroy(self, instance: Any) -> None:
        services.unset_member(cast(PoolMember, instance), actor=acting_user(self.request))
