"""Servers: found again by what identifies them, made when new, joined when two records are one machine."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Manager, Q
from django.utils import timezone

from inventory.models import (
    Agent,
    Bmc,
    Card,
    Cluster,
    Cordon,
    Exporter,
    FirmwareComponent,
    JobCard,
    JobNode,
    JournalEntry,
    JournalKind,
    LiftedBy,
    Node,
    Placement,
    ProcessBinding,
    Rack,
    SchedulerNode,
    Sighting,
    Site,
)
from inventory.rules.identity import NodeIdentity, known_text, node_identity, system_uuid_spellings
from inventory.rules.lifecycle import NODE
from inventory.services.journal import Note, write_entries
from sensaka.platform.fields import new_ids

ATTEMPTS = 5
"""How often to look again for whom somebody else makes at the same moment."""

_NUMBERED = re.compile(r"~\d+$")
_SEEN_BY = {"agent": "enrolled by its agent", "exporter": "found by an exporter", "bmc": "found by its BMC"}


def identity_of(node: Node) -> NodeIdentity:
    """What is known of a stored node."""
    return NodeIdentity(node.machine_id, node.system_serial, node.system_uuid)


def find_node(*, machine_id: str, system_serial: str, system_uuid: str) -> Node | None:
    """The node that these identifiers name, locked for the running transaction; None when there is none.

    System serial and UUID are trusted before the machine id; a name identifies nothing. Must run
    inside a transaction.
    """
    wanted = node_identity(machine_id=machine_id, serial=system_serial, uuid=system_uuid)
    same = Q(pk__in=[])
    if wanted.machine_id:
        same |= Q(machine_id=wanted.machine_id)
    if wanted.serial:
        same |= Q(system_serial__in={wanted.serial, wanted.serial.upper(), wanted.serial.lower()})
    if wanted.uuid:
        same |= Q(system_uuid__in=system_uuid_spellings(wanted.uuid))
    candidates = [
        node
        for node in Node.objects.select_for_update(no_key=True).filter(same).order_by("id")
        if identity_of(node).agrees(wanted)
    ]
    # Several can agree when one record knows the serial and another the UUID: DMI before machine id, then the oldest.
    candidates.sort(key=lambda node: (not (node.system_serial or node.system_uuid), node.created_at))
    return candidates[0] if candidates else None


def find_or_create_node(
    *,
    machine_id: str = "",
    system_serial: str = "",
    system_uuid: str = "",
    hostname: str,
    site: Site,
    cluster: Cluster | None = None,
    rack: Rack | None = None,
    at: datetime,
    source: str,
    simulated: bool = False,
    notes: list[Note] | None = None,
) -> Node:
    """The node with these identifiers, completed by those it lacked; a new one in `site` when there is none.

    `source` is agent, exporter or bmc. A node that answers already serves, so a new one is adopted
    into `active`. A found node keeps its place: moving a server in the tree is an operator's act.
    A name finds a node only where a scheduler lists it and nothing that knows its identity reads it yet.
    Two who find the same machine at the same moment get one node: who comes second looks again.
    What the journal is to tell is written, or added to `notes` for a caller who has more to tell.
    """
    wanted = node_identity(machine_id=machine_id, serial=system_serial, uuid=system_uuid)
    for attempt in range(ATTEMPTS):
        new = Node(site=site, cluster=cluster, rack=rack, simulated=simulated)
        new.machine_id, new.system_serial, new.system_uuid = wanted.machine_id, wanted.serial, wanted.uuid
        new.hostname = known_text(hostname)[:200] if source == "agent" else ""
        try:
            with transaction.atomic():
                node, told = _find_or_create(new, hostname, at=at, source=source)
                if notes is None:
                    write_entries(notes=told)
                else:
                    notes += told
                return node
        except IntegrityError:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("not reached")


def _find_or_create(new: Node, hostname: str, *, at: datetime, source: str) -> tuple[Node, list[Note]]:
    wanted = identity_of(new)
    node = find_node(machine_id=wanted.machine_id, system_serial=wanted.serial, system_uuid=wanted.uuid)
    if node is None:
        node = _known_to_scheduler(hostname, new.site, new.cluster, wanted, source)
    if node is not None:
        complete_identity(node=node, identity=wanted)
        return node, [_readopt(node, at=at, source=source)] if node.state == "retired" else []
    new.name = hostname or wanted.serial or wanted.uuid or wanted.machine_id or "node"
    make_nodes([new])
    text = f"Node {new.name} was {_SEEN_BY.get(source, 'added')} at site {new.site.name} and is in service."
    return new, [Note(JournalKind.NODE_ENROLLED, text, at, new.id, None, source)]


def _known_to_scheduler(
    hostname: str, site: Site, cluster: Cluster | None, identity: NodeIdentity, source: str
) -> Node | None:
    """The one node that a scheduler of the cluster (of the site, without one) lists under the host name.

    None when several have it, when the identity speaks against it, or when such a source reads it already.
    """
    short = hostname.partition(".")[0]
    if not short:
        return None
    names = Q(pk__in=[])
    for name in {hostname, short}:
        names |= Q(name__iexact=name) | Q(hostname__iexact=name)
    listed = SchedulerNode.objects.filter(names, gone_at=None, connection__cluster__site=site)
    if cluster is not None:
        listed = listed.filter(connection__cluster=cluster)
    found = set(listed.exclude(node=None).values_list("node", flat=True)[:3])
    if len(found) != 1:
        return None
    node = Node.objects.select_for_update(no_key=True).get(pk=found.pop())
    readers: dict[str, Manager[Any]] = {"agent": Agent.objects, "bmc": Bmc.objects, "exporter": Exporter.objects}
    taken = source in readers and readers[source].filter(node=node).exists()
    return None if taken or identity_of(node).contradicts(identity) else node


def complete_identity(*, node: Node, identity: NodeIdentity) -> bool:
    """Fills in identifiers that the node lacked; never overwrites serial or UUID. True when one was new.

    A machine id follows the operating system: when serial or UUID says that it is the same machine,
    a new one means a new installation and replaces the old.
    """
    changes: dict[str, str] = {}
    if identity.machine_id and identity.machine_id != node.machine_id:
        changes["machine_id"] = identity.machine_id
    if identity.serial and not node.system_serial:
        changes["system_serial"] = identity.serial
    if identity.uuid and not node.system_uuid:
        changes["system_uuid"] = identity.uuid
    for name, value in changes.items():
        setattr(node, name, value)
    if changes:
        node.save(update_fields=[*changes, "updated_at"])
    return bool(changes)


def rename_node(*, node: Node, name: str, at: datetime, source: str) -> bool:
    """Gives the node the name that it calls itself, with a number where its site has that name already."""
    wanted = name.strip()[:200]
    if not wanted or wanted == node.name or node.name.startswith(f"{wanted}~"):
        return False
    before = node.name
    [node.name] = free_names(site=node.site_id, wanted=[wanted], but=node)
    node.save(update_fields=["name", "updated_at"])
    text = f"Node {before} is now called {node.name}."
    detail = {"before": before, "after": node.name}
    write_entries(notes=[Note(JournalKind.NODE_RENAMED, text, at, node.id, None, source, detail)])
    return True


def make_nodes(nodes: Sequence[Node]) -> None:
    """Stores new nodes of one site, each under the name it has, with a number where its site has that name already.

    They serve already, or nobody would have seen them: they are adopted into `active`. Must run inside a transaction.
    IntegrityError: somebody took one of the names at the same moment. Look again then, up to ATTEMPTS times, before
    taking another name: what has it now may be the same machine.
    """
    if not nodes:
        return
    wanted = [node.name.strip()[:200] for node in nodes]
    names = free_names(site=nodes[0].site_id, wanted=wanted)
    for node, name, key in zip(nodes, names, new_ids(len(nodes)), strict=True):
        node.pk, node.name, node.state = key, name, NODE.target(NODE.initial, "adopt")
    # In the order of their names, so that two who make the same nodes can't wait for each other.
    Node.objects.bulk_create(sorted(nodes, key=lambda node: node.name))


def free_names(*, site: UUID, wanted: Sequence[str], but: Node | None = None) -> list[str]:
    """For each of `wanted` it, or `wanted~2`, `wanted~3` ... when another node of the site has it."""
    here = Node.objects.filter(site=site)
    if len(wanted) == 1:
        here = here.filter(name__startswith=wanted[0][:190])
    if but is not None:
        here = here.exclude(pk=but.pk)
    taken, found = set(here.values_list("name", flat=True)), []
    for name in wanted:
        number, free = 1, name
        while free in taken:
            number += 1
            free = f"{name[:190]}~{number}"
        taken.add(free)
        found.append(free)
    return found


def _readopt(node: Node, *, at: datetime, source: str) -> Note:
    node.state = NODE.target(NODE.target(node.state, "enrol"), "adopt")
    node.save(update_fields=["state", "updated_at"])
    text = f"Node {node.name} had been retired, answers again and is back in service."
    return Note(JournalKind.NODE_STATE, text, at, node.id, None, source)


def _join_work(keep: Node, drop: Node) -> None:
    """What schedulers say of either node is said of the one that stays."""
    SchedulerNode.objects.filter(node=drop).update(node=keep)
    JobCard.objects.filter(node=drop).update(node=keep)
    JobNode.objects.filter(node=drop).exclude(job__places__node=keep).update(node=keep)
    taken = set(Cordon.objects.filter(node=keep, lifted_at=None).values_list("ours", flat=True))
    both = Cordon.objects.filter(node=drop, lifted_at=None, ours__in=taken)
    both.update(lifted_at=timezone.now(), lifted_by=LiftedBy.GONE)
    Cordon.objects.filter(node=drop).update(node=keep)


def join_nodes(*, keep: Node, drop: Node, at: datetime, source: str, reason: str) -> None:
    """Makes one record of two that turned out to be one machine: all of `drop` goes to `keep`.

    Runs inside the caller's transaction, which holds both rows locked. `reason` is a clause for the
    journal ("both list card GPU-...").
    """
    for model in (Bmc, Exporter, Card, Placement, Sighting, JournalEntry, ProcessBinding):
        model.objects.filter(node=drop).update(node=keep)
    _join_work(keep, drop)
    known = set(FirmwareComponent.objects.filter(node=keep).values_list("card", "component"))
    for row in FirmwareComponent.objects.filter(node=drop):
        if (row.card_id, row.component) not in known:
            FirmwareComponent.objects.filter(pk=row.pk).update(node=keep)
    if not Agent.objects.filter(node=keep).exists():
        Agent.objects.filter(node=drop).update(node=keep)
    name, identity = drop.name, identity_of(drop)
    facts = {
        field: getattr(drop, field)
        for field in ("rack", "rack_position", "cluster", "manufacturer", "product", "power_state", "power")
        if getattr(keep, field) in (None, "", "unknown")
    }
    drop.delete()
    before = keep.name
    plain = _NUMBERED.sub("", before)
    if plain != before and free_names(site=keep.site_id, wanted=[plain], but=keep) == [plain]:
        keep.name = plain  # it had its number because of the record that is gone
    for field, value in facts.items():
        setattr(keep, field, value)
    keep.save(update_fields=["name", *facts, "updated_at"])
    complete_identity(node=keep, identity=identity)
    text = f"Nodes {before} and {name} are one machine, because {reason}; their records were joined."
    detail = {"joined": name}
    if keep.name != before:
        text = f"{text} It is called {keep.name}."
        detail |= {"before": before, "after": keep.name}
    write_entries(notes=[Note(JournalKind.NODE_ENROLLED, text, at, keep.id, None, source, detail)])
