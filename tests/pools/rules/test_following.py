"""Spans of runs, whose they are, and claims on the same card: pure (P3, P8)."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pools.rules.claims import Claim, settle
from pools.rules.layouts import Instance, parts_of
from pools.rules.mapping import MappingRule, Owner, OwnerBook
from pools.rules.sharing import geometry
from pools.rules.spans import Run, Stretch, outcome_of, stretches

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)
A100 = geometry({"1g.5gb": 7, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1})


def at(seconds: float | None) -> datetime | None:
    return None if seconds is None else T0 + timedelta(seconds=seconds)


def run(
    state: str = "running", start: float | None = 0, end: float | None = None, seen: float = 0, **more: object
) -> Run:
    is_open = state in ("running", "suspended", "pending", "completing")
    return Run(state, at(start), at(end), is_open, T0 + timedelta(seconds=seen), **more)  # type: ignore[arg-type]


def told(found: list[Stretch]) -> list[tuple[float, float | None, bool, str]]:
    def seconds(moment: datetime | None) -> float | None:
        return None if moment is None else (moment - T0).total_seconds()

    return [(seconds(one.start) or 0, seconds(one.end), one.suspended, one.outcome) for one in found]


@pytest.mark.parametrize(
    ("known", "pauses", "spans"),
    [
        pytest.param(run("pending", None), [], [], id="waits"),
        pytest.param(run("pending", 5), [], [], id="waits, its start only expected"),
        pytest.param(run(start=1.9), [], [(1, None, False, "")], id="runs, in whole seconds"),
        pytest.param(run("completed", 0, 0.5), [], [], id="over within the second"),
        pytest.param(run("completed", 0, 60), [], [(0, 60, False, "completed")], id="over"),
        pytest.param(run("unknown", 0, None, 45), [], [(0, 45, False, "no longer seen; nobody told its end")],
                     id="lost: as far as it was seen"),
        pytest.param(run("suspended", 0, None, 10), [], [(0, 10, False, "suspended"), (10, None, True, "")],
                     id="pauses"),
        pytest.param(run("running", 0, None, 30), [(at(10), None)],
                     [(0, 10, False, "suspended"), (10, 30, True, "resumed"), (30, None, False, "")], id="goes on"),
        pytest.param(run("completed", 0, 100, 100, suspended=35), [(at(10), at(30))],
                     [(0, 10, False, "suspended"), (10, 45, True, "resumed"), (45, 100, False, "completed")],
                     id="a pause that was longer than it looked"),
        pytest.param(run("completed", 0, 100, 100, suspended=0), [(at(10), at(30))], [(0, 100, False, "completed")],
                     id="no pause after all"),
        pytest.param(run("completed", 0, 100, 100, suspended=20), [],
                     [(0, 80, False, "suspended"), (80, 100, True, "completed")], id="a pause nobody saw"),
        pytest.param(run("cancelled", 0, 90, 90, suspended=90), [(at(80), None)], [(0, 90, True, "cancelled")],
                     id="never went on"),
    ],
)  # fmt: skip
def test_spans(known: Run, pauses: list, spans: list) -> None:
    found = stretches(known, pauses)
    assert told(found) == spans
    again = stretches(known, [(one.start, one.end) for one in found if one.suspended])
    assert again == found


@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), max_size=4),
    st.integers(0, 120),
)
def test_spans_add_up_to_what_is_accounted(pauses: list[tuple[int, int]], suspended: int) -> None:
    ends = sorted(number for pause in pauses for number in pause)
    apart = [(at(low), at(high)) for low, high in zip(ends[::2], ends[1::2], strict=True)]
    found = stretches(run("completed", 0, 100, 100, suspended=suspended), apart)  # type: ignore[arg-type]
    lengths = {kind: sum((one.end - one.start).total_seconds() for one in found if one.end and one.suspended is kind)
               for kind in (True, False)}  # fmt: skip
    assert lengths[True] == min(suspended, 100)
    assert lengths[True] + lengths[False] == 100
    assert [one.start for one in found[1:]] == [one.end for one in found[:-1]]


def test_outcomes() -> None:
    assert outcome_of(run("failed", 0, 5, exit_code=3)) == "failed (exit code 3)"
    assert outcome_of(run("failed", 0, 5, exit_signal=9)) == "failed (signal 9)"
    assert outcome_of(run("cancelled", 0, 5, cancelled_by="ann")) == "cancelled by ann"
    assert outcome_of(run()) == ""


def test_whose_work_it_is_label_before_namespace_before_account() -> None:
    rules = [
        MappingRule("c", "account", "", "physics", "red", "r1"),
        MappingRule("c", "namespace", "", "physics", "blue"),
        MappingRule("c", "label", "team", "x", "green"),
        MappingRule("d", "account", "", "physics", "gold"),
    ]
    book = OwnerBook(rules)
    assert book.owner("c", account="physics") == Owner("red", "r1")
    assert book.owner("c", account="physics", namespace="physics") == Owner("blue", None)
    assert book.owner("c", namespace="physics", labels={"team": "x"}) == Owner("green", None)
    assert book.owner("d", account="physics") == Owner("gold", None)
    assert book.owner("d", account="Physics") is None
    assert book.owner("c", namespace="", account="") is None
    assert OwnerBook(reversed(rules)).digest == book.digest != OwnerBook(rules[:3]).digest
    assert book.place_of("c", "account", "red", "r1") == "physics"
    assert book.place_of("c", "account", "red", "r2") == ""
    assert book.place_of("c", "namespace", "blue", "b1") == "physics"


def claim(key: str, start: float, end: float | None, *, planned: bool = False, low: int = 0, high: int = 1000) -> Claim:
    return Claim(key, "card", T0 + timedelta(seconds=start), at(end), key, planned, low, high)


def test_the_later_of_two_that_were_seen_has_the_card() -> None:
    claims = [claim("a", 0, None), claim("b", 10, 20), claim("c", 10, None, low=0, high=500), claim("d", 30, None)]
    found = settle(claims)
    # b and c start together: the higher name counts as the later one
    assert (found.cut, found.void) == ({"a", "c"}, {"b"})
    assert [one.end for one in claims if one.id in "ac"] == [at(10), at(30)]
    again = settle([one for one in claims if one.id != "b"])
    assert not (again.cut | again.void)


def test_shares_beside_each_other_stay() -> None:
    assert not settle([claim("a", 0, None, high=500), claim("b", 0, None, low=500)]).void


def test_a_plan_gives_way_to_what_runs_and_waits_for_what_has_left() -> None:
    late, lost = claim("p", 10, None, planned=True), claim("q", 10, None, planned=True)
    assert settle([late, claim("a", 0, 13)]).late == {"p"}
    assert late.start == at(13)
    assert settle([lost, claim("a", 12, None)]).ousted == {"q"}


def test_instances_lie_apart_and_keep_their_places() -> None:
    own = [Instance("small", "1g.5gb"), Instance("large", "3g.20gb"), Instance("middle", "2g.10gb")]
    assert parts_of(A100, own) == {"large": (0, 500), "middle": (500, 750), "small": (750, 875)}
    # the large one is held in the upper half: the others go around it
    kept = parts_of(A100, own, {"large": (500, 1000)})
    assert kept == {"large": (500, 1000), "middle": (0, 250), "small": (250, 375)}


def test_instances_of_a_model_nobody_knows_are_equal_parts() -> None:
    assert parts_of(None, [Instance(1, "x"), Instance(2, "x"), Instance(3, "y")]) == {
        1: (0, 333), 2: (333, 666), 3: (666, 1000)
    }  # fmt: skip


def test_more_instances_than_a_card_can_have_still_lie_apart() -> None:
    found = sorted(parts_of(A100, [Instance(number, "4g.20gb") for number in range(3)]).values())
    assert all(low[1] <= high[0] for low, high in pairwise(found))
