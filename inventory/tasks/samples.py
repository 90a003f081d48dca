"""Partitions and rollups, by the clock."""

import logging

from celery import shared_task

from inventory.services import partitions, rollups

log = logging.getLogger(__name__)


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def roll_up() -> None:
    """Each minute: closed 5-minute buckets, whole hours, late hours."""
    done = rollups.roll_up()
    if done.rows or done.late_hours:
        log.info("rolled up to %s: %d rows, %d late hours", done.done, done.rows, done.late_hours)


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def make_partitions() -> None:
    """Some times a day, so that a missed run costs nothing: days ahead are made, days past their time dropped."""
    made = partitions.make_partitions()
    dropped = partitions.drop_old_partitions()
    if rollups_dropped := partitions.drop_old_rollups():
        log.info("rollups dropped: %s", ", ".join(rollups_dropped))
    if made or dropped:
        log.info(
            "%d partitions made; raw samples dropped of %s", made, [day.isoformat() for day in dropped] or "no day"
        )
