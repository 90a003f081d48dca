"""Cordons over REST: nodes out of scheduling, by whom and why; and how nodes are taken out and returned."""

from typing import Any

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from inventory.models import Cordon, CordonPurpose
from inventory.services.clusters import cordoning
from sensaka.platform.rest.idempotency import once
from sensaka.platform.rest.pagination import NewestFirstPagination
from sensaka.platform.rest.viewsets import ReadViewSet, acting_user

_BY_PEOPLE = [CordonPurpose.OPERATOR, CordonPurpose.MAINTENANCE]


class CordonSerializer(serializers.ModelSerializer[Cordon]):
    """`ours` false: somebody else set it in the scheduler and lifts it there.

    `state`: requested (not yet set in the scheduler; `last_error` says why), applied, lifting, lifted.
    """

    state = serializers.CharField(read_only=True)

    class Meta:
        model = Cordon
        fields = [
            "id", "node", "cluster", "scheduler_node", "ours", "state", "drain", "purpose", "reason", "reason_by",
            "requested_by", "requested_at", "applied_at", "drained_at", "lift_requested_at", "lift_requested_by",
            "lifted_at", "lifted_by", "attempts", "last_error",
        ]  # fmt: skip
        read_only_fields = fields


class CordonRequest(serializers.Serializer[Any]):
    """Why, for the scheduler and the journal."""

    reason = serializers.CharField(max_length=500)
    purpose = serializers.ChoiceField(
        choices=[(one.value, one.label) for one in _BY_PEOPLE], default=CordonPurpose.OPERATOR
    )


class UncordonRequest(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=500, required=False, allow_blank=True, default="")


class CordonFilter(filters.FilterSet):
    open = filters.BooleanFilter(field_name="lifted_at", lookup_expr="isnull")

    class Meta:
        model = Cordon
        fields = ["node", "cluster", "ours", "drain", "purpose"]


class CordonPagination(NewestFirstPagination):
    ordering = ("-requested_at", "-id")


class CordonViewSet(ReadViewSet):
    """Nodes that are or were out of scheduling, newest first."""

    queryset = Cordon.objects.order_by("-requested_at", "-id")
    serializer_class = CordonSerializer
    filterset_class = CordonFilter
    pagination_class = CordonPagination


class CordonActs(viewsets.GenericViewSet[Any]):
    """The acts on a node, for the nodes' view set."""

    @extend_schema(request=CordonRequest, responses=CordonSerializer)
    @action(detail=True, methods=["post"])
    def cordon(self, request: Request, pk: str) -> Response:
        """Take the node out of scheduling; what runs there goes on."""
        return self._cordon(request, drain=False)

    @extend_schema(request=CordonRequest, responses=CordonSerializer)
    @action(detail=True, methods=["post"])
    def drain(self, request: Request, pk: str) -> Response:
        """Take the node out and let it become empty; then it rests until it is returned."""
        return self._cordon(request, drain=True)

    @extend_schema(request=UncordonRequest, responses={200: CordonSerializer, 204: None})
    @action(detail=True, methods=["post"])
    def uncordon(self, request: Request, pk: str) -> Response:
        """Return a node that we took out; 204 when it isn't out, 409 when somebody else took it out."""

        def act() -> Response:
            node = self.get_object()
            serializer = UncordonRequest(data=request.data)
            serializer.is_valid(raise_exception=True)
            reason = serializer.validated_data["reason"]
            row = cordoning.uncordon(node=node, actor=acting_user(request), reason=reason)
            if row is None:
                return Response(status=status.HTTP_204_NO_CONTENT)
            return Response(CordonSerializer(row).data)

        return once(request, act)

    def _cordon(self, request: Request, *, drain: bool) -> Response:
        def act() -> Response:
            node = self.get_object()
            serializer = CordonRequest(data=request.data)
            serializer.is_valid(raise_exception=True)
            data = serializer.validated_data
            row = cordoning.cordon(
                node=node, reason=data["reason"], actor=acting_user(request), purpose=data["purpose"], drain=drain
            )
            return Response(CordonSerializer(row).data)

        return once(request, act)
