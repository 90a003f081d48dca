"""Cordons on record, brought in line with what a scheduler's nodes say."""

from collections.abc import Callable, Mapping
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from inventory.drivers.clusters.readings import ClusterNode, NodesReading
from inventory.models import ClusterConnection, Cordon, JournalKind, LiftedBy, Node
from inventory.rules.cordons import Change, Event, KnownCordon, SeenCordon, reconcile_cordons
from inventory.services.clusters.nodes import NodeBook
from inventory.services.journal import Note
from inventory.services.states import back_in_service
from sensaka.platform.fields import new_ids


def record_cordons(
    connection: ClusterConnection, reading: NodesReading, book: NodeBook, notes: list[Note]
) -> set[UUID]:  # fmt: skip
    """Writes what changed since the last reading, with journal entries. Returns the nodes concerned."""
    at = reading.observed_at
    _take_up(connection, book)
    rows = {
        row.id: row
        for row in Cordon.objects.select_for_update(no_key=True, of=("self",))
        .filter(cluster=connection.cluster_id, lifted_at=None)
        .select_related("node")
        .order_by("id")
    }
    seen = [_seen(node, key) for node in reading.nodes if (key := book.node(node.name)) is not None]
    lately = Cordon.objects.filter(cluster=connection.cluster_id, ours=True, lifted_at__gte=at)
    changes = reconcile_cordons(
        seen,
        [_known(row) for row in rows.values()],
        at=at,
        gone=frozenset(book.gone),
        lifted=frozenset(lately.values_list("mark", flat=True)),
    )
    if not changes:
        return set()
    writer = _Writer(connection, at, rows, notes)
    for change in changes:
        writer.write(change)
    writer.finish()
    return writer.nodes


def _take_up(connection: ClusterConnection, book: NodeBook) -> None:
    """Cordons of nodes that had no scheduler when they were made are to be set in it now."""
    names = book.names()
    rows = list(Cordon.objects.filter(ours=True, cluster=None, lifted_at=None, node__in=list(names)))
    for row in rows:
        row.cluster, row.scheduler_node, row.applied_at = connection.cluster, names[row.node_id], None
    if rows:
        Cordon.objects.bulk_update(rows, ["cluster", "scheduler_node", "applied_at"])


def _seen(node: ClusterNode, key: UUID) -> SeenCordon:
    return SeenCordon(
        node=key,
        name=node.name,
        cordoned=node.cordoned,
        reason=node.reason[:1000],
        by=node.reason_by[:200],
        at=node.reason_at,
        mark=node.owner,
    )


def _known(row: Cordon) -> KnownCordon:
    return KnownCordon(
        id=row.id,
        node=row.node_id,
        ours=row.ours,
        mark=row.mark,
        reason=row.reason,
        by=row.reason_by,
        applied_at=row.applied_at,
        lift_requested_at=row.lift_requested_at,
    )


