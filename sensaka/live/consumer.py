"""The WebSocket at /ws/live/: a page subscribes to topics and gets what changed in their snapshots.

Client to server: {"subscribe": ["fleet", "node:<id>"]}, which replaces what was subscribed before.
Server to client: {"topic", "at", "full", "values": {key: cell}, "gone": [key]}; the first message
for a topic is full, later ones carry changed cells only. An empty one, after 10 s without change, is
the heartbeat. A topic is read at most once a second; every 10 s even if nobody announced a change.
Snapshots may be up to SETTLE old (two caches stand behind them), so a topic is read again until one
that was surely made after the change has been seen.

Operators and auditors follow every topic, others those that show each person what is theirs
(`topics.OWN`). The line ends with the sign-in that opened it: at once when the person signs out (4401), and
within 10 s when they may no longer look (4403), or when the word of the sign-out was lost.
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
from sensaka.live import sessions, snapshots
from sensaka.live.topics import Topic, affected, parse

logger = logging.getLogger(__name__)
GAP = 1.0  # seconds between two messages of a topic
SETTLE = 1.6  # seconds: what the caches of snapshots and of current samples add up to, and a little
REREAD = 10.0  # seconds after which a topic is read again without a nudge
_MOST_TOPICS = 60  # as in static/js/live.js, which tells when a page has more
_LONGEST_MESSAGE = 65_536
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


async def _admitted(user_id: UUID, session_key: str | None) -> User | int:
    """Who listens, as they are now, or the code with which to close a line that may no longer be open."""
    active = User.objects.filter(pk=user_id, is_active=True)
    user = await active.afirst() if session_key is None else await sessions.signed_in(session_key)
    if user is None:
        return NOT_SIGNED_IN if await active.aexists() else NOT_ALLOWED
    return user


@database_sync_to_async
def _read(topic: Topic, user: User) -> dict[str, Any]:
    return snapshots.own_wire(topic, user) if topic.own else snapshots.wire(topic)


class LiveConsumer(AsyncWebsocketConsumer):
    """One page's connection."""

    followed: dict[Topic, Followed]
    _user: User

    async def connect(self) -> None:
        user: object = self.scope.get("user")
        self.followed = {}
        self._session: str | None = getattr(self.scope.get("session"), "session_key", None)
        self._joined: set[str] = set()
        self._wake = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        await self.accept()
        if not isinstance(user, User):
            await self.close(NOT_SIGNED_IN)
        elif isinstance(found := await _admitted(user.pk, self._session), int):
            await self.close(found)
        else:
            self._user = found
            await self._join()
            self._pump = asyncio.create_task(self._send_while_heard())

    async def disconnect(self, code: int) -> None:
        if self._pump is not None:
            self._pump.cancel()
        for group in self._joined:
            try:
                await self.channel_layer.group_discard(group, self.channel_name)
            except (OSError, asyncio.CancelledError, RuntimeError) as error:
                logger.debug("leaving %s: %s", group, error)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        names: object = None
        if text_data is not None and len(text_data) <= _LONGEST_MESSAGE:
            try:
                message = json.loads(text_data)
            except (ValueError, RecursionError):
                message = None
            names = message.get("subscribe") if isinstance(message, dict) else None
        if not isinstance(names, list) or len(names) > _MOST_TOPICS:
            await self.send(json.dumps({"error": f'send {{"subscribe": [topic, ...]}}, at most {_MOST_TOPICS} topics'}))
            return
        if self._pump is None:
            return  # the line is being closed
        topics = [self._topic(name) for name in names]
        unknown = [str(name)[:100] for name, topic in zip(names, topics, strict=True) if topic is None]
        if unknown:
            await self.send(json.dumps({"error": f"no such topic: {', '.join(unknown)}"}))
        self.followed = {topic: Followed() for topic in topics if topic is not None}
        await self._join()
        self._wake.set()

    def _topic(self, name: object) -> Topic | None:
        """The topic of this name; None where there is none, or none for this person."""
        topic = parse(name) if isinstance(name, str) else None
        return topic if topic is not None and (topic.own or self._user.sees_inventory) else None

    async def _join(self) -> None:
        """Enter the groups of the sign-in and of what is followed. Without Redis the round of 10 s has to do."""
        wanted = {change.value for topic in self.followed for change in topic.changes}
        if self._session is not None:
            wanted.add(sessions.group(self._session))
        for group in sorted(wanted - self._joined):
            try:
                await self.channel_layer.group_add(group, self.channel_name)
                self._joined.add(group)
            except Exception as error:  # the layer's errors depend on its backend
                logger.warning("live pages will be slow: %s can't be followed: %s", group, error)

    async def changed(self, event: dict[str, Any]) -> None:
        """A writer announced a change."""
        for topic in affected(self.followed, event["change"]):
            self.followed[topic].dirty = True
            self.followed[topic].nudged_at = time.monotonic()
        self._wake.set()

    async def ended(self, event: dict[str, Any]) -> None:
        """The person signed out."""
        if self._pump is not None:
            self._pump.cancel()
        await self.close(NOT_SIGNED_IN)

    async def _send_while_heard(self) -> None:
        try:
            await self._send_forever()
        except OSError as error:  # the page left while something was on its way to it; `disconnect` follows
            logger.debug("live: %s", error)

    async def _send_forever(self) -> None:
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
                if code := await self._refusal():
                    await self.close(code)
                    return
            now = time.monotonic()
            next_due = min((state.due(now) for state in self.followed.values()), default=now + REREAD)
            try:
                await asyncio.wait_for(self._wake.wait(), max(0.05, next_due - now))
            except TimeoutError:
                continue

    async def _refusal(self) -> int | None:
        """The code with which to close the line of who may no longer look at what they follow."""
        try:
            found = await _admitted(self._user.pk, self._session)
        except Exception as error:  # the database is away: nobody reads anything, so nothing leaks
            logger.warning("live: %s", error)
            return None
        if isinstance(found, int):
            return found
        self._user = found
        return None if found.sees_inventory or all(topic.own for topic in self.followed) else NOT_ALLOWED

    async def _send_topic(self, topic: Topic, state: Followed) -> None:
        state.read_at = time.monotonic()
        state.dirty = state.read_at < state.nudged_at + SETTLE
        try:
            values = await _read(topic, self._user)
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
