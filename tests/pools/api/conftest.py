"""Clients by role for the REST tests of pools."""

from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from sensaka.identity.models import Role, User
from tests.pools.building import World, person


def client_of(user: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client


Clients = Callable[[str], APIClient]


@pytest.fixture
def as_(place: World) -> Clients:
    """`as_("operator")`, `as_("red-admin")`, `as_("blue-member")`, `as_("stranger")`, `as_("nobody")`."""
    made: dict[str, APIClient] = {
        "operator": client_of(person("operator", Role.OPERATOR)),
        "auditor": client_of(person("auditor", Role.AUDITOR)),
        "stranger": client_of(person("stranger")),
        "nobody": APIClient(),
    }
    for team in (place.red, place.blue):
        made |= {user.username: client_of(user) for user in (team.admin, team.member)}
    return made.__getitem__
