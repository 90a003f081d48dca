"""What a reading costs when nothing changed, and when two nodes report at once."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inventory.models import Agent, Card, JournalEntry, Placement, Sighting
from inventory.observations import CardValues, NodeReading
from inventory.selectors.samples import current_samples
from inventory.services.observe import record_node_reading, store_values
from inventory.signals import tree_changed
from tests.inventory.tree.building import Machine, at, card, uuid


@pytest.mark.django_db
def test_an_unchanged_reading_reads_little_and_writes_nothing() -> None:
    """Eight queries for a node of eight cards; sightings are renewed every 30 s."""
    n01 = Machine("n01")
    Agent.objects.create(id=n01.collector, node=n01.node, token_digest="d")
    cards = [card(number, vbios="96.00") for number in range(1, 9)]
    n01.sees(0, *cards)
    with CaptureQueriesContext(connection) as captured:
        n01.sees(10, *cards)
    statements = [query["sql"] for query in captured if not query["sql"].startswith(("SAVEPOINT", "RELEASE"))]
    assert len(statements) <= 8, "\n".join(statements)
    assert all(sql.startswith("SELECT") for sql in statements), statements
    with CaptureQueriesContext(connection) as captured:
        n01.sees(30, *cards)
    writes = [
        query["sql"].split()[0:3]
        for query in captured
        if not query["sql"].startswith(("SELECT", "SAVEPOINT", "RELEASE"))
    ]
    assert len(writes) <= 3, writes
    assert set(Sighting.objects.values_list("seen_at", flat=True)) == {at(30)}


@pytest.mark.django_db
def test_changes_are_announced_after_commit(django_capture_on_commit_callbacks: Any) -> None:
    """U6: the signal names the nodes; an unchanged reading sends none."""
    heard: list[list[Any]] = []

    def listen(sender: object, nodes: list[Any], **_: object) -> None:
        heard.append(nodes)

    tree_changed.connect(listen)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            n01 = Machine("n01")
            n01.sees(0, card(1))
        assert heard == [[n01.node.id]]
        with django_capture_on_commit_callbacks(execute=True):
            n01.sees(10, card(1))
        assert len(heard) == 1
    finally:
        tree_changed.disconnect(listen)


@pytest.mark.django_db
def test_values_of_a_reading_become_samples_of_its_cards() -> None:
    """I4: the numbers of an exporter's page are stored under the cards that it lists."""
    n01 = Machine("n01", source="exporter")
    now = timezone.now()
    reading = NodeReading(
        observed_at=now,
        cards=(card(1, values=CardValues(utilization=55.0, power=300.0)), card(2, values=CardValues()), card(3)),
    )
    changes = record_node_reading(node=n01.node, source="exporter", collector_id=n01.collector, reading=reading)
    result = store_values(changes=changes, source="exporter", interval=30, reading=reading)
    assert result.stored == 1
    series = Card.objects.get(uuid=uuid(1)).series
    sample = current_samples([series])[series]
    assert (sample.values.utilization, sample.source, sample.interval) == (55.0, "exporter", 30)


@pytest.fixture
def closing() -> Iterator[None]:
    yield
    connections.close_all()


@pytest.mark.django_db(transaction=True, available_apps=settings.INSTALLED_APPS)
def test_two_nodes_that_exchange_cards_at_once_do_not_block_each_other(closing: None) -> None:
    """I5: rows are locked in one order, whatever node reports first; each card ends in one place."""
    n01, n02 = Machine("n01"), Machine("n02")
    n01.sees(0, card(1), card(2), card(3))
    n02.sees(0, card(4), card(5), card(6))
    errors: list[BaseException] = []

    def report(machine: Machine, rounds: list[list[int]]) -> None:
        try:
            for turn, numbers in enumerate(rounds):
                machine.sees(200 * (turn + 1), *(card(number, slot=place) for place, number in enumerate(numbers)))
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    swaps = [([4, 5, 6], [1, 2, 3]), ([1, 2, 3], [4, 5, 6])] * 4
    threads = [
        threading.Thread(target=report, args=(n01, [left for left, _ in swaps])),
        threading.Thread(target=report, args=(n02, [right for _, right in swaps])),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert errors == []
    assert Card.objects.count() == 6
    assert Placement.objects.filter(span__upper_inf=True).count() <= 6
    standing = Card.objects.filter(state="present").count()
    assert standing == Placement.objects.filter(span__upper_inf=True).count()
    assert JournalEntry.objects.filter(kind="card_moved").exists()


@pytest.mark.django_db(transaction=True, available_apps=settings.INSTALLED_APPS)
def test_a_new_card_reported_by_two_nodes_at_once_is_one_card(closing: None) -> None:
    """I5: whoever comes second finds the card that the first made."""
    machines = [Machine(f"n{number}") for number in range(4)]
    errors: list[BaseException] = []
    together = threading.Barrier(len(machines))

    def report(machine: Machine) -> None:
        try:
            together.wait(timeout=10)
            machine.sees(0, card(1))
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=report, args=(machine,)) for machine in machines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert errors == []
    assert Card.objects.count() == 1
