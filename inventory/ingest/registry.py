"""Which node a token belongs to and which cards it may report, cached for a moment in each web worker.

Valid tokens are read anew every few seconds, all at once, so that a revoked one is refused within ten. A node's
cards are read again when they are old or when a post names one that is not among them.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from inventory.ingest.connection import Connection

TOKENS_FRESH = 5.0
TOKENS_LIMIT = 9.0
CARDS_FRESH = 60.0
"""Seconds. Between TOKENS_FRESH and TOKENS_LIMIT a post is answered from memory while the tokens are read."""

FOREVER = 2**62


@dataclass(frozen=True, slots=True)
class Claim:
    """A card or slice that reports under one identity: from when to when it counts, and when it was elsewhere."""

    series: int
    since: int = -FOREVER
    until: int = FOREVER
    elsewhere: tuple[tuple[int, int], ...] = ()

    def away(self, second: int) -> bool:
        """Whether the card was in another node at `second`."""
        return any(start <= second < end for start, end in self.elsewhere)


@dataclass(slots=True)
class Entry:
    """One node: `plain` maps identities that need no look at the time to their series, `claims` the others."""

    agent: UUID
    node: UUID
    loaded: float
    plain: dict[str, int] = field(default_factory=dict)
    claims: dict[str, list[Claim]] = field(default_factory=dict)

    def resolve(self, identity: str, second: int) -> int | None:
        """The series of a contested identity at `second`; None when the card was in another node then."""
        here = [claim for claim in self.claims[identity] if not claim.away(second)]
        if not here:
            return None
        # before the first and after the last known span the nearest counts: a spool may hold older readings
        return next((claim for claim in here if claim.since <= second < claim.until), here[0]).series


_TOKENS = "SELECT token_digest FROM inventory_agent WHERE revoked_at IS NULL"
_AGENT = "SELECT id, node_id FROM inventory_agent WHERE token_digest = %s AND revoked_at IS NULL"
_MINE = """
    SELECT id FROM inventory_card WHERE node_id = %(node)s
    UNION SELECT card_id FROM inventory_placement WHERE node_id = %(node)s
"""
_CARDS = f"""
    SELECT id, coalesce(nullif(uuid, ''), nullif(serial, ''), pci_address), series FROM inventory_card
    WHERE id IN ({_MINE}) ORDER BY node_id IS DISTINCT FROM %(node)s, id DESC
"""  # noqa: S608 - no input in it
_STAYS = f"""
    SELECT card_id, extract(epoch FROM lower(span))::int8, extract(epoch FROM upper(span))::int8
    FROM inventory_placement WHERE node_id <> %(node)s AND card_id IN ({_MINE})
"""  # noqa: S608 - no input in it
_SLICES = f"""
    SELECT card_id, uuid, series, extract(epoch FROM opened_at)::int8, extract(epoch FROM closed_at)::int8
    FROM inventory_slice WHERE card_id IN ({_MINE}) ORDER BY opened_at DESC
"""  # noqa: S608 - no input in it


class Registry:
    """The cache. Raises psycopg errors when the database is needed and can't be reached."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._entries: dict[str, Entry] = {}
        self._loading: dict[str, asyncio.Task[Entry | None]] = {}
        self._tokens_read = -FOREVER * 1.0
        self._refresh: asyncio.Task[None] | None = None

    async def find(self, digest: str) -> Entry | None:
        """The node of a token's SHA-256 (hex); None when no agent has it or it was revoked."""
        now = time.monotonic()
        age = now - self._tokens_read
        if age > TOKENS_FRESH:
            self._start_refresh()
            if age > TOKENS_LIMIT:
                await self._joined(self._refresh)
        entry = self._entries.get(digest)
        if entry is not None and now - entry.loaded < CARDS_FRESH:
            return entry
        return await self.reload(digest)

    async def reload(self, digest: str) -> Entry | None:
        """Read a node's cards anew; posts of one node share the read."""
        task = self._loading.get(digest)
        if task is None:
            task = asyncio.create_task(self._load(digest))
            self._loading[digest] = task
            task.add_done_callback(lambda _: self._loading.pop(digest, None))
        return await self._joined(task)

    @staticmethod
    async def _joined(task: "asyncio.Task[Any] | None") -> Any:
        """The task's result; a caller that gives up does not take it from the others."""
        assert task is not None
        return await asyncio.shield(task)

    def _start_refresh(self) -> None:
        if self._refresh is None or self._refresh.done():
            self._refresh = asyncio.create_task(self._read_tokens())
            # a failure is raised to those who wait for it; without one there is nobody to tell
            self._refresh.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def _read_tokens(self) -> None:
        started = time.monotonic()
        valid = {row[0] for row in await self._connection.fetch(_TOKENS)}
        for digest in [digest for digest in self._entries if digest not in valid]:
            del self._entries[digest]
        self._tokens_read = started

    async def _load(self, digest: str) -> Entry | None:
        loaded = time.monotonic()
        found = await self._connection.fetch(_AGENT, (digest,))
        if not found:
            self._entries.pop(digest, None)
            return None
        agent, node = found[0]
        entry = Entry(agent=agent, node=node, loaded=loaded)
        parameters = {"node": node}
        cards = await self._connection.fetch(_CARDS, parameters)
        stays = await self._connection.fetch(_STAYS, parameters)
        slices = await self._connection.fetch(_SLICES, parameters)
        _fill(entry, cards, stays, slices)
        self._entries[digest] = entry
        return entry


Row = tuple[Any, ...]
Fetch = Callable[..., Awaitable[list[Row]]]


def _fill(entry: Entry, cards: list[Row], stays: list[Row], slices: list[Row]) -> None:
    away: dict[UUID, list[tuple[int, int]]] = {}
    for card, start, end in stays:
        away.setdefault(card, []).append((-FOREVER if start is None else start, FOREVER if end is None else end))
    claims: dict[str, list[Claim]] = {}
    for card, identity, series in cards:
        claims.setdefault(identity, []).append(Claim(series, elsewhere=tuple(away.get(card, ()))))
    for card, identity, series, opened, closed in slices:
        until = FOREVER if closed is None else closed
        claims.setdefault(identity, []).append(Claim(series, opened, until, tuple(away.get(card, ()))))
    for identity, found in claims.items():
        if len(found) == 1 and not found[0].elsewhere:
            entry.plain[identity] = found[0].series
        elif identity:
            entry.claims[identity] = found
