"""Discoveries of address ranges and one-time tokens for agents, over REST."""

from datetime import timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from inventory.models import BmcProtocol, Credential, Discovery, EnrolmentToken
from inventory.observations import TlsPolicy
from inventory.services import agents as agent_services
from inventory.services import discovery as services
from sensaka.identity.permissions import OperatorOnly
from sensaka.platform.rest.idempotency import once
from sensaka.platform.rest.viewsets import EditViewSet, acting_user

_LONGEST_TOKEN_LIFE = timedelta(days=30)


class DiscoverySerializer(serializers.ModelSerializer[Discovery]):
    """`protocol` empty tries Redfish first, then IPMI. `ports` empty uses each protocol's own."""

    ports = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=65535), required=False, max_length=20
    )
    protocol = serializers.ChoiceField(choices=BmcProtocol.choices, required=False, allow_blank=True, default="")
    tls = serializers.ChoiceField(choices=[(str(p), str(p)) for p in TlsPolicy], default=str(TlsPolicy.FINGERPRINT))
    interval = serializers.IntegerField(min_value=5, max_value=3600, default=30, help_text="seconds")
    credential = serializers.PrimaryKeyRelatedField(queryset=Credential.objects.all())

    class Meta:
        model = Discovery
        fields = [
            "id", "addresses", "ports", "protocol", "credential", "tls", "tls_authority", "interval", "site",
            "cluster", "rack", "state", "total", "tried", "found", "results", "finished_at", "created_at",
        ]  # fmt: skip
        read_only_fields = ["state", "total", "tried", "found", "results", "finished_at"]


class DiscoveryViewSet(EditViewSet):
    """Searches of address ranges for BMCs; watch `tried` of `total`."""

    http_method_names = ["get", "post", "head", "options"]
    queryset = Discovery.objects.order_by("id")
    serializer_class = DiscoverySerializer
    filterset_fields = ["state", "site", "addresses"]

    def perform_create(self, serializer: serializers.BaseSerializer[Any]) -> None:
        data = dict(serializer.validated_data)
        serializer.instance = services.start_discovery(
            addresses=data["addresses"], ports=data.get("ports") or [], protocol=data["protocol"],
            credential=data["credential"], tls=data["tls"], tls_authority=data.get("tls_authority", ""),
            interval=data["interval"], site=data["site"], cluster=data.get("cluster"), rack=data.get("rack"),
            actor=acting_user(self.request),
        )  # fmt: skip


class EnrolmentTokenSerializer(serializers.ModelSerializer[EnrolmentToken]):
    """`token` is in the answer to POST only; afterwards nobody can read it."""

    uses = serializers.IntegerField(min_value=1, max_value=10_000, default=1, write_only=True)
    expires_at = serializers.DateTimeField(required=False, help_text="At most 30 days ahead; one day when left out")
    token = serializers.CharField(read_only=True, required=False)

    class Meta:
        model = EnrolmentToken
        fields = ["id", "name", "site", "cluster", "rack", "uses", "uses_left", "expires_at", "token", "created_at"]
        read_only_fields = ["uses_left"]

    def validate_expires_at(self, value: Any) -> Any:
        now = timezone.now()
        if not now < value <= now + _LONGEST_TOKEN_LIFE:
            raise serializers.ValidationError("use a time in the next 30 days")
        return value


class EnrolmentTokenViewSet(EditViewSet):
    """Tokens that let agents enrol into a place."""

    http_method_names = ["get", "post", "delete", "head", "options"]
    queryset = EnrolmentToken.objects.order_by("id")
    serializer_class = EnrolmentTokenSerializer
    permission_classes = [OperatorOnly]
    filterset_fields = ["name", "site"]

    @extend_schema(responses={201: EnrolmentTokenSerializer})
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        def act() -> Response:
            serializer = self.get_serializer(data=request.data)
            serializer.is_valid(raise_exception=True)
            data = serializer.validated_data
            row, token = agent_services.create_enrolment_token(
                name=data["name"], site=data["site"], cluster=data.get("cluster"), rack=data.get("rack"),
                uses=data["uses"], expires_at=data.get("expires_at") or timezone.now() + timedelta(days=1),
                actor=acting_user(request),
            )  # fmt: skip
            return Response({**self.get_serializer(row).data, "token": token}, status=status.HTTP_201_CREATED)

        return once(request, act)