class _Writer:
    """Collects rows and notes of one reading's changes."""

    def __init__(
        self, connection: ClusterConnection, at: datetime, rows: Mapping[UUID, Cordon], notes: list[Note]
    ) -> None:  # fmt: skip
        self.nodes: set[UUID] = set()
        self._connection = connection
        self._at = at
        self._rows = rows
        self._notes = notes
        self._new: list[SeenCordon] = []
        self._changed: dict[UUID, Cordon] = {}
        self._returning: list[Node] = []

    def write(self, change: Change) -> None:
        """One change, by its event."""
        acts: dict[Event, Callable[[Change], None]] = {
            Event.APPLIED: self._applied,
            Event.LIFTED_BY_US: lambda one: self._lifted(one, LiftedBy.US, "was returned to scheduling"),
            Event.LIFTED_BY_HAND: lambda one: self._lifted(
                one, LiftedBy.HAND, f"was returned to scheduling by hand in {self._scheduler}"
            ),
            Event.REPLACED: lambda one: self._lifted(
                one, LiftedBy.REPLACED, f"has another reason in {self._scheduler} in place of ours: {_reason(one)}"
            ),
            Event.GONE: lambda one: self._lifted(one, LiftedBy.GONE, f"is no longer listed by {self._scheduler}"),
            Event.FOREIGN_LIFTED: lambda one: self._lifted(
                one, LiftedBy.HAND, f"is no longer out of scheduling by somebody else in {self._scheduler}"
            ),
            Event.FOREIGN_SET: self._foreign,
            Event.FOREIGN_CHANGED: self._renamed,
        }
        acts[change.event](change)

    @property
    def _scheduler(self) -> str:
        return f"{self._connection.get_scheduler_display()} of {self._connection.cluster.name}"

    def _note(self, kind: JournalKind, node: UUID, text: str, **detail: str) -> None:
        cluster = self._connection.cluster_id
        self._notes.append(Note(kind, text, self._at, node, None, "cluster", detail, cluster))
        self.nodes.add(node)

    def _applied(self, change: Change) -> None:
        row = self._row(change)
        row.applied_at, row.last_error, row.attempts = self._at, "", 0
        self._changed[row.id] = row
        text = f"Node {row.node.name} was taken out of scheduling: {row.reason or 'no reason given'}."
        self._note(JournalKind.NODE_CORDONED, row.node_id, text, cordon=str(row.id))

    def _lifted(self, change: Change, how: LiftedBy, clause: str) -> None:
        row = self._row(change)
        row.lifted_at, row.lifted_by, row.last_error = timezone.now(), how, ""
        self._changed[row.id] = row
        text = f"Node {row.node.name} {clause}."
        self._note(JournalKind.NODE_UNCORDONED, row.node_id, text, cordon=str(row.id), lifted_by=str(how))
        if row.ours and row.drain:
            self._returning.append(row.node)

    def _foreign(self, change: Change) -> None:
        assert change.seen is not None
        self._new.append(change.seen)
        self.nodes.add(change.seen.node)

    def _renamed(self, change: Change) -> None:
        row, seen = self._row(change), change.seen
        assert seen is not None
        row.reason, row.reason_by = seen.reason, seen.by
        self._changed[row.id] = row
        text = f"Node {row.node.name} is out of scheduling for another reason: {seen.reason or 'none given'}."
        self._note(JournalKind.NODE_CORDONED, row.node_id, text, cordon=str(row.id))

    def _row(self, change: Change) -> Cordon:
        assert change.cordon is not None
        return self._rows[change.cordon.id]

    def finish(self) -> None:
        """Writes everything: two statements, and one for each node whose state follows."""
        if self._changed:
            fields = ["applied_at", "lifted_at", "lifted_by", "last_error", "attempts", "reason", "reason_by"]
            Cordon.objects.bulk_update(self._changed.values(), fields)
        rows = [
            Cordon(
                id=key,
                node_id=seen.node,
                cluster=self._connection.cluster,
                scheduler_node=seen.name,
                ours=False,
                reason=seen.reason,
                reason_by=seen.by,
                requested_at=self._at,
                applied_at=seen.at or self._at,
            )
            for key, seen in zip(new_ids(len(self._new)), self._new, strict=True)
        ]
        Cordon.objects.bulk_create(rows)
        names = dict(Node.objects.filter(pk__in=[seen.node for seen in self._new]).values_list("id", "name"))
        for seen, row in zip(self._new, rows, strict=True):
            by = f" by {seen.by}" if seen.by else ""
            why = seen.reason or "no reason given"
            text = f"Node {names[seen.node]} was taken out of scheduling{by} in {self._scheduler}: {why}."
            self._note(JournalKind.NODE_CORDONED, seen.node, text, cordon=str(row.id))
        back_in_service(self._returning, at=self._at, source="cluster", notes=self._notes)


def _reason(change: Change) -> str:
    return (change.seen.reason if change.seen else "") or "none given"
