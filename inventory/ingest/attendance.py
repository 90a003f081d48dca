"""What web workers write down about agents and tell the rest of Sensaka, each at its own slow rhythm.

An agent's row is touched at most every 10 s, all agents of the worker in one statement, and `samples_stored` is sent
at most once a second, whatever the rate of posts.
"""

import asyncio
import logging
import time
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

import psycopg

from inventory.ingest.connection import Connection
from inventory.signals import samples_stored

log = logging.getLogger(__name__)

TELL_EVERY = 1.0
WRITE_EVERY = 10.0

_UPDATE = """
    UPDATE inventory_agent AS agent SET
        attempted_at = seen.at, succeeded_at = seen.at, interval = seen.interval,
        spooled = coalesce(seen.spooled, agent.spooled), dropped = coalesce(seen.dropped, agent.dropped),
        failing_since = NULL, misses = 0, error_kind = '', error_detail = '', updated_at = now()
    FROM (
        SELECT seen.* FROM unnest(%s::uuid[], %s::timestamptz[], %s::int2[], %s::int4[], %s::int8[])
            AS seen(id, at, interval, spooled, dropped)
        JOIN inventory_agent USING (id) ORDER BY id FOR NO KEY UPDATE OF inventory_agent
    ) AS seen WHERE agent.id = seen.id
"""


class Seen(NamedTuple):
    """An agent's last post: when (epoch seconds), its rhythm (s), records that wait and that were lost on the node."""

    at: float
    interval: int
    spooled: int | None
    dropped: int | None


class Attendance:
    """Belongs to one event loop; starts with the first post."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._seen: dict[UUID, Seen] = {}
        self._stored = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def note(self, agent: UUID, interval: int, spooled: int | None, dropped: int | None) -> None:
        """A post of `agent` was stored just now."""
        self._seen[agent] = Seen(time.time(), interval, spooled, dropped)
        self._stored.set()
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._tell()), asyncio.create_task(self._keep())]

    def close(self) -> None:
        """Stop; what was noted since the last write is lost, the next post brings it again."""
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    async def _tell(self) -> None:
        while True:
            await self._stored.wait()
            self._stored.clear()
            for receiver, result in await samples_stored.asend_robust(sender=Attendance):
                if isinstance(result, Exception):
                    log.error("%r failed", receiver, exc_info=result)
            await asyncio.sleep(TELL_EVERY)

    async def _keep(self) -> None:
        await asyncio.sleep(TELL_EVERY)  # the first post of an agent shows soon
        while True:
            await self.write()
            await asyncio.sleep(WRITE_EVERY)

    async def write(self) -> None:
        """Write down what was noted; when the database is away it waits for the next time."""
        seen, self._seen = self._seen, {}
        if not seen:
            return
        columns: list[list[object]] = [
            list(seen),
            [datetime.fromtimestamp(one.at, UTC) for one in seen.values()],
            [one.interval for one in seen.values()],
            [one.spooled for one in seen.values()],
            [one.dropped for one in seen.values()],
        ]
        try:
            await self._connection.fetch(_UPDATE, columns)
        except psycopg.Error as error:
            log.warning("agents' last posts not written down: %s", str(error).strip())
            self._seen = seen | self._seen
