"""BMCs, exporters and agents over REST: who is read when, and what came of it."""

from typing import Any

from django import forms
from django.core.validators import validate_ipv46_address
from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.validators import UniqueValidator

from inventory.models import Agent, Bmc, Credential, Exporter
from inventory.services import agents as agent_services
from inventory.services import collectors as services
from sensaka.platform.rest.idempotency import once
from sensaka.platform.rest.viewsets import EditViewSet, acting_user

_STATE = [
    "interval", "enabled", "due_at", "attempted_at", "succeeded_at", "failing_since", "error_kind", "error_detail",
    "failures", "elapsed", "requests", "cards_seen", "simulated",
]  # fmt: skip
_STATE_READ_ONLY = [field for field in _STATE if field not in {"interval", "enabled"}]


class CredentialSerializer(serializers.ModelSerializer[Credential]):
    """The password is written and never shown again."""

    class Meta:
        model = Credential
        fields = ["id", "name", "username", "password", "created_at", "updated_at"]
        extra_kwargs = {"password": {"write_only": True, "max_length": 500, "trim_whitespace": False}}


class CredentialViewSet(EditViewSet):
    """Log-ins for BMCs, stored encrypted."""

    queryset = Credential.objects.order_by("id")
    serializer_class = CredentialSerializer
    filterset_fields = ["name"]


class BmcSerializer(serializers.ModelSerializer[Bmc]):
    interval = serializers.IntegerField(min_value=5, max_value=3600, required=False, help_text="seconds")

    class Meta:
        model = Bmc
        fields = [
            "id", "node", "site", "cluster", "rack", "address", "port", "protocol", "credential", "tls",
            "tls_fingerprint", "vendor", "product", "firmware", "discovered_at", "reports_cards", "sensors", *_STATE,
        ]  # fmt: skip
        read_only_fields = [
            "node", "site", "cluster", "rack", "address", "port", "protocol", "tls_fingerprint", "vendor", "product",
            "firmware", "discovered_at", "reports_cards", "sensors", *_STATE_READ_ONLY,
        ]  # fmt: skip


class ExporterSerializer(serializers.ModelSerializer[Exporter]):
    interval = serializers.IntegerField(min_value=5, max_value=3600, default=30, help_text="seconds")
    url = serializers.CharField(
        max_length=500,
        help_text="http(s) address of the metrics page, without a log-in",
        validators=[UniqueValidator(Exporter.objects.all())],
    )

    class Meta:
        model = Exporter
        fields = ["id", "node", "site", "cluster", "rack", "url", "flavour", "hostname", *_STATE]
        read_only_fields = ["node", "flavour", "hostname", *_STATE_READ_ONLY]

    def validate_url(self, value: str) -> str:
        return services.usable_url(value)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        known = self.instance if isinstance(self.instance, Exporter) else None
        site = attrs.get("site", known.site if known else None)
        for field in ("cluster", "rack"):
            place = attrs.get(field, getattr(known, field, None))
            if place is not None and site is not None and place.site_id != site.pk:
                raise serializers.ValidationError({field: f"is at another site than {site}"})
        return attrs


class AgentSerializer(serializers.ModelSerializer[Agent]):
    interval = serializers.IntegerField(min_value=5, max_value=3600, required=False, help_text="seconds")

    class Meta:
        model = Agent
        fields = ["id", "node", "version", "spooled", "dropped", "revoked_at", *_STATE]
        read_only_fields = ["node", "version", "spooled", "dropped", "revoked_at", *_STATE_READ_ONLY]


class _CollectorViewSet(EditViewSet):
    """Shared: change rhythm and switch through the services, so that the journal knows who did it."""

    def perform_update(self, serializer: serializers.BaseSerializer[Any]) -> None:
        collector = serializer.instance
        assert collector is not None
        changes, actor = dict(serializer.validated_data), acting_user(self.request)
        if "interval" in changes:
            services.change_interval(collector=collector, interval=changes.pop("interval"), actor=actor)
        if "enabled" in changes:
            services.set_enabled(collector=collector, enabled=changes.pop("enabled"), actor=actor)
        if changes:
            serializer.save(**changes)

    def perform_destroy(self, instance: Any) -> None:
        services.remove(collector=instance, actor=acting_user(self.request))

    @extend_schema(request=None, responses={202: None})
    @action(detail=True, methods=["post"], url_path="read")
    def read_now(self, request: Request, pk: str) -> Response:
        """Read this source at the next opportunity instead of when it is due."""

        def act() -> Response:
            services.read_now(collector=self.get_object(), actor=acting_user(request))
            return Response(status=status.HTTP_202_ACCEPTED)

        return once(request, act)


class AddressField(forms.CharField):
    """One IPv4 or IPv6 address; anything else is refused before the database sees it."""

    default_validators = [validate_ipv46_address]


class AddressFilter(filters.CharFilter):
    field_class = AddressField


class BmcFilter(filters.FilterSet):
    address = AddressFilter()

    class Meta:
        model = Bmc
        fields = ["node", "site", "cluster", "protocol", "enabled", "error_kind"]


class BmcViewSet(_CollectorViewSet):
    """Management controllers. They come from discoveries, so there is no POST."""

    http_method_names = ["get", "post", "patch", "delete", "head", "options"]
    queryset = Bmc.objects.order_by("id")
    serializer_class = BmcSerializer
    filterset_class = BmcFilter

    @extend_schema(exclude=True)
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        self.http_method_not_allowed(request)
        raise AssertionError("unreachable")


class ExporterViewSet(_CollectorViewSet):
    """Prometheus pages that are scraped."""

    queryset = Exporter.objects.order_by("id")
    serializer_class = ExporterSerializer
    filterset_fields = ["node", "site", "cluster", "url", "enabled", "error_kind", "flavour"]

    def perform_create(self, serializer: serializers.BaseSerializer[Any]) -> None:
        data = dict(serializer.validated_data)
        serializer.instance = services.add_exporter(
            url=data["url"], site=data["site"], cluster=data.get("cluster"), rack=data.get("rack"),
            interval=data["interval"], actor=acting_user(self.request),
        )  # fmt: skip


class AgentViewSet(_CollectorViewSet):
    """Agents. They enrol themselves, so there is no POST; DELETE revokes the node's token first."""

    queryset = Agent.objects.select_related("node").order_by("id")
    serializer_class = AgentSerializer
    filterset_fields = ["node", "version", "enabled"]

    @extend_schema(exclude=True)
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        self.http_method_not_allowed(request)
        raise AssertionError("unreachable")

    @extend_schema(request=None, responses=AgentSerializer)
    @action(detail=True, methods=["post"])
    def revoke(self, request: Request, pk: str) -> Response:
        """Refuse this agent's token from now on; its cards and history stay."""

        def act() -> Response:
            agent = agent_services.revoke_agent(agent=self.get_object(), actor=acting_user(request))
            return Response(self.get_serializer(agent).data)

        return once(request, act)

    def get_queryset(self) -> QuerySet[Agent]:
        return super().get_queryset()
