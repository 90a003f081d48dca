"""Busy, idle and unknown seconds of a card, by exact integration of its samples.

A sample holds until the next one of its source, at most HOLD_INTERVALS of its own interval. One
without activity ends the hold before it and covers nothing. Where several sources cover the same
second, the highest (agent, exporter, BMC) counts. What nothing covers is unknown: never idle,
never busy. All times are whole UTC seconds since 1970, so the parts of any split add up exactly.

The rollups do the same in SQL (inventory/services/rollup_sql.py); a property test holds both equal.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from sensaka.kernel.intervals import Interval, clip, subtract

HOLD_INTERVALS = 3
MAX_INTERVAL = 1200
"""Longest sampling interval (s) that is accepted: a hold then ends within the hour."""

DEFAULT_THRESHOLD = 5.0
"""Percent of activity from which a card is busy where no BusyThreshold row says otherwise."""

SOURCES: tuple[str, ...] = ("agent", "exporter", "bmc")
"""Highest precedence first; the code in storage is the place in this list, from 1."""

SOURCE_CODES: dict[str, int] = {name: code for code, name in enumerate(SOURCES, start=1)}
SOURCE_NAMES: dict[int, str] = {code: name for name, code in SOURCE_CODES.items()}


@dataclass(frozen=True, slots=True)
class Reading:
    """One sample as the integration sees it: `at` in epoch seconds, `interval` in seconds, activity in percent."""

    at: int
    source: int
    interval: int
    activity: float | None


@dataclass(frozen=True, slots=True)
class Hold:
    """The span during which one reading holds."""

    start: int
    end: int
    reading: Reading


@dataclass(frozen=True, slots=True)
class Seconds:
    """Whole seconds of a span by what the card did in them."""

    busy: int = 0
    idle: int = 0
    unknown: int = 0

    @property
    def total(self) -> int:
        return self.busy + self.idle + self.unknown

    @property
    def coverage(self) -> float | None:
        """Percent of the span that is known; None for an empty span."""
        return 100 * (self.busy + self.idle) / self.total if self.total else None

    def __add__(self, other: "Seconds") -> "Seconds":
        return Seconds(self.busy + other.busy, self.idle + other.idle, self.unknown + other.unknown)


def activity(*, sm_activity: float | None, utilization: float | None) -> tuple[float | None, str | None]:
    """A card's activity in percent and the field it comes from: SM activity where known, else utilization."""
    if sm_activity is not None:
        return sm_activity, "sm_activity"
    return utilization, "utilization" if utilization is not None else None


def threshold_for(
    rows: Iterable[tuple[object | None, object | None, float]], *, model: object | None, cluster: object | None
) -> float:
    """The threshold (percent) from rows of (model, cluster, activity).

    Model and cluster win over model, over cluster, over the row with neither, over DEFAULT_THRESHOLD.
    """
    best, rank = DEFAULT_THRESHOLD, 0
    for row_model, row_cluster, value in rows:
        fits = row_model in (None, model) and row_cluster in (None, cluster)
        specific = 1 + 2 * (row_model is not None) + (row_cluster is not None)
        if fits and specific > rank:
            best, rank = value, specific
    return best


def holds(readings: Iterable[Reading]) -> list[Hold]:
    """When each reading holds, by source and time. Of two of one source and second the first counts."""
    first: dict[tuple[int, int], Reading] = {}
    for reading in readings:
        first.setdefault((reading.source, reading.at), reading)
    ordered = sorted(first.values(), key=attrgetter("source", "at"))
    found = []
    for index, reading in enumerate(ordered):
        end = reading.at + HOLD_INTERVALS * reading.interval
        if index + 1 < len(ordered) and ordered[index + 1].source == reading.source:
            end = min(end, ordered[index + 1].at)
        found.append(Hold(reading.at, end, reading))
    return found


def counted(readings: Iterable[Reading]) -> list[Hold]:
    """Disjoint holds with activity: each second belongs to the highest source that covers it."""
    pieces: list[Hold] = []
    taken: list[Interval] = []
    by_source: dict[int, list[Hold]] = {}
    for hold in holds(readings):
        if hold.reading.activity is not None:
            by_source.setdefault(hold.reading.source, []).append(hold)
    for _, own in sorted(by_source.items()):
        for hold in own:
            free = subtract([(hold.start, hold.end)], taken) if taken else [(hold.start, hold.end)]
            pieces += [Hold(start, end, hold.reading) for start, end in free]
        taken = [*taken, *((hold.start, hold.end) for hold in own)]
    return sorted(pieces, key=attrgetter("start"))


def integrate(readings: Iterable[Reading], *, start: int, end: int, threshold: float) -> Seconds:
    """Busy, idle and unknown seconds of [start, end); they always add up to its length.

    Readings before `start` matter as long as they hold; the caller passes those of the last
    HOLD_INTERVALS * MAX_INTERVAL seconds.
    """
    return sum_pieces(counted(readings), start=start, end=end, threshold=threshold)


def sum_pieces(pieces: Sequence[Hold], *, start: int, end: int, threshold: float) -> Seconds:
    """Like `integrate`, from pieces that `counted` made."""
    busy = idle = 0
    for piece in pieces:
        inside = clip((piece.start, piece.end), (start, end))
        if inside is None or piece.reading.activity is None:
            continue
        if piece.reading.activity >= threshold:
            busy += inside[1] - inside[0]
        else:
            idle += inside[1] - inside[0]
    return Seconds(busy, idle, max(0, end - start - busy - idle))
