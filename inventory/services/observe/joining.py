"""When an agent and a BMC made two nodes of one machine, the cards tell.

That happens where neither knows what the other knows (an agent without access to the system's
serial, a BMC without its UUID). A node that only a BMC reads and one that only its operating system
reads are one machine when both list the same card at the same time.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from django.db.models import Q

from inventory.models import Agent, Bmc, Exporter, Node, Sighting
from inventory.observations import CardReading
from inventory.rules import identity as clean
from inventory.services.nodes import identity_of, join_nodes
from inventory.services.observe.sentences import card_name
from inventory.services.observe.snapshot import Snapshot, observed
from inventory.services.observe.visits import Visit

# A BMC's sighting younger than this still says that the card is there (as in rules.changes.Look.freshness).
_CURRENT_SECONDS = 90


def join_twin(*, node: Node, others: Mapping[UUID, Node], visit: Visit, snapshot: Snapshot) -> bool:
    """Joins the node that a BMC or exporter made of this machine, when there is one. All rows are locked.

    True when it did: the snapshot is out of date then.
    """
    if visit.source != "agent":
        return False
    for card in snapshot.cards.values():
        if card.node_id in (None, node.id) or card.state == "retired":
            continue
        other = others[card.node_id]
        rows = [row for row in snapshot.sightings.get(card.id, ()) if row.node_id == other.id]
        current = any((visit.at - row.seen_at).total_seconds() <= _CURRENT_SECONDS for row in rows)
        if not current or any(row.source == "agent" for row in rows) or not _may_be_one(node, other):
            continue
        reason = f"both list {card_name(card)}"
        join_nodes(keep=node, drop=other, at=visit.at, source=visit.source, reason=reason)
        return True
    return False


def _may_be_one(node: Node, other: Node) -> bool:
    if identity_of(node).contradicts(identity_of(other)) or Agent.objects.filter(node=other).exists():
        return False
    if Bmc.objects.filter(node=other).exists() and Bmc.objects.filter(node=node).exists():
        return False
    # An exporter reads the operating system too, so it must at least be the same host by name.
    alike = other.name.split("~")[0].lower() in (node.hostname.lower(), node.name.split("~")[0].lower())
    return alike or not Exporter.objects.filter(node=other).exists()


def node_of_cards(cards: Sequence[CardReading], *, source: str) -> Node | None:
    """The node without a BMC whose operating system lists most of these cards, by UUID or serial.

    None when no node or several have them: cards may be on their way between nodes.
    """
    node = _home(cards, source, seen_by=~Q(source="bmc"))
    return node if node is not None and not Bmc.objects.filter(node=node).exists() else None


def node_that_lists(cards: Sequence[CardReading], *, source: str) -> Node | None:
    """The node on which most of these cards stand, whoever says so."""
    return _home(cards, source, seen_by=Q())


def _home(cards: Sequence[CardReading], source: str, *, seen_by: Q) -> Node | None:
    identities = [observed(card, source=source).identity for card in cards]
    uuids = [form for one in identities if one.uuid for form in clean.uuid_spellings(one.uuid)]
    serials = [form for one in identities if one.serial for form in clean.serial_spellings(one.serial)]
    if not uuids and not serials:
        return None
    same = Q(card__uuid__in=uuids) | Q(card__serial__in=serials)
    rows = Sighting.objects.filter(same, seen_by, card__state="present").values_list("card", "card__node")
    homes = [home for _, home in set(rows)]
    if len(set(homes)) != 1 or 2 * len(homes) <= len(cards):
        return None
    return Node.objects.filter(pk=homes[0]).first()
