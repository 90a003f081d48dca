"""All sources in one list: who was read when, what failed and why."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from inventory.models import Agent, Bmc, Exporter

_LATE_INTERVALS = 3
_SLACK = timedelta(seconds=15)  # agents are noted at most every 10 s
_HEAVY = ("sensors", "links", "tls_authority")  # what no list shows
ORDER = ("failing", "late", "new", "partly", "well", "off")


@dataclass(frozen=True, slots=True)
class Source:
    """A collector, its kind (agent, exporter, bmc) and in which state it is.

    `failing`: its last read gave nothing; `late`: it has not been heard for three intervals; `new`: it
    was never read; `partly`: something of the last read failed; `well`; `off`: switched off.
    """

    collector: Agent | Bmc | Exporter
    kind: str
    condition: str

    @property
    def id(self) -> UUID:
        """The collector's id."""
        return self.collector.id


def sources(*, now: datetime | None = None) -> list[Source]:
    """Every source, the worst first. Three queries."""
    now = now or timezone.now()
    found = [
        *(Source(row, "agent", _condition(row, now)) for row in Agent.objects.select_related("node__site")),
        *(Source(row, "exporter", _condition(row, now)) for row in Exporter.objects.select_related("node", "site")),
        *(
            Source(row, "bmc", _condition(row, now))
            for row in Bmc.objects.select_related("node", "site").defer(*_HEAVY)
        ),
    ]
    return sorted(found, key=lambda one: (ORDER.index(one.condition), one.kind, str(one.collector)))


def source_of(collector: Agent | Bmc | Exporter, *, now: datetime) -> Source:
    """One collector that was read already, with its condition."""
    kind = {Agent: "agent", Bmc: "bmc", Exporter: "exporter"}[type(collector)]
    return Source(collector, kind, _condition(collector, now))


def _condition(row: Agent | Bmc | Exporter, now: datetime) -> str:
    if not row.enabled or (isinstance(row, Agent) and row.revoked_at is not None):
        return "off"
    if row.error_kind:
        return "failing"
    if row.succeeded_at is None:
        return "new"
    if now - row.succeeded_at > timedelta(seconds=_LATE_INTERVALS * row.interval) + _SLACK:
        return "late"
    return "partly" if row.failures else "well"
