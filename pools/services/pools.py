"""Pools: what they are called and offer, and which cards are theirs by rule and by hand."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from inventory.models import Card, CardModel, Cluster, Node
from pools.models import Pool, PoolMember, PoolRule, Request, SharingMode
from pools.rules.lifecycle import ENDED
from pools.selectors.access import require_operator
from pools.services.catalogue import checked, remove, store, tell
from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, InvalidInput

_LONGEST_LABEL = 317  # a Kubernetes label: prefix of 253, a slash, a name of 63


def save_pool(pool: Pool | None, *, values: Mapping[str, Any], actor: User | None) -> Pool:
    """A new pool, or a changed one. Raises InvalidInput with the field, PermissionDenied for no operator."""
    require_operator(actor)
    sharing = values.get("sharing")
    if sharing is not None and (not sharing or not set(sharing) <= set(SharingMode.values)):
        raise InvalidInput(f"choose at least one of {', '.join(SharingMode.values)}", field="sharing")
    return store(pool or Pool(), values=values, actor=actor)


def remove_pool(pool: Pool, *, actor: User | None) -> None:
    """Deletes a pool that nothing was ever requested from. Raises Conflict else: its history would lose its place."""
    require_operator(actor)
    waiting = Request.objects.filter(pool=pool).exclude(state__in=sorted(ENDED)).count()
    if waiting:
        raise Conflict(f"{pool} has {waiting} requests that wait or run: cancel them, or stop accepting new ones")
    remove(pool, actor=actor)


def usable_labels(labels: object) -> dict[str, str]:
    """Labels as text to text, both without blanks around. Raises InvalidInput."""
    if not isinstance(labels, dict) or len(labels) > 20:
        raise InvalidInput("labels are at most 20 pairs of name and value", field="labels")
    found = {}
    for name, value in labels.items():
        if not isinstance(name, str) or not isinstance(value, str) or not name.strip():
            raise InvalidInput("labels are pairs of texts, and each has a name", field="labels")
        if len(name) > _LONGEST_LABEL or len(value) > _LONGEST_LABEL:
            raise InvalidInput(f"a label's name and value have at most {_LONGEST_LABEL} characters", field="labels")
        found[name.strip()] = value.strip()
    return found


def add_rule(
    pool: Pool, *, model: CardModel | None = None, cluster: Cluster | None = None,
    labels: Mapping[str, str] | None = None, actor: User | None,
) -> PoolRule:  # fmt: skip
    """Lets the pool take every card that meets all of these. Raises InvalidInput when none is given."""
    require_operator(actor)
    rule = PoolRule(pool=pool, model=model, cluster=cluster, labels=usable_labels(dict(labels or {})))
    with transaction.atomic():
        checked(rule)
        rule.save()
        tell(pool, f"Pool {pool} takes cards by a new rule: {rule}.", actor)
    return rule


def remove_rule(rule: PoolRule, *, actor: User | None) -> None:
    """The pool no longer takes cards by this rule. What is held stays held."""
    require_operator(actor)
    with transaction.atomic():
        tell(rule.pool, f"Pool {rule.pool} no longer takes cards by the rule: {rule}.", actor)
        rule.delete()


def set_member(
    pool: Pool, *, card: Card | None = None, node: Node | None = None, included: bool, actor: User | None
) -> PoolMember:
    """Takes a card or node in, or leaves it out, whatever the rules say. Doing it again changes nothing."""
    require_operator(actor)
    if (card is None) == (node is None):
        raise InvalidInput("name a card or a node, not both")
    with transaction.atomic():
        row = PoolMember.objects.select_for_update().filter(pool=pool, card=card, node=node).first()
        if row is not None and row.included == included:
            return row
        row = row or PoolMember(pool=pool, card=card, node=node)
        row.included = included
        checked(row)
        row.save()
        way = "taken into" if included else "left out of"
        tell(pool, f"{card or node} was {way} pool {pool} by hand.", actor)
    return row


def unset_member(member: PoolMember, *, actor: User | None) -> None:
    """Lets the rules decide again about a card or node."""
    require_operator(actor)
    with transaction.atomic():
        tell(member.pool, f"{member.card or member.node} is no longer set by hand in pool {member.pool}.", actor)
        member.delete()
