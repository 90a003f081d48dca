"""Which pool has which card (P1): by rule, by hand, and where several take the same one."""

import random
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from inventory.models import Card, CardModel, Cluster, Node, Site
from pools.models import Pool, PoolMember, PoolRule
from pools.rules import fleet
from pools.selectors.membership import Basis, cards_of, meeting, places, preview
from tests.pools.building import World, card_model, node


def pools_of(*cards: Card) -> list[str | None]:
    placed = places()
    names = dict(Pool.objects.values_list("pk", "name"))
    return [names[placed[card.pk].pool] if card.pk in placed else None for card in cards]


def test_a_rule_takes_what_meets_all_of_it(place: World) -> None:
    PoolRule.objects.all().delete()
    other = Cluster.objects.create(site=Site.objects.create(name="Bern"), name="other")
    far = node("far", cluster=other, cards=1, labels={"tier": "gold"})
    near = node("near", cluster=place.cluster, cards=1, labels={"tier": "gold", "rack": "7"})
    plain = node("plain", cluster=place.cluster, cards=1, labels={"tier": "silver"})
    PoolRule.objects.create(pool=place.pool, model=place.model, cluster=place.cluster, labels={"tier": "gold"})
    assert pools_of(*[one.cards.get() for one in (far, near, plain)]) == [None, "Training", None]


def test_a_pool_may_span_clusters_sites_and_models(place: World) -> None:
    a100 = card_model("A100 80GB")
    other = Cluster.objects.create(site=Site.objects.create(name="Bern"), name="other")
    far = node("far", cluster=other, cards=1, model=a100)
    PoolRule.objects.create(pool=place.pool, cluster=other)
    assert pools_of(far.cards.get(), place.cards[0]) == ["Training", "Training"]


def test_by_hand_beats_rules_and_leaving_out_beats_taking_in(place: World) -> None:
    first, second, third, fourth = place.cards[:4]
    PoolMember.objects.create(pool=place.pool, card=second, included=False)
    PoolMember.objects.create(pool=place.pool, node=place.nodes[1], included=False)
    PoolMember.objects.create(pool=place.pool, card=place.cards[4], included=True)
    assert pools_of(first, second, third, fourth) == ["Training", None, "Training", "Training"]
    assert pools_of(*place.cards[4:]) == [None, None, None, None]


def test_where_several_take_a_card_hand_comes_first_then_the_lowest_rank(place: World) -> None:
    low = Pool.objects.create(name="Low", rank=1)
    high = Pool.objects.create(name="High", rank=900)
    PoolRule.objects.create(pool=low, cluster=place.cluster)
    PoolMember.objects.create(pool=high, node=place.nodes[0])
    PoolMember.objects.create(pool=place.pool, card=place.cards[0])
    assert pools_of(*place.cards[:2], place.cards[4]) == ["Training", "High", "Low"]
    assert [places()[card.pk].basis for card in (place.cards[0], place.cards[1], place.cards[4])] == [
        Basis.CARD, Basis.NODE, Basis.RULE,
    ]  # fmt: skip


def test_a_pool_that_leaves_a_card_out_yields_it_to_the_next(place: World) -> None:
    backup = Pool.objects.create(name="Backup", rank=500)
    PoolRule.objects.create(pool=backup, model=place.model)
    PoolMember.objects.create(pool=place.pool, card=place.cards[0], included=False)
    assert pools_of(*place.cards[:2]) == ["Backup", "Training"]


def test_retired_cards_are_in_no_pool(place: World) -> None:
    Card.objects.filter(pk=place.cards[0].pk).update(state="retired")
    assert place.cards[0].pk not in places()
    assert len(cards_of(place.pool.pk)) == 7


def as_rules_see_it(pool: Pool) -> fleet.Pool:
    hand = list(pool.members.all())
    return fleet.Pool(
        id=pool.pk,
        rules=tuple(
            fleet.Rule(
                models=frozenset({str(rule.model_id)} if rule.model_id else ()),
                clusters=frozenset({rule.cluster_id} if rule.cluster_id else ()),
                labels=rule.labels,
            )
            for rule in pool.rules.all()
        ),
        include=frozenset(row.card_id or row.node_id for row in hand if row.included),
        exclude=frozenset(row.card_id or row.node_id for row in hand if not row.included),
    )


@pytest.mark.parametrize("seed", range(12))
def test_sql_and_the_pure_rule_agree_for_one_pool(place: World, seed: int) -> None:
    dice = random.Random(seed)
    clusters = [place.cluster, Cluster.objects.create(site=place.site, name="two")]
    models = [place.model, card_model("A100 80GB")]
    for number in range(8):
        labels = {name: dice.choice("ab") for name in ("x", "y") if dice.random() < 0.6}
        node(f"r{number}", cluster=dice.choice(clusters), cards=2, model=dice.choice(models), labels=labels)
    PoolRule.objects.all().delete()
    for _ in range(3):
        wanted: dict[str, Any] = {
            "model": dice.choice([None, *models]), "cluster": dice.choice([None, *clusters]),
            "labels": {name: dice.choice("ab") for name in ("x", "y") if dice.random() < 0.4},
        }  # fmt: skip
        if any(wanted.values()):
            PoolRule.objects.get_or_create(pool=place.pool, **wanted)
    for card in dice.sample(list(Card.objects.all()), 4):
        PoolMember.objects.create(pool=place.pool, card=card, included=dice.random() < 0.5)
    for one in dice.sample(list(Node.objects.all()), 2):
        PoolMember.objects.create(pool=place.pool, node=one, included=dice.random() < 0.5)
    pure = as_rules_see_it(place.pool)
    expected = {
        card.pk
        for card in Card.objects.select_related("node")
        if pure.holds(
            fleet.Card(id=card.pk, node=card.node_id, model=str(card.model_id)),
            fleet.Node(id=card.node_id, cluster=card.node.cluster_id, labels=card.node.labels),
        )
    }
    assert set(cards_of(place.pool.pk)) == expected


def test_a_preview_tells_what_a_rule_would_take_and_what_is_elsewhere(place: World) -> None:
    seen = preview(model=place.model, cluster=None, labels={}, pool=None)
    assert (seen.cards, seen.elsewhere) == (8, 8)
    assert seen.groups[0]["nodes"] == 2
    assert preview(model=place.model, cluster=None, labels={}, pool=place.pool.pk).elsewhere == 0
    assert preview(model=None, cluster=None, labels={}, pool=None).cards == 0
    assert preview(model=card_model("Nothing"), cluster=None, labels={}, pool=None).cards == 0


def test_a_preview_takes_what_the_stored_rule_takes(place: World) -> None:
    labels = {"tier": "gold"}
    node("gold", cluster=place.cluster, cards=3, labels=labels)
    PoolRule.objects.all().delete()
    PoolRule.objects.create(pool=place.pool, labels=labels)
    met = meeting(model=None, cluster=None, labels=labels)
    assert set(met.values_list("pk", flat=True)) == set(cards_of(place.pool.pk))


def test_membership_costs_one_query(place: World) -> None:
    CardModel.objects.count()
    with CaptureQueriesContext(connection) as queries:
        places()
    assert len(queries) == 1
