"""The topic `node:<id>`: its cards, its BMC's facts, its collectors and its journal."""

from collections.abc import Iterable
from uuid import UUID

from django.utils import timezone

from inventory.models import Agent, Bmc, Exporter, JournalEntry, Node, ProcessBinding
from inventory.selectors.collectors import source_of
from inventory.selectors.cordons import cordoned_nodes
from sensaka.live.card_cells import PROCESS_KEEP, row_cells
from sensaka.live.cells import Cell, Cells, decimal, moment, unknown, version, watts
from sensaka.live.collector_cells import source_cells
from sensaka.live.fleet import fleet
from sensaka.live.fleet_cells import by, ladder, tally
from sensaka.live.held_cells import cordon_cell, held_versions
from sensaka.live.power import node_power
from sensaka.live.words import NODE_STATES, NODE_TAGS, POWER_TAGS, state_words


def fact_cells(node: Node, bmc: Bmc | None) -> Cells:
    """What the node as a whole last said."""
    read = bmc.succeeded_at if bmc is not None else None
    silent = unknown("Reported by a BMC; none has reported it for this node.")
    stale = "stale" if bmc is not None and bmc.failing_since is not None else ""
    hint = "From its BMC." if not stale else "From its BMC, which does not answer at present."
    found = {
        "node.state": Cell(state_words(node.state), NODE_TAGS[node.state], hint=NODE_STATES[node.state]),
        "node.power_state": Cell(
            state_words(node.power_state), POWER_TAGS.get(node.power_state, "unknown"), at=read, hint=hint
        ),
        "node.power": silent if node.power is None else Cell(watts(node.power), stale, at=read, hint=hint),
        "node.inlet": silent,
        "node.read": moment(node.read_at, hint="Last reading of the operating system (agent or exporter)"),
    }
    if node.inlet_temperature is not None:
        found["node.inlet"] = Cell(decimal(node.inlet_temperature, "°C", 1), stale, at=read, hint=hint)
    return found


def list_cells(ids: Iterable[UUID]) -> Cells:
    """The rows of a list of nodes: their counts and their power."""
    state = fleet()
    wanted = list(ids)
    cards = by(state.cards, "node_id")
    drawn = node_power(state.at)
    out = cordoned_nodes()
    heard = dict(Node.objects.filter(pk__in=wanted).values_list("id", "read_at"))
    found: Cells = {}
    for node_id in wanted:
        found.update(ladder(f"node.{node_id}", tally(cards.get(node_id, ())), state.at))
        hint = "The whole node, from its BMC, not older than three of its intervals."
        value = drawn.get(node_id)
        found[f"node.{node_id}.power"] = unknown(hint) if value is None else Cell(watts(value), hint=hint)
        found[f"node.{node_id}.cordon"] = cordon_cell(node_id in out)
        found[f"node.{node_id}.read"] = moment(heard.get(node_id), hint="Last reading of its operating system")
    return found


def cells(node_id: UUID) -> Cells:
    """Everything on the node page that moves."""
    node = Node.objects.filter(pk=node_id).first()
    if node is None:
        return {}
    now = timezone.now()
    state = fleet()
    cards = state.where(node=node_id)
    bmcs = list(node.bmcs.select_related("node"))
    sources: list[Agent | Bmc | Exporter] = [*bmcs, *node.exporters.select_related("node")]
    if (agent := getattr(node, "agent", None)) is not None:
        sources.append(agent)
    found = fact_cells(node, bmcs[0] if bmcs else None)
    found.update(ladder("all", tally(cards), state.at))
    for card in cards:
        found.update(row_cells(f"card.{card.id}", card))
    for source in sources:
        found.update(source_cells(source_of(source, now=now)))
    newest = JournalEntry.objects.filter(node=node_id).values_list("id", flat=True)[:1]
    processes = ProcessBinding.objects.filter(node=node_id, seen_at__gte=now - PROCESS_KEEP)
    found["node.cordon"] = cordon_cell(node_id in cordoned_nodes())
    found.update(held_versions(node=node_id))
    found["cards.version"] = version([str(card.id) for card in cards])
    found["journal.version"] = version(list(newest))
    found["processes.version"] = version(sorted(processes.values_list("pid", "card_id", "owner"), key=str))
    found["collectors.version"] = version([(str(source.pk), source.enabled, source.interval) for source in sources])
    found["sensors.version"] = version([bmc.succeeded_at for bmc in bmcs])
    return found
