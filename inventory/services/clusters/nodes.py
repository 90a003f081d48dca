"""A scheduler's nodes on record, each bound to the node of ours that it is; a new one where there is none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q

from inventory.drivers.clusters.readings import ClusterNode, NodesReading
from inventory.models import Agent, Bmc, ClusterConnection, Exporter, JournalKind, Node, SchedulerNode
from inventory.rules.identity import NodeIdentity, node_identity, system_uuid_spellings
from inventory.rules.scheduler_nodes import OurNode, SeenNode, match_nodes
from inventory.services.journal import Note
from inventory.services.nodes import ATTEMPTS, identity_of, join_nodes, make_nodes, rename_node

_FACTS = (
    "hostname", "address", "load", "raw_state", "cordoned", "responding", "reason", "reason_by", "reason_at", "owner",
    "cpus", "memory", "version", "booted_at",
)  # fmt: skip
_LISTS = ("queues", "features")


@dataclass(slots=True)
class NodeBook:
    """By the scheduler's name: its row and our node. Names that are gone are there too: runs used them."""

    rows: dict[str, SchedulerNode]
    changed: set[UUID] = field(default_factory=set)
    gone: set[UUID] = field(default_factory=set)

    def node(self, name: str) -> UUID | None:
        """Our node of that name, None when it was never seen."""
        row = self.rows.get(name)
        return row.node_id if row is not None else None

    def names(self) -> dict[UUID, str]:
        """The present name of each of our nodes."""
        return {row.node_id: row.name for row in self.rows.values() if row.node_id and row.gone_at is None}


def node_book(connection: ClusterConnection) -> NodeBook:
    """The nodes on record."""
    return NodeBook({row.name: row for row in SchedulerNode.objects.filter(connection=connection)})


def record_nodes(connection: ClusterConnection, reading: NodesReading, notes: list[Note]) -> NodeBook:
    """Brings the record in line with a reading; what an incomplete one lacks stays."""
    book = node_book(connection)
    seen = {node.name: node for node in reading.nodes}
    bound = _bound(connection, seen, book, reading.observed_at, notes)
    rows = []
    for name, node in seen.items():
        before = book.rows.get(name)
        row = _row(connection, node, bound[name], reading.observed_at)
        if before is not None and not _differs(before, row):
            continue
        if before is not None:
            row.id, row.created_at = before.id, before.created_at
        book.rows[name] = row
        book.changed.add(bound[name])
        rows.append(row)
    if reading.complete:
        for name, row in book.rows.items():
            if name not in seen and row.gone_at is None:
                row.gone_at = reading.observed_at
                rows.append(row)
        still = {row.node_id for row in book.rows.values() if row.gone_at is None}
        book.gone = {row.node_id for row in book.rows.values() if row.gone_at and row.node_id} - still
    _write(rows)
    return book


def _write(rows: list[SchedulerNode]) -> None:
    if rows:
        names = ("node", *_FACTS, *_LISTS, "machine_id", "system_uuid", "accelerators", "seen_at", "gone_at")
        SchedulerNode.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["connection", "name"],
            update_fields=[*names, "updated_at"],
        )


def _row(connection: ClusterConnection, node: ClusterNode, ours: UUID, at: datetime) -> SchedulerNode:
    identity = node_identity(machine_id=node.machine_id, serial="", uuid=node.system_uuid)
    return SchedulerNode(
        connection=connection,
        name=node.name,
        node_id=ours,
        machine_id=identity.machine_id,
        system_uuid=identity.uuid,
        accelerators=msgspec.json.decode(msgspec.json.encode(node.accelerators)),
        seen_at=at,
        gone_at=None,
        **{name: getattr(node, name) for name in _FACTS},
        **{name: list(getattr(node, name)) for name in _LISTS},
    )


def _differs(before: SchedulerNode, after: SchedulerNode) -> bool:
    names = ("node_id", *_FACTS, *_LISTS, "machine_id", "system_uuid", "accelerators", "gone_at")
    return any(getattr(before, name) != getattr(after, name) for name in names)


# -- which of ours --------------------------------------------------------------------------------------------------


def _bound(
    connection: ClusterConnection, seen: Mapping[str, ClusterNode], book: NodeBook, at: datetime, notes: list[Note]
) -> dict[str, UUID]:
    """By name, our node. One that enrols at this moment is found by looking again, not made twice."""
    for attempt in range(ATTEMPTS):
        try:
            with transaction.atomic():
                return _bind(connection, seen, book, at, notes)
        except IntegrityError:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("not reached")


