"""The four counts as every answer writes them."""

from typing import Any, cast

from rest_framework import serializers

from pools.selectors.counts import Capacity, capacity


class HeldCountsSerializer(serializers.Serializer[Any]):
    """Cards; rates in percent, null where nothing is there to divide by."""

    installed = serializers.IntegerField()
    available = serializers.IntegerField()
    standby = serializers.IntegerField(help_text="available, on a sleeping node")
    allocated = serializers.IntegerField()
    lost = serializers.IntegerField(help_text="allocated, and no longer available")
    busy = serializers.IntegerField()
    idle = serializers.IntegerField()
    unknown = serializers.IntegerField(help_text="allocated, without a fresh sample")
    free = serializers.IntegerField(help_text="available, and not allocated")
    coverage = serializers.FloatField(allow_null=True)
    idle_rate = serializers.FloatField(allow_null=True)
    allocation_rate = serializers.FloatField(allow_null=True)


def capacity_of(serializer: serializers.BaseSerializer[Any]) -> Capacity:
    """The counts, read once an answer."""
    context: dict[str, Any] = cast(dict[str, Any], serializer.context)
    if "capacity" not in context:
        context["capacity"] = capacity()
    found: Capacity = context["capacity"]
    return found
