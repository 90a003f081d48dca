"""Fixtures of the pages of what schedulers run."""

import pytest
from django.test import Client

from sensaka.live import snapshots
from tests.sensaka.pages import seed, work_seed
from tests.steady import steady_frame

__all__ = ["steady_frame"]


@pytest.fixture
def work(db: None) -> work_seed.Work:
    snapshots.forget()
    return work_seed.build(seed.build(nodes_a_rack=2))


@pytest.fixture
def steering(work: work_seed.Work, client: Client) -> Client:
    client.force_login(work.made.users["operator"])
    return client
