"""Fixtures for the tests of pools that need a database."""

import pytest

from sensaka.identity.models import Role, User
from tests.pools.building import World, person, world


@pytest.fixture
def place(db: None) -> World:
    return world()


@pytest.fixture
def operator(db: None) -> User:
    return person("operator", Role.OPERATOR)


@pytest.fixture
def auditor(db: None) -> User:
    return person("auditor", Role.AUDITOR)
