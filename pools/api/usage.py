"""Tokens and storage, pushed by collectors."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from pools.models import UsageKind
from pools.services.usage import MOST, UsageLine, record_usage
from sensaka.identity.permissions import OperatorOnly
from sensaka.platform.rest.idempotency import once
from sensaka.platform.rest.viewsets import acting_user


class UsageLineSerializer(serializers.Serializer[Any]):
    """`key` identifies the record at its source: sent again, it is stored once."""

    key = serializers.CharField(max_length=200)
    tenant = serializers.UUIDField()
    project = serializers.UUIDField(required=False, allow_null=True, default=None)
    kind = serializers.ChoiceField(choices=UsageKind.choices)
    subject = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")
    amount = serializers.IntegerField(min_value=0, max_value=2**63 - 1, help_text="tokens used, or bytes stored")
    at = serializers.DateTimeField()


class UsagePushSerializer(serializers.Serializer[Any]):
    source = serializers.CharField(max_length=64, help_text="The collector's name")  # type: ignore[assignment]
    records = UsageLineSerializer(many=True, allow_empty=False, max_length=MOST)  # type: ignore[call-arg]


class UsageAnswerSerializer(serializers.Serializer[Any]):
    stored = serializers.IntegerField()
    repeated = serializers.IntegerField(help_text="known before, stored once")


class UsageView(APIView):
    """Recorded usage comes in here; token and storage quotas are enforced from it."""

    permission_classes = [OperatorOnly]

    @extend_schema(request=UsagePushSerializer, responses={201: UsageAnswerSerializer})
    def post(self, request: Request) -> Response:
        """Store up to 1000 records. All or none of them are stored."""

        def act() -> Response:
            body = UsagePushSerializer(data=request.data)
            body.is_valid(raise_exception=True)
            lines = [UsageLine(**line) for line in body.validated_data["records"]]
            done = record_usage(source=body.validated_data["source"], lines=lines, actor=acting_user(request))
            return Response({"stored": done.stored, "repeated": done.repeated}, status=status.HTTP_201_CREATED)

        return once(request, act)
