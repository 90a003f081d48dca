"""Reading many slow sources at once from one task: claim, read concurrently, store one by one.

A round claims what is due, reads it on an event loop in a thread of its own and stores each answer
in the calling thread as it arrives, so a source that hangs until its deadline delays nobody: it only
occupies one of the slots. A round goes on claiming while reads are under way, at most `seconds`; when
nothing is due and nothing is under way it ends at once. Then it waits for what it has begun.

One round of a kind claims at a time, kept by an advisory lock that dies with the connection; once it
stops claiming it lets go, so the next round may start while slow sources of the last one run out. So
a kind of collecting occupies two workers at most, and a worker that is killed leaves nothing but
leases, which expire.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db import connection

from inventory.observations import FailureKind, ReadFailure
from sensaka.platform.database import in_trouble, rolled_back

log = logging.getLogger(__name__)

CONCURRENCY = 64  # reads under way in one round
CLAIM_SECONDS = 50.0  # a round claims no longer than this, well below the task's time limit
_FAREWELL = 10.0  # s a read may take beyond its deadline, to log out and close
_ATTEMPTS = 3  # to store an answer while others get in its way
_PAUSE = 0.5  # s between two looks for due work while reads are under way

Job = TypeVar("Job")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Round(Generic[Job, Answer]):
    """A kind of collecting. `lock` is its advisory lock's number; `claim(n)` leases at most n due jobs;
    `read` never takes longer than `deadline(job)` s, or it is cancelled and `store` gets None; so it does after an
    answer that it could not store itself. `store` leaves nothing half done when it raises."""

    lock: int
    claim: Callable[[int], Sequence[Job]]
    read: Callable[[Job], Awaitable[Answer]]
    deadline: Callable[[Job], float]
    store: Callable[[Job, Answer | None], None]


def unusable() -> ReadFailure:
    """What a source is told when `store` gets None: the fault is ours or the driver's."""
    detail = "its answer could not be read or stored; see the log"
    return ReadFailure(what="driver", kind=FailureKind.UNKNOWN, detail=detail)


@dataclass(slots=True)
class Tally:
    """What a round did."""

    read: int = 0
    broken: int = 0


class _Reader(Generic[Job, Answer]):
    """The event loop in its thread, and the answers it has brought so far."""

    def __init__(self, work: Round[Job, Answer]) -> None:
        self._work = work
        self._loop = asyncio.new_event_loop()
        self.answers: queue.SimpleQueue[tuple[Job, Answer | None]] = queue.SimpleQueue()
        self.under_way = 0
        self._thread = threading.Thread(target=self._loop.run_forever, name="collecting", daemon=True)
        self._thread.start()

    def begin(self, job: Job) -> None:
        self.under_way += 1
        asyncio.run_coroutine_threadsafe(self._read(job), self._loop)

    async def _read(self, job: Job) -> None:
        answer: Answer | None = None
        try:
            # Drivers keep their deadline themselves; this one is for a driver that does not.
            async with asyncio.timeout(self._work.deadline(job) + _FAREWELL):
                answer = await self._work.read(job)
        except TimeoutError:
            log.warning("reading %s did not keep its deadline and was broken off", job)
        except Exception:
            log.exception("reading %s failed inside the driver", job)
        finally:
            self.answers.put((job, answer))

    def take(self, patience: float) -> tuple[Job, Answer | None] | None:
        """The next answer; None when there was none in time."""
        try:
            answer = self.answers.get(timeout=patience)
        except queue.Empty:
            return None
        self.under_way -= 1
        return answer

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result(timeout=10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()


async def _cancel_all() -> None:
    """Ends what is left on the loop, and the threads in which it looked up names."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()


def run_round(work: Round[Job, Answer], *, seconds: float = CLAIM_SECONDS, concurrency: int = CONCURRENCY) -> Tally:
    """Claims, reads and stores until nothing is due, or `seconds` have passed. Returns what it did."""
    tally = Tally()
    if not _acquire(work.lock):
        return tally
    claiming = True
    reader: _Reader[Job, Answer] | None = None
    try:
        end = time.monotonic() + seconds
        looked = 0.0
        while True:
            under_way = reader.under_way if reader else 0
            if claiming and time.monotonic() >= end:
                claiming = False
                _release(work.lock)
            if claiming and under_way < concurrency and time.monotonic() - looked >= (_PAUSE if under_way else 0):
                looked = time.monotonic()
                for job in work.claim(concurrency - under_way):
                    reader = reader or _Reader(work)
                    reader.begin(job)
            if reader is None or not reader.under_way:
                break
            if (answer := reader.take(_PAUSE)) is not None:
                _store(work, answer[0], answer[1], tally)
    finally:
        if claiming:
            _release(work.lock)
        if reader is not None:
            reader.close()
    return tally


def _store(work: Round[Job, Answer], job: Job, answer: Answer | None, tally: Tally) -> None:
    """Stores an answer. What goes wrong there is the fault of this source alone, unless the database is in trouble."""
    tally.read += 1
    if _stored(work, job, answer):
        return
    tally.broken += 1
    if answer is not None:
        _stored(work, job, None)


def _stored(work: Round[Job, Answer], job: Job, answer: Answer | None) -> bool:
    for attempt in range(_ATTEMPTS):
        try:
            work.store(job, answer)
        except Exception as error:
            if in_trouble(error):
                raise  # every other source would meet the same; the leases bring them back
            if rolled_back(error) and attempt < _ATTEMPTS - 1:
                continue
            log.exception("what %s answered could not be stored", job)
            return False
        return True
    raise AssertionError("not reached")


def _acquire(lock: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [lock])
        return bool(cursor.fetchone()[0])


def _release(lock: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s)", [lock])


def run_once(coroutine: Coroutine[Any, Any, Answer]) -> Answer:
    """Runs one read to its end, for a page or command that waits for it."""
    return asyncio.run(coroutine)
