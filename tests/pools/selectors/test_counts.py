"""The four counts by pool and by spec (U2), and what they cost."""

from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inventory.models import Card, Node
from inventory.observations import CardValues
from inventory.services.samples import Sample, write_samples
from pools.models import Pool, PoolRule, Spec
from pools.selectors.counts import capacity
from tests.pools.building import World, allocation, card_model, node, request


def measured(cards: list[tuple[Card, float]], now: datetime) -> None:
    write_samples(
        [
            Sample(
                series=card.series, sampled_at=now - timedelta(seconds=2), source="agent", interval=10,
                values=CardValues(utilization=percent),
            )
            for card, percent in cards
        ]
    )  # fmt: skip


def parts(counts: Any) -> tuple[int, ...]:
    return (counts.installed, counts.available, counts.allocated, counts.busy, counts.idle, counts.unknown, counts.free)


def test_the_ladder_of_a_pool(place: World) -> None:
    now = timezone.now().replace(microsecond=0)
    start = now - timedelta(hours=1)
    for card in place.cards[:4]:
        allocation(card, place.red, span=(start, None))
    allocation(place.cards[5], place.red, span=(start, start + timedelta(minutes=5)))
    measured([(place.cards[0], 80), (place.cards[1], 0), (place.cards[6], 90)], now)
    Card.objects.filter(pk=place.cards[3].pk).update(state="failed")
    counts = capacity(now=now).pools[place.pool.pk]
    assert parts(counts) == (8, 7, 4, 1, 1, 2, 4)
    assert counts.lost == 1
    assert counts.allocated == counts.busy + counts.idle + counts.unknown
    assert counts.available == counts.allocated - counts.lost + counts.free
    assert counts.idle_rate == 50.0
    assert counts.coverage == 50.0


def test_pools_and_the_rest_add_up_to_the_fleet(place: World) -> None:
    node("other", cluster=place.cluster, cards=3, model=card_model("A100 80GB"))
    empty = Pool.objects.create(name="Empty")
    found = capacity()
    assert found.pools[place.pool.pk].installed == 8
    assert found.pools[empty.pk].installed == 0
    assert found.outside.installed == 3


def test_a_sleeping_node_counts_as_standby(place: World) -> None:
    Node.objects.filter(pk=place.nodes[0].pk).update(state="asleep")
    counts = capacity().pools[place.pool.pk]
    assert (counts.available, counts.standby, counts.free) == (8, 4, 8)


def test_a_draining_node_is_installed_and_not_available(place: World) -> None:
    Node.objects.filter(pk=place.nodes[0].pk).update(state="draining")
    counts = capacity().pools[place.pool.pk]
    assert (counts.installed, counts.available, counts.free) == (8, 4, 4)


def test_a_card_that_two_share_is_counted_once(place: World) -> None:
    now = timezone.now()
    span = (now - timedelta(hours=1), None)
    allocation(place.cards[0], place.red, share=(0, 500), span=span)
    allocation(place.cards[0], place.blue, share=(500, 1000), span=span)
    assert capacity(now=now).pools[place.pool.pk].allocated == 1


def make_spec(place: World, name: str, **fields: Any) -> Spec:
    spec = Spec.objects.create(name=name, **fields)
    spec.card_models.add(place.model)
    spec.pools.add(place.pool)
    return spec


def test_free_units_stand_on_one_node(place: World) -> None:
    pairs, triples = make_spec(place, "pair", cards=2), make_spec(place, "triple", cards=3)
    eights = make_spec(place, "eight", cards=8)
    quarters = make_spec(place, "quarter", mode="time_slice", shares_per_card=4)
    mig = make_spec(place, "mig", mode="mig", profile="1g.10gb")
    allocation(place.cards[0], place.red)
    free = {
        spec: capacity().specs[place.pool.pk, spec.pk].free_units for spec in (pairs, triples, eights, quarters, mig)
    }
    assert free == {pairs: 3, triples: 2, eights: 0, quarters: 28, mig: None}


def test_held_units_are_those_of_the_spec(place: World) -> None:
    pair = make_spec(place, "pair", cards=2)
    wish = request(place, place.red.project, spec=pair, state="running")
    for card in place.cards[:4]:
        allocation(card, place.red, request=wish, spec=pair, source="managed")
    allocation(place.cards[4], place.red, spec=place.spec)
    found = capacity().specs
    assert found[place.pool.pk, pair.pk].held == 2
    assert found[place.pool.pk, place.spec.pk].held == 1
    assert found[place.pool.pk, pair.pk].counts.allocated == 5


def test_a_spec_counts_cards_of_its_models_alone(place: World) -> None:
    a100 = card_model("A100 80GB")
    node("other", cluster=place.cluster, cards=3, model=a100)
    PoolRule.objects.create(pool=place.pool, model=a100)
    assert capacity().pools[place.pool.pk].installed == 11
    assert capacity().specs[place.pool.pk, place.spec.pk].counts.installed == 8


def test_the_number_of_queries_does_not_grow(place: World) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            capacity()
        return len(queries)

    few = cost()
    for number in range(5):
        node(f"more{number}", cluster=place.cluster, cards=2)
        pool = Pool.objects.create(name=f"P{number}", rank=number)
        PoolRule.objects.create(pool=pool, labels={"p": str(number)})
        make_spec(place, f"s{number}").pools.add(pool)
    assert cost() == few
    assert few <= 13
