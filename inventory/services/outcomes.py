"""What a read does to its collector's row: times, failures as data, the next turn, and the journal.

Only transitions go to the journal: the third read in a row that gave nothing, and the first good one
after that. A single miss is a hiccup that the row shows anyway.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from inventory.models import Agent, Bmc, ClusterConnection, Exporter, JournalKind, Scheduler
from inventory.observations import FailureKind, ReadFailure
from inventory.services.journal import Note, write_entries

MISSES_TO_FAIL = 3
# A wrong password tried on each turn locks accounts out (TELEMETRY 6.8): the pause doubles up to this.
LONGEST_PAUSE = timedelta(minutes=15)
_MOST_FAILURES = 100

Polled = Bmc | Exporter | ClusterConnection
"""What Sensaka reads by itself."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished read: `failure` is set when it gave nothing at all; `changes` are further fields."""

    at: datetime
    elapsed: float
    failure: ReadFailure | None = None
    failures: tuple[ReadFailure, ...] = ()
    requests: int | None = None
    cards: int | None = None
    changes: dict[str, Any] = field(default_factory=dict)


def next_turn(*, due_at: datetime, interval: int, now: datetime) -> datetime:
    """The first turn after `now` on the grid that `due_at` is on: a late or long read shifts nothing."""
    step = timedelta(seconds=max(interval, 1))
    behind = max((now - due_at) // step, 0)
    return due_at + step * (behind + 1)


def finish(collector: Polled, outcome: Outcome, *, source: str) -> None:
    """Writes the outcome to the row that the caller holds locked, lets its lease go and sets its next turn."""
    kind = outcome.failure.kind if outcome.failure else None
    if kind is None:
        _journal_recovery(collector, outcome, source)
        collector.misses, collector.failing_since = 0, None
        collector.error_kind = collector.error_detail = ""
        collector.succeeded_at = outcome.at
        collector.cards_seen = outcome.cards
    else:
        assert outcome.failure is not None
        collector.misses += 1
        collector.failing_since = collector.failing_since or outcome.at
        collector.error_kind, collector.error_detail = str(kind), outcome.failure.detail[:2000]
        _journal_failure(collector, outcome, source)
    collector.attempted_at, collector.elapsed = outcome.at, round(outcome.elapsed, 3)
    collector.requests = outcome.requests
    collector.failures = _as_data(outcome.failures)
    collector.leased_until = None
    collector.due_at = next_turn(due_at=collector.due_at, interval=collector.interval, now=outcome.at)
    if kind is FailureKind.AUTHENTICATION:
        pause = timedelta(seconds=collector.interval * 2 ** min(collector.misses, 10))
        collector.due_at = max(collector.due_at, outcome.at + min(pause, LONGEST_PAUSE))
    for name, value in outcome.changes.items():
        setattr(collector, name, value)
    collector.save()


def _as_data(failures: Iterable[ReadFailure]) -> list[dict[str, str]]:
    plain: list[dict[str, str]] = msgspec.to_builtins(list(failures)[:_MOST_FAILURES])
    return plain


def _journal_failure(collector: Polled, outcome: Outcome, source: str) -> None:
    if collector.misses != MISSES_TO_FAIL:
        return
    assert outcome.failure is not None
    why = outcome.failure.detail or str(outcome.failure.kind).replace("_", " ")
    text = f"{collector_name(collector)} has not answered {MISSES_TO_FAIL} times in a row: {why}."
    kind = JournalKind.CLUSTER_LOST if isinstance(collector, ClusterConnection) else JournalKind.COLLECTOR_FAILED
    _write(collector, kind, text, outcome.at, source, error=str(outcome.failure.kind))


def _journal_recovery(collector: Polled, outcome: Outcome, source: str) -> None:
    if collector.misses < MISSES_TO_FAIL:
        return
    since = f" after {collector.misses} misses" if collector.failing_since else ""
    text = f"{collector_name(collector)} answers again{since}."
    of_cluster = isinstance(collector, ClusterConnection)
    kind = JournalKind.CLUSTER_RECOVERED if of_cluster else JournalKind.COLLECTOR_RECOVERED
    _write(collector, kind, text, outcome.at, source)


def _write(collector: Polled, kind: JournalKind, text: str, at: datetime, source: str, **detail: str) -> None:
    facts = {"collector": str(collector.pk), **detail}
    if isinstance(collector, ClusterConnection):
        note = Note(kind, text, at, None, None, source, facts, collector.cluster_id)
    else:
        note = Note(kind, text, at, collector.node_id, None, source, facts)
    write_entries(notes=[note])


def collector_name(collector: Polled | Agent) -> str:
    """How a collector is called in a sentence."""
    if isinstance(collector, Bmc):
        of = f" of node {collector.node.name}" if collector.node else ""
        return f"The BMC{of} at {collector.address}"
    if isinstance(collector, Exporter):
        return f"The exporter at {collector.url}"
    if isinstance(collector, ClusterConnection):
        return f"{Scheduler(collector.scheduler).label} of cluster {collector.cluster.name}"
    return f"The agent on node {collector.node.name}"
