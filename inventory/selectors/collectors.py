"""All sources in one list: who was read when, what failed and why."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import DateTimeField, DurationField, ExpressionWrapper, F, Q, Value
from django.utils import timezone

from inventory.models import Agent, Bmc, ClusterConnection, Exporter

_LATE_INTERVALS = 3
_SLACK = timedelta(seconds=15)  # agents are noted at most every 10 s
_HEAVY = ("sensors", "links", "tls_authority")  # what no list shows
_SECRETS = ("token", "jwt_key", "kubeconfig", "tls_authority")
_TROUBLE = frozenset({"failing", "late"})
Collectors = Agent | Bmc | Exporter | ClusterConnection
ORDER = ("failing", "late", "new", "partly", "well", "off")


@dataclass(frozen=True, slots=True)
class Source:
    """A collector, its kind (agent, exporter, bmc, scheduler) and in which state it is.

    `failing`: its last read gave nothing; `late`: it has not been heard for three intervals; `new`: it
    was never read; `partly`: something of the last read failed; `well`; `off`: switched off.
    """

    collector: Collectors
    kind: str
    condition: str

    @property
    def id(self) -> UUID:
        """The collector's id."""
        return self.collector.id


def sources(*, now: datetime | None = None, troubled: bool = False) -> list[Source]:
    """Every source, the worst first; with `troubled` those that are failing or late. Four queries."""
    now = now or timezone.now()
    wanted = _trouble(now) if troubled else Q()
    agents = Agent.objects.filter(wanted).select_related("node__site")
    exporters = Exporter.objects.filter(wanted).select_related("node", "site", "rack")
    bmcs = Bmc.objects.filter(wanted).select_related("node", "site", "rack").defer(*_HEAVY)
    schedulers = ClusterConnection.objects.filter(wanted).select_related("cluster__site").defer(*_SECRETS)
    found = [
        *(Source(row, "agent", _condition(row, now)) for row in agents),
        *(Source(row, "exporter", _condition(row, now)) for row in exporters),
        *(Source(row, "bmc", _condition(row, now)) for row in bmcs),
        *(Source(row, "scheduler", _condition(row, now)) for row in schedulers),
    ]
    if troubled:
        found = [one for one in found if one.condition in _TROUBLE]
    return sorted(found, key=lambda one: (ORDER.index(one.condition), one.kind, str(one.collector)))


def any_source() -> bool:
    """Whether anything is read at all."""
    return any(model.objects.exists() for model in (Agent, Bmc, Exporter, ClusterConnection))


def _trouble(now: datetime) -> Q:
    """Leaves out in the database what can be neither failing nor late; `_condition` decides on the rest."""
    hold = ExpressionWrapper(F("interval") * Value(timedelta(seconds=_LATE_INTERVALS)), DurationField())
    heard = ExpressionWrapper(Value(now - _SLACK) - hold, DateTimeField())
    return Q(enabled=True) & (Q(error_kind__gt="") | Q(succeeded_at__lt=heard))


def source_of(collector: Collectors, *, now: datetime) -> Source:
    """One collector that was read already, with its condition."""
    kind = {Agent: "agent", Bmc: "bmc", Exporter: "exporter", ClusterConnection: "scheduler"}[type(collector)]
    return Source(collector, kind, _condition(collector, now))


def _condition(row: Collectors, now: datetime) -> str:
    if not row.enabled or (isinstance(row, Agent) and row.revoked_at is not None):
        return "off"
    if row.error_kind:
        return "failing"
    if row.succeeded_at is None:
        return "new"
    if now - row.succeeded_at > timedelta(seconds=_LATE_INTERVALS * row.interval) + _SLACK:
        return "late"
    return "partly" if row.failures else "well"
