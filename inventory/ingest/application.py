"""POST /api/v1/telemetry/: token, body, cards, times; then the batch; then the answer.

200 {"stored": n, "repeated": m}   committed
400 no JSON, 401 no valid token, 405, 413 too large, 415
409 unknown_cards {cards}          send a report first; nothing stored
422 invalid | refused {samples}    names each sample from the future, too old, or of a card that was elsewhere
503 with Retry-After               nothing stored, send the same again
"""

import asyncio
import gc
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec

from inventory.ingest import wire
from inventory.ingest.attendance import Attendance
from inventory.ingest.batcher import Batcher
from inventory.ingest.connection import AWAY, Connection
from inventory.ingest.problems import Headers, Problem, unavailable
from inventory.ingest.registry import Entry, Registry
from inventory.observations import VALUE_FIELDS
from inventory.rules.activity import SOURCE_CODES
from inventory.services.sample_rows import Packed, count, pack
from inventory.services.samples import time_window

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_AGENT = SOURCE_CODES["agent"]
_VALUES = len(VALUE_FIELDS)
_JSON: Headers = [(b"content-type", b"application/json")]
_PROBLEM: Headers = [(b"content-type", b"application/problem+json")]
NAMED = 100
"""How many cards or samples a refusal names."""


class Disconnected(Exception):
    """The client went away before its body was there."""


