"""Arithmetic on half-open intervals [start, end) of whole seconds.

Hours, coverage and ledger rows are computed with these and never by counting samples, so that any
span splits into parts whose seconds add up to the whole.
"""

from collections.abc import Iterable

Interval = tuple[int, int]


def clip(interval: Interval, bounds: Interval) -> Interval | None:
    """The part of `interval` inside `bounds`; None when they do not meet."""
    start, end = max(interval[0], bounds[0]), min(interval[1], bounds[1])
    return (start, end) if start < end else None


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Sorted, disjoint, non-touching intervals that cover the same seconds."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def subtract(intervals: Iterable[Interval], holes: Iterable[Interval]) -> list[Interval]:
    """What of `intervals` remains outside `holes`."""
    remaining = union(intervals)
    for hole_start, hole_end in union(holes):
        cut: list[Interval] = []
        for start, end in remaining:
            if hole_end <= start or end <= hole_start:
                cut.append((start, end))
                continue
            if start < hole_start:
                cut.append((start, hole_start))
            if hole_end < end:
                cut.append((hole_end, end))
        remaining = cut
    return remaining


def total(intervals: Iterable[Interval]) -> int:
    """Seconds covered, overlaps counted once."""
    return sum(end - start for start, end in union(intervals))
