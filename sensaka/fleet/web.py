"""A small HTTP server on an event loop, for exporter pages and the control address. Loopback only."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

_MOST_HEAD = 16 * 1024
_MOST_BODY = 256 * 1024
_IDLE = 75.0  # s that a kept connection may wait for its next request


@dataclass(frozen=True, slots=True)
class Request:
    """One request; header names are lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, status: int, value: object) -> "Reply":
        """A JSON answer."""
        return cls(status, json.dumps(value).encode() + b"\n")

    def encode(self, keep_alive: bool) -> bytes:
        """The bytes on the wire."""
        lines = [
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}",
            f"Content-Type: {self.content_type}",
            f"Content-Length: {len(self.body)}",
            f"Connection: {'keep-alive' if keep_alive else 'close'}",
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body


Handler = Callable[[Request], Awaitable[Reply]]


class WebServer:
    """Serves one handler on one address. `port` 0 takes a free one, which `port` tells after `start`."""

    def __init__(self, handler: Handler, host: str = "127.0.0.1", port: int = 0) -> None:
        self.host, self.port = host, port
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Open the port; OSError when it is taken."""
        self._server = await asyncio.start_server(self._serve, self.host, self.port, limit=_MOST_HEAD)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the port and every connection. Repeatable."""
        if self._server is None:
            return
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # the other side has gone, or speaks something else than HTTP
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        request = await asyncio.wait_for(_read(reader), _IDLE)
        if request is None:
            return False
        keep_alive = request.headers.get("connection", "").lower() != "close"
        reply = await self._handler(request)
        writer.write(reply.encode(keep_alive))
        await writer.drain()
        return keep_alive


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    length = int(headers.get("content-length", "0"))
    if not 0 <= length <= _MOST_BODY:
        raise ValueError("the body is too long")
    parts = urlsplit(target)
    body = await reader.readexactly(length)
    return Request(method, parts.path, dict(parse_qsl(parts.query)), headers, body)
