"""Following jobs of a scheduler that tells no changes: read again and again, and compare."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from inventory.drivers.clusters.readings import JobReading, JobsChange, JobsReading

INTERVAL = 5.0  # s between two readings

Read = Callable[[float], Awaitable[JobsReading]]


async def follow_by_polling(read: Read, *, deadline: float, interval: float = INTERVAL) -> AsyncIterator[JobsChange]:
    """Changes until `deadline` (s from now). `read` gets the seconds that are left.

    An incomplete reading is told and compared with nothing: what it lacks is not gone.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + deadline
    known: dict[str, JobReading] | None = None
    while (left := end - loop.time()) > 0:
        reading = await read(left)
        change = _compared(known, reading)
        if reading.complete:
            known = {job.key: job for job in reading.jobs}
        if change is not None:
            yield change
        await asyncio.sleep(min(interval, max(0.0, end - loop.time())))


def _compared(known: dict[str, JobReading] | None, reading: JobsReading) -> JobsChange | None:
    if not reading.complete:
        return JobsChange(observed_at=reading.observed_at, complete=False, failures=reading.failures)
    if known is None:
        return JobsChange(observed_at=reading.observed_at, jobs=reading.jobs, whole=True)
    jobs = tuple(job for job in reading.jobs if known.get(job.key) != job)
    present = {job.key for job in reading.jobs}
    gone = tuple(job for key, job in known.items() if key not in present)
    return JobsChange(observed_at=reading.observed_at, jobs=jobs, gone=gone) if jobs or gone else None
