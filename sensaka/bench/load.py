"""A load client for HTTP/1.1 that costs little itself: bare sockets, prepared requests, the answer's status only."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Load:
    """What a run gave. `latencies` are seconds from the request's first byte to the answer's last."""

    answered: int = 0
    refused: int = 0
    stored: int = 0
    wall: float = 0.0
    latencies: list[float] = field(default_factory=list)
    first_refusal: bytes = b""

    def percentile(self, part: float) -> float:
        """The latency in ms that `part` of the posts stayed below."""
        ordered = sorted(self.latencies)
        return 1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0


class Line(asyncio.Protocol):
    """One kept-alive connection with one request under way."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._waiting: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0 or self._waiting is None:
            return
        at = self._buffer.lower().find(b"content-length:", 0, head)
        length = int(self._buffer[at + 15 : self._buffer.index(b"\r\n", at)])
        if len(self._buffer) >= head + 4 + length:
            answer = bytes(self._buffer)
            self._buffer.clear()
            waiting, self._waiting = self._waiting, None
            if not waiting.done():
                waiting.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(exc or ConnectionResetError("the server closed the connection"))

    def close(self) -> None:
        """Drop the connection."""
        if self.transport is not None:
            self.transport.abort()

    def ask(self, request: bytes) -> asyncio.Future[bytes]:
        """The whole answer to one request."""
        assert self.transport is not None
        self._waiting = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._waiting


async def post_all(port: int, request: Callable[[int], bytes], *, lines: int, seconds: float, samples: int) -> Load:
    """Post `request(0)`, `request(1)`, ... on `lines` connections as fast as they are answered.

    `samples` are in each post; an answer of 200 counts what it says was stored.
    """
    load = Load()
    loop = asyncio.get_running_loop()
    numbers = iter(range(10**9))
    connected = [(await loop.create_connection(Line, "127.0.0.1", port))[1] for _ in range(lines)]
    whole = b'{"stored":%d,"repeated":0}' % samples
    started = time.perf_counter()
    end = started + seconds

    async def drive(line: Line) -> None:
        while (sent := time.perf_counter()) < end:
            answer = await line.ask(request(next(numbers)))
            load.latencies.append(time.perf_counter() - sent)
            if answer.endswith(whole) and answer.startswith(b"HTTP/1.1 200"):
                load.answered += 1
                load.stored += samples
            else:
                load.refused += 1
                load.first_refusal = load.first_refusal or answer[:600]

    await asyncio.gather(*(drive(line) for line in connected))
    load.wall = time.perf_counter() - started
    for line in connected:
        line.close()
    return load
