"""Pools by the clock: follow the jobs, admit what fits, talk to the clusters about it.

Each looks for what is due by itself; running at any time does no harm.
"""

import logging

from celery import shared_task

from pools.services.ledger import recording

log = logging.getLogger(__name__)


@shared_task  # type: ignore[untyped-decorator] # celery has no types
def record_ledger() -> None:
    """Brings the ledger up to date with the jobs that changed."""
    done = recording.record()
    if done.written:
        log.info(
            "ledger: %d jobs read, %d entries opened, %d changed, %d removed, %d requests moved on",
            done.jobs, done.opened, done.changed, done.removed, done.moved,
        )  # fmt: skip
