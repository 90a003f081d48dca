"""People and a small tree for the REST tests."""

from datetime import UTC, datetime

import pytest
from rest_framework.test import APIClient

from inventory.models import Card, Cluster, Node, Placement, Rack, Site
from sensaka.identity.models import Role, User

SEEN = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


def person(role: Role) -> APIClient:
    client = APIClient()
    client.force_authenticate(User.objects.create_user(username=str(role), password="x" * 20, role=role))
    return client


@pytest.fixture
def operator(db: None) -> APIClient:
    return person(Role.OPERATOR)


@pytest.fixture
def auditor(db: None) -> APIClient:
    return person(Role.AUDITOR)


@pytest.fixture
def member(db: None) -> APIClient:
    return person(Role.MEMBER)


@pytest.fixture
def site(db: None) -> Site:
    return Site.objects.create(name="Basel", time_zone="Europe/Zurich")


@pytest.fixture
def node(site: Site) -> Node:
    cluster = Cluster.objects.create(site=site, name="train")
    rack = Rack.objects.create(site=site, name="A01")
    return Node.objects.create(site=site, cluster=cluster, rack=rack, name="n01", state="active", system_serial="S1")


def add_cards(node: Node, count: int, *, start: int = 0) -> list[Card]:
    cards = []
    for number in range(start, start + count):
        card = Card.objects.create(
            node=node, uuid=f"GPU-{node.name}-{number}", serial=f"{node.name}{number}", vendor="NVIDIA",
            model_name="NVIDIA H100 80GB HBM3", pci_address=f"0000:{number:02x}:00.0", slot=str(number),
            first_seen_at=SEEN, state_since=SEEN,
        )  # fmt: skip
        Placement.objects.create(card=card, node=node, slot=card.slot, span=(SEEN, None))
        card.refresh_from_db()
        cards.append(card)
    return cards
