"""A small Kubernetes for one test, and a driver for it that has the rights of our manifest."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from inventory.drivers.clusters.kubernetes import KubernetesCluster, access_of
from inventory.drivers.fake.kubernetes import KubernetesServer
from tests.contracts.clusters.kubernetes import our_token, small_cluster


@pytest.fixture
def kubernetes() -> Iterator[KubernetesServer]:
    """Two nodes of eight cards, quick bookmarks."""
    with small_cluster(bookmarks=0.2) as server:
        yield server


@pytest_asyncio.fixture
async def cluster(kubernetes: KubernetesServer) -> AsyncIterator[KubernetesCluster]:
    """By the account of our manifest."""
    driver = KubernetesCluster(access_of(kubernetes.kubeconfig(our_token(kubernetes))))
    yield driver
    await driver.close()
