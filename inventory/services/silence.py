"""Agents that went silent. They push, so nothing else notices when one stops."""

from datetime import datetime, timedelta

from django.core.cache import cache
from django.db import transaction
from django.db.models import DurationField, ExpressionWrapper, F, Q, Value
from django.utils import timezone

from inventory.models import Agent, JournalKind
from inventory.observations import FailureKind
from inventory.services.journal import Note, write_entries
from inventory.services.outcomes import MISSES_TO_FAIL, collector_name
from inventory.signals import collector_read

# The web workers note agents at most every 10 s (ingest/attendance.py), so a short rhythm needs slack.
_SLACK = timedelta(seconds=15)
_WATCH = "inventory.silence.watch"
_GAP = timedelta(seconds=60)  # without a look for this long, Sensaka itself was away: six turns of the clock


def watching_since() -> datetime:
    """Since when this is looked after without a gap; notes that it is now.

    An agent can't be heard while Sensaka is down, and after its restart agents come back one by one.
    """
    now = timezone.now()
    since, last = cache.get(_WATCH) or (now, now)
    if now - last > _GAP:
        since = now
    cache.set(_WATCH, (since, now), timeout=int(_GAP.total_seconds()))
    return since


def mark_silent_agents(*, since: datetime | None = None) -> tuple[int, int]:
    """Marks agents that missed three turns, and those that are back. Returns how many of each changed.

    `since` is when Sensaka began to listen: what an agent missed before counts for nothing.
    """
    now = timezone.now()
    patience = ExpressionWrapper(
        F("interval") * Value(MISSES_TO_FAIL) * Value(timedelta(seconds=1)) + Value(_SLACK),
        output_field=DurationField(),
    )
    agents = Agent.objects.annotate(quiet_at=F("succeeded_at") + patience).select_related("node")
    watched = agents.filter(enabled=True, revoked_at=None).exclude(succeeded_at=None)
    gone = watched.filter(quiet_at__lt=now).filter(Q(silent_since=None) | Q(failing_since=None))
    if since is not None:
        gone = gone.filter(Q(silent_since__isnull=False) | Q(interval__lt=_missable(now - since)))
    back = watched.filter(quiet_at__gte=now).exclude(silent_since=None)
    with transaction.atomic():
        silent = list(gone.select_for_update(of=("self",), skip_locked=True, no_key=True).order_by("id"))
        heard = list(back.select_for_update(of=("self",), skip_locked=True, no_key=True).order_by("id"))
        notes = [_silent(agent) for agent in silent if agent.silent_since is None]
        notes += [_heard(agent) for agent in heard]
        for agent in silent:
            since = agent.succeeded_at
            assert since is not None
            agent.misses = int((now - since).total_seconds() // max(agent.interval, 1))
            agent.failing_since = agent.failing_since or since
            agent.silent_since = agent.silent_since or since
            agent.error_kind, agent.error_detail = str(FailureKind.TIMEOUT), "the agent has sent nothing since then"
        for agent in heard:
            agent.silent_since = None
        Agent.objects.bulk_update(
            [*silent, *heard], ["misses", "failing_since", "silent_since", "error_kind", "error_detail"]
        )
        write_entries(notes=notes)
    if silent or heard:
        collector_read.send(sender=None)
    return len(silent), len(heard)


def _missable(listened: timedelta) -> float:
    """The longest interval (s) of which three turns fit into the time that was listened."""
    return (listened - _SLACK).total_seconds() / MISSES_TO_FAIL


def _silent(agent: Agent) -> Note:
    since = agent.succeeded_at
    assert since is not None
    text = f"{collector_name(agent)} has been silent since {since:%Y-%m-%d %H:%M:%S} UTC."
    detail = {"collector": str(agent.pk)}
    return Note(JournalKind.COLLECTOR_FAILED, text, timezone.now(), agent.node_id, None, "agent", detail)


def _heard(agent: Agent) -> Note:
    text = f"{collector_name(agent)} is heard again."
    detail = {"collector": str(agent.pk)}
    return Note(JournalKind.COLLECTOR_RECOVERED, text, timezone.now(), agent.node_id, None, "agent", detail)
