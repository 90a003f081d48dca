"""An emulated BMC for every test, and drivers on it that are always closed."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from inventory.drivers.bmc.redfish import RedfishBmc
from inventory.drivers.fake.redfish import RedfishServer, StaticTree
from inventory.observations import BmcTarget
from tests.contracts.redfish.trees import Tree

Serve = Callable[..., Awaitable[RedfishServer]]
Open = Callable[..., RedfishBmc]

PASSWORD = "correct horse"


def target_of(server: RedfishServer, **changes: Any) -> BmcTarget:
    """Where and how to reach an emulated BMC."""
    fields = {
        "address": server.host,
        "port": server.port,
        "protocol": "redfish",
        "username": "admin",
        "password": PASSWORD,
    }
    return BmcTarget(**{**fields, **changes})


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts servers; stops them after the test and checks that no session was left behind."""
    started: list[RedfishServer] = []

    async def start(tree: Tree, **options: Any) -> RedfishServer:
        server = RedfishServer(StaticTree(tree), "admin", PASSWORD, **options)
        await server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        await server.stop()


@pytest.fixture
async def connect(serve: Serve) -> AsyncIterator[Open]:
    """Opens drivers; closes them before the servers stop."""
    opened: list[tuple[RedfishBmc, RedfishServer]] = []

    def connect_to(server: RedfishServer, *, links: Any = None, concurrency: int = 8, **changes: Any) -> RedfishBmc:
        driver = RedfishBmc(target_of(server, **changes), links=links, concurrency=concurrency)
        opened.append((driver, server))
        return driver

    yield connect_to
    for driver, _ in opened:
        await driver.close()
