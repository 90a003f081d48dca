"""Interval arithmetic: any split adds up."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from sensaka.kernel.intervals import clip, subtract, total, union

interval = st.tuples(st.integers(0, 200), st.integers(0, 200)).map(lambda pair: (min(pair), max(pair)))
intervals = st.lists(interval, max_size=8)


def seconds(rows: list[tuple[int, int]]) -> set[int]:
    return {second for start, end in rows for second in range(start, end)}


@given(intervals)
def test_union_covers_the_same_seconds_disjointly(rows: list[tuple[int, int]]) -> None:
    merged = union(rows)
    assert seconds(merged) == seconds(rows)
    assert all(left[1] < right[0] for left, right in itertools.pairwise(merged))
    assert total(rows) == len(seconds(rows))


@given(intervals, intervals)
def test_subtract_leaves_exactly_what_is_outside(rows: list[tuple[int, int]], holes: list[tuple[int, int]]) -> None:
    assert seconds(subtract(rows, holes)) == seconds(rows) - seconds(holes)


@given(intervals, st.integers(0, 200))
def test_a_span_split_anywhere_adds_up(rows: list[tuple[int, int]], cut: int) -> None:
    parts = [[part for row in union(rows) if (part := clip(row, bounds))] for bounds in ((0, cut), (cut, 200))]
    assert total(parts[0]) + total(parts[1]) == total(rows)
