"""Which pool each card is in, resolved in SQL from rules and from what was set by hand.

A card left out by hand (itself or its node) is not in that pool, whatever else says so. Among the pools
that take it, one that names the card comes before one that names its node, and both before rules; then
the pool of the lowest rank has it. So a card is in one pool at most and the pools' counts add up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Count, QuerySet

from inventory.models import Card, CardModel, Cluster
from pools.models import PoolRule

_MEMBERS = """
WITH candidate AS (
    SELECT member.card_id, member.pool_id, 0 AS basis
      FROM pools_poolmember member WHERE member.included AND member.card_id IS NOT NULL
    UNION ALL
    SELECT card.id, member.pool_id, 1
      FROM pools_poolmember member JOIN inventory_card card ON card.node_id = member.node_id WHERE member.included
    UNION ALL
    SELECT card.id, rule.pool_id, 2
      FROM inventory_card card JOIN inventory_node node ON node.id = card.node_id
      JOIN pools_poolrule rule ON (rule.model_id IS NULL OR rule.model_id = card.model_id)
       AND (rule.cluster_id IS NULL OR rule.cluster_id = node.cluster_id) AND node.labels @> rule.labels
)
SELECT DISTINCT ON (candidate.card_id) candidate.card_id, candidate.pool_id, candidate.basis
  FROM candidate
  JOIN pools_pool pool ON pool.id = candidate.pool_id
  JOIN inventory_card card ON card.id = candidate.card_id AND card.state <> 'retired'
 WHERE NOT EXISTS (
    SELECT 1 FROM pools_poolmember out
     WHERE out.pool_id = candidate.pool_id AND NOT out.included
       AND (out.card_id = candidate.card_id OR out.node_id = card.node_id))
 ORDER BY candidate.card_id, candidate.basis, pool.rank, pool.name
"""


class Basis(IntEnum):
    """What put a card into its pool."""

    CARD = 0
    NODE = 1
    RULE = 2


@dataclass(frozen=True, slots=True)
class Place:
    """A card's pool and what put it there."""

    pool: UUID
    basis: Basis


def places() -> dict[UUID, Place]:
    """The pool of every card that is in one, by card. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_MEMBERS)
        return {card: Place(pool, Basis(basis)) for card, pool, basis in cursor.fetchall()}


def cards_of(pool: UUID) -> list[UUID]:
    """The cards of one pool, in no order. One query."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT card_id FROM ({_MEMBERS}) placed WHERE pool_id = %s", [pool])  # noqa: S608 - constant
        return [card for (card,) in cursor.fetchall()]


def meeting(*, model: CardModel | None, cluster: Cluster | None, labels: Mapping[str, str]) -> QuerySet[Card]:
    """The cards that meet all of a rule's conditions; none where no condition is given."""
    if model is None and cluster is None and not labels:
        return Card.objects.none()
    cards = Card.objects.exclude(state="retired").filter(node__isnull=False)
    if model is not None:
        cards = cards.filter(model=model)
    if cluster is not None:
        cards = cards.filter(node__cluster=cluster)
    if labels:
        cards = cards.filter(node__labels__contains=dict(labels))
    return cards


@dataclass(frozen=True, slots=True)
class Preview:
    """What a rule would take: cards in all, by model and node, and how many another pool has already."""

    cards: int
    groups: list[dict[str, Any]]
    elsewhere: int


def preview(
    *, model: CardModel | None, cluster: Cluster | None, labels: Mapping[str, str], pool: UUID | None
) -> Preview:
    """What a rule of `pool` (None: a new one) would take. Three queries."""
    met = meeting(model=model, cluster=cluster, labels=labels)
    found = (
        met.values("model__name", "node__cluster__name", "node__site__name")
        .annotate(cards=Count("pk"), nodes=Count("node", distinct=True))
        .order_by("node__site__name", "node__cluster__name", "model__name")
    )
    groups: list[dict[str, Any]] = [dict(row) for row in found]
    placed = places()
    other = {card for card, place in placed.items() if place.pool != pool}
    elsewhere = sum(1 for card in met.values_list("pk", flat=True) if card in other) if groups else 0
    return Preview(sum(group["cards"] for group in groups), groups, elsewhere)


def rules_of(pool: UUID) -> QuerySet[PoolRule]:
    """The rules of a pool with what they name."""
    return PoolRule.objects.filter(pool=pool).select_related("model", "cluster__site")
