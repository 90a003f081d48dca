"""The clock's part in collecting. Each task looks for what is due; running at any time does no harm.

A tick with nothing due is one short query. How long a run may last and why two can't get in each
other's way stands in `services/rounds.py`.
"""

import logging

from celery import shared_task

from inventory.services import discovery, polling, silence

log = logging.getLogger(__name__)


@shared_task  # type: ignore[untyped-decorator] # celery has no types
def poll_bmcs() -> None:
    """Reads the BMCs that are due."""
    done = polling.poll_due_bmcs()
    if done.read:
        log.info("read %d BMCs", done.read)


@shared_task  # type: ignore[untyped-decorator] # celery has no types
def scrape_exporters() -> None:
    """Reads the exporter pages that are due."""
    done = polling.scrape_due_exporters()
    if done.read:
        log.info("read %d exporter pages", done.read)


@shared_task  # type: ignore[untyped-decorator] # celery has no types
def run_discoveries() -> None:
    """Carries on with the searches for BMCs."""
    done = discovery.run_discoveries()
    if done.read:
        log.info("tried %d addresses", done.read)


@shared_task  # type: ignore[untyped-decorator] # celery has no types
def mark_silent_agents() -> None:
    """Marks the agents that stopped sending, and those that are back."""
    silent, back = silence.mark_silent_agents(since=silence.watching_since())
    if silent or back:
        log.info("%d agents went silent, %d are back", silent, back)
