"""One run from two readings: what the scheduler still remembers, and what its accounting wrote.

Accounting wins on times and on how a run ended. While it lags, the scheduler's own word counts, and
a run that is over stays over. What a reading leaves empty takes nothing away, except what only the
living know: why it waits, whether it is held.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from inventory.rules.jobs import ENDED, JobState

Facts = Mapping[str, Any]
"""Fields of a run by the names of their columns."""

GRACE = timedelta(minutes=10)
"""How long the accounting may take to tell the end of a run that the scheduler forgot."""

_EMPTY: tuple[Any, ...] = (None, "", (), [], {})
_OF_THE_LIVING = frozenset({"reason", "held", "array_tasks", "priority"})
_COUNTS = frozenset({"cards", "cards_requested", "shares", "restarts"})  # zero: not told here
_OF_THE_END = frozenset({
    "state", "raw_state", "reason", "exit_code", "exit_signal", "ended_at", "suspended", "cancelled_by",
})  # fmt: skip


def is_over(facts: Facts | None) -> bool:
    """Whether a run has ended."""
    return facts is not None and facts.get("state") in ENDED


def merged(before: Facts | None, live: Facts | None, run: Facts | None) -> dict[str, Any]:
    """The run as it is known now. At least one of the three is there."""
    facts = dict(before or {})
    if live is not None and not (is_over(facts) and not is_over(live)):
        facts |= {name: value for name, value in live.items() if name in _OF_THE_LIVING or _tells(name, value)}
    if run is not None:
        lags = not is_over(run) and (is_over(facts) or live is not None)
        left_out = _OF_THE_END if lags else frozenset()
        facts |= {name: value for name, value in run.items() if name not in left_out and _tells(name, value)}
    if is_over(facts):
        facts["held"] = False
    return facts


def _tells(name: str, value: Any) -> bool:
    if name == "state":
        return bool(value != JobState.UNKNOWN)
    return bool(value != 0 if name in _COUNTS else value not in _EMPTY)


class Absence(StrEnum):
    """What it means that the scheduler no longer lists a run that is not over."""

    MISSING = "missing"  # its end may yet be told
    LOST = "lost"  # nobody will tell


def absence(
    *, missing_since: datetime | None, at: datetime, accounting: bool, accounting_read: bool
) -> Absence:  # fmt: skip
    """Judges a run that a complete reading of `at` lacks and whose end nobody told.

    Without accounting nobody will; with it, only a reading of it counts, and only after a grace.
    """
    if not accounting:
        return Absence.LOST
    waited = missing_since is not None and at - missing_since >= GRACE
    return Absence.LOST if waited and accounting_read else Absence.MISSING
