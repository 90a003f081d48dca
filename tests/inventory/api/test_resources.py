"""The REST resources: shapes, filters, paging, problems, bounded queries (X2, I1)."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from inventory.models import Credential, Node, Rack, Site
from inventory.observations import CardValues
from inventory.services.samples import Sample, write_samples
from tests.inventory.api.conftest import add_cards

QUERY_COUNTS = json.loads((Path(__file__).parent / "query_counts.json").read_text())


def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def test_a_site_is_made_read_changed_and_removed(operator: APIClient) -> None:
    made = operator.post("/api/v1/sites/", {"name": "Basel", "kind": "edge", "time_zone": "Europe/Zurich"})
    assert made.status_code == 201
    address = f"/api/v1/sites/{made.json()['id']}/"
    assert operator.patch(address, {"kind": "central"}).json()["kind"] == "central"
    assert operator.get("/api/v1/sites/?name=Basel").json()["results"][0]["nodes"] == 0
    assert operator.get("/api/v1/sites/?name=Bern").json()["results"] == []
    assert operator.delete(address).status_code == 204
    assert operator.get(address).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({"name": "B", "time_zone": "Mars/Olympus"}, "time_zone", id="unknown zone"),
        pytest.param({"name": ""}, "name", id="empty name"),
        pytest.param({"name": "x" * 101}, "name", id="long name"),
        pytest.param({"name": "B", "kind": "lunar"}, "kind", id="unknown kind"),
        pytest.param({"name": "nul\x00"}, "name", id="nul byte"),
    ],
)
def test_a_bad_field_is_named(operator: APIClient, body: dict[str, str], field: str) -> None:
    answer = operator.post("/api/v1/sites/", body)
    assert answer.status_code == 400
    assert answer["Content-Type"].startswith("application/problem+json")
    assert field in answer.json()["errors"]
    assert Site.objects.count() == 0


def test_a_used_site_is_not_removed(operator: APIClient, node: Node) -> None:
    answer = operator.delete(f"/api/v1/sites/{node.site_id}/")
    assert answer.status_code == 409
    assert answer.json()["code"] == "in_use"


def test_a_double_name_is_a_refusal_not_a_crash(operator: APIClient, site: Site) -> None:
    assert operator.post("/api/v1/sites/", {"name": site.name}).status_code in {400, 409}
    assert operator.post("/api/v1/racks/", {"site": str(site.id), "name": "A"}).status_code == 201
    assert operator.post("/api/v1/racks/", {"site": str(site.id), "name": "A"}).status_code in {400, 409}


def test_a_password_is_never_shown_and_stored_encrypted(operator: APIClient) -> None:
    made = operator.post("/api/v1/credentials/", {"name": "racks", "username": "root", "password": "calvin!"})
    assert made.status_code == 201
    assert "password" not in made.json()
    assert "calvin" not in operator.get("/api/v1/credentials/").content.decode()
    assert Credential.objects.get().password == "calvin!"
    with connection.cursor() as cursor:
        cursor.execute("SELECT password FROM inventory_credential")
        assert "calvin" not in cursor.fetchone()[0]


def test_a_node_can_be_placed_but_its_facts_not_written(operator: APIClient, node: Node) -> None:
    address = f"/api/v1/nodes/{node.id}/"
    assert operator.patch(address, {"rack_position": 12, "labels": {"row": "3"}}).status_code == 200
    operator.patch(address, {"system_serial": "forged", "state": "retired"})
    node.refresh_from_db()
    assert (node.rack_position, node.labels, node.system_serial, node.state) == (12, {"row": "3"}, "S1", "active")
    assert "rack_position" in operator.patch(address, {"rack_position": 43}).json()["errors"]
    other = Rack.objects.create(site=Site.objects.create(name="Bern"), name="B01")
    assert "rack" in operator.patch(address, {"rack": str(other.id)}).json()["errors"]


def test_accelerators_carry_the_fields_that_others_rely_on(operator: APIClient, node: Node) -> None:
    (card,) = add_cards(node, 1)
    at = now()
    values = CardValues(utilization=80.0, sm_activity=61.5, memory_used=5 * 2**30, temperature=55.0, power=512.5)
    assert write_samples([Sample(card.series, at, "agent", 10, values)]).stored == 1
    (row,) = operator.get("/api/v1/accelerators/").json()["results"]
    assert (row["uuid"], row["site"], row["rack"]) == (card.uuid, str(node.site_id), str(node.rack_id))
    assert (row["utilization"], row["activity"], row["activity_source"]) == (80.0, 61.5, "sm_activity")
    assert (row["memory_used"], row["temperature"], row["power"]) == (5 * 2**30, 55.0, 512.5)
    assert (row["sample_source"], row["stale"]) == ("agent", False)
    assert datetime.fromisoformat(row["sampled_at"]) == at
    detail = operator.get(f"/api/v1/accelerators/{card.id}/").json()
    assert detail["values"]["sm_activity"] == 61.5
    assert detail["values"]["tensor_activity"] is None
    assert detail["slices"] == []


def test_a_card_without_a_sample_has_nulls_and_is_stale(operator: APIClient, node: Node) -> None:
    add_cards(node, 1)
    (row,) = operator.get("/api/v1/accelerators/").json()["results"]
    assert row["utilization"] is None
    assert row["power"] is None
    assert row["stale"] is True


def test_lists_page_by_cursor(operator: APIClient, node: Node) -> None:
    add_cards(node, 5)
    seen, address = [], "/api/v1/accelerators/?limit=2"
    while address:
        page = operator.get(address).json()
        seen += [row["uuid"] for row in page["results"]]
        address = page["next"]
    assert sorted(seen) == sorted(f"GPU-n01-{number}" for number in range(5))
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize("query", ["site=nonsense", "cursor=nonsense", "node=1"])
def test_a_senseless_query_is_a_4xx(operator: APIClient, query: str) -> None:
    assert 400 <= operator.get(f"/api/v1/accelerators/?{query}").status_code < 500


@pytest.mark.parametrize("path", sorted(QUERY_COUNTS))
def test_a_list_needs_the_same_few_queries_for_any_number_of_rows(operator: APIClient, node: Node, path: str) -> None:
    add_cards(node, 2)
    counts = []
    for start in (2, 3):
        add_cards(node, 1 if start == 2 else 20, start=start)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert operator.get(path).status_code == 200
        counts.append(len(queries))
    assert counts == [QUERY_COUNTS[path]] * 2


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("start=2026-01-02T00:00:00Z&end=2026-01-01T00:00:00Z", "start"),
        ("fields=horsepower", "fields"),
        ("points=1", "points"),
        ("start=yesterday", "start"),
    ],
)
def test_a_bad_history_query_is_named(operator: APIClient, node: Node, query: str, field: str) -> None:
    (card,) = add_cards(node, 1)
    answer = operator.get(f"/api/v1/accelerators/{card.id}/history/?{query}")
    assert answer.status_code == 400
    assert field in answer.json()["errors"]


def test_bmcs_are_found_by_address_and_a_senseless_one_is_refused(operator: APIClient) -> None:
    assert operator.get("/api/v1/bmcs/?address=10.0.0.1").json()["results"] == []
    answer = operator.get("/api/v1/bmcs/?address=%0Dnowhere")
    assert answer.status_code == 400
    assert "address" in answer.json()["errors"]


def test_history_gives_buckets_with_gaps_as_null(operator: APIClient, node: Node) -> None:
    (card,) = add_cards(node, 1)
    # a bucket's first second: what a sample taken in its last ones says holds into the next bucket too
    at = (now() - timedelta(minutes=5)).replace(second=0, microsecond=0)
    write_samples([Sample(card.series, at, "agent", 1, CardValues(utilization=50.0))])
    body = operator.get(f"/api/v1/accelerators/{card.id}/history/?fields=utilization,power").json()
    means = body["signals"]["utilization"]["mean"]
    assert len(means) == len(body["times"]) == len(body["busy"])
    assert [mean for mean in means if mean is not None] == [50.0]
    assert set(body["signals"]["power"]["mean"]) == {None}


def test_counts_agree_at_every_level(operator: APIClient, node: Node) -> None:
    add_cards(node, 3)
    whole = operator.get("/api/v1/counts/").json()["results"]
    assert [(row["installed"], row["allocated"]) for row in whole] == [(3, None)]
    for dimension in ("site", "cluster", "rack", "node", "model"):
        rows = operator.get(f"/api/v1/counts/?by={dimension}").json()["results"]
        assert sum(row["installed"] for row in rows) == 3
    assert operator.get("/api/v1/counts/?by=colour").status_code == 400
