"""Cards that appear, vanish, move and come back, told by readings on a real database (I5, I12)."""

import pytest

from inventory.models import Card, JournalEntry, Placement
from tests.inventory.tree.building import Machine, at, card, lost, uuid

pytestmark = pytest.mark.django_db


def texts(**filters: object) -> list[str]:
    return list(
        JournalEntry.objects.filter(**filters)
        .exclude(kind="node_enrolled")
        .order_by("created_at", "id")
        .values_list("text", flat=True)
    )


def where(number: int) -> tuple[str, str, str]:
    row = Card.objects.select_related("node").get(uuid=uuid(number))
    return row.node.name if row.node else "", row.slot, row.state


def stays(number: int) -> list[tuple[str, str, float, float | None]]:
    rows = Placement.objects.filter(card__uuid=uuid(number)).select_related("node").order_by("span")
    start = at(0)
    return [
        (
            row.node.name,
            row.slot,
            (row.span.lower - start).total_seconds(),
            (row.span.upper - start).total_seconds() if row.span.upper else None,
        )
        for row in rows
    ]


def test_cards_appear_once_with_their_facts() -> None:
    """I5: the first reading makes the cards; the same reading again changes nothing."""
    n01 = Machine("n01")
    changes = n01.sees(0, card(1), card(2))
    assert changes.cards == 2
    row = Card.objects.get(uuid=uuid(1))
    assert (row.serial, row.pci_address, row.slot, row.state) == ("1650001", "0000:11:00.0", "1", "present")
    assert row.memory_total == 80 * 2**30
    assert row.series > 0
    assert set(changes.series.values()) == set(Card.objects.values_list("series", flat=True))
    assert texts() == [
        f"Card {uuid(1)} (NVIDIA H100 80GB HBM3) appeared in n01 slot 1, seen by its agent.",
        f"Card {uuid(2)} (NVIDIA H100 80GB HBM3) appeared in n01 slot 2, seen by its agent.",
    ]
    assert n01.sees(0, card(1), card(2)).events == ()
    assert JournalEntry.objects.count() == 3


def test_swap_of_two_cards_between_nodes() -> None:
    """I5: history stays with each card, and the journal tells exactly the exchange."""
    n01, n02 = Machine("n01"), Machine("n02")
    n01.sees(0, card(3), card(4))
    n02.sees(1, card(5), card(6))
    JournalEntry.objects.all().delete()
    n01.sees(100, card(5, slot=3), card(4))
    assert where(5) == ("n01", "3", "present")
    assert where(3)[2] == "missing"
    n02.sees(103, card(3, slot=5), card(6))
    assert where(3) == ("n02", "5", "present")
    assert texts() == [
        f"Card {uuid(5)} moved from n02 slot 5 to n01 slot 3.",
        f"Card {uuid(3)} in n01 slot 3 was replaced by card {uuid(5)}.",
        f"Card {uuid(3)} moved from n01 slot 3 to n02 slot 5.",
    ]
    assert stays(3) == [("n01", "3", 0, 100), ("n02", "5", 103, None)]
    assert stays(5) == [("n02", "5", 1, 100), ("n01", "3", 100, None)]
    assert n01.sees(110, card(5, slot=3), card(4)).events == ()
    assert n02.sees(113, card(3, slot=5), card(6)).events == ()


def test_pulled_and_returned_in_another_slot() -> None:
    """I5: pulled is missing, back in another slot is a move."""
    n01 = Machine("n01")
    n01.sees(0, card(1), card(2))
    JournalEntry.objects.all().delete()
    n01.sees(60, card(2))
    assert where(1)[2] == "missing"
    n01.sees(120, card(2), card(1, slot=7))
    assert where(1) == ("n01", "7", "present")
    assert texts() == [
        f"Card {uuid(1)} vanished from n01 slot 1: its agent no longer lists it.",
        f"Card {uuid(1)} moved from n01 slot 1 to n01 slot 7.",
    ]
    assert stays(1) == [("n01", "1", 0, 60), ("n01", "7", 120, None)]


def test_lost_card_fails_and_recovers() -> None:
    """I5: a card that is counted and named as lost has failed; it is not missing."""
    n01 = Machine("n01")
    n01.sees(0, card(1), card(2))
    n01.sees(60, lost(card(1)), card(2), complete=False)
    assert where(1)[2] == "failed"
    n01.sees(120, card(1), card(2))
    assert where(1)[2] == "present"
    assert texts()[2:] == [
        f"Card {uuid(1)} in n01 slot 1 stopped answering.",
        f"Card {uuid(1)} in n01 slot 1 answers again.",
    ]


def test_incomplete_reading_removes_nobody() -> None:
    n01 = Machine("n01")
    n01.sees(0, card(1), card(2))
    n01.sees(60, card(2), complete=False)
    assert where(1)[2] == "present"
