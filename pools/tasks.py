"""Pools by the clock: follow the jobs, admit what fits, talk to the clusters about it.

Each looks for what is due by itself; running at any time does no harm.
"""

import logging

from celery import shared_task

from pools.services import admission, idling
from pools.services.launching import carrying_out
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


@shared_task  # type: ignore[untyped-decorator] # celery has no types
def admit_requests() -> None:
    """Starts what fits, and tells what waits why."""
    for pool, done in admission.admit_all().items():
        if done.started or done.told:
            log.info("pool %s: %d started, %d told to leave, %d wait", pool, done.started, done.told, done.waiting)


@shared_task  # type: ignore[untyped-decorator] # celery has no types
def look_through_queues() -> None:
    """Looks at all requests of long queues, of which a pass sees the head only."""
    for pool, done in admission.look_through_all().items():
        log.info("pool %s: all of a long queue looked at, %d started", pool, done.started)


@shared_task  # type: ignore[untyped-decorator] # celery has no types
def launch_requests() -> None:
    """Launches what was admitted, ends what is to end, signals what is to leave."""
    done = carrying_out.carry_out_due()
    if done.errands:
        log.info("%d errands to clusters, %d not done", done.errands, done.failed)


@shared_task  # type: ignore[untyped-decorator] # celery has no types
def look_for_idle_cards() -> None:
    """Finds cards that are held and not used, warns their owners, and does what their pools say."""
    done = idling.look()
    if done.changed:
        log.info(
            "idle cards: %d works found, %d warned again, %d suggested, %d taken back, %d in use or spared, %d over",
            done.opened, done.warned_again, done.suggested, done.reclaimed, done.closed, done.ended,
        )  # fmt: skip
