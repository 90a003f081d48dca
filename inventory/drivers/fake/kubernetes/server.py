"""A Kubernetes cluster on a port of this host: API server, scheduler, controllers and kubelets.

It runs in a thread with an event loop of its own, so tests and the simulated fleet may look at it and
steer it while a driver talks to it.
"""

import asyncio
import base64
import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml
from aiohttp import web

from inventory.drivers.fake.kubernetes import jobs, lifecycle, scheduling, services
from inventory.drivers.fake.kubernetes.answers import Refused, too_busy
from inventory.drivers.fake.kubernetes.api import Api, Request, Watch, now
from inventory.drivers.fake.kubernetes.kubelet import Kubelets
from inventory.drivers.fake.kubernetes.rights import EVERYTHING, Account
from inventory.drivers.fake.kubernetes.store import Store
from inventory.drivers.fake.redfish.certificate import Certificate, self_signed

ADMIN = "admin-token"
_LARGEST = 4 * 1024 * 1024  # bytes of a request's body
_PATIENCE = 10.0  # s to start or stop


@dataclass(frozen=True, slots=True)
class Logged:
    """One request that came."""

    method: str
    path: str
    query: Mapping[str, str]


class KubernetesServer:
    """One cluster. `start` before use, `stop` at the end; both may be called from any thread.

    `tick` is how often controllers look (s), `bookmarks` how often watches are told how far they are.
    `log` holds the requests; `busy` answers so many next requests with 429. Times are kept on the clock of
    this host.
    """

    def __init__(self, *, tls: bool = True, tick: float = 0.02, bookmarks: float = 60.0, history: int = 10_000) -> None:
        self.store = Store(history=history)
        self.kubelets = Kubelets(self.store)
        self.api = Api(self.store, {ADMIN: Account("kubernetes-admin", EVERYTHING)})
        self.log: list[Logged] = []
        self.busy = 0
        self.patience = 300.0  # s after which pods are to leave a node that is not ready
        self.port = 0
        self.certificate: Certificate | None = self_signed() if tls else None
        self.bookmarks = bookmarks
        self._tick = tick
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self._runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None
        self._wake = asyncio.Event()
        self._streams: set[web.StreamResponse] = set()
        self._ended = False
        self.store.changed.append(self._changed)

    def __enter__(self) -> "KubernetesServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Opens a free port and starts the controllers."""
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake-kubernetes", daemon=True)
        self._thread.start()
        self._wait(self._open())

    def stop(self) -> None:
        """Ends everything; may be called twice."""
        if self._thread is None:
            self._loop.close()  # never started, or stopped already
            return
        self._wait(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)
        self._loop.close()
        self._thread = None

    def _wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)

    async def _open(self) -> None:
        application = web.Application(client_max_size=_LARGEST)
        application.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await self._listen()
        self._worker = asyncio.create_task(self._work())

    async def _listen(self) -> None:
        context = self.certificate.server_context() if self.certificate else None
        assert self._runner is not None
        self._site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=context)
        await self._site.start()
        self.port = self._runner.addresses[-1][1]

    async def _close(self) -> None:
        self._ended = True
        self._worker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._worker
        self._cut()
        assert self._runner is not None
        await self._runner.cleanup()
        rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        await asyncio.sleep(0.02)  # connections are closed in the turns of the loop after that

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"{'https' if self.certificate else 'http'}://127.0.0.1:{self.port}"

    def account(self, name: str, rules: Sequence[Mapping[str, Any]]) -> str:
        """Adds an account; its token."""
        token = f"token-{name}"
        self.api.accounts[token] = Account(name, [dict(rule) for rule in rules])
        return token

    def kubeconfig(self, token: str = ADMIN, name: str = "stand-in") -> str:
        """What a client needs to come in, as a kubeconfig's text."""
        cluster: dict[str, str] = {"server": self.url}
        if self.certificate:
            cluster["certificate-authority-data"] = base64.b64encode(self.certificate.certificate.encode()).decode()
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": {"token": token}}],
        }
        return yaml.safe_dump(document)

    # --- faults -----------------------------------------------------------------------------------

    def cut_watches(self) -> None:
        """Every watch's line is cut, in the middle of whatever it was sending."""
        self._loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        for stream in list(self._streams):
            transport = stream._req.transport if stream._req is not None else None
            if transport is not None:
                transport.abort()

    def go_away(self) -> None:
        """The port is closed and every connection cut; the cluster itself goes on."""
        self._wait(self._go_away())

    async def _go_away(self) -> None:
        assert self._site is not None
        assert self._runner is not None
        await self._site.stop()
        server = self._runner.server
        for connection in list(server.connections) if server is not None else []:
            if connection.transport is not None:
                connection.transport.abort()

    def come_back(self) -> None:
        """The same port answers again."""
        self._wait(self._listen())

    # --- serving ----------------------------------------------------------------------------------

    def _changed(self) -> None:
        if not self._ended:
            self._loop.call_soon_threadsafe(self._wake.set)

    async def _work(self) -> None:
        """Controllers look after every change, and by the clock for what is due by time."""
        seen = -1
        while True:
            await asyncio.sleep(self._tick)
            if self.store.version != seen or self._loop.time() % 0.5 < self._tick:
                seen = self.store.version
                with self.store.lock:
                    self.settle()

    def settle(self) -> None:
        """One look of every controller."""
        lifecycle.work(self.store, self.patience)
        jobs.work(self.store)
        services.work(self.store)
        scheduling.schedule(self.store)
        self.kubelets.work()

    async def _serve(self, incoming: web.Request) -> web.StreamResponse:
        query = dict(incoming.query)
        self.log.append(Logged(incoming.method, incoming.path, query))
        if self.busy > 0:
            self.busy -= 1
            return _refusal(too_busy(1), {"Retry-After": "1"})
        scheme, _, token = incoming.headers.get("Authorization", "").partition(" ")
        request = Request(
            method=incoming.method,
            path=incoming.path,
            query=query,
            token=token if scheme == "Bearer" else "",
            accept=incoming.headers.get("Accept", ""),
            content=incoming.headers.get("Content-Type", ""),
            body=await incoming.read(),
        )
        try:
            answer = self.api.answer(request)
        except Refused as refusal:
            return _refusal(refusal)
        if isinstance(answer, Watch):
            return await self._stream(incoming, answer)
        status, body = answer
        return web.Response(status=status, body=body, content_type="application/json")

    async def _stream(self, incoming: web.Request, watch: Watch) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(incoming)
        self._streams.add(response)
        try:
            await self._follow(response, watch)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client went away, or its line was cut
        finally:
            self._streams.discard(response)
        return response

    async def _follow(self, response: web.StreamResponse, watch: Watch) -> None:
        end, version = now() + watch.seconds, watch.version
        marked = now()
        while not self._ended:
            try:
                events = list(self.store.events_after(version))
            except Refused as refusal:
                await response.write(msgspec.json.encode({"type": "ERROR", "object": refusal.body}) + b"\n")
                return
            lines = [watch.line(event) for event in events if watch.follows(event)]
            version = events[-1].version if events else version
            if watch.bookmarks and now() - marked >= self.bookmarks:
                marked = now()
                lines.append(watch.bookmark(version))
            if lines:
                await response.write(b"".join(lines))
            left = min(end - now(), self.bookmarks)
            if now() >= end:
                return
            self._wake.clear()
            if self.store.version == version:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._woken(), max(0.01, min(left, 0.5)))

    async def _woken(self) -> None:
        await self._wake.wait()


def _refusal(refusal: Refused, headers: Mapping[str, str] | None = None) -> web.Response:
    body = msgspec.json.encode(refusal.body)
    return web.Response(status=refusal.code, body=body, content_type="application/json", headers=headers)


Interference = Callable[[Request], None]
