"""Posts become batches: all that arrive within 50 ms are stored by one COPY and answered after its commit.

A batch that fails for a reason of its own is written again post by post, so that one bad post costs only itself.
While the database is away every post is answered with 503, and nothing is acknowledged that is not committed.
"""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors

from inventory.ingest.connection import AWAY, Connection
from inventory.ingest.problems import Problem, unavailable
from inventory.services import sample_copy
from inventory.services.sample_copy import Plan
from inventory.services.sample_rows import Packed, Rows, count

log = logging.getLogger(__name__)

PERIOD = 0.05
"""Seconds between commits of one worker, at least."""

STORE_TIMEOUT = 15.0
"""Seconds for one batch, all its attempts together."""

MAX_BATCH = 20_000
MAX_WAITING = 100_000
"""Samples a batch, and samples that may wait in a worker before posts are turned away (some 50 MB)."""


@dataclass(slots=True, eq=False)
class Post:
    """The samples of one request and who waits for them: the future gives how many were stored."""

    rows: Packed
    size: int
    done: asyncio.Future[int]


class Batcher:
    """Collects posts and writes them. Belongs to one event loop; starts with the first post."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: list[Post] = []
        self._samples = 0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.stored_at = 0.0

    async def store(self, rows: Packed) -> int:
        """How many of the rows were stored now, after their commit; the others were there already.

        Raises Problem: 503 when too much waits or the database is away, 422 when PostgreSQL refuses these rows.
        """
        size = count(rows)
        if self._samples + size > MAX_WAITING:
            raise unavailable("too many samples wait to be stored", retry_after=1, code="overloaded")
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        post = Post(rows, size, self._task.get_loop().create_future())
        self._waiting.append(post)
        self._samples += size
        self._wake.set()
        return await post.done

    async def close(self) -> None:
        """Wait for what is being written, then stop; posts that come meanwhile are written too."""
        waiting = [post.done for post in self._waiting]
        if waiting:
            await asyncio.wait(waiting, timeout=STORE_TIMEOUT)
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        last = -PERIOD
        while True:
            await self._wake.wait()
            await asyncio.sleep(max(0.0, last + PERIOD - time.monotonic()))
            last = time.monotonic()
            batch = self._take()
            try:
                await self._write(batch)
            except Exception as error:
                log.exception("a batch of %d posts could not be written", len(batch))
                _fail(batch, _problem(error))

    def _take(self) -> list[Post]:
        posts = size = 0
        for post in self._waiting:
            if posts and size + post.size > MAX_BATCH:
                break
            posts += 1
            size += post.size
        batch, self._waiting = self._waiting[:posts], self._waiting[posts:]
        self._samples -= size
        if not self._waiting:
            self._wake.clear()
        return batch

    async def _write(self, batch: list[Post]) -> None:
        try:
            stored = await self._store(Rows.of([post.rows for post in batch]))
        except (*AWAY, TimeoutError) as error:
            log.warning("%d posts not stored, the database is away: %s", len(batch), str(error).strip())
            _fail(batch, unavailable("the database can't be reached; send the same again", retry_after=2))
        except Exception as error:
            if len(batch) == 1:
                log.warning("a post was not stored: %r", error)
                _fail(batch, _problem(error))
                return
            for post in batch:
                await self._write([post])
        else:
            self.stored_at = time.monotonic()
            for post, own in zip(batch, stored, strict=True):
                if not post.done.done():
                    post.done.set_result(own)

    async def _store(self, rows: Rows) -> Sequence[int]:
        """As services/samples.py does it: direct, then staged; deadlocks and missing partitions again."""
        way = sample_copy.direct
        async with self._connection.lock, self._patience():
            for attempt in range(sample_copy.ATTEMPTS):
                connection = await self._connection.get()
                try:
                    async with connection.transaction():
                        return await _execute(way(rows), connection)
                except errors.UniqueViolation:
                    way = sample_copy.staged
                except errors.DeadlockDetected:
                    way = sample_copy.staged
                    await asyncio.sleep(random.uniform(0.01, 0.05) * (attempt + 1))  # noqa: S311 - jitter
                except errors.CheckViolation:  # no partition for one of the days
                    for day in sample_copy.days(rows):
                        await connection.execute("SELECT inventory_add_sample_day(%s)", (day.date(),))
        raise psycopg.OperationalError("the samples could not be stored in several attempts")

    @asynccontextmanager
    async def _patience(self) -> AsyncIterator[None]:
        """TimeoutError when a server that does not even cancel takes too long; its connection is given up."""
        try:
            async with asyncio.timeout(STORE_TIMEOUT):
                yield
        except TimeoutError:
            await self._connection.close()
            raise


async def _execute(plan: Plan, connection: psycopg.AsyncConnection[tuple[Any, ...]]) -> Sequence[int]:
    async with connection.cursor() as cursor:
        result: list[tuple[Any, ...]] | None = None
        while True:
            try:
                statement = plan.send(result)  # type: ignore[arg-type]
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            if statement.payload is None:
                await cursor.execute(statement.sql, statement.parameters or None)
                result = await cursor.fetchall() if cursor.description else []
            else:
                async with cursor.copy(statement.sql) as copy:
                    await copy.write(statement.payload)
                result = []


def _fail(batch: list[Post], problem: Problem) -> None:
    for post in batch:
        if not post.done.done():
            post.done.set_exception(problem)


def _problem(error: Exception) -> Problem:
    if isinstance(error, psycopg.DataError | psycopg.IntegrityError):
        return Problem(422, "invalid", f"the database refuses these samples: {str(error).splitlines()[0]}")
    if isinstance(error, psycopg.Error):
        return unavailable("the database can't store samples now", retry_after=10)
    return Problem(500, "internal", "the samples could not be stored; the server's log says why")
