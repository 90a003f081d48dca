"""Nudges: what changed calls the task that would look for it a little later by the clock.

A nudge that is lost costs seconds and nothing else, so one that can't be sent is only logged.
"""

import logging
from functools import partial
from typing import Any

from kombu.exceptions import OperationalError

from inventory import signals
from pools import signals as promises
from sensaka.celery import app

log = logging.getLogger(__name__)

_EXPIRES = 10  # s; by then the clock has called it

NUDGED = (
    (signals.jobs_changed, ("pools.tasks.record_ledger",)),
    (promises.requests_changed, ("pools.tasks.admit_requests", "pools.tasks.launch_requests")),
    (promises.allocations_changed, ("pools.tasks.admit_requests",)),
    (promises.catalogue_changed, ("pools.tasks.admit_requests", "pools.tasks.record_ledger")),
)
"""Signals, and the tasks that look at what they tell of."""


def send(names: tuple[str, ...], **_: Any) -> None:
    """Asks a worker for these tasks. Does nothing where tasks run in the process that asks (tests)."""
    if app.conf.task_always_eager:
        return
    for name in names:
        try:
            app.send_task(name, expires=_EXPIRES, retry=False, ignore_result=True)
        except OperationalError:
            log.warning("no nudge for %s: the broker does not answer", name)
            return


def connect() -> None:
    """Connects every nudge; calling it twice changes nothing."""
    for signal, names in NUDGED:
        signal.connect(partial(send, names), weak=False, dispatch_uid=f"nudge.{names[0]}")
