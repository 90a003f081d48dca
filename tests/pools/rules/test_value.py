"""Node values and learned prices: the tables against a plain search, costs, and which way learning moves values."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pools.rules.learning import Free, refreshed
from pools.rules.pricing import Prices, Shape, next_due, shape_of
from pools.rules.room import NEAR_TIE, SURCHARGE, Room
from pools.rules.value import CORE_PRICES, STEPS, States, tables
from tests.pools.rules.build import EIGHT

SHARES = (200, 330, 500, 810, 1000)
SHAPES = st.lists(
    st.one_of(
        st.builds(Shape, st.sampled_from([0.0, 2.0, 8.0]), st.just(1), st.sampled_from(SHARES)),
        st.builds(Shape, st.sampled_from([0.0, 16.0, 64.0]), st.sampled_from([2, 4]), st.just(1000)),
    ),
    min_size=1, max_size=5, unique=True,
)  # fmt: skip
PRICES = st.sampled_from([0, 5, 12, 23])


def _searched(shapes: list[Shape], values: list[float], price: float, steps: int, cards: int) -> float:
    """The same values by trying every last unit."""

    @cache
    def part(x: int) -> float:
        options = [
            values[j] - price * shape.cpu + part(x - shape.share // 10)
            for j, shape in enumerate(shapes)
            if shape.cards == 1 and shape.share // 10 <= x
        ]
        return max([0.0, *options])

    @cache
    def whole(n: int) -> float:
        if not n:
            return 0.0
        options = [
            values[j] - price * shape.cpu + whole(n - shape.cards)
            for j, shape in enumerate(shapes)
            if 1 < shape.cards <= n
        ]
        return max([whole(n - 1) + part(STEPS), *options])

    return part(steps) if not cards else whole(cards)


@given(SHAPES, st.data(), PRICES)
@settings(max_examples=40)
def test_tables_are_the_best_fills(shapes: list[Shape], data: st.DataObject, at: int) -> None:
    values = [data.draw(st.floats(0.02, 2.0)) * shape.size for shape in shapes]
    made = tables(shapes, np.array(values), 4)
    for steps in (0, 10, 20, 33, 53, 66, 99, 100):
        assert made.part[steps, at] == pytest.approx(_searched(shapes, values, CORE_PRICES[at], steps, 0))
    for cards in range(1, 5):
        assert made.whole[cards, at] == pytest.approx(_searched(shapes, values, CORE_PRICES[at], 0, cards))
    # the units that are said to fill a card are worth what the card is said to be worth
    for steps in (33, 66, 100):
        told = sum(
            made.fill.units[steps, at, place] * (values[shape] - CORE_PRICES[at] * shapes[shape].cpu)
            for place, shape in enumerate(made.fill.shape[:, at])
        )
        assert told == pytest.approx(made.part[steps, at])


@given(SHAPES, st.lists(st.integers(0, 100), min_size=4, max_size=4), st.integers(0, 64))
@settings(max_examples=40)
def test_work_costs_what_the_value_falls_by(shapes: list[Shape], free: list[int], cpu: int) -> None:
    values = np.array([shape.size for shape in shapes])
    states = States(tables(shapes, values, 4), 4)
    before = tuple(sorted(10 * one for one in free))
    number = states.join(float(cpu), before)
    for shape in shapes:
        cost, card = states.costs(shape)
        fitting = [one for one in before if one >= shape.share]
        if cpu < shape.cpu or len(fitting) < shape.cards:
            assert cost[number] == np.inf
            continue
        after = list(before)
        for _ in range(shape.cards):
            after[after.index(int(card[number]))] -= shape.share
        then = States(tables(shapes, values, 4), 4)
        left = then.join(cpu - shape.cpu, tuple(sorted(after)))
        fall = states.by_price[number].min() - then.by_price[left].min()
        assert cost[number] == pytest.approx(fall)
        if shape.cards == 1 and shape.share < 1000:
            assert all(fall <= _fall(states, shapes, values, before, one, shape, cpu) + 1e-6 for one in fitting)


def _fall(
    states: States, shapes: list[Shape], values: np.ndarray, before: tuple[int, ...], card: int, shape: Shape, cpu: int
) -> float:
    after = list(before)
    after[after.index(card)] -= shape.share
    then = States(tables(shapes, values, 4), 4)
    left = then.join(cpu - shape.cpu, tuple(sorted(after)))
    return float(states.by_price[0].min() - then.by_price[left].min())


def room(cpu: list[float], free: list[list[int]], prices: Prices | None = None, models: str = "") -> Room:
    names = sorted(set(models)) or ["m"]
    return Room(
        cpu=np.array(cpu), memory=np.full(len(cpu), 1e9), free=np.array(free),
        model=np.array([names.index(one) for one in models] or [0] * len(cpu)), models=names, prices=prices or Prices(),
    )  # fmt: skip


def test_costs_follow_the_room_as_it_is_spent() -> None:
    spent = room([32.0, 32.0], [[1000, 1000], [1000, 0]])
    one = Shape(4.0, 1, 1000)
    first = spent.best(one)
    assert first is not None
    assert first.node == 1, "of equal costs the fullest node"
    spent.take(first.node, spent.columns(first, one), 1000, 4.0, 0)
    assert spent.costs(one)[1] == np.inf
    spent.take(1, [0], -1000, -4.0, 0)
    assert spent.best(one) == first, "what is given back can be had again"


def test_a_model_that_is_asked_for_by_name_costs_more() -> None:
    mix = Prices().seen([(Shape(1.0, 1, 1000), frozenset("a"), 8), (Shape(1.0, 1, 1000), frozenset(), 2)])
    two = room([8.0, 8.0], [[1000] * 4, [1000] * 4], mix, "ab")
    assert two.surcharge.tolist() == [SURCHARGE, 0.0]
    best = two.best(Shape(1.0, 1, 1000))
    assert best is not None
    assert best.node == 1
    assert best.cost + SURCHARGE > NEAR_TIE


def test_whole_nodes_are_kept_for_those_who_need_them() -> None:
    """With whole-node work in the mix, a small task goes where no whole node is broken."""
    prices = Prices().seen([(Shape(0.0, 4, 1000), frozenset(), 50), (Shape(0.0, 1, 1000), frozenset(), 50)])
    learned = refreshed(prices, Free(np.zeros(2), np.array([[1000] * 4, [0, 1000, 1000, 1000]]), np.array([5, 5])), 4)
    best = room([0.0, 0.0], [[1000] * 4, [0, 1000, 1000, 1000]], learned).best(Shape(0.0, 1, 1000))
    assert best is not None
    assert best.node == 1


def test_what_is_hard_to_place_becomes_worth_more() -> None:
    """0.81 of a card spoils it for another 0.81; 0.16 fits into what is left beside it."""
    mix = Prices().seen([(Shape(0.0, 1, 810), frozenset(), 80), (Shape(0.0, 1, 160), frozenset(), 20)])
    learned = refreshed(mix, Free(np.array([64.0]), np.array([[1000] * 8]), np.array([100])), 8)
    assert learned.values[Shape(0.0, 1, 810)] > 0.81
    assert learned.values[Shape(0.0, 1, 160)] < 0.16 * 0.8
    total = sum(learned.learning[shape] * count for shape, count in learned.counts.items())
    assert total == pytest.approx(80 * 0.81 + 20 * 0.16), "the mean worth stays"


def test_cores_get_a_price_where_they_run_out() -> None:
    mix = Prices().seen([(Shape(8.0, 1, 1000), frozenset(), 50)])
    kinds = Free(np.array([16.0, 128.0]), np.array([[1000] * 8, [1000] * 8]), np.array([10, 10]))
    priced = room([16.0, 128.0], [[1000] * 8] * 2, refreshed(mix, kinds, 8))
    assert priced.price_of_cores(0) > 0
    assert priced.price_of_cores(1) == 0


def test_learning_without_arrivals_or_space_changes_nothing_but_the_date() -> None:
    nothing = Free(np.zeros(0), np.zeros((0, 4), np.int64), np.zeros(0, np.int64))
    assert refreshed(Prices(), nothing, 4).values == {}
    mix = Prices().seen([(Shape(0.0, 1, 1000), frozenset(), 30)])
    assert refreshed(mix, nothing, 4).values == {}
    assert refreshed(mix, nothing, 4).due_at > 30


def test_prices_are_due_more_rarely_as_they_settle() -> None:
    assert not Prices().due
    assert Prices().seen([(Shape(0.0, 1, 1000), frozenset(), 20)]).due
    dues = [next_due(0)]
    while dues[-1] < 5000:
        dues.append(next_due(dues[-1]))
    gaps = [later - earlier for earlier, later in pairwise(dues)]
    assert dues[:3] == [20, 26, 33]
    assert max(gaps) == 500
    assert gaps == sorted(gaps)


def test_shapes_of_specs_round_cores_up() -> None:
    assert shape_of(EIGHT) == Shape(0.0, 8, 1000)
    assert shape_of(EIGHT, 250).size == 2.0
