"""The cards and slices that stand on nodes now, as the frozen input of the rule that finds a run's cards."""

from collections import defaultdict
from uuid import UUID

from inventory.models import Card, Node, Slice
from inventory.rules.job_cards import CardHere, NodeCards, SliceHere
from inventory.services.clusters.nodes import NodeBook


def cards_on(nodes: set[UUID], book: NodeBook) -> dict[UUID, NodeCards]:
    """By node, in three queries. Minor numbers count when they were read after the scheduler saw the node boot."""
    if not nodes:
        return {}
    booted = {row.node_id: row.booted_at for row in book.rows.values() if row.gone_at is None}
    cards: dict[UUID, list[tuple[UUID, str, str, int | None]]] = defaultdict(list)
    standing = Card.objects.filter(node__in=nodes, state__in=("present", "failed")).order_by("id")
    for node, *card in standing.values_list("node", "id", "uuid", "pci_address", "minor"):
        cards[node].append(tuple(card))  # type: ignore[arg-type]
    slices: dict[UUID, list[SliceHere]] = defaultdict(list)
    parts = Slice.objects.filter(card__node__in=nodes, closed_at=None).order_by("id")
    for card_id, part_id, uuid, profile in parts.values_list("card", "id", "uuid", "profile"):
        slices[card_id].append(SliceHere(part_id, uuid, profile))
    found = {}
    for key, name, read_at in Node.objects.filter(pk__in=nodes).values_list("id", "name", "read_at"):
        boot = booted.get(key)
        numbered = read_at is None or boot is None or read_at >= boot
        here = tuple(CardHere(*card, slices=tuple(slices[card[0]])) for card in cards[key])
        found[key] = NodeCards(name, here, numbered or not here, read=read_at is not None or not here)
    return found
