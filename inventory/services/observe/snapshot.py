"""What is known about the cards of a reading, as the frozen input of the rule."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from inventory.models import Agent, Card, Node, Sighting, Slice
from inventory.observations import CardReading, FailureKind, ReadFailure
from inventory.rules import identity as clean
from inventory.rules.changes import KnownCard, KnownSlice, Look, ObservedCard, ObservedSlice, Seen
from inventory.rules.identity import CardIdentity, card_identity


@dataclass(slots=True)
class Snapshot:
    """The rows that a reading concerns, all of nodes whose rows are locked."""

    cards: dict[UUID, Card]
    sightings: dict[UUID, list[Sighting]]
    slices: dict[UUID, list[Slice]]
    foreign_slices: list[Slice] = field(default_factory=list)
    agents: dict[UUID, Agent] = field(default_factory=dict)

    def nodes(self) -> set[UUID]:
        """The nodes that the cards stand on."""
        return {card.node_id for card in self.cards.values() if card.node_id is not None}

    def known(self) -> list[KnownCard]:
        """The frozen form for the rule."""
        return [self._known(card) for card in self.cards.values()]

    def _known(self, card: Card) -> KnownCard:
        return KnownCard(
            id=card.id,
            identity=CardIdentity(card.uuid, card.serial, card.pci_address, card.slot),
            node=card.node_id,
            state=card.state,
            state_since=card.state_since,
            first_seen_at=card.first_seen_at,
            vendor=card.vendor,
            conflict=bool(card.conflict),
            sightings=tuple(self._seen(row) for row in self.sightings.get(card.id, ())),
            slices=tuple(KnownSlice(s.id, s.uuid, s.profile, s.instance_id) for s in self.slices.get(card.id, ())),
        )

    def last_at(self, collector: UUID, node: UUID) -> datetime | None:
        """The time of this collector's newest reading of the node that is on record."""
        moments = [row.seen_at for rows in self.sightings.values() for row in rows if _is_of(row, collector, node)]
        agent = self.agents.get(collector)
        if agent is not None and agent.reported_at is not None:
            moments.append(agent.reported_at)  # a report without cards leaves no sighting
        return max(moments, default=None)

    def senior_at(self, node: Node, source: str) -> datetime | None:
        """The time of the last reading of the node by a source that is trusted more."""
        if source == "agent":
            return None
        heard = [agent.succeeded_at for agent in self.agents.values() if agent.node_id == node.id]
        heard += [agent.reported_at for agent in self.agents.values() if agent.node_id == node.id]
        if source == "bmc":
            heard.append(node.read_at)
        return max((moment for moment in heard if moment is not None), default=None)

    def _seen(self, row: Sighting) -> Seen:
        slot, address = row.identity.get("slot", ""), row.identity.get("pci_address", "")
        agent = self.agents.get(row.collector_id)
        # What an agent's newest report says holds while the agent is heard of: it reports changes only.
        holds = agent is not None and agent.reported_at is not None and row.seen_at >= agent.reported_at
        alive_at = agent.succeeded_at if agent is not None and holds else None
        return Seen(row.source, row.collector_id, row.node_id, row.seen_at, slot, address, alive_at)


def _is_of(row: Sighting, collector: UUID, node: UUID) -> bool:
    return row.collector_id == collector and row.node_id == node


def load(*, node: Node, identities: Sequence[CardIdentity], slices: Iterable[str]) -> Snapshot:
    """Cards of the node and cards elsewhere with an identity of the reading: four queries."""
    uuids = [form for one in identities if one.uuid for form in clean.uuid_spellings(one.uuid)]
    serials = [form for one in identities if one.serial for form in clean.serial_spellings(one.serial)]
    concerned = Card.objects.filter(Q(node=node) | Q(uuid__in=uuids) | Q(serial__in=serials)).order_by("id")
    cards = {card.id: card for card in concerned}
    sightings: dict[UUID, list[Sighting]] = defaultdict(list)
    for row in Sighting.objects.filter(card__in=cards):
        sightings[row.card_id].append(row)
    open_slices: dict[UUID, list[Slice]] = defaultdict(list)
    foreign: list[Slice] = []
    for one in Slice.objects.filter(Q(card__in=cards) | Q(uuid__in=list(slices)), closed_at=None):
        if one.card_id in cards:
            open_slices[one.card_id].append(one)
        else:
            foreign.append(one)
    collectors = {row.collector_id for rows in sightings.values() for row in rows if row.source == "agent"}
    reading = Agent.objects.filter(Q(pk__in=collectors) | Q(node=node), revoked_at=None)
    agents = {agent.id: agent for agent in reading.only("id", "node", "reported_at", "succeeded_at")}
    return Snapshot(cards, sightings, open_slices, foreign, agents)


def observed(reading: CardReading, *, source: str) -> ObservedCard:
    """A card of a reading, cleaned."""
    identity = card_identity(
        uuid=reading.uuid,
        serial=reading.serial,
        pci=reading.pci_address,
        slot=reading.slot,
        vendor=reading.vendor or reading.model_name.partition(" ")[0],
    )
    speaks = source != "bmc" and (bool(reading.slices) or reading.mig_enabled is not None)
    slices = tuple(ObservedSlice(one.uuid, one.profile, one.instance_id) for one in reading.slices)
    lost = any(failure.kind is FailureKind.LOST for failure in reading.failures)
    return ObservedCard(identity, reading.vendor, lost, slices if speaks else None)


def lost_names(failures: Iterable[ReadFailure]) -> frozenset[str]:
    """Keys of the cards that a reading counted and names as lost."""
    names: set[str] = set()
    for failure in failures:
        if failure.kind is FailureKind.LOST:
            for word in (failure.what, *failure.what.split()):
                names |= {clean.uuid_key(clean.card_uuid(word)), clean.serial_key(clean.card_serial(word))}
                names.add(clean.pci_address(word))
    return frozenset(names - {""})


def look_of(
    *, node: Node, source: str, collector: UUID, at: datetime, cards: Sequence[ObservedCard], complete: bool,
    lost: frozenset[str], snapshot: Snapshot,
) -> Look:  # fmt: skip
    """The rule's view of one reading."""
    return Look(
        node=node.id,
        source=source,
        collector=collector,
        at=at,
        cards=tuple(cards),
        complete=complete,
        lost=lost,
        last_at=snapshot.last_at(collector, node.id),
        senior_at=snapshot.senior_at(node, source),
    )
