"""Faults that grow: counters of the hourly rollups, per card."""

from dataclasses import dataclass
from datetime import datetime

from django.db import connection


@dataclass(frozen=True, slots=True)
class Growth:
    """How far the memory-error counters of a card rose since a time; a counter's reset adds nothing."""

    corrected: int
    uncorrected: int
    remapped_rows: int


def ecc_growth(*, since: datetime) -> dict[int, Growth]:
    """By series, the cards whose counters rose in the five-minute buckets from `since` on."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT series, coalesce(sum(ecc_corrected_growth), 0), coalesce(sum(ecc_uncorrected_growth), 0), "
            "coalesce(sum(remapped_rows_growth), 0) FROM inventory_rollup_5m WHERE bucket >= %s AND "
            "(ecc_corrected_growth > 0 OR ecc_uncorrected_growth > 0 OR remapped_rows_growth > 0) GROUP BY series",
            [since],
        )
        return {series: Growth(int(a), int(b), int(c)) for series, a, b, c in cursor.fetchall()}
