"""Cordons that are asked for and not done yet, lifts likewise, and drains that are not through."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from inventory.drivers.clusters.capabilities import ActResult, Capability, ClusterDriver, EvictionResult, Outcome
from inventory.models import ClusterConnection, Cordon, JobNode, JournalKind, LiftedBy, SchedulerNode
from inventory.rules.jobs import HOLDING
from inventory.services.clusters import opening
from inventory.services.clusters.opening import Access, access_of
from inventory.services.journal import Note, write_entries
from inventory.services.rounds import run_once, unusable
from inventory.services.states import back_in_service, step
from inventory.signals import jobs_changed, tree_changed
from sensaka.kernel.errors import InvalidInput
from sensaka.platform.database import in_trouble

log = logging.getLogger(__name__)

_ACT_SECONDS = 15.0
_EVICT_SECONDS = 25.0
_LEASE = timedelta(seconds=60)
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=5)
_AT_ONCE = 200  # cordons a pass
_UNDONE = Q(applied_at=None) | Q(lift_requested_at__isnull=False)
_DRAINING = Q(drain=True, drained_at=None, applied_at__isnull=False, lift_requested_at=None)


@dataclass(frozen=True, slots=True)
class Task:
    """One act on one node. `what` is cordon, uncordon or evict."""

    id: UUID
    what: str
    node: str
    mark: str
    reason: str


def carry_out_due() -> int:
    """Goes on with everything that is written and not done. Returns how many acts it tried."""
    now = timezone.now()
    rows = Cordon.objects.filter(ours=True, lifted_at=None).exclude(cluster=None).filter(_UNDONE | _DRAINING)
    first = rows.order_by(F("attempted_at").asc(nulls_first=True), "id")[:_AT_ONCE]
    due = [row.pk for row in first if _rested(row, now)]
    return carry_out(due) + note_drained()


def _rested(row: Cordon, now: datetime) -> bool:
    """The pause after a failed act doubles."""
    if row.attempted_at is None:
        return True
    pause: timedelta = min(_FIRST_PAUSE * 2 ** min(row.attempts, 10), _LONGEST_PAUSE)
    return row.attempted_at <= now - pause


def carry_out(cordons: Collection[UUID]) -> int:
    """Does what these cordons still ask for. Returns how many acts it tried; two workers never do one at once."""
    tasks, access = _claim(cordons)
    if not tasks:
        return 0
    results = run_once(_all(tasks, access))
    for key, result in results.items():
        try:
            _note_result(key, result)
        except Exception as error:
            if in_trouble(error):
                raise
            log.exception("what came of %s could not be stored", result[0])  # its lease brings it back
    return len(results)


def _claim(cordons: Collection[UUID]) -> tuple[dict[UUID, list[Task]], dict[UUID, Access]]:
    """By cluster, the acts that nobody else is at."""
    now = timezone.now()
    if not cordons:
        return {}, {}
    with transaction.atomic():
        free = Q(leased_until=None) | Q(leased_until__lt=now)
        rows = list(
            Cordon.objects.select_for_update(skip_locked=True, no_key=True)
            .filter(free, pk__in=list(cordons), ours=True, lifted_at=None, cluster__isnull=False)
            .order_by("id")
        )
        clusters = {row.cluster_id for row in rows}
        connections = {row.cluster_id: row for row in ClusterConnection.objects.filter(cluster__in=clusters)}
        names = _names(rows)
        tasks: dict[UUID, list[Task]] = defaultdict(list)
        for row in rows:
            connection = connections.get(row.cluster_id)  # type: ignore[arg-type]
            if connection is not None and (what := _what(row, connection)):
                task = Task(
                    row.pk, what, names.get((row.cluster_id, row.node_id), row.scheduler_node), row.mark, row.reason
                )
                tasks[connection.cluster_id].append(task)
        claimed = [task.id for group in tasks.values() for task in group]
        Cordon.objects.filter(pk__in=claimed).update(leased_until=now + _LEASE, attempted_at=now)
    return tasks, {key: access_of(connections[key]) for key in tasks}


def _names(rows: Collection[Cordon]) -> dict[tuple[UUID | None, UUID | None], str]:
    """What the nodes are called now: they may have been renamed since."""
    known = SchedulerNode.objects.filter(node__in=[row.node_id for row in rows], gone_at=None).order_by("-name")
    found = known.values_list("connection__cluster", "node", "name")
    return {(cluster, node): name for cluster, node, name in found}


def _what(row: Cordon, connection: ClusterConnection) -> str:
    if row.lift_requested_at is not None:
        return "uncordon"
    if row.applied_at is None:
        return "cordon"
    can = {state["capability"] for state in connection.capabilities if state.get("available")}
    return "evict" if row.drain and row.drained_at is None and Capability.EVICT in can else ""


async def _all(tasks: dict[UUID, list[Task]], access: dict[UUID, Access]) -> dict[UUID, tuple[Task, ActResult]]:
    groups = await asyncio.gather(*(_group(access[key], group) for key, group in tasks.items()))
    return {task.id: (task, result) for group in groups for task, result in group}


async def _group(access: Access, tasks: list[Task]) -> list[tuple[Task, ActResult]]:
    """The acts on one cluster, one after another: each is short, and a scheduler is not to be flooded."""
    try:
        driver = opening.open_driver(access)
    except InvalidInput as error:
        return [(task, ActResult(outcome=Outcome.FAILED, detail=error.message)) for task in tasks]
    loop = asyncio.get_running_loop()
    end = loop.time() + _LEASE.total_seconds() - _EVICT_SECONDS
    done: list[tuple[Task, ActResult]] = []
    try:
        for task in tasks:
            if loop.time() >= end:
                break  # what is left is claimed again when its lease is over
            done.append((task, await _act(driver, task)))
    finally:
        await driver.close()
    return done


async def _act(driver: ClusterDriver, task: Task) -> ActResult:
    try:
        async with asyncio.timeout(_EVICT_SECONDS):
            if task.what == "uncordon":
                return await driver.uncordon(task.node, owner=task.mark, deadline=_ACT_SECONDS)
            if task.what == "evict":
                return await driver.evict(task.node, owner=task.mark, deadline=_ACT_SECONDS)
            return await driver.cordon(task.node, owner=task.mark, reason=task.reason, deadline=_ACT_SECONDS)
    except TimeoutError:
        return ActResult(outcome=Outcome.UNKNOWN, detail="the scheduler did not answer in time")
    except Exception:  # a fault of ours; other nodes and clusters go on
        log.exception("%s failed inside the driver", task)
        return ActResult(outcome=Outcome.UNKNOWN, detail=unusable().detail)


# -- what came of it ---------------------------------------------------------------------------------------------------


def _note_result(key: UUID, done: tuple[Task, ActResult]) -> None:
    task, result = done
    now, notes = timezone.now(), list[Note]()
    with transaction.atomic():
        rows = Cordon.objects.select_for_update(no_key=True, of=("self",)).select_related("node", "cluster")
        row = rows.filter(pk=key, lifted_at=None).first()
        if row is None:
            return  # a sync has seen the result first
        row.leased_until = None
        if task.what == "uncordon":
            _lifted(row, result, now, notes)
        elif task.what == "cordon":
            _applied(row, result, now, notes)
        else:
            _evicted(row, result, now, notes)
        row.save()
        write_entries(notes=notes)
    tree_changed.send(sender=None, nodes=[row.node_id])
    jobs_changed.send(sender=None, cluster=row.cluster_id)


def _applied(row: Cordon, result: ActResult, now: datetime, notes: list[Note]) -> None:
    if not result.ok:
        _failed(row, result)
        return
    row.applied_at, row.last_error, row.attempts = row.applied_at or now, "", 0
    notes.append(_entry(row, JournalKind.NODE_CORDONED, f"was taken out of scheduling: {row.reason}", now))


def _lifted(row: Cordon, result: ActResult, now: datetime, notes: list[Note]) -> None:
    ways = {
        Outcome.DONE: LiftedBy.US,
        Outcome.UNCHANGED: LiftedBy.US,
        Outcome.NOT_FOUND: LiftedBy.GONE,
        # Another reason stands where ours was, or ours never got there: nothing of ours is left to lift.
        Outcome.HELD_BY_OTHER: LiftedBy.REPLACED if row.applied_at else LiftedBy.US,
    }
    how = ways.get(result.outcome)
    if how is None:
        _failed(row, result)
        return
    row.lifted_at, row.lifted_by, row.last_error = now, how, ""
    notes.append(_entry(row, JournalKind.NODE_UNCORDONED, "was returned to scheduling", now))
    if row.drain:
        back_in_service([row.node], at=now, source="cluster", notes=notes)


def _evicted(row: Cordon, result: ActResult, now: datetime, notes: list[Note]) -> None:
    if result.ok:
        drained(row, now, notes)
        return
    _failed(row, result)
    if isinstance(result, EvictionResult):
        left = [f"{one.job_id}: {one.reason}" for one in result.left if not one.stays]
        if left:
            row.last_error = f"still there: {'; '.join(left)}"[:2000]


def drained(row: Cordon, now: datetime, notes: list[Note]) -> None:
    """The node is empty: it rests until it is returned."""
    row.drained_at, row.last_error, row.attempts = now, "", 0
    notes.append(_entry(row, JournalKind.NODE_DRAINED, "is drained: nothing runs there any more", now))
    step([row.node], "drained", why="nothing runs there any more", at=now, source="cluster", notes=notes)


def note_drained() -> int:
    """Drains through which a later reading of the jobs sees nothing run. Returns how many."""
    now, notes = timezone.now(), list[Note]()
    running = JobNode.objects.filter(node=OuterRef("node"), job__open=True, job__state__in=list(HOLDING))
    read_since = Q(cluster=None) | Q(cluster__connection__jobs_read_at__gt=F("applied_at"))
    with transaction.atomic():
        rows = list(
            Cordon.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
            .filter(_DRAINING, read_since, ~Exists(running), ours=True, lifted_at=None)
            .select_related("node", "cluster")
            .order_by("id")[:_AT_ONCE]
        )
        for row in rows:
            drained(row, now, notes)
        if rows:
            Cordon.objects.bulk_update(rows, ["drained_at", "last_error", "attempts"])
            write_entries(notes=notes)
    if rows:
        tree_changed.send(sender=None, nodes=[row.node_id for row in rows])
    return len(rows)


def _failed(row: Cordon, result: ActResult) -> None:
    row.attempts += 1
    why = result.detail or str(result.outcome).replace("_", " ")
    if result.outcome is Outcome.HELD_BY_OTHER:
        why = f"somebody else has taken the node out: {why}"
    row.last_error = why[:2000]


def _entry(row: Cordon, kind: JournalKind, clause: str, at: datetime) -> Note:
    detail = {"cordon": str(row.pk)}
    return Note(kind, f"Node {row.node.name} {clause}.", at, row.node_id, None, "cluster", detail, row.cluster_id)
