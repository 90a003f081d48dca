"""Which node a token belongs to and which cards it may report, cached for a moment in each web worker.

Valid tokens are read anew every few seconds, all at once, so that a revoked one is refused within ten. A node's
cards are read again when they are old or when a post names one that is not among them.
"""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from inventory.ingest.connection import Connection

TOKENS_FRESH = 5.0
TOKENS_LIMIT = 9.0
CARDS_FRESH = 300.0
"""Seconds. Between TOKENS_FRESH and TOKENS_LIMIT a post is answered from memory while the tokens are read."""

GATHER = 0.01
"""Seconds in which posts of many nodes join one read, so that a start with thousands of them costs few."""

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

# One statement for all nodes that are asked for at a time: agents and the stays of their cards in other nodes first,
# then slices (the newest first) and cards (the present ones first).
_NODES = """
    WITH agents AS MATERIALIZED (
        SELECT token_digest, id, node_id FROM inventory_agent WHERE token_digest = ANY(%s) AND revoked_at IS NULL
    ), mine AS MATERIALIZED (
        SELECT token_digest, agents.node_id, card.id FROM agents JOIN inventory_card card USING (node_id)
        UNION
        SELECT token_digest, agents.node_id, stay.card_id FROM agents JOIN inventory_placement stay USING (node_id)
    )
    SELECT 'agent' AS kind, token_digest, id, node_id AS other, NULL::text AS identity, NULL::int4 AS series,
           NULL::int8 AS since, NULL::int8 AS until, -9e15::int8 AS place
    FROM agents
    UNION ALL
    SELECT 'card', token_digest, card.id, NULL, coalesce(nullif(uuid, ''), nullif(serial, ''), pci_address),
           card.series, NULL, NULL, CASE WHEN card.node_id = mine.node_id THEN 1 ELSE 2 END
    FROM mine JOIN inventory_card card USING (id)
    UNION ALL
    SELECT 'slice', token_digest, card_id, NULL, uuid, slice.series, extract(epoch FROM opened_at)::int8,
           extract(epoch FROM closed_at)::int8, -extract(epoch FROM opened_at)::int8
    FROM mine JOIN inventory_slice slice ON slice.card_id = mine.id
    UNION ALL
    SELECT 'stay', token_digest, card_id, NULL, NULL, NULL, extract(epoch FROM lower(span))::int8,
           extract(epoch FROM upper(span))::int8, -9e15::int8
    FROM mine JOIN inventory_placement stay ON stay.card_id = mine.id AND stay.node_id <> mine.node_id
    ORDER BY place
"""


class Registry:
    """The cache. Raises psycopg errors when the database is needed and can't be reached."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._entries: dict[str, Entry] = {}
        self._wanted: set[str] = set()
        self._loading: asyncio.Task[None] | None = None
        self._tokens_read = -FOREVER * 1.0
        self._refresh: asyncio.Task[None] | None = None

    def known(self, digest: str) -> Entry | None:
        """As `find` where all that it takes is in memory and fresh; None otherwise."""
        now = time.monotonic()
        entry = self._entries.get(digest)
        if entry is None or now - entry.loaded >= CARDS_FRESH or now - self._tokens_read > TOKENS_FRESH:
            return None
        return entry

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
        """Read a node's cards anew, together with all others that are asked for within GATHER."""
        self._wanted.add(digest)
        if self._loading is None or self._loading.done():
            self._loading = asyncio.create_task(self._load())
        await self._joined(self._loading)
        return self._entries.get(digest)

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

    async def _load(self) -> None:
        await asyncio.sleep(GATHER)
        loaded = time.monotonic()
        wanted, self._wanted = self._wanted, set()
        self._loading = None  # whoever asks from now on may want what is written from now on
        rows = await self._connection.fetch(_NODES, (list(wanted),))
        found = _entries(rows, loaded)
        for digest in wanted:
            if digest in found:
                self._entries[digest] = found[digest]
            else:
                self._entries.pop(digest, None)


def _entries(rows: list[tuple[Any, ...]], loaded: float) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    away: dict[tuple[str, UUID], list[tuple[int, int]]] = {}
    claims: dict[tuple[str, str], list[Claim]] = {}
    for kind, digest, key, node, identity, series, since, until, _ in rows:
        start, end = -FOREVER if since is None else since, FOREVER if until is None else until
        if kind == "agent":
            entries[digest] = Entry(agent=key, node=node, loaded=loaded)
        elif kind == "stay":
            away.setdefault((digest, key), []).append((start, end))
        elif identity:
            elsewhere = tuple(away.get((digest, key), ()))
            claims.setdefault((digest, identity), []).append(Claim(series, start, end, elsewhere))
    for (digest, identity), found in claims.items():
        if len(found) == 1 and not found[0].elsewhere:
            entries[digest].plain[identity] = found[0].series
        else:
            entries[digest].claims[identity] = found
    return entries
