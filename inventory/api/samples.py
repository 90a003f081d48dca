"""History of signals over REST."""

from datetime import timedelta
from typing import Any

from django.utils import timezone
from rest_framework import serializers

from inventory.observations import VALUE_FIELDS
from inventory.selectors.samples import history

_LONGEST = timedelta(days=2 * 366)


class HistoryQuery(serializers.Serializer[Any]):
    """What a history is asked for."""

    start = serializers.DateTimeField(required=False)
    end = serializers.DateTimeField(required=False)
    points = serializers.IntegerField(min_value=10, max_value=5000, default=600)
    slice = serializers.UUIDField(required=False)

    def to_internal_value(self, data: Any) -> Any:
        value = super().to_internal_value(data)
        value["names"] = [name for name in str(data.get("fields", "utilization")).split(",") if name]
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Fill the defaults and check what belongs together."""
        end = attrs.setdefault("end", timezone.now())
        try:
            start = attrs.setdefault("start", end - timedelta(hours=1))
        except OverflowError:
            raise serializers.ValidationError({"end": "no time of a reading"}) from None
        if not timedelta(0) < end - start <= _LONGEST:
            raise serializers.ValidationError({"start": "must lie before `end`, by two years at most"})
        unknown = sorted(set(attrs["names"]) - set(VALUE_FIELDS))
        if unknown or not attrs["names"]:
            raise serializers.ValidationError({"fields": f"unknown {unknown}; use some of {', '.join(VALUE_FIELDS)}"})
        return attrs


class HistorySerializer(serializers.Serializer[Any]):
    """Buckets of `resolution` seconds; every list has one entry a bucket, null where nothing was read."""

    resolution = serializers.IntegerField(help_text="seconds a bucket")
    table = serializers.CharField(help_text="raw samples or a rollup")
    times = serializers.ListField(child=serializers.IntegerField(), help_text="start of each bucket, Unix seconds")
    signals = serializers.DictField(
        child=serializers.DictField(child=serializers.ListField(child=serializers.FloatField(allow_null=True))),
        help_text="{signal: {min, mean, max}}",
    )
    busy = serializers.ListField(child=serializers.IntegerField(), help_text="seconds")
    idle = serializers.ListField(child=serializers.IntegerField(), help_text="seconds")
    unknown = serializers.ListField(child=serializers.IntegerField(), help_text="seconds")


def history_body(series: int, query: dict[str, Any]) -> dict[str, Any]:
    """The answer to a checked HistoryQuery."""
    found = history(series, start=query["start"], end=query["end"], fields=query["names"], points=query["points"])
    return {
        "resolution": found.resolution_seconds,
        "table": found.source_table,
        "times": found.times,
        "signals": found.fields,
        "busy": found.busy,
        "idle": found.idle,
        "unknown": found.unknown,
    }
