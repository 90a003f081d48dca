"""Announcing changes to the live pages: cheap for whoever writes, and never able to fail them.

`touch` only notes the change; one thread a process sends it on, at most ten times a second. What is
lost (Redis down, process killed) costs latency, not correctness: consumers read again every 10 s.
"""

import asyncio
import logging
import os
import threading

from channels.layers import get_channel_layer

from sensaka.live.topics import Change

logger = logging.getLogger(__name__)
_PAUSE = 0.1  # seconds between two announcements of a process


async def announce(change: Change) -> None:
    """Tell every consumer, on this event loop, that something of `change` is new."""
    layer = get_channel_layer()
    if layer is not None:
        await layer.group_send(change.value, {"type": "changed", "change": change.value})


class Announcer:
    """The thread that sends what was touched. Made anew after a fork, because threads do not survive it."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._pending: set[Change] = set()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, changes: tuple[Change, ...]) -> None:
        """Note changes and make sure that the thread runs."""
        with self._lock:
            self._pending.update(changes)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="live-announcer", daemon=True)
                self._thread.start()
        self._wake.set()

    @property
    def usable(self) -> bool:
        """Whether this announcer belongs to the present process."""
        return self._pid == os.getpid()

    def _run(self) -> None:
        # The wait is the thread's own: one in an executor's thread would keep the process from ending.
        with asyncio.Runner() as runner:
            while True:
                self._wake.wait()
                self._wake.clear()
                with self._lock:
                    pending, self._pending = self._pending, set()
                runner.run(self._send(pending))

    async def _send(self, pending: set[Change]) -> None:
        for change in sorted(pending):
            try:
                await announce(change)
            except Exception as error:  # whatever the channel layer raises: pages catch up by themselves
                logger.warning("live pages were not told of %s: %s", change.value, error)
        await asyncio.sleep(_PAUSE)


_announcer = Announcer()


def touch(*changes: Change) -> None:
    """Note that something changed. Returns at once; safe in any thread and on any event loop."""
    global _announcer
    if not _announcer.usable:
        _announcer = Announcer()
    _announcer.add(changes)
