"""Threads that carry calls which may never return.

A vendor's library is C code that waits for a device, and a device that has fallen off the bus may
answer never. No timeout inside the library helps, so each card has one thread of its own: the
reader waits for it as long as its deadline allows and goes on without it. ctypes gives the
interpreter's lock back during a call, so a thread that hangs in C holds up nobody.

Why threads and not a child process: a child costs about 12 MB of the agent's 60 MB and buys little,
because a call that hangs in the kernel can't be killed from outside either, and nine threads cost
under one megabyte together. A thread that hangs is not replaced: while it hangs its card is reported as
timed out, and when the call does return the thread serves again. So there are never more threads
than cards, plus one. They are daemons: a hanging call does not keep the agent from exiting.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class Job(Generic[T]):
    """One piece of work on a worker, and its outcome once it is done."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._done = threading.Event()
        self._result: T | None = None
        self._error: Exception | None = None

    def run(self) -> None:
        """Called by the worker's thread."""
        try:
            self._result = self._work()
        except Exception as error:  # handed to whoever asks for the result
            self._error = error
        finally:
            self._done.set()

    def wait(self, seconds: float) -> bool:
        """Whether the work was done within `seconds`."""
        return self._done.wait(max(seconds, 0.0))

    def result(self) -> T:
        """What the work returned; raises what it raised. Only after `wait` said True."""
        assert self._done.is_set()
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # T itself may be None


class Worker:
    """One daemon thread, started at the first job, that does one job at a time."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._jobs: SimpleQueue[Job[object] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._current: Job[object] | None = None

    @property
    def busy(self) -> bool:
        """Whether an earlier job has not returned yet."""
        return self._current is not None and not self._current.wait(0)

    def submit(self, work: Callable[[], T]) -> Job[T] | None:
        """Start `work`, or None while an earlier job still hangs."""
        if self.busy:
            return None
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=self.name, daemon=True)
            self._thread.start()
        job = Job(work)
        self._current = job  # type: ignore[assignment]  # what is inside does not matter to the queue
        self._jobs.put(job)  # type: ignore[arg-type]
        return job

    def close(self) -> None:
        """End the thread. One that hangs is kept: it could not be ended, and serves again if it comes back."""
        if self._thread is None or self.busy:
            return
        self._jobs.put(None)
        self._thread = None

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.run()
            del job
