"""One node with everything that its page shows, and nodes whose operating system is down."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast
from uuid import UUID

from django.db.models import Prefetch, Q
from django.utils import timezone

from inventory.models import Agent, Bmc, Card, Exporter, FirmwareComponent, JournalEntry, Node, ProcessBinding, Slice
from inventory.observations import PowerState
from inventory.selectors.samples import CurrentSample, current_samples

_LATE_INTERVALS = 3
_SLACK = timedelta(seconds=15)  # agents are noted at most every 10 s


@dataclass(frozen=True, slots=True)
class NodeDetail:
    """A node and what belongs to it. `samples` are by series of its cards and open slices."""

    node: Node
    agent: Agent | None
    bmcs: list[Bmc]
    exporters: list[Exporter]
    cards: list[Card]
    processes: list[ProcessBinding]
    firmware: list[FirmwareComponent]
    journal: list[JournalEntry]
    samples: dict[int, CurrentSample]
    now: datetime


def node_detail(node_id: UUID, *, journal: int = 50) -> NodeDetail:
    """A node in a fixed number of queries. Cards carry `open_slices`. Raises Node.DoesNotExist."""
    cards = Card.objects.exclude(state="retired").select_related("model").order_by("slot", "pci_address", "id")
    open_slices = Prefetch("slices", queryset=Slice.objects.filter(closed_at=None), to_attr="open_slices")
    node = (
        Node.objects.select_related("site", "cluster", "rack", "agent")
        .prefetch_related(
            "bmcs",
            "exporters",
            Prefetch("cards", queryset=cards.prefetch_related(open_slices), to_attr="standing"),
            Prefetch("processes", queryset=ProcessBinding.objects.select_related("card", "slice")),
            Prefetch("firmware", queryset=FirmwareComponent.objects.select_related("card")),
        )
        .get(pk=node_id)
    )
    standing = cast(list[Card], node.standing)
    series = [card.series for card in standing]
    series += [one.series for card in standing for one in card.open_slices]  # type: ignore[attr-defined]
    entries = JournalEntry.objects.filter(node=node).select_related("card", "actor").order_by("-at", "-id")[:journal]
    return NodeDetail(
        node=node,
        agent=getattr(node, "agent", None),
        bmcs=list(node.bmcs.all()),
        exporters=list(node.exporters.all()),
        cards=standing,
        processes=list(node.processes.all()),
        firmware=list(node.firmware.all()),
        journal=list(entries),
        samples=current_samples(series),
        now=timezone.now(),
    )


@dataclass(frozen=True, slots=True)
class SystemDown:
    """A node that has power by its BMC while nothing on it has been heard since `silent_since`."""

    node: Node
    silent_since: datetime | None
    power_read_at: datetime


def systems_down(*, now: datetime | None = None) -> list[SystemDown]:
    """Nodes whose in-band sources are all silent while their BMC answers and reports power on.

    A fact, no verdict: it does not say why. Nodes without an in-band source are not among them.
    Three queries; a node whose agent was heard within the slack can't be late and is left out by the first.
    """
    now = now or timezone.now()
    heard = Q(agent__enabled=True, agent__revoked_at=None, agent__succeeded_at__gte=now - _SLACK)
    dates = ("node", "enabled", "interval", "succeeded_at")
    powered = (
        Node.objects.filter(power_state=PowerState.ON)
        .exclude(state="retired")
        .filter(Q(agent__isnull=False) | Q(exporters__isnull=False))
        .exclude(heard)
        .select_related("agent")
        .prefetch_related(
            Prefetch("bmcs", queryset=Bmc.objects.only(*dates)),
            Prefetch("exporters", queryset=Exporter.objects.only(*dates)),
        )
        .distinct()
        .order_by("name")
    )
    return [found for node in powered if (found := _down(node, now)) is not None]


def _down(node: Node, now: datetime) -> SystemDown | None:
    answering = [bmc.succeeded_at for bmc in node.bmcs.all() if bmc.succeeded_at and not _late(bmc, now)]
    sources: list[Agent | Exporter] = [one for one in node.exporters.all() if one.enabled]
    agent: Agent | None = getattr(node, "agent", None)
    if agent is not None and agent.enabled and agent.revoked_at is None:
        sources.append(agent)
    heard = [source.succeeded_at for source in sources if source.succeeded_at is not None]
    if not answering or not heard or not all(_late(source, now) for source in sources):
        return None
    return SystemDown(node, max(heard), max(answering))


def _late(source: Agent | Bmc | Exporter, now: datetime) -> bool:
    if source.succeeded_at is None:
        return True
    return now - source.succeeded_at > timedelta(seconds=_LATE_INTERVALS * source.interval) + _SLACK
