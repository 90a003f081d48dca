"""One PostgreSQL connection of a web worker's own, outside Django's, that comes back by itself."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db import connections

log = logging.getLogger(__name__)

CONNECT_TIMEOUT = 5
STATEMENT_TIMEOUT = 10_000
"""ms: a statement that takes longer is given up, its posts are answered with 503 and come again."""

RETRY_EVERY = 0.5
"""Seconds between attempts while the database is away; calls in between fail at once."""


AWAY = (psycopg.OperationalError, psycopg.InterfaceError)
"""What psycopg raises when there is no connection, or no longer; deadlocks and timeouts are among them."""


class Unreachable(psycopg.OperationalError):
    """The database did not answer a moment ago; nothing was tried."""


class Connection:
    """Autocommit; used by one task at a time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._connection: psycopg.AsyncConnection[tuple[Any, ...]] | None = None
        self._lock = asyncio.Lock()
        self._tried = -RETRY_EVERY

    async def get(self) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        """An open connection; OperationalError when there is none to be had. Hold `lock` while using it."""
        if self._connection is not None and not self._connection.closed:
            return self._connection
        if time.monotonic() - self._tried < RETRY_EVERY:
            raise Unreachable("the database can't be reached")
        self._tried = time.monotonic()
        parameters = connections["default"].get_connection_params()
        for ours in ("cursor_factory", "context", "prepare_threshold"):
            parameters.pop(ours, None)
        self._connection = await psycopg.AsyncConnection.connect(
            **parameters,
            autocommit=True,
            connect_timeout=CONNECT_TIMEOUT,
            tcp_user_timeout=STATEMENT_TIMEOUT,
            application_name=f"sensaka {self._name}",
        )
        await self._connection.execute(f"SET statement_timeout = {STATEMENT_TIMEOUT}; SET timezone = 'UTC'")
        self._tried = -RETRY_EVERY
        return self._connection

    @property
    def lock(self) -> asyncio.Lock:
        return self._lock

    async def fetch(
        self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None
    ) -> list[tuple[Any, ...]]:
        """The rows of one statement. After a lost connection it is tried once more on a new one."""
        async with self._lock:
            for last in (False, True):
                connection = await self.get()
                try:
                    cursor = await connection.execute(sql, parameters)
                    return await cursor.fetchall() if cursor.description else []
                except AWAY:
                    if last or not connection.closed:
                        raise
            raise AssertionError("the loop returns or raises")

    async def close(self) -> None:
        """Close it; the next use opens a new one."""
        if self._connection is not None:
            await self._connection.close()
