"""A person's own API tokens over REST."""

from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from sensaka.identity.models import ApiToken, Scope
from sensaka.identity.permissions import OwnAccount
from sensaka.identity.services import create_token
from sensaka.platform.rest.idempotency import once
from sensaka.platform.rest.viewsets import EditViewSet, acting_user


class ApiTokenSerializer(serializers.ModelSerializer[ApiToken]):
    """`token` is in the answer to POST only; the server keeps its hash."""

    id = serializers.UUIDField(source="reference", read_only=True)
    days = serializers.IntegerField(min_value=1, max_value=366, default=90, write_only=True, help_text="until expiry")
    token = serializers.CharField(read_only=True, required=False)
    name = serializers.CharField(max_length=100)
    scope = serializers.ChoiceField(choices=Scope.choices, default=Scope.READ)

    class Meta:
        model = ApiToken
        fields = ["id", "name", "scope", "days", "expiry", "created", "last_used_at", "token"]
        read_only_fields = ["expiry", "created", "last_used_at"]


class ApiTokenViewSet(EditViewSet):
    """Your own tokens."""

    http_method_names = ["get", "post", "delete", "head", "options"]
    queryset = ApiToken.objects.order_by("reference")
    serializer_class = ApiTokenSerializer
    permission_classes = [OwnAccount]
    lookup_field = "reference"
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[ApiToken]:
        if getattr(self, "swagger_fake_view", False):
            none: QuerySet[ApiToken] = ApiToken.objects.none()
            return none
        own: QuerySet[ApiToken] = ApiToken.objects.filter(user=acting_user(self.request)).order_by("reference")
        return own

    @property
    def paginator(self) -> Any:
        paginator: Any = super().paginator
        paginator.ordering = "reference"
        return paginator

    @extend_schema(responses={201: ApiTokenSerializer})
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        def act() -> Response:
            if isinstance(request.auth, ApiToken):
                raise PermissionDenied("A token can't make tokens: sign in to make one.")
            serializer = self.get_serializer(data=request.data)
            serializer.is_valid(raise_exception=True)
            data = serializer.validated_data
            row, token = create_token(
                user=acting_user(request), name=data["name"], scope=data["scope"],
                expires_at=timezone.now() + timedelta(days=data["days"]),
            )  # fmt: skip
            return Response({**self.get_serializer(row).data, "token": token}, status=status.HTTP_201_CREATED)

        return once(request, act)