def _bind(
    connection: ClusterConnection, seen: Mapping[str, ClusterNode], book: NodeBook, at: datetime, notes: list[Note]
) -> dict[str, UUID]:
    identities = {
        name: node_identity(machine_id=node.machine_id, serial="", uuid=node.system_uuid) for name, node in seen.items()
    }
    ours = _candidates(connection, identities)
    before = {name: row.node_id for name, row in book.rows.items() if row.node_id is not None}
    found = match_nodes(
        [SeenNode(name, node.hostname, identities[name]) for name, node in seen.items()],
        [_our_node(connection, node) for node in ours.values()],
        {name: key for name, key in before.items() if key in ours},
    )
    bound = {name: key for name, key in found.items() if key is not None}
    _take_over(ours, before, bound, at)
    _adopt(connection, ours, bound)
    _rename(ours, before, bound, seen, at)
    new = [name for name in seen if name not in bound]
    return bound | _create(connection, [seen[name] for name in new], at, notes)


def _candidates(connection: ClusterConnection, identities: Mapping[str, NodeIdentity]) -> dict[UUID, Any]:
    """Nodes of this cluster and of none at its site, and any that one of the identities names."""
    uuids = [form for one in identities.values() for form in system_uuid_spellings(one.uuid)]
    here = Q(cluster=connection.cluster_id) | Q(scheduled_as__connection=connection)
    others = ClusterConnection.objects.filter(cluster__site=connection.cluster.site_id).exclude(pk=connection.pk)
    if not others.exists():
        # With a single scheduler at the site, nodes that nobody put into a cluster can only be its own.
        here |= Q(cluster=None, site=connection.cluster.site_id)
    machines = [one.machine_id for one in identities.values() if one.machine_id]
    named = Q(machine_id__in=machines) | Q(system_uuid__in=uuids)
    apart = [Exists(model.objects.filter(node=OuterRef("pk"))) for model in (Agent, Bmc, Exporter)]
    rows = Node.objects.filter(here | named).distinct()
    return {row.id: row for row in rows.annotate(read_apart=apart[0] | apart[1] | apart[2])}


def _our_node(connection: ClusterConnection, node: Any) -> OurNode:
    here = node.cluster_id == connection.cluster_id or (
        node.cluster_id is None and node.site_id == connection.cluster.site_id
    )
    return OurNode(node.id, node.name, node.hostname, here, bool(node.hostname), identity_of(node))


def _take_over(ours: dict[UUID, Any], before: Mapping[str, UUID], bound: Mapping[str, UUID], at: datetime) -> None:
    """A node that was made for the scheduler gives way to the one that reads itself and has the same name."""
    for name, key in bound.items():
        old = ours.get(before.get(name, key))
        if old is None or old.id == key or old.read_apart or old.id in bound.values():
            continue
        locked = {row.id: row for row in Node.objects.select_for_update(no_key=True).filter(pk__in=[old.id, key])}
        if len(locked) == 2:
            reason = f"the scheduler knows it as {name}, which it calls itself"
            join_nodes(keep=locked[key], drop=locked[old.id], at=at, source="cluster", reason=reason)


def _adopt(connection: ClusterConnection, ours: Mapping[UUID, Any], bound: Mapping[str, UUID]) -> None:
    """Nodes that nobody put into a cluster are in this one."""
    loose = [key for key in bound.values() if ours[key].cluster_id is None]
    if loose:
        Node.objects.filter(pk__in=loose, cluster=None).update(cluster=connection.cluster_id)


def _rename(
    ours: Mapping[UUID, Any],
    before: Mapping[str, UUID],
    bound: Mapping[str, UUID],
    seen: Mapping[str, ClusterNode],
    at: datetime,
) -> None:
    """A node that has its name from its scheduler follows it; one that tells its host name is left to that."""
    left = {key: name for name, key in before.items() if name not in seen}
    for name, key in bound.items():
        node = ours.get(key)
        if node is None or name in before or node.hostname or key not in left:
            continue
        if node.name.partition("~")[0] == left[key]:
            rename_node(node=node, name=name, at=at, source="cluster")


def _create(
    connection: ClusterConnection, nodes: list[ClusterNode], at: datetime, notes: list[Note]
) -> dict[str, UUID]:  # fmt: skip
    """Nodes of ours for those that are in no record, in service: they serve already."""
    site, cluster = connection.cluster.site, connection.cluster
    rows: dict[str, Node] = {}
    for node in nodes:
        identity = node_identity(machine_id=node.machine_id, serial="", uuid=node.system_uuid)
        rows[node.name] = Node(
            site=site,
            cluster=cluster,
            name=node.name,
            machine_id=identity.machine_id,
            system_uuid=identity.uuid,
            labels={"found-by": f"{connection.scheduler} {cluster.name}"[:200]},
            simulated=site.simulated,
        )
    make_nodes(list(rows.values()))
    for row in rows.values():
        text = f"Node {row.name} was found in cluster {cluster.name} at site {site.name} and is in service."
        notes.append(Note(JournalKind.NODE_ENROLLED, text, at, row.id, None, "cluster", {}, cluster.id))
    return {name: row.id for name, row in rows.items()}
