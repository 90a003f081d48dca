"""Emulated BMCs and exporter pages on loopback, served by an event loop in a thread of its own."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import pytest

from inventory.drivers.fake.redfish import RedfishServer
from inventory.models import Bmc, Credential, Site
from sensaka.fleet.plan import NodePlan, make_plan
from sensaka.fleet.trees import behaviour_of, make_tree
from sensaka.fleet.world import World

NOON = 1_796_040_000.0
T = TypeVar("T")


class Peers:
    """Servers that run while the test does; `do` runs a coroutine on their loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._redfish: list[RedfishServer] = []
        self._plain: list[asyncio.Server] = []

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=20)

    def bmc(self, world: World, node: NodePlan, *, port: int = 0) -> RedfishServer:
        tree, behaviour = make_tree(world, node), behaviour_of(node.chassis.style)
        server = RedfishServer(tree, "operator", "secret", behaviour=behaviour, port=port)
        self.do(server.start())
        self._redfish.append(server)
        return server

    def stop(self, server: RedfishServer) -> None:
        self.do(server.stop())

    def mute(self) -> int:
        """A port that takes connections and never says a word."""

        async def listen() -> asyncio.Server:
            async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                try:
                    await asyncio.sleep(60)
                finally:
                    writer.close()

            return await asyncio.start_server(say_nothing, "127.0.0.1", 0)

        return self._listen(listen())

    def page(self, text: str | list[str]) -> str:
        """An exporter page; of several texts the first is the current one. Its address."""
        current = text if isinstance(text, list) else [text]

        async def listen() -> asyncio.Server:
            async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.readuntil(b"\r\n\r\n")
                body = current[0].encode()
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
                writer.close()

            return await asyncio.start_server(answer, "127.0.0.1", 0)

        return f"http://127.0.0.1:{self._listen(listen())}/metrics"

    def _listen(self, listening: Coroutine[Any, Any, asyncio.Server]) -> int:
        server = self.do(listening)
        self._plain.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    def close(self) -> None:
        async def end() -> None:
            for server in self._redfish:
                await server.stop()
            for plain in self._plain:
                plain.close()
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self.do(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()


@pytest.fixture
def peers() -> Iterator[Peers]:
    running = Peers()
    yield running
    running.close()


@pytest.fixture(scope="module")
def world() -> World:
    return World.fresh(make_plan(seed=1, nodes=64, ipmi=True), NOON)


@pytest.fixture
def site(db: None) -> Site:
    return Site.objects.create(name="Frankfurt", simulated=True)


@pytest.fixture
def credential(db: None) -> Credential:
    return Credential.objects.create(name="fleet", username="operator", password="secret")


@pytest.fixture
def add_bmc(site: Site, credential: Credential) -> Any:
    def add(port: int, **fields: Any) -> Bmc:
        base = {"site": site, "address": "127.0.0.1", "protocol": "redfish", "credential": credential}
        return Bmc.objects.create(**(base | {"port": port} | fields))

    return add
