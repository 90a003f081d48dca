"""slurmrestd on one loopback port, over plain HTTP as it is run behind a proxy."""

import asyncio
import contextlib

from inventory.drivers.fake.http import BadRequest, Response, read_request
from inventory.drivers.fake.slurmrestd.service import SlurmRest

_IDLE = 60.0  # s that a kept connection may wait for its next request


class SlurmRestServer:
    """Serves one `SlurmRest`. `port` 0 picks a free one, which `port` tells after `start`."""

    def __init__(self, service: SlurmRest, host: str = "127.0.0.1", port: int = 0) -> None:
        self.service, self.host, self.port = service, host, port
        self.requests = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Where it answers, without a trailing slash."""
        return f"http://{self.host}:{self.port}"

    async def start(self) -> None:
        """Opens the port; OSError when it is taken."""
        self._server = await asyncio.start_server(self._serve, self.host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Closes the port and every connection; may be called twice."""
        if self._server is None:
            return
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def __aenter__(self) -> "SlurmRestServer":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, TimeoutError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        try:
            request = await asyncio.wait_for(read_request(reader), _IDLE)
        except BadRequest as error:
            writer.write(Response(400, str(error).encode()).encode(keep_alive=False))
            return False
        if request is None:
            return False
        self.requests += 1
        writer.write(self.service.answer(request).encode(keep_alive=request.keep_alive))
        await writer.drain()
        return request.keep_alive
