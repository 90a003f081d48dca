"""The WebSocket at /ws/live/: a page subscribes to topics and gets what changed in their snapshots.

Client to server: {"subscribe": ["fleet", "node:<id>"]}, which replaces what was subscribed before.
Server to client: {"topic", "at", "full", "values": {key: cell}, "gone": [key]}; the first message
for a topic is full, later ones carry changed cells only. An empty one, after 10 s without change, is
the heartbeat. A topic is read at most once a second; every 10 s even if nobody announced a change.
Snapshots may be up to SETTLE old (two caches stand behind them), so a topic is read again until one
that was surely made after the change has been seen.
"""

import asyncio
import json
import logging
import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.utils import timezone

from sensaka.identity.models import User
from sensaka.live import snapshots
from sensaka.live.topics import Change, Topic, affected, parse

logger = logging.getLogger(__name__)
GAP = 1.0  # seconds between two messages of a topic
SETTLE = 1.6  # seconds: what the caches of snapshots and of current samples add up to, and a little
REREAD = 10.0  # seconds after which a topic is read again without a nudge
_MOST_TOPICS = 20
_LONGEST_MESSAGE = 32_768
NOT_SIGNED_IN = 4401
NOT_ALLOWED = 4403


@dataclass(slots=True)
class Followed:
    """What this connection last sent of a topic. `read_at` is on the monotonic clock."""

    sent: dict[str, Any] | None = None
    read_at: float = float("-inf")
    sent_at: float = float("-inf")
    nudged_at: float = float("-inf")
    dirty: bool = True

    def due(self, now: float) -> float:
        """When this topic is to be read next, on the monotonic clock."""
        return self.read_at + (GAP if self.dirty else REREAD)


@database_sync_to_async
def _still_allowed(user_id: UUID) -> bool:
    user = User.objects.filter(pk=user_id, is_active=True).first()
    return user is not None and user.sees_inventory


@database_sync_to_async
def _read(topic: Topic) -> dict[str, Any]:
    return snapshots.wire(topic)


class LiveConsumer(AsyncWebsocketConsumer):
    """One page's connection."""

    followed: dict[Topic, Followed]

    async def connect(self) -> None:
        user: object = self.scope.get("user")
        self.followed = {}
        self._joined: set[Change] = set()
        self._wake = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        await self.accept()
        if not isinstance(user, User):
            await self.close(NOT_SIGNED_IN)
        elif not await _still_allowed(user.pk):
            await self.close(NOT_ALLOWED)
        else:
            self._pump = asyncio.create_task(self._send_forever(user.pk))

    async def disconnect(self, code: int) -> None:
        if self._pump is not None:
            self._pump.cancel()
        for change in self._joined:
            try:
                await self.channel_layer.group_discard(change.value, self.channel_name)
            except (OSError, asyncio.CancelledError, RuntimeError) as error:
                logger.debug("leaving %s: %s", change.value, error)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        names: object = None
        if text_data is not None and len(text_data) <= _LONGEST_MESSAGE:
            try:
                message = json.loads(text_data)
            except (ValueError, RecursionError):
                message = None
            names = message.get("subscribe") if isinstance(message, dict) else None
        if not isinstance(names, list) or len(names) > _MOST_TOPICS:
            await self.send(json.dumps({"error": 'send {"subscribe": [topic, ...]}, at most 20 topics'}))
            return
        topics = [parse(name) if isinstance(name, str) else None for name in names]
        unknown = [str(name)[:100] for name, topic in zip(names, topics, strict=True) if topic is None]
        if unknown:
            await self.send(json.dumps({"error": f"no such topic: {', '.join(unknown)}"}))
        self.followed = {topic: Followed() for topic in topics if topic is not None}
        await self._join()
        self._wake.set()

    async def _join(self) -> None:
        """Enter the groups of what is followed. Without Redis the re-reading every 10 s has to do."""
        wanted = {change for topic in self.followed for change in topic.changes}
        for change in sorted(wanted - self._joined):
            try:
                await self.channel_layer.group_add(change.value, self.channel_name)
                self._joined.add(change)
            except Exception as error:  # the layer's errors depend on its backend
                logger.warning("live pages will be slow: %s can't be followed: %s", change.value, error)

    async def changed(self, event: dict[str, Any]) -> None:
        """A writer announced a change."""
        for topic in affected(self.followed, event["change"]):
            self.followed[topic].dirty = True
            self.followed[topic].nudged_at = time.monotonic()
        self._wake.set()

    async def _send_forever(self, user_id: UUID) -> None:
        checked_at = time.monotonic()
        while True:
            self._wake.clear()
            now = time.monotonic()
            for topic, state in list(self.followed.items()):
                if state.due(now) <= now:
                    await self._send_topic(topic, state)
            if now - checked_at > REREAD:
                checked_at = now
                await self._join()
                if not await self._allowed(user_id):
                    await self.close(NOT_ALLOWED)
                    return
            now = time.monotonic()
            next_due = min((state.due(now) for state in self.followed.values()), default=now + REREAD)
            try:
                await asyncio.wait_for(self._wake.wait(), max(0.05, next_due - now))
            except TimeoutError:
                continue

    async def _allowed(self, user_id: UUID) -> bool:
        try:
            return await _still_allowed(user_id)
        except Exception as error:  # the database is away: nobody reads anything, so nothing leaks
            logger.warning("live: %s", error)
            return True

    async def _send_topic(self, topic: Topic, state: Followed) -> None:
        state.read_at = time.monotonic()
        state.dirty = state.read_at < state.nudged_at + SETTLE
        try:
            values = await _read(topic)
        except Exception as error:  # the database is away: say so, keep the line, try again
            logger.warning("live %s: %s", topic, error)
            await self.send(
                json.dumps({"topic": str(topic), "trouble": "the server can't read its data at the moment"})
            )
            return
        before = state.sent
        message: dict[str, Any] = {"topic": str(topic), "at": timezone.now().isoformat(), "full": before is None}
        if before is None:
            message["values"] = values
        else:
            message["values"] = {key: cell for key, cell in values.items() if before.get(key) != cell}
            message["gone"] = [key for key in before if key not in values]
        state.sent = values
        changed = before is None or message["values"] or message["gone"]
        if not changed and state.read_at - state.sent_at < REREAD:
            return
        state.sent_at = state.read_at
        await self.send(json.dumps(message, separators=(",", ":")))
