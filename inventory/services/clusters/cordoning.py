"""Taking nodes out of scheduling and returning them. What is asked is written first, then done, then noted.

So a crash between loses nothing: `carrying_out.carry_out_due`, by the clock, goes on with what is
written. The cordon's id is our mark in the scheduler; what does not carry it is never lifted.
"""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from inventory.models import (
    ClusterConnection,
    Cordon,
    CordonPurpose,
    JournalKind,
    LiftedBy,
    Node,
    SchedulerNode,
)
from inventory.services.clusters.carrying_out import carry_out
from inventory.services.journal import Note, write_entries
from inventory.services.states import back_in_service, step
from inventory.signals import jobs_changed, tree_changed
from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, InvalidInput
from sensaka.platform.fields import new_ids

_LONGEST = 500


def cordon(
    *, node: Node, reason: str, actor: User | None, purpose: str = CordonPurpose.OPERATOR, drain: bool = False,
    at_once: bool = True,
) -> Cordon:  # fmt: skip
    """The node takes nothing new; with `drain` it is to become empty and then rests.

    Asked again for the same purpose it changes nothing, but makes a drain of a cordon. What could not be
    done yet stands in `last_error` of what is returned, and is tried again. `at_once=False` leaves the
    first try to the clock too. Raises InvalidInput without a reason, Conflict when another purpose of
    ours holds the node.
    """
    reason = " ".join(reason.split())[:_LONGEST]
    if not reason:
        raise InvalidInput("say why: the reason stands in the scheduler and in the journal", field="reason")
    if purpose not in CordonPurpose.values:
        raise InvalidInput(f"purpose is one of {', '.join(CordonPurpose.values)}", field="purpose")
    now = timezone.now()
    with transaction.atomic():
        locked = Node.objects.select_for_update(no_key=True, of=("self",)).select_related("cluster").get(pk=node.pk)
        row = Cordon.objects.filter(node=locked, ours=True, lifted_at=None).first()
        if row is None:
            row = _ask(locked, reason, actor, purpose, drain, now)
        else:
            _ask_again(row, locked, actor, purpose, drain, now)
    _announce(row)
    if at_once and row.state != "applied":
        carry_out([row.pk])
    return Cordon.objects.select_related("node", "cluster", "requested_by").get(pk=row.pk)


def drain(
    *, node: Node, reason: str, actor: User | None, purpose: str = CordonPurpose.OPERATOR, at_once: bool = True
) -> Cordon:  # fmt: skip
    """A cordon after which the node is to become empty; see `cordon`."""
    return cordon(node=node, reason=reason, actor=actor, purpose=purpose, drain=True, at_once=at_once)


def uncordon(*, node: Node, actor: User | None, reason: str = "", at_once: bool = True) -> Cordon | None:
    """Returns a node that we took out; None when it isn't out, so that doing it again changes nothing.

    A reason, where there is one, stands in the journal.

    Raises Conflict when somebody else took it out: they lift it where they set it.
    """
    now = timezone.now()
    with transaction.atomic():
        locked = Node.objects.select_for_update(no_key=True, of=("self",)).select_related("cluster").get(pk=node.pk)
        rows = {row.ours: row for row in Cordon.objects.filter(node=locked, lifted_at=None)}
        row = rows.get(True)
        if row is None:
            if foreign := rows.get(False):
                by = f" by {foreign.reason_by}" if foreign.reason_by else ""
                raise Conflict(
                    f"node {locked.name} was taken out{by} in the scheduler ({foreign.reason or 'no reason given'}); "
                    "it is returned there"
                )
            return None
        if row.lift_requested_at is None:
            row.lift_requested_at, row.lift_requested_by, row.attempts = now, actor, 0
            if row.cluster_id is None:
                row.lifted_at, row.lifted_by = now, LiftedBy.US
            row.save()
            _lift_notes(row, locked, " ".join(reason.split())[:_LONGEST], actor, now)
    _announce(row)
    if at_once and row.lifted_at is None:
        carry_out([row.pk])
    return Cordon.objects.select_related("node", "cluster", "requested_by").get(pk=row.pk)


def _ask(node: Node, reason: str, actor: User | None, purpose: str, drain: bool, now: datetime) -> Cordon:
    place = _scheduled_as(node)
    (key,) = new_ids(1)
    row = Cordon.objects.create(
        id=key,
        node=node,
        cluster_id=place.connection.cluster_id if place else None,
        scheduler_node=place.name if place else "",
        ours=True,
        mark=str(key),
        drain=drain,
        purpose=purpose,
        reason=reason,
        requested_by=actor,
        requested_at=now,
        # Without a scheduler nothing has to be told to anybody.
        applied_at=None if place else now,
    )
    kind = "drained" if drain else "taken out of scheduling"
    notes = [
        Note(
            JournalKind.NODE_CORDONED, f"Node {node.name} is to be {kind}: {reason}.", now, node.id, None, "user",
            {"cordon": str(key), "purpose": purpose}, row.cluster_id,
        )
    ]  # fmt: skip
    _drain_state([node] if drain else [], reason, now, notes)
    write_entries(notes=notes, actor=actor)
    return row


def _ask_again(row: Cordon, node: Node, actor: User | None, purpose: str, drain: bool, now: datetime) -> None:
    if row.purpose != purpose:
        raise Conflict(f"node {node.name} is out already for {row.get_purpose_display().lower()}: {row.reason}")
    if row.lift_requested_at is not None:
        raise Conflict(f"node {node.name} is just being returned; try again in a moment")
    if drain and not row.drain:
        row.drain = True
        row.save(update_fields=["drain", "updated_at"])
        text = f"Node {node.name} is to be drained: {row.reason}."
        detail = {"cordon": str(row.pk), "purpose": purpose}
        notes = [Note(JournalKind.NODE_CORDONED, text, now, node.id, None, "user", detail, row.cluster_id)]
        _drain_state([node], row.reason, now, notes)
        write_entries(notes=notes, actor=actor)


def _drain_state(nodes: Sequence[Node], reason: str, now: datetime, notes: list[Note]) -> None:
    step(nodes, "drain", why=reason, at=now, source="user", notes=notes)


def _lift_notes(row: Cordon, node: Node, reason: str, actor: User | None, now: datetime) -> None:
    detail = {"cordon": str(row.pk)}
    text = f"Node {node.name} is to be returned to scheduling{': ' if reason else ''}{reason}."
    notes = [Note(JournalKind.NODE_UNCORDONED, text, now, node.id, None, "user", detail, row.cluster_id)]
    if row.lifted_at is not None and row.drain:
        back_in_service([node], at=now, source="user", notes=notes)
    write_entries(notes=notes, actor=actor)


def _scheduled_as(node: Node) -> SchedulerNode | None:
    """The node's name in a scheduler; of its own cluster first, where several list it."""
    rows = SchedulerNode.objects.filter(node=node, gone_at=None, connection__in=ClusterConnection.objects.all())
    found = list(rows.select_related("connection").order_by("name"))
    return min(found, key=lambda row: row.connection.cluster_id != node.cluster_id, default=None)


def _announce(row: Cordon) -> None:
    def send() -> None:
        tree_changed.send(sender=None, nodes=[row.node_id])
        if row.cluster_id is not None:
            jobs_changed.send(sender=None, cluster=row.cluster_id)

    transaction.on_commit(send)
