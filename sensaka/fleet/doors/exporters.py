"""Exporter pages of simulated nodes, each on its own loopback address."""

import asyncio
import contextlib
from collections.abc import Iterable

from sensaka.fleet.pages import page
from sensaka.fleet.plan import NodePlan
from sensaka.fleet.web import Reply, Request, WebServer
from sensaka.fleet.world import World

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class ExporterPage:
    """The exporter of one node. It listens while the node's system runs; a silent one takes and never answers."""

    def __init__(self, world: World, node: NodePlan, port: int) -> None:
        self.node = node
        self._world = world
        self._server = WebServer(self._answer, node.exporter_address, port)
        self.listening = False

    async def apply(self) -> None:
        """Open or close the port as the world says."""
        wanted = self._world.runs(self.node)
        if wanted and not self.listening:
            await self._server.start()
        elif not wanted and self.listening:
            await self._server.stop()
        self.listening = wanted

    async def _answer(self, request: Request) -> Reply:
        if self._world.nodes[self.node.number].exporter_silent:
            await asyncio.sleep(3600)
        if request.path != "/metrics":
            return Reply(404, b"metrics are at /metrics\n", "text/plain")
        return Reply(200, page(self._world, self.node).encode(), _CONTENT_TYPE)

    async def close(self) -> None:
        """Close the port."""
        if self.listening:
            self.listening = False
            await self._server.stop()


class Exporters:
    """All exporters of the fleet."""

    def __init__(self, world: World, nodes: Iterable[NodePlan], port: int) -> None:
        self.port = port
        self._pages = [ExporterPage(world, node, port) for node in nodes]

    def url_of(self, node: NodePlan) -> str:
        """Where a node's page is."""
        return f"http://{node.exporter_address}:{self.port}/metrics"

    async def apply(self) -> None:
        """Open and close ports as the world says."""
        for item in self._pages:
            await item.apply()

    async def close(self) -> None:
        """Close every port."""
        for item in self._pages:
            with contextlib.suppress(OSError):
                await item.close()
