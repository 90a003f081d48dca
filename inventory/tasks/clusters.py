"""Schedulers by the clock: read what is due, carry on with cordons that are asked for, forget what is long over.

A tick with nothing due is one short query; running at any time does no harm.
"""

import logging

from celery import shared_task

from inventory.services.clusters import carrying_out, forgetting, syncing

log = logging.getLogger(__name__)


@shared_task  # type: ignore[untyped-decorator] # celery has no types
def sync_clusters() -> None:
    """Reads the clusters that are due."""
    done = syncing.sync_due_clusters()
    if done.read:
        log.info("read %d clusters", done.read)


@shared_task  # type: ignore[untyped-decorator] # celery has no types
def carry_out_cordons() -> None:
    """Sets and lifts what was asked for and is not done yet, and goes on with drains."""
    done = carrying_out.carry_out_due()
    if done:
        log.info("carried on with %d cordons", done)


@shared_task  # type: ignore[untyped-decorator] # celery has no types
def forget_old_work() -> None:
    """Some times a day: runs and scheduler nodes that are past their retention."""
    runs, nodes = forgetting.forget_old_runs(), forgetting.forget_gone_nodes()
    if runs or nodes:
        log.info("%d old runs and %d gone nodes dropped", runs, nodes)
