"""Every page opens for those who may, with a bounded number of queries, and for nobody else (I1, U1, U4, U5, X3)."""

import json
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sensaka.cockpit import context
from sensaka.live import fleet, snapshots
from tests.sensaka.pages import seed

COUNTS = Path(__file__).with_name("query_counts.json")


@pytest.fixture
def seeded(db: None) -> seed.Seeded:
    fleet.forget()
    snapshots.forget()
    return seed.build()


def addresses(made: seed.Seeded) -> dict[str, str]:
    card, divided, node = made.cards[0], made.cards[-1], made.nodes["a01-gpu01"]
    names = (
        "overview",
        "attention-list",
        "overview-groups",
        "map",
        "tree",
        "tree-part",
        "nodes",
        "cards",
        "clusters",
        "jobs",
        "cordons",
        "journal",
        "search",
        "collectors",
        "places",
        "credentials",
        "card-models",
        "thresholds",
        "users",
        "profile",
        "tokens",
    )
    found = {name: reverse(name) for name in names}
    found["map-data"] = f"{reverse('map-data')}?measure=power&layout=1"
    found["search"] += "?q=gpu"
    found["tree-part site"] = f"{reverse('tree-part')}?path={made.sites['Central'].pk}"
    found["tree-part node"] = f"{reverse('tree-part')}?path={node.site_id}/{node.cluster_id}/{node.rack_id}/{node.pk}"
    found["node"] = reverse("node", args=[node.pk])
    found["card"] = reverse("card", args=[card.pk])
    found["card divided"] = reverse("card", args=[divided.pk])
    found["card-history"] = reverse("card-history", args=[card.pk]) + "?span=6h"
    found["cluster"] = reverse("cluster", args=[node.cluster_id])
    for part in ("cards", "jobs", "cordon", "processes", "sensors", "collectors", "journal"):
        found[f"node-part {part}"] = reverse("node-part", args=[node.pk, part])
    for part in ("slices", "jobs", "processes", "journal"):
        found[f"card-part {part}"] = reverse("card-part", args=[divided.pk, part])
    return found


OPERATOR_ONLY = (
    "enrol",
    "enrol-bmc",
    "enrol-exporter",
    "enrol-agent",
    "cluster-connect",
    "credential-add",
    "card-model-add",
    "threshold-add",
    "user-add",
)


@pytest.fixture
def operator(seeded: seed.Seeded, client: Client) -> Client:
    client.force_login(seeded.users["operator"])
    return client


def test_every_page_opens_within_its_number_of_queries(seeded: seed.Seeded, operator: Client) -> None:
    """U6, X2: a page's queries do not depend on how many cards it shows; the numbers are checked in."""
    known = json.loads(COUNTS.read_text()) if COUNTS.exists() else {}
    measured = {}
    for name, address in addresses(seeded).items():
        fleet.forget()
        snapshots.forget()
        context._simulated()  # the frame remembers it
        with CaptureQueriesContext(connection) as queries:
            response = operator.get(address)
        assert response.status_code == 200, name
        measured[name] = len(queries)
    if not known:
        COUNTS.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n")
    over = {name: (number, known.get(name)) for name, number in measured.items() if number > known.get(name, 0)}
    assert not over, f"more queries than tests/sensaka/pages/query_counts.json allows: {over}"
