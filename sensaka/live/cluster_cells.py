"""The topics `clusters` and `cluster:<id>`: whether schedulers answer, what they run, and what was taken out."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Max, Q

from inventory.models import Cordon, Job, JournalEntry, Reservation, SchedulerNode, SchedulerQueue
from inventory.selectors.clusters import ClusterRow, cluster_rows
from sensaka.live.cells import Cell, Cells, count, moment, version
from sensaka.live.fleet import fleet
from sensaka.live.fleet_cells import by, ladder, tally
from sensaka.live.job_cells import newest
from sensaka.live.words import CONDITION_TAGS, CONDITION_WORDS


def condition_cells(prefix: str, row: ClusterRow) -> Cells:
    """Whether the scheduler is reached, why not, and how old its facts are."""
    stale = row.condition in ("lost", "late", "off")
    contact = row.connection.succeeded_at if row.connection is not None else None
    return {
        f"{prefix}.condition": Cell(CONDITION_WORDS[row.condition], CONDITION_TAGS[row.condition], hint=row.reason),
        f"{prefix}.reason": Cell(row.reason),
        f"{prefix}.contact": moment(contact, hint="Last answer of the scheduler", state="stale" if stale else ""),
        f"{prefix}.facts": moment(row.facts_at, hint="Nodes and jobs were last read completely"),
    }


def row_cells(row: ClusterRow, cards: list[Any], at: datetime) -> Cells:
    """A cluster in the list: condition, numbers of its scheduler, counts of its cards."""
    prefix = f"cluster.{row.cluster.pk}"
    state = "stale" if row.condition in ("lost", "late", "off") else ""
    hint = "As last read." if state else ""
    found = ladder(prefix, tally(cards), at)
    found.update(condition_cells(prefix, row))
    found[f"{prefix}.nodes"] = Cell(count(row.nodes), hint="Nodes of ours in this cluster that are not retired.")
    if row.connection is None:
        return found
    found[f"{prefix}.running"] = Cell(count(row.running), state, hint=f"Runs that hold their nodes. {hint}".strip())
    found[f"{prefix}.waiting"] = Cell(count(row.waiting), state, hint=f"Runs in the queue. {hint}".strip())
    out = "Nodes that take no new work, by whoever's wish."
    found[f"{prefix}.cordoned"] = Cell(count(row.cordoned), "warn" if row.cordoned else "", hint=out)
    return found


def cells() -> Cells:
    """Every cluster."""
    state = fleet()
    cards = by(state.cards, "cluster_id")
    found: Cells = {}
    rows = cluster_rows()
    for row in rows:
        found.update(row_cells(row, cards.get(row.cluster.pk, []), state.at))
    found["clusters.version"] = version(
        [(row.cluster.pk, row.cluster.name, row.connection and row.connection.version) for row in rows]
    )
    found["jobs.version"] = version(newest())
    found["cordons.version"] = _changed(Cordon)
    return found


def _changed(model: Any, about: Q | None = None) -> Cell:
    rows = model.objects.filter(about) if about is not None else model.objects.all()
    said = rows.order_by().aggregate(number=Count("pk"), last=Max("updated_at"))
    return version(said["number"], said["last"])


_PARTS: dict[str, Callable[[UUID], Cell]] = {
    "nodes": lambda key: _changed(SchedulerNode, Q(connection__cluster=key)),
    "queues": lambda key: version(
        _changed(SchedulerQueue, Q(connection__cluster=key)).text,
        _changed(Reservation, Q(connection__cluster=key)).text,
    ),
    "jobs": lambda key: _changed(Job, Q(cluster=key, open=True)),
    "cordons": lambda key: _changed(Cordon, Q(cluster=key)),
    "journal": lambda key: version(
        list(
            JournalEntry.objects.filter(Q(cluster=key) | Q(node__cluster=key))
            .order_by("-at", "-id")
            .values_list("id", flat=True)[:1]
        )
    ),
}


def one(cluster_id: UUID) -> Cells:
    """Everything on a cluster's page that moves, with a version of each of its parts."""
    row = next((row for row in cluster_rows() if row.cluster.pk == cluster_id), None)
    if row is None:
        return {}
    state = fleet()
    own = [card for card in state.cards if card.cluster_id == cluster_id]
    found = {
        key.replace(f"cluster.{cluster_id}.", "cluster."): cell for key, cell in row_cells(row, own, state.at).items()
    }
    connection = row.connection
    if connection is not None:
        found["cluster.expires"] = moment(connection.token_expires_at, hint="Our access ends then")
        found["connection.version"] = version(
            row.condition, row.reason, connection.version, connection.interface, connection.tested,
            connection.capabilities, connection.enabled, connection.address, connection.token_expires_at,
        )  # fmt: skip
    for part, made in _PARTS.items():
        found[f"{part}.version"] = made(cluster_id)
    return found
