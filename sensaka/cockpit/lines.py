"""The journal's lines as they are shown: many of the same kind at once are one line that opens."""

from collections.abc import Iterable
from datetime import timedelta

from inventory.models import JournalEntry

_FEWEST = 4
_APART = timedelta(minutes=1)


def grouped(entries: Iterable[JournalEntry]) -> list[tuple[JournalEntry, list[JournalEntry]]]:
    """Each line with those that follow it in one line: same kind, node and source, each within a minute of the last."""
    runs: list[list[JournalEntry]] = []
    for entry in entries:
        if runs and _alike(runs[-1][-1], entry):
            runs[-1].append(entry)
        else:
            runs.append([entry])
    found: list[tuple[JournalEntry, list[JournalEntry]]] = []
    for run in runs:
        if len(run) < _FEWEST:
            found.extend((entry, []) for entry in run)
        else:
            found.append((run[0], run[1:]))
    return found


def _alike(one: JournalEntry, other: JournalEntry) -> bool:
    return _sort(one) == _sort(other) and abs(one.at - other.at) <= _APART


def _sort(entry: JournalEntry) -> tuple[object, ...]:
    return entry.kind, entry.node_id, entry.source, entry.actor_id
