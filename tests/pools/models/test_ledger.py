"""The ledger by hand: what can't be stored, whoever writes (P8, double booking)."""

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from inventory.models import Card
from pools.models import Allocation
from tests.pools.building import NOW, World, at

pytestmark = pytest.mark.django_db


def insert(card: Card, share: str, span: str, **columns: Any) -> None:
    """A row as somebody with psql would write it, past every service."""
    values = {
        "card_id": card.pk, "node_id": card.node_id, "share": share, "span": span, "source": "observed", "attempt": 0,
        "unit": 0, "outcome": "", "suspended": False, "created_at": NOW, "updated_at": NOW, **columns,
    }  # fmt: skip
    names = ", ".join(values)
    marks = ", ".join(["%s"] * len(values))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO pools_allocation ({names}) VALUES ({marks})", list(values.values()))


MORNING, NOON = "[2026-11-30 08:00+00,2026-11-30 12:00+00)", "[2026-11-30 12:00+00,2026-11-30 14:00+00)"
LATE_MORNING, FROM_NOON_ON = "[2026-11-30 11:59:59+00,2026-11-30 12:30+00)", "[2026-11-30 12:00+00,)"
WHOLE, LOW_HALF, HIGH_HALF, MIDDLE = "[0,1000)", "[0,500)", "[500,1000)", "[400,600)"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param((WHOLE, MORNING), (WHOLE, MORNING), id="the same again"),
        pytest.param((WHOLE, MORNING), (WHOLE, LATE_MORNING), id="a second too early"),
        pytest.param((WHOLE, MORNING), (LOW_HALF, MORNING), id="a slice of a whole card"),
        pytest.param((LOW_HALF, MORNING), (WHOLE, MORNING), id="a whole card of which a slice is held"),
        pytest.param((LOW_HALF, MORNING), (MIDDLE, MORNING), id="slices that overlap"),
        pytest.param((WHOLE, FROM_NOON_ON), (WHOLE, "[2030-01-01 00:00+00,)"), id="two that have not ended"),
        pytest.param((WHOLE, FROM_NOON_ON), (HIGH_HALF, NOON), id="inside one that has not ended"),
    ],
)
def test_two_promises_of_one_thing_are_refused(place: World, first: tuple[str, str], second: tuple[str, str]) -> None:
    insert(place.cards[0], *first)
    with pytest.raises(IntegrityError, match="allocation_held_once"):
        insert(place.cards[0], *second)
    assert Allocation.objects.count() == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param((WHOLE, MORNING), (WHOLE, NOON), id="one after the other, to the second"),
        pytest.param((WHOLE, MORNING), (WHOLE, FROM_NOON_ON), id="an open one after an ended one"),
        pytest.param((LOW_HALF, MORNING), (HIGH_HALF, MORNING), id="two halves at once"),
        pytest.param((LOW_HALF, MORNING), (WHOLE, NOON), id="whole again after a slice"),
    ],
)
def test_what_does_not_overlap_is_stored(place: World, first: tuple[str, str], second: tuple[str, str]) -> None:
    insert(place.cards[0], *first)
    insert(place.cards[0], *second)
    assert Allocation.objects.count() == 2


def test_other_cards_are_not_in_the_way(place: World) -> None:
    for card in place.cards:
        insert(card, WHOLE, MORNING)
    assert Allocation.objects.count() == 8


def test_an_update_can_not_make_an_overlap_either(place: World) -> None:
    insert(place.cards[0], WHOLE, MORNING)
    insert(place.cards[0], WHOLE, NOON)
    with pytest.raises(IntegrityError, match="allocation_held_once"), transaction.atomic():
        Allocation.objects.filter(span__startswith=at(0)).update(span=(at(0), None))


@pytest.mark.parametrize(
    ("share", "span", "columns", "name"),
    [
        (WHOLE, "empty", {}, "allocation_span_begins"),
        (WHOLE, "(, 2026-11-30 12:00+00)", {}, "allocation_span_begins"),
        ("empty", MORNING, {}, "allocation_share_of_a_card"),
        ("[0,1001)", MORNING, {}, "allocation_share_of_a_card"),
        ("[-1,5)", MORNING, {}, "allocation_share_of_a_card"),
        ("(,)", MORNING, {}, "allocation_share_of_a_card"),
        (WHOLE, MORNING, {"source": "managed"}, "allocation_managed_has_request"),
    ],
)
def test_senseless_rows_are_refused(place: World, share: str, span: str, columns: dict[str, Any], name: str) -> None:
    with pytest.raises(IntegrityError, match=name):
        insert(place.cards[0], share, span, **columns)
