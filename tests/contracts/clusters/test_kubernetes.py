"""Kubernetes keeps the contract, against a stand-in that enforces exactly the rights of our manifest."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.contracts.cluster_contract import ClusterContract, Live
from tests.contracts.clusters.kubernetes import Handle, driver_for, small_cluster


class TestKubernetes(ClusterContract):
    @pytest_asyncio.fixture
    async def live(self) -> AsyncIterator[Live]:
        with small_cluster() as server:
            driver = driver_for(server)
            yield driver, Handle(server)
            await driver.close()
