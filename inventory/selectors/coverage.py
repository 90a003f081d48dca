"""How much of the last hour is known of each card."""

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import connection
from django.utils import timezone

_WINDOW = timedelta(hours=1)


def recent_coverage(series: Collection[int], *, now: datetime | None = None) -> dict[int, float]:
    """Percent of the closed five-minute buckets of the last hour that samples with an activity cover.

    A series without a bucket yet (just enrolled) has no entry.
    """
    if not series:
        return {}
    now = now or timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT series, 100.0 * sum(busy_s + idle_s) / sum(busy_s + idle_s + unknown_s) "
            "FROM inventory_rollup_5m WHERE series = ANY(%s) AND bucket >= %s AND bucket < %s GROUP BY series",
            [list(series), now - _WINDOW, now],
        )
        return {key: float(percent) for key, percent in cursor.fetchall()}
