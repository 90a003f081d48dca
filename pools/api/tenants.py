"""Tenants, projects, members, mapping rules and who decides in a cluster, over REST."""

from typing import Any

from django_filters import rest_framework as filters
from rest_framework import serializers

from inventory.models import Cluster
from pools.api.base import ScopedEditViewSet, SignedIn, VisibleField
from pools.models import ClusterMode, MappingRule, MemberRole, Membership, Project, Tenant
from pools.selectors.access import require_manager
from pools.services import tenants as services
from sensaka.identity.models import User
from sensaka.kernel.errors import InvalidInput
from sensaka.platform.rest.viewsets import EditViewSet, acting_user


class TenantSerializer(serializers.ModelSerializer[Tenant]):
    weight = serializers.FloatField(min_value=0.01, max_value=1_000_000, required=False, help_text="in fair share")

    class Meta:
        model = Tenant
        fields = [
            "id", "name", "slug", "description", "contact", "cohort", "weight", "active", "created_at", "updated_at",
        ]  # fmt: skip


class TenantViewSet(ScopedEditViewSet):
    """Teams that quotas are given to. People see their own."""

    queryset = Tenant.objects.order_by("id")
    serializer_class = TenantSerializer
    filterset_fields = ["name", "slug", "active", "cohort"]

    def save(self, row: Any, values: dict[str, Any], actor: User) -> Tenant:
        return services.save_tenant(row, values=values, actor=actor)

    def remove(self, row: Any, actor: User) -> None:
        services.remove_tenant(row, actor=actor)


class ProjectSerializer(serializers.ModelSerializer[Project]):
    tenant = VisibleField(queryset=Tenant.objects)

    class Meta:
        model = Project
        fields = ["id", "tenant", "name", "slug", "description", "active", "created_at", "updated_at"]
        validators: list[Any] = []


class TenantFilter(filters.FilterSet):
    """By tenant and project. An id that is not one's own finds nothing, like one that does not exist."""

    tenant = filters.UUIDFilter(field_name="tenant")
    project = filters.UUIDFilter(field_name="project")


class ProjectFilter(filters.FilterSet):
    tenant = filters.UUIDFilter(field_name="tenant")

    class Meta:
        model = Project
        fields = ["name", "slug", "active"]


class ProjectViewSet(ScopedEditViewSet):
    """Projects of tenants. Admins of the tenant and operators change them."""

    queryset = Project.objects.select_related("tenant").order_by("id")
    serializer_class = ProjectSerializer
    filterset_class = ProjectFilter
    permission_classes = [SignedIn]

    def save(self, row: Any, values: dict[str, Any], actor: User) -> Project:
        return services.save_project(row, values=values, actor=actor)

    def remove(self, row: Any, actor: User) -> None:
        services.remove_project(row, actor=actor)


class MemberSerializer(serializers.ModelSerializer[Membership]):
    """A person is named by `username`. Only the role can be changed afterwards."""

    tenant = VisibleField(queryset=Tenant.objects)
    project = VisibleField(queryset=Project.objects, required=False, allow_null=True)
    username = serializers.CharField(source="user.username", max_length=150)
    user = serializers.UUIDField(source="user_id", read_only=True)
    name = serializers.CharField(source="user.get_full_name", read_only=True)
    role = serializers.ChoiceField(choices=MemberRole.choices, required=False)

    class Meta:
        model = Membership
        fields = ["id", "tenant", "project", "user", "username", "name", "role", "created_at", "updated_at"]
        validators: list[Any] = []


class MemberViewSet(ScopedEditViewSet):
    """Who is in which tenant or project. Admins of the tenant and operators change it."""

    queryset = Membership.objects.select_related("user", "tenant", "project").order_by("id")
    serializer_class = MemberSerializer
    filterset_class = TenantFilter
    permission_classes = [SignedIn]

    def save(self, row: Any, values: dict[str, Any], actor: User) -> Membership:
        if row is not None:
            return services.change_role(row, role=values.get("role", row.role), actor=actor)
        name = values.pop("user")["username"]
        # whoever may not add members learns nothing of who exists
        require_manager(actor, values["tenant"].pk)
        user = User.objects.filter(username=name, is_active=True).first()
        if user is None:
            raise InvalidInput(f"nobody of the name {name} may sign in", field="username")
        return services.add_member(**values, user=user, actor=actor)

    def remove(self, row: Any, actor: User) -> None:
        services.remove_member(row, actor=actor)


class MappingRuleSerializer(serializers.ModelSerializer[MappingRule]):
    project = serializers.PrimaryKeyRelatedField(queryset=Project.objects.all(), required=False, allow_null=True)

    class Meta:
        model = MappingRule
        fields = ["id", "cluster", "kind", "key", "value", "tenant", "project", "created_at", "updated_at"]
        validators: list[Any] = []


class MappingRuleViewSet(EditViewSet):
    """By which account, namespace or label a cluster's jobs are told to be a tenant's. Operators and auditors."""

    queryset = MappingRule.objects.order_by("id")
    serializer_class = MappingRuleSerializer
    filterset_fields = ["cluster", "kind", "tenant", "project"]
    lookup_value_converter = "uuid"

    def perform_create(self, serializer: serializers.BaseSerializer[Any]) -> None:
        values, actor = serializer.validated_data, acting_user(self.request)
        serializer.instance = services.save_mapping_rule(None, values=values, actor=actor)

    def perform_update(self, serializer: serializers.BaseSerializer[Any]) -> None:
        values, actor = serializer.validated_data, acting_user(self.request)
        serializer.instance = services.save_mapping_rule(serializer.instance, values=values, actor=actor)

    def perform_destroy(self, instance: Any) -> None:
        services.remove_mapping_rule(instance, actor=acting_user(self.request))


class ClusterModeSerializer(serializers.ModelSerializer[ClusterMode]):
    cluster = serializers.PrimaryKeyRelatedField(queryset=Cluster.objects.all())

    class Meta:
        model = ClusterMode
        fields = ["id", "cluster", "mode", "created_at", "updated_at"]
        extra_kwargs = {"mode": {"required": True}}


class ClusterModeViewSet(EditViewSet):
    """Who decides in a cluster; without a row it is observed. Sending a cluster again changes its mode."""

    http_method_names = ["get", "post", "head", "options"]
    queryset = ClusterMode.objects.order_by("id")
    serializer_class = ClusterModeSerializer
    filterset_fields = ["cluster", "mode"]
    lookup_value_converter = "uuid"

    def perform_create(self, serializer: serializers.BaseSerializer[Any]) -> None:
        serializer.instance = services.set_mode(**serializer.validated_data, actor=acting_user(self.request))