class _Worker:
    """What one event loop holds: two connections, so that look-ups never wait behind a COPY."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.lookups, self.writes = Connection("look-ups"), Connection("samples")
        self.registry = Registry(self.lookups)
        self.batcher = Batcher(self.writes)
        self.attendance = Attendance(self.lookups)
        _calm_collector()


class TelemetryApplication:
    """The ASGI application. It starts with the first request and needs no lifespan."""

    def __init__(self) -> None:
        self._worker: _Worker | None = None
        self._window = (0.0, 0, 0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one HTTP request."""
        try:
            status, headers, body = 200, _JSON, await self._take(scope, receive)
        except Problem as problem:
            status, headers, body = problem.status, [*_PROBLEM, *problem.headers], problem.body()
        except Disconnected:
            return
        except AWAY as error:
            log.warning("a post was turned away, the database is away: %s", str(error).strip())
            away = unavailable("the database can't be reached; send the same again", retry_after=2)
            status, headers, body = 503, [*_PROBLEM, *away.headers], away.body()
        except Exception:
            log.exception("a post failed")
            status, headers, body = 500, _PROBLEM, Problem(500, "internal", "the server's log says why").body()
        head = [*headers, (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def close(self) -> None:
        """Write what waits and close the connections; a later request starts anew."""
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.batcher.close()
            worker.attendance.close()
            await worker.attendance.write()
            await worker.lookups.close()
            await worker.writes.close()

    def _state(self) -> _Worker:
        if self._worker is None or self._worker.loop is not asyncio.get_running_loop():
            self._worker = _Worker()
        return self._worker

    async def _take(self, scope: Scope, receive: Receive) -> bytes:
        if scope["method"] != "POST":
            raise Problem(405, "method", "POST telemetry here", headers=[(b"allow", b"POST")])
        headers = dict(scope["headers"])
        worker = self._state()
        digest = _digest(headers.get(b"authorization", b""))
        entry = worker.registry.known(digest) or await worker.registry.find(digest)
        if entry is None:
            raise _unauthorized("the token is not that of an enrolled agent, or it was revoked")
        _check_type(headers)
        body = wire.decompress(await _body(receive, headers), headers.get(b"content-encoding", b"").strip().lower())
        rows, interval = self._checked(body, entry) or await self._checked_anew(body, worker, digest)
        del body  # what waits for its batch is small: the packed rows
        stored = await worker.batcher.store(rows) if rows else 0
        worker.attendance.note(
            entry.agent,
            interval,
            _count(headers.get(b"x-sensaka-spooled"), 2**31 - 1),
            _count(headers.get(b"x-sensaka-dropped"), 2**63 - 1),
        )
        return b'{"stored":%d,"repeated":%d}' % (stored, count(rows) - stored)

    def _checked(self, body: bytes, entry: Entry) -> tuple[Packed, int] | None:
        """The rows of a body and its interval; None when it names cards that `entry` does not know."""
        telemetry = wire.decode(body)
        rows = self._rows(telemetry, entry)
        if rows is None:
            if _unknown(telemetry, entry):
                return None
            rows = self._picked(telemetry, entry)
        return rows, telemetry.interval

    async def _checked_anew(self, body: bytes, worker: _Worker, digest: str) -> tuple[Packed, int]:
        """As `_checked` after the node's cards were read again; Problem 409 that names those still unknown."""
        entry = await worker.registry.reload(digest)
        if entry is None:
            raise _unauthorized("the token was revoked")
        if checked := self._checked(body, entry):
            return checked
        missing = _unknown(wire.decode(body), entry)
        detail = "these cards are not known on this node: send a report first"
        raise Problem(409, "unknown_cards", detail, extra={"cards": missing[:NAMED]})

    def _rows(self, telemetry: wire.Telemetry, entry: Entry) -> Packed | None:
        """The samples as rows where nothing about them needs a closer look: this is nearly every post."""
        find, astuple = entry.plain.get, msgspec.structs.astuple
        series: list[int] = []
        times: list[int] = []
        values: list[tuple[float | None, ...]] = []
        moment, second = None, 0
        for sample in telemetry.samples:
            if (card := find(sample.card)) is None:
                return None
            if sample.sampled_at != moment:  # most often all cards are read at once
                moment = sample.sampled_at
                second = int(moment.timestamp() // 1)
            series.append(card)
            times.append(second)
            values.append(astuple(sample)[:_VALUES])
        oldest, newest = self._bounds()
        if times and (min(times) < oldest or max(times) > newest):
            return None
        return pack(times, series, _AGENT, telemetry.interval, values)

    def _picked(self, telemetry: wire.Telemetry, entry: Entry) -> Packed:
        """The samples one by one; Problem 422 that names those which can't be stored."""
        oldest, newest = self._bounds()
        times: list[int] = []
        cards: list[int] = []
        refused: list[dict[str, object]] = []
        for index, sample in enumerate(telemetry.samples):
            second = int(sample.sampled_at.timestamp() // 1)
            series = entry.plain.get(sample.card)
            if series is None:
                series = entry.resolve(sample.card, second)
            if series is None or not oldest <= second <= newest:
                reason = "elsewhere" if series is None else "future" if second > newest else "too_old"
                refused.append({"index": index, "card": sample.card, "sampled_at": sample.sampled_at, "reason": reason})
                continue
            times.append(second)
            cards.append(series)
        if refused:
            detail = f"{len(refused)} of {len(telemetry.samples)} samples can't be stored, so none was"
            raise Problem(422, "refused", detail, extra={"samples": refused[:NAMED]})
        values = [msgspec.structs.astuple(sample)[:_VALUES] for sample in telemetry.samples]
        return pack(times, cards, _AGENT, telemetry.interval, values)

    def _bounds(self) -> tuple[int, int]:
        """The accepted times, worked out once a second."""
        now = time.monotonic()
        if now - self._window[0] >= 1 or not self._window[2]:
            self._window = (now, *time_window(datetime.now(UTC)))
        return self._window[1:]


def _calm_collector() -> None:
    """Keep the garbage collector off what was imported, and let it run less often.

    A post makes some hundred objects that die by reference count alone; walking a heap of Django's size every
    700 of them took a third of the worker's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _digest(authorization: bytes) -> str:
    scheme, _, token = authorization.partition(b" ")
    token = token.strip()
    if scheme.lower() != b"token" or not token:
        raise _unauthorized("send Authorization: Token with the node's token")
    return sha256(token).hexdigest()


def _unauthorized(detail: str) -> Problem:
    return Problem(401, "unauthorized", detail, headers=[(b"www-authenticate", b"Token")])


def _check_type(headers: dict[bytes, bytes]) -> None:
    kind = headers.get(b"content-type", b"application/json")
    if kind != b"application/json" and kind.partition(b";")[0].strip().lower() != b"application/json":
        raise Problem(415, "media_type", "send application/json")


async def _body(receive: Receive, headers: dict[bytes, bytes]) -> bytes:
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > wire.MAX_BODY:
        raise _too_large()
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > wire.MAX_BODY:
            raise _too_large()
        if not message.get("more_body", False):
            return b"".join((*parts, part)) if parts else part
        parts.append(part)


def _too_large() -> Problem:
    return Problem(413, "too_large", f"at most {wire.MAX_BODY} bytes; split the batch")


def _unknown(telemetry: wire.Telemetry, entry: Entry) -> list[str]:
    named = {sample.card for sample in telemetry.samples}
    return sorted(named - entry.plain.keys() - entry.claims.keys())


def _count(header: bytes | None, limit: int) -> int | None:
    """A counter that the agent sends along; nonsense is no reason to refuse its samples."""
    return int(header) if header is not None and header.isdigit() and int(header) <= limit else None


application = TelemetryApplication()
