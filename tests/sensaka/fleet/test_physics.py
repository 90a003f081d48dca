"""What the sensors of simulated cards show: within the model's bounds, and consistent with one another."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sensaka.fleet.hardware import A100, H100, H200, MI300X
from sensaka.fleet.physics import (
    REASON_IDLE,
    REASON_POWER_CAP,
    REASON_THERMAL,
    Conditions,
    Constants,
    Sensors,
    reset_counters,
    split,
    step,
)
from sensaka.fleet.workload import Demand

KINDS = (H100, H200, A100, MI300X)


def conditions(count: int, *, powered: bool = True, cooling: float = 1.0, growing: bool = False) -> Conditions:
    return Conditions(np.full(count, powered), np.full(count, 22.0), np.full(count, cooling), np.full(count, growing))


def run(
    demands: Sequence[Demand], seconds: float, *, state: Conditions | None = None, sensors: Sensors | None = None
) -> tuple[Sensors, Constants, list[tuple[float, np.ndarray, np.ndarray]]]:
    """Second by second, with the (energy, power) after each."""
    state = state or conditions(len(KINDS))
    constants = Constants(KINDS, 1)
    sensors = sensors or Sensors.cold(len(KINDS), state.inlet)
    rng = np.random.default_rng(3)
    trace = []
    for number in range(int(seconds)):
        step(sensors, constants, state, demands, 1.0, rng)
        trace.append((number, sensors.energy.copy(), sensors.power.copy()))
    return sensors, constants, trace


demand = st.builds(
    Demand,
    job=st.none(),
    activity=st.floats(0, 1),
    memory=st.floats(0, 1),
    tensor=st.floats(0, 1),
    traffic=st.floats(0, 1),
)


@settings(max_examples=60, deadline=None)
@given(demands=st.lists(demand, min_size=4, max_size=4), cooling=st.floats(0.3, 1.2), powered=st.booleans())
def test_every_reading_stays_within_the_bounds_of_its_model(
    demands: list[Demand], cooling: float, powered: bool
) -> None:
    sensors, constants, _ = run(demands, 90, state=conditions(4, powered=powered, cooling=cooling))

    assert ((sensors.power >= 0) & (sensors.power <= constants.limit)).all()
    assert ((sensors.temperature >= 20) & (sensors.temperature <= 120)).all()
    assert ((sensors.activity >= 0) & (sensors.activity <= 100)).all()
    assert ((sensors.tensor <= sensors.activity) & (sensors.memory_activity <= sensors.activity)).all()
    assert ((sensors.sm_clock >= 0) & (sensors.sm_clock <= constants.top_clock)).all()
    assert ((sensors.memory_share >= 0) & (sensors.memory_share <= 1)).all()


@settings(max_examples=30, deadline=None)
@given(demands=st.lists(demand, min_size=4, max_size=4))
def test_energy_never_falls_and_is_the_integral_of_power(demands: list[Demand]) -> None:
    _, _, trace = run(demands, 120)

    energy = np.array([entry[1] for entry in trace])
    power = np.array([entry[2] for entry in trace])
    assert (np.diff(energy, axis=0) >= 0).all()
    integral = (0.5 * (power[1:] + power[:-1])).sum(axis=0)
    np.testing.assert_allclose(energy[-1] - energy[0], integral, rtol=1e-9)


def test_a_busy_card_is_hot_capped_and_says_so() -> None:
    sensors, constants, _ = run([Demand(None, 0.97, 0.9, 0.62, 0.7)] * 4, 400)

    assert (sensors.power > 0.85 * constants.limit).all()
    assert (sensors.temperature > 50).all()
    assert (sensors.memory_temperature > sensors.temperature).all()
    assert (sensors.reasons & REASON_IDLE == 0).all()
    assert (sensors.reasons[:2] & REASON_POWER_CAP).all()


def test_an_idle_hoarder_holds_memory_and_high_clocks_but_does_nothing() -> None:
    """Memory resident, activity about zero, more power than an empty card: that is how one is recognised."""
    held, constants, _ = run([Demand(None, 0.001, 0.6, 0.2, 0.0)] * 4, 300)
    empty, _, _ = run([Demand()] * 4, 300)

    assert (held.activity < 1).all()
    assert (held.memory_share == 0.6).all()
    assert (held.power > empty.power + 10).all()
    assert (held.power < 0.3 * constants.limit).all()
    assert (held.sm_clock > empty.sm_clock).all()
    assert (held.reasons == REASON_IDLE).all()


def test_heat_follows_power_slowly() -> None:
    busy = [Demand(None, 0.97, 0.9, 0.62, 0.7)] * 4
    early, _, _ = run(busy, 10)
    late, _, _ = run(busy, 400)

    assert (early.power > 0.95 * late.power).all()
    assert (early.temperature < late.temperature - 10).all()


def test_a_blocked_heat_sink_makes_a_card_throttle_and_protects_it() -> None:
    busy = [Demand(None, 0.97, 0.9, 0.62, 0.7)] * 4
    free, constants, _ = run(busy, 600)
    blocked, _, _ = run(busy, 600, state=conditions(4, cooling=0.4))

    assert (blocked.reasons & REASON_THERMAL).all()
    assert (blocked.sm_clock < free.sm_clock).all()
    assert (blocked.power < free.power).all()
    assert (blocked.temperature < constants.slowdown + 3).all()


def test_corrected_errors_grow_on_a_dying_card_only() -> None:
    growing = conditions(4)
    growing.growing_ecc[1] = True
    sensors, _, _ = run([Demand(None, 0.5, 0.5, 0.5, 0.1)] * 4, 1800, state=growing)

    assert 60 < sensors.ecc_corrected[1] < 200
    assert sensors.ecc_corrected[[0, 2, 3]].max() <= 2


def test_a_card_without_power_shows_nothing_and_cools() -> None:
    hot, _, _ = run([Demand(None, 0.97, 0.9, 0.62, 0.7)] * 4, 300)
    energy = hot.energy.copy()
    off, _, _ = run([Demand()] * 4, 600, state=conditions(4, powered=False), sensors=hot)

    np.testing.assert_allclose(off.power, 0, atol=1e-6)
    assert (off.temperature < 23).all()
    assert (off.energy == energy).all()


def test_a_driver_reload_resets_volatile_counters_and_keeps_remapped_rows() -> None:
    sensors, _, _ = run([Demand(None, 0.5, 0.5, 0.5, 0.1)] * 4, 10)
    sensors.remapped_rows[2] = 3

    reset_counters(sensors, 2)

    assert sensors.energy[2] == 0 < sensors.energy[1]
    assert sensors.remapped_rows[2] == 3


@given(seconds=st.floats(0, 1e7))
def test_a_gap_is_cut_into_steps_that_add_up(seconds: float) -> None:
    steps = split(seconds)

    assert sum(steps) == pytest.approx(seconds)
    assert len(steps) <= 240
