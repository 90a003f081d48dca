"""A small site with requests in every state, and people to look at them."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from inventory.models import ClusterConnection, Scheduler
from pools.models import ClusterMode, Extension, Mode, Request
from sensaka.identity.models import Role, User
from sensaka.live import snapshots
from tests.pools.building import World, allocation, person, request, world
from tests.steady import steady_frame

__all__ = ["steady_frame"]

SignIn = Callable[[User], Client]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What readers of a process share does not outlive a test."""
    snapshots.forget()
    yield
    snapshots.forget()


@pytest.fixture
def place(db: None) -> World:
    """Its cluster is managed and can start what is submitted onto named nodes."""
    made = world()
    ClusterMode.objects.create(cluster=made.cluster, mode=Mode.MANAGED)
    able = [{"capability": name, "available": True} for name in ("submit", "place")]
    ClusterConnection.objects.create(cluster=made.cluster, scheduler=Scheduler.SLURM, capabilities=able)
    return made


@pytest.fixture
def operator(db: None) -> User:
    return person("operator", Role.OPERATOR)


@pytest.fixture
def auditor(db: None) -> User:
    return person("auditor", Role.AUDITOR)


@pytest.fixture
def sign_in() -> SignIn:
    def signed(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return signed


def waiting(place: World, name: str = "red-waits", **fields: Any) -> Request:
    """A request of the red member that waits behind another team's work."""
    now = timezone.now()
    reasons = [
        {"code": "NO_FREE_CARDS", "args": {
            "needed": 8, "what": "H100", "where": "", "free": 3, "out": 0, "largest": 2, "released": 4,
            "release_at": int((now + timedelta(hours=2)).timestamp()), "release_by": "blue-secret"}},
        {"code": "BEHIND_PRIORITY", "args": {"ahead": 2, "first": "blue-secret"}},
    ]  # fmt: skip
    base = {
        "submitter": place.red.member, "name": name, "count": 8, "reasons": reasons, "position": 3,
        "expected_start": now + timedelta(hours=2), "waited_since": now, "submitted_at": now, "considered_at": now,
    }  # fmt: skip
    return request(place, place.red.project, **(base | fields))


def running(place: World, cards: int = 2, name: str = "red-runs", **fields: Any) -> Request:
    """A request of the red member that holds the first cards."""
    now = timezone.now()
    base = {
        "submitter": place.red.member, "name": name, "state": "running", "count": cards, "started_at": now,
        "submitted_at": now, "ends_at": now + timedelta(hours=1),
    }  # fmt: skip
    row = request(place, place.red.project, **(base | fields))
    for card in place.cards[:cards]:
        allocation(card, place.red, span=(now - timedelta(minutes=5), None), request=row, pool=place.pool,
                   spec=place.spec, source="managed")  # fmt: skip
    return row


@pytest.fixture
def rows(place: World) -> dict[str, Any]:
    """Something of the red team behind every kind of address."""
    runs = running(place)
    asked = Extension.objects.create(
        request=runs, seconds=7200, justification="red needs it", asked_by=place.red.member
    )
    request(place, place.blue.project, name="blue-secret", submitter=place.blue.member, position=1)
    return {
        "spec_id": place.spec.pk, "request_id": waiting(place).pk, "extension_id": asked.pk,
        "allocation_id": runs.allocations.first().pk,  # type: ignore[union-attr]
    }  # fmt: skip
