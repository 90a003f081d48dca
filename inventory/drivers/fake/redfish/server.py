"""Listens, keeps connections, and lets faults strike. Many servers share one event loop."""

import asyncio
import contextlib
from collections.abc import Iterable

from inventory.drivers.fake.http import BadRequest, Request, Response, read_request
from inventory.drivers.fake.redfish.certificate import Certificate, self_signed
from inventory.drivers.fake.redfish.faults import Fault, LoggedRequest, RequestLog
from inventory.drivers.fake.redfish.service import Behaviour, RedfishService
from inventory.drivers.fake.redfish.tree import RedfishTree

_IDLE_SECONDS = 60.0
_HANDSHAKE_SECONDS = 5.0
_HEADERS = ("OData-Version: 4.0",)


class RedfishServer:
    """One emulated BMC on one port.

    `port` 0 picks a free one, which `port` tells after `start`. `faults` is a plain list that may be
    changed while it runs; `log` says what came. `connection_limit` drops connections beyond it, as
    small web servers on BMCs do. Costs a listening socket and no task until somebody connects.
    """

    def __init__(
        self,
        tree: RedfishTree,
        username: str = "admin",
        password: str = "admin",  # noqa: S107 -- an emulator's account, which tests and demos choose
        host: str = "127.0.0.1",
        port: int = 0,
        tls: bool = True,
        faults: Iterable[Fault] = (),
        *,
        behaviour: Behaviour | None = None,
        certificate: Certificate | None = None,
        connection_limit: int = 32,
    ) -> None:
        self.service = RedfishService(tree, username=username, password=password, behaviour=behaviour or Behaviour())
        self.host, self.port = host, port
        self.certificate = (certificate or self_signed(host)) if tls else None
        self.faults = list(faults)
        self.log = RequestLog()
        self._connection_limit = connection_limit
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Where it answers, without a trailing slash."""
        return f"{'https' if self.certificate else 'http'}://{self.host}:{self.port}"

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate, or nothing without TLS."""
        return self.certificate.fingerprint if self.certificate else ""

    async def start(self) -> None:
        """Opens the port; OSError when it is taken."""
        context = self.certificate.server_context() if self.certificate else None
        patience = _HANDSHAKE_SECONDS if context else None
        self._server = await asyncio.start_server(
            self._serve, self.host, self.port, ssl=context, backlog=128, ssl_handshake_timeout=patience
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Closes the port and every connection; may be called twice."""
        if self._server is None:
            return
        # What was accepted a moment ago has to reach its transport first: asyncio loses it otherwise.
        loop = asyncio.get_running_loop()
        for listener in self._server.sockets:
            loop.remove_reader(listener.fileno())
        for _ in range(3):
            await asyncio.sleep(0)
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def __aenter__(self) -> "RedfishServer":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        self.log.connections += 1
        self.log.peak_connections = max(self.log.peak_connections, self.log.connections)
        try:
            if self.log.connections <= self._connection_limit:
                await self._converse(reader, writer)
        except (ConnectionError, TimeoutError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self.log.connections -= 1
            if task is not None:
                self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await asyncio.wait_for(writer.wait_closed(), 1.0)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        keep_alive = True
        while keep_alive:
            try:
                request = await asyncio.wait_for(read_request(reader), _IDLE_SECONDS)
            except BadRequest as error:
                writer.write(Response(400, str(error).encode()).encode(keep_alive=False, always=_HEADERS))
                return
            if request is None:
                return
            self.log.begin()
            status = 0
            try:
                response = await self._respond(request, reader)
                if response is None:
                    writer.transport.abort()
                    return
                status = response.status
                keep_alive = request.keep_alive and response.sent is None
                writer.write(response.encode(keep_alive=keep_alive, always=_HEADERS))
                await writer.drain()
            finally:
                self.log.end(self._entry(request, status))

    async def _respond(self, request: Request, reader: asyncio.StreamReader) -> Response | None:
        for fault in self.faults:
            if not fault.strikes(request.method, request.path, request.raw_query):
                continue
            await asyncio.sleep(fault.delay)
            headers = {"Content-Type": fault.content_type, **fault.headers}
            if fault.hang:
                await reader.read()
                return None
            if fault.disconnect:
                return None
            if fault.status is not None:
                return Response(fault.status, fault.body or b"{}", headers)
            if fault.body is not None:
                return Response(200, fault.body, headers)
            if fault.truncate:
                response = self.service.answer(request)
                response.sent = len(response.body) // 2
                return response
        return self.service.answer(request)

    def _entry(self, request: Request, status: int) -> LoggedRequest:
        return LoggedRequest(
            method=request.method,
            path=request.path,
            query=request.raw_query,
            credentials=self.service.credentials_of(request),
            if_match=request.headers.get("if-match", ""),
            status=status,
        )
