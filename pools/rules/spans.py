"""From one run of a job to the spans in which it held its cards, to the second.

A run holds its cards from its start to its end. While it is suspended it keeps them, in a span of its
own, because schedulers' accounts leave that time out. When a pause began and ended is only known from
readings; once the accounting tells how long the pauses were in all, they are fitted to that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Run:
    """What is known of a run. `seen_at` is the reading that told it; `suspended` seconds as accounted."""

    state: str
    started_at: datetime | None
    ended_at: datetime | None
    open: bool
    seen_at: datetime
    suspended: int | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    cancelled_by: str = ""

    @property
    def until(self) -> datetime | None:
        """When it ended; of a lost run the last time it was seen; None while it goes on."""
        return None if self.open else self.ended_at or self.seen_at


@dataclass(frozen=True, slots=True)
class Stretch:
    """A span in which a run held its cards. `end` is None while it does; `outcome` says how it ended."""

    start: datetime
    end: datetime | None
    suspended: bool = False
    outcome: str = ""


Pause = tuple[datetime, datetime | None]

_PLAIN = {
    "completed": "completed",
    "timeout": "ended by its time limit",
    "node_fail": "its node failed",
    "preempted": "preempted by its scheduler",
    "requeued": "requeued",
    "out_of_memory": "ran out of memory",
    "boot_fail": "its node did not boot",
    "deadline": "missed its deadline",
}


def outcome_of(run: Run) -> str:
    """How a run ended, in a few words; "" while it goes on."""
    if run.open:
        return ""
    if run.state == "cancelled":
        return f"cancelled by {run.cancelled_by}" if run.cancelled_by else "cancelled"
    if run.state == "failed":
        if run.exit_signal:
            return f"failed (signal {run.exit_signal})"
        return f"failed (exit code {run.exit_code})" if run.exit_code else "failed"
    return _PLAIN.get(run.state, "no longer seen; nobody told its end")


def stretches(run: Run, pauses: Sequence[Pause] = ()) -> list[Stretch]:
    """The spans of a run, in order. `pauses` are those on record from earlier readings.

    Given its own pauses again, the answer is the same.
    """
    if run.started_at is None or (run.open and run.state == "pending"):
        return []
    start = _whole(run.started_at)
    end = None if run.until is None else _whole(run.until)
    if end is not None and end <= start:
        return []
    found = _clipped(_told(run, pauses), start, end)
    if end is not None and run.suspended is not None:
        found = fitted(found, run.suspended, start, end)
    return _alternating(start, end, found, outcome_of(run))


def _whole(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)


def _told(run: Run, pauses: Sequence[Pause]) -> list[Pause]:
    """The pauses, with what this reading adds: a new one, or the end of the last."""
    known = sorted(pauses)
    seen = _whole(run.seen_at)
    running = bool(known) and known[-1][1] is None
    if run.state == "suspended" and run.open:
        return known if running else [*known, (max(seen, known[-1][1] or seen) if known else seen, None)]
    if running:
        known[-1] = (known[-1][0], max(seen, known[-1][0]))
    return known


def _clipped(pauses: Sequence[Pause], start: datetime, end: datetime | None) -> list[Pause]:
    found: list[Pause] = []
    for low, high in pauses:
        low = max(low, start)
        if end is not None:
            high = end if high is None else min(high, end)
        if high is None or high > low:
            found.append((low, high))
    return found


def fitted(pauses: Sequence[Pause], total: int, start: datetime, end: datetime) -> list[Pause]:
    """Closed pauses changed as little as needed so that they are `total` seconds together.

    Too long: the last ones end earlier. Too short: they end later, then begin earlier, last first.
    A pause that no reading saw is put at the end.
    """
    ends = [(low, high or end) for low, high in pauses]
    missing = min(total, int((end - start).total_seconds())) - sum(int((b - a).total_seconds()) for a, b in ends)
    if missing > 0 and not ends:
        return [(end - timedelta(seconds=missing), end)]
    for place in reversed(range(len(ends))):
        low, high = ends[place]
        if missing < 0:
            cut = min(-missing, int((high - low).total_seconds()))
            ends[place], missing = (low, high - timedelta(seconds=cut)), missing + cut
        elif missing > 0:
            after = ends[place + 1][0] if place + 1 < len(ends) else end
            before = ends[place - 1][1] if place else start
            later = min(missing, int((after - high).total_seconds()))
            earlier = min(missing - later, int((low - before).total_seconds()))
            ends[place] = (low - timedelta(seconds=earlier), high + timedelta(seconds=later))
            missing -= later + earlier
    return [(low, high) for low, high in ends if high > low]


def _alternating(start: datetime, end: datetime | None, pauses: Sequence[Pause], outcome: str) -> list[Stretch]:
    found: list[Stretch] = []
    at: datetime | None = start
    for low, high in pauses:
        assert at is not None, "only the last pause is open"
        if low > at:
            found.append(Stretch(at, low, outcome="suspended"))
        found.append(Stretch(low, high, suspended=True, outcome="" if high is None else "resumed"))
        at = high
    if at is not None and (end is None or at < end):
        found.append(Stretch(at, end))
    if found and end is not None:
        last = found[-1]
        found[-1] = Stretch(last.start, last.end, last.suspended, outcome)
    return found
