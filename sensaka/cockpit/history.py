"""What the card page's charts draw: values with gaps, the busy/idle/unknown band, and events as marks."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from inventory.models import Card, JournalEntry
from inventory.selectors.samples import history

SPANS: dict[str, timedelta] = {
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "1y": timedelta(days=365),
    "2y": timedelta(days=730),
}
SPAN_TITLES = (
    ("1h", "1 h"), ("6h", "6 h"), ("24h", "24 h"), ("7d", "7 d"), ("30d", "30 d"), ("1y", "1 y"), ("2y", "2 y"),
)  # fmt: skip
CHARTS: tuple[dict[str, Any], ...] = (
    {"key": "activity", "title": "Activity", "unit": "%", "max": 100, "fields": ("sm_activity", "utilization")},
    {"key": "detail", "title": "Tensor and memory activity", "unit": "%", "max": 100,
     "fields": ("tensor_activity", "memory_activity")},
    {"key": "memory", "title": "Memory used", "unit": "GiB", "scale": 1 / 1024**3, "fields": ("memory_used",)},
    {"key": "temperature", "title": "Temperature", "unit": "°C", "fields": ("temperature", "memory_temperature")},
    {"key": "power", "title": "Power", "unit": "W", "fields": ("power", "power_limit")},
    {"key": "clock", "title": "Clocks", "unit": "MHz", "fields": ("sm_clock", "memory_clock")},
    {"key": "pcie", "title": "PCIe", "unit": "GB/s", "scale": 1e-9, "fields": ("pcie_tx", "pcie_rx")},
    {"key": "nvlink", "title": "NVLink", "unit": "GB/s", "scale": 1e-9, "fields": ("nvlink_tx", "nvlink_rx")},
)  # fmt: skip
_MOST_EVENTS = 60


def card_history(card: Card, series: int, span: str) -> dict[str, Any]:
    """One body for all charts of a card over a span; an unknown span is an hour."""
    length = SPANS.get(span, SPANS["1h"])
    end = timezone.now()
    start = end - length
    fields = [field for chart in CHARTS for field in chart["fields"]]
    found = history(series, start=start, end=end, fields=fields, points=600)
    events = JournalEntry.objects.filter(card=card, at__gte=start, at__lte=end).values_list("at", "kind", "text")
    return {
        "start": int(start.timestamp()),
        "end": int(end.timestamp()),
        "resolution": found.resolution_seconds,
        "source": found.source_table,
        "times": found.times,
        "fields": found.fields,
        "band": {"busy": found.busy, "idle": found.idle, "unknown": found.unknown},
        "charts": CHARTS,
        "events": [{"at": int(at.timestamp()), "kind": kind, "text": text} for at, kind, text in events[:_MOST_EVENTS]],
    }
