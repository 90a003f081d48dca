"""One reading, one transaction: lock the nodes concerned, look, decide, write, tell after commit.

Nodes are locked in the order of their ids, so two nodes that exchange cards can't wait for each
other. Which other nodes are concerned is only known after looking; then everything is let go and
begun again with all of them, which a savepoint's rollback does without losing the caller's work.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from inventory.models import Agent, Node, Sighting
from inventory.rules.reconcile import reconcile
from inventory.services.journal import Note, write_entries
from inventory.services.observe.apply import Applied, Applier, names_of
from inventory.services.observe.cards import write_facts
from inventory.services.observe.changes import TreeChanges
from inventory.services.observe.joining import join_twin
from inventory.services.observe.snapshot import Snapshot, load, look_of, lost_names, observed
from inventory.services.observe.visits import Visit
from inventory.signals import tree_changed

# An unchanged reading renews what it saw at most this often, so that most readings write nothing.
REFRESH = timedelta(seconds=30)
_ATTEMPTS = 6


@dataclass(slots=True)
class Recording:
    """The open transaction's view: what other writers (facts, firmware, processes) may use and add to."""

    visit: Visit
    node: Node
    snapshot: Snapshot
    applied: Applied
    refresh: bool
    stale: bool
    notes: list[Note]

    def changed(self) -> None:
        """Marks the node itself as changed."""
        self.applied.nodes.add(self.node.id)


class _Concerns(Exception):
    """More nodes are concerned than are locked."""

    def __init__(self, nodes: Iterable[UUID]) -> None:
        super().__init__()
        self.nodes = set(nodes)


def record(visit: Visit, also: Callable[[Recording], None]) -> TreeChanges:
    """Records a visit; `also` writes what belongs to the source, in the same transaction.

    Raises Node.DoesNotExist when the node was removed meanwhile.
    """
    nodes = {visit.node}
    for attempt in range(_ATTEMPTS):
        try:
            with transaction.atomic():
                changes = _record(visit, nodes, also)
            return changes
        except _Concerns as more:
            nodes |= more.nodes
        except IntegrityError:
            # Another node's reading made the same card at the same moment: now it is known.
            if attempt == _ATTEMPTS - 1:
                raise
    raise RuntimeError(f"cards of node {visit.node} change their nodes faster than they can be locked")


def latest(at: datetime) -> datetime:
    """A time of observation that is not ahead of our clock: a wrong clock must not win over all others."""
    return min(at, timezone.now())


def _record(visit: Visit, nodes: set[UUID], also: Callable[[Recording], None]) -> TreeChanges:
    rows = Node.objects.select_for_update(no_key=True).filter(pk__in=nodes).order_by("id")
    locked = {node.id: node for node in rows}
    node = locked.get(visit.node)
    if node is None:
        raise Node.DoesNotExist(f"node {visit.node} is gone")
    seen = [observed(card, source=visit.source) for card in visit.cards]
    slices = [one.uuid for card in visit.cards for one in card.slices]
    snapshot = load(node=node, identities=[card.identity for card in seen], slices=slices)
    if concerned := snapshot.nodes() - locked.keys():
        raise _Concerns(concerned)
    if join_twin(node=node, others=locked, visit=visit, snapshot=snapshot):
        snapshot = load(node=node, identities=[card.identity for card in seen], slices=slices)
    look = look_of(
        node=node,
        source=visit.source,
        collector=visit.collector,
        at=visit.at,
        cards=seen,
        complete=visit.complete,
        lost=lost_names(visit.failures),
        snapshot=snapshot,
    )
    plan = reconcile(look, snapshot.known())
    names = {key: row.name for key, row in locked.items()}
    if plan.changes:
        names |= names_of({row.node_id for rows in snapshot.sightings.values() for row in rows} - names.keys())
    applier = Applier(
        look=look, snapshot=snapshot, readings=visit.cards, names=names, simulated=visit.simulated
    )  # fmt: skip
    applied = applier.run(plan)
    refresh = bool(plan.changes) or look.last_at is None or visit.at - look.last_at >= REFRESH
    if visit.source == "agent":
        agent = snapshot.agents.get(visit.collector)
        refresh = refresh or agent is None or agent.reported_at is None or visit.at - agent.reported_at >= REFRESH
    recording = Recording(visit, node, snapshot, applied, refresh and not plan.stale, plan.stale, applied.notes)
    if not plan.stale:
        write_facts(applied=applied, readings=visit.cards, source=visit.source, snapshot=snapshot, refresh=refresh)
        if refresh:
            if visit.source == "agent":
                Agent.objects.filter(pk=visit.collector).update(reported_at=visit.at)
            _renew_sightings(recording, seen_cards=[card.identity for card in seen])
        also(recording)
    write_entries(notes=applied.notes)
    return _finish(recording, applier, unmatched=len(plan.unmatched))


def _finish(recording: Recording, applier: Applier, *, unmatched: int) -> TreeChanges:
    applied = recording.applied
    changes = TreeChanges(
        node=recording.node.id,
        nodes=frozenset(applied.nodes),
        events=tuple(str(note.kind) for note in applied.notes),
        series={index: card.series for index, card in applied.by_index.items()},
        slices=applier.open_slices(),
        unmatched=unmatched,
        stale=recording.stale,
    )
    if changes.nodes:
        nodes = sorted(changes.nodes)
        transaction.on_commit(lambda: tree_changed.send(sender=None, nodes=nodes))
    return changes


def _renew_sightings(recording: Recording, *, seen_cards: Sequence[object]) -> None:
    visit, now = recording.visit, timezone.now()
    rows: dict[UUID, Sighting] = {}
    for index, card in recording.applied.by_index.items():
        identity = seen_cards[index]
        rows[card.id] = Sighting(
            card=card,
            source=visit.source,
            collector_id=visit.collector,
            node_id=recording.node.id,
            seen_at=visit.at,
            identity={
                name: value for name in ("uuid", "serial", "pci_address", "slot") if (value := getattr(identity, name))
            },
            updated_at=now,
        )
    Sighting.objects.bulk_create(
        [rows[key] for key in sorted(rows)],
        update_conflicts=True,
        unique_fields=["card", "collector_id"],
        update_fields=["source", "node", "seen_at", "identity", "updated_at"],
    )
