"""The catalogue in the database (I2)."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.test.utils import CaptureQueriesContext

from inventory.catalogue import Model, read_catalogue
from inventory.models import CardModel
from inventory.services.catalogue import load_catalogue, match_model

pytestmark = pytest.mark.django_db


def test_the_shipped_models_come_in_once():
    """I2: loading is repeatable."""
    shipped = len(read_catalogue())
    out = StringIO()
    call_command("load_catalogue", stdout=out)
    assert f"{shipped} created" in out.getvalue()
    assert CardModel.objects.filter(shipped=True).count() == shipped
    result = load_catalogue()
    assert (result.created, result.updated, result.unchanged, result.kept) == (0, 0, shipped, 0)


def test_a_corrected_figure_reaches_a_shipped_row():
    load_catalogue(models=[Model("a", "V", "N", [], [], tdp=300, sources={"tdp": "datasheet"})])
    result = load_catalogue(models=[Model("a", "V", "N", [], [], tdp=350, sources={"tdp": "read"})])
    assert result.updated == 1
    assert CardModel.objects.get(slug="a").tdp == 350


def test_a_row_of_the_site_is_never_changed():
    CardModel.objects.create(slug="nvidia-t4", vendor="NVIDIA", name="Our T4", tdp=60)
    result = load_catalogue()
    assert result.kept == 1
    assert CardModel.objects.get(slug="nvidia-t4").tdp == 60


def test_a_model_that_is_no_longer_shipped_stays():
    load_catalogue(models=[Model("old", "V", "N", [], [])])
    load_catalogue()
    assert CardModel.objects.filter(slug="old").exists()


def test_a_card_is_matched_by_id_and_by_name():
    load_catalogue()
    assert match_model(name="", pci_id="10de:2330").slug == "nvidia-h100-sxm-80"
    assert match_model(name="NVIDIA H200", pci_id="", memory=150754820096).slug == "nvidia-h200-sxm"
    assert match_model(name="no such card", pci_id="") is None


def test_a_model_that_a_site_adds_is_found_at_once():
    load_catalogue()
    assert match_model(pci_id="1234:5678") is None
    CardModel.objects.create(slug="ours", vendor="Us", name="Ours", pci_ids=["1234:5678"])
    assert match_model(pci_id="1234:5678").slug == "ours"
    CardModel.objects.filter(slug="ours").delete()
    assert match_model(pci_id="1234:5678") is None


def test_matching_many_cards_costs_one_small_query_each(django_assert_num_queries):
    load_catalogue()
    match_model(pci_id="10de:2330")
    with django_assert_num_queries(3) as queries:
        for _ in range(3):
            match_model(pci_id="10de:2330")
    assert isinstance(queries, CaptureQueriesContext)
    assert all("COUNT" in query["sql"] for query in queries)
