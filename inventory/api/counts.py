"""The four counts over REST."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from inventory.selectors.counts import counts

_DIMENSIONS = ("site", "cluster", "rack", "node", "model")


class CountsSerializer(serializers.Serializer[Any]):
    """Cards by state. `allocated` is null until pools record promises; the parts of available are by activity.

    `cordoned` are installed ones on a node that somebody took out of scheduling.
    """

    key = serializers.CharField(allow_null=True)
    name = serializers.CharField()
    installed = serializers.IntegerField()
    available = serializers.IntegerField()
    allocated = serializers.IntegerField(allow_null=True)
    busy = serializers.IntegerField()
    idle = serializers.IntegerField()
    unknown = serializers.IntegerField()
    failed = serializers.IntegerField()
    missing = serializers.IntegerField()
    cordoned = serializers.IntegerField()
    coverage = serializers.FloatField(allow_null=True, help_text="percent of available cards with a fresh activity")


class CountsView(APIView):
    """Installed, available, busy, idle and unknown cards, whole or by one dimension."""

    @extend_schema(parameters=[OpenApiParameter("by", str, enum=_DIMENSIONS)], responses=CountsSerializer(many=True))
    def get(self, request: Request) -> Response:
        by = request.query_params.get("by")
        if by is not None and by not in _DIMENSIONS:
            raise serializers.ValidationError({"by": f"use one of {', '.join(_DIMENSIONS)}"})
        return Response({"next": None, "previous": None, "results": CountsSerializer(counts(by), many=True).data})
