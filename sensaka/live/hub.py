"""Announcing changes to the live pages: cheap for whoever writes, and never able to fail them.

`touch` only notes the change; one thread a process sends it on, at most ten times a second. What is
lost (Redis down, process killed) costs latency, not correctness: consumers read again, and ask whether
the sign-in still holds, every 10 s.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Iterable

from channels.layers import get_channel_layer

from sensaka.live import sessions
from sensaka.live.topics import Change

logger = logging.getLogger(__name__)
_PAUSE = 0.1  # seconds between two announcements of a process
_ENDED = "ended"
_CHANGES = frozenset(change.value for change in Change)


async def announce(change: Change) -> None:
    """Tell every consumer, on this event loop, that something of `change` is new."""
    await _tell(change.value, {"type": "changed", "change": change.value})


async def _tell(group: str, message: dict[str, str]) -> None:
    layer = get_channel_layer()
    if layer is not None:
        await layer.group_send(group, message)


class Announcer:
    """The thread that sends what was touched. Made anew after a fork, because threads do not survive it."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._pending: set[str] = set()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, groups: Iterable[str]) -> None:
        """Note the groups to tell and make sure that the thread runs."""
        with self._lock:
            self._pending.update(groups)
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

    async def _send(self, pending: set[str]) -> None:
        for group in sorted(pending):
            try:
                await (announce(Change(group)) if group in _CHANGES else _tell(group, {"type": _ENDED}))
            except Exception as error:  # whatever the channel layer raises: pages catch up by themselves
                logger.warning("live pages were not told of %s: %s", group, error)
        await asyncio.sleep(_PAUSE)


_announcer = Announcer()


def touch(*changes: Change) -> None:
    """Note that something changed. Returns at once; safe in any thread and on any event loop."""
    _add(change.value for change in changes)


def end_session(session_key: str) -> None:
    """Close the live lines of a sign-in that ends. Returns at once, like `touch`."""
    _add([sessions.group(session_key)])


def _add(groups: Iterable[str]) -> None:
    global _announcer
    if not _announcer.usable:
        _announcer = Announcer()
    _announcer.add(groups)
