"""From what a card is asked to do to what its sensors show: power, heat, clocks, traffic, counters.

One array element a card. Power follows the work within seconds, heat within a minute; a card that
reaches its power limit or its slowdown temperature lowers its clocks and says so. Energy is the
integral of power (trapezoid), so both agree over any span.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt

from sensaka.fleet.hardware import CardKind
from sensaka.fleet.workload import Demand, Floats

POWER_LAG = 2.0  # s
HEAT_LAG = 45.0  # s
LONGEST_STEP = 60.0  # s; a longer gap is walked through in steps of this
REASON_IDLE = 0x1
REASON_POWER_CAP = 0x4
REASON_THERMAL = 0x20
XID_FALLEN_OFF_THE_BUS = 79
GROWING_ECC_PER_HOUR = 240.0
ORDINARY_ECC_PER_HOUR = 0.004

Ints = npt.NDArray[np.int64]


def _zeros(count: int) -> Floats:
    return np.zeros(count, dtype=np.float64)


@dataclass
class Sensors:
    """What the cards show now. The counters are kept over restarts."""

    power: Floats
    temperature: Floats
    memory_temperature: Floats
    energy: Floats = field(default_factory=lambda: _zeros(0))  # J since the driver was loaded
    ecc_corrected: Floats = field(default_factory=lambda: _zeros(0))
    ecc_uncorrected: Floats = field(default_factory=lambda: _zeros(0))
    pcie_replays: Floats = field(default_factory=lambda: _zeros(0))
    nvlink_errors: Floats = field(default_factory=lambda: _zeros(0))
    remapped_rows: Floats = field(default_factory=lambda: _zeros(0))
    activity: Floats = field(default_factory=lambda: _zeros(0))  # 0-100
    tensor: Floats = field(default_factory=lambda: _zeros(0))
    memory_activity: Floats = field(default_factory=lambda: _zeros(0))
    memory_share: Floats = field(default_factory=lambda: _zeros(0))  # 0-1
    sm_clock: Floats = field(default_factory=lambda: _zeros(0))
    traffic: Floats = field(default_factory=lambda: _zeros(0))  # 0-1 of what the links carry
    reasons: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @classmethod
    def cold(cls, count: int, inlet: Floats) -> "Sensors":
        """Cards that have just been switched on."""
        sensors = cls(power=_zeros(count), temperature=inlet.copy(), memory_temperature=inlet.copy())
        for name in (*COUNTERS, *_SHOWN):
            setattr(sensors, name, _zeros(count))
        sensors.reasons = np.zeros(count, dtype=np.int64)
        return sensors


COUNTERS = ("energy", "ecc_corrected", "ecc_uncorrected", "pcie_replays", "nvlink_errors", "remapped_rows")
_SHOWN = ("activity", "tensor", "memory_activity", "memory_share", "sm_clock", "traffic")
KEPT = (*COUNTERS, "power", "temperature", "memory_temperature")
assert set(KEPT) <= {item.name for item in fields(Sensors)}


class Constants:
    """The figures of each card's model as arrays, with the small differences from card to card."""

    def __init__(self, kinds: Sequence[CardKind], seed: int) -> None:
        def column(name: str) -> Floats:
            return np.array([getattr(kind, name) for kind in kinds], dtype=np.float64)

        spread = np.random.default_rng([seed, 7]).normal(1.0, 0.035, len(kinds)).clip(0.9, 1.1)
        self.limit = column("limit")
        self.idle = column("idle_power") * spread
        self.resident = column("resident_power") * spread
        self.resistance = column("resistance") * spread
        self.slowdown = column("slowdown")
        self.idle_clock = column("idle_clock")
        self.top_clock = column("top_clock")
        self.memory_clock = column("memory_clock")
        self.memory = column("memory")
        self.link_rate = column("links") * column("link_rate")


@dataclass
class Conditions:
    """What the surroundings do to each card: on or off, inlet air, a blocked heat sink, a dying memory."""

    powered: npt.NDArray[np.bool_]
    inlet: Floats
    cooling: Floats  # 1 is as built; less is worse
    growing_ecc: npt.NDArray[np.bool_]


def step(
    sensors: Sensors,
    constants: Constants,
    conditions: Conditions,
    demands: Sequence[Demand],
    seconds: float,
    rng: np.random.Generator,
) -> None:
    """Move every card on by `seconds`, changing `sensors` in place. `rng` decides noise and errors."""
    count = len(demands)
    asked = np.array([demand.activity for demand in demands])
    tensor_share = np.array([demand.tensor for demand in demands])
    memory = np.array([demand.memory for demand in demands])
    traffic = np.array([demand.traffic for demand in demands])
    noise = rng.normal(0.0, 1.0, (3, count))
    on = conditions.powered
    working = asked > 0.005
    activity = np.where(working, (asked * (1 + 0.035 * noise[0])).clip(0.0, 1.0), asked)
    heat_left = ((constants.slowdown - sensors.temperature) / 4.0).clip(0.0, 1.0)
    throttle = 0.45 + 0.55 * heat_left
    resident = memory > 0.01
    floor = np.where(resident, constants.resident, constants.idle)
    intensity = activity * (0.62 + 0.38 * tensor_share) * throttle
    wanted = floor + (1.22 * constants.limit - floor) * intensity * (1 + 0.015 * noise[1])
    target = np.where(on, np.minimum(wanted, constants.limit), 0.0)
    before = sensors.power.copy()
    sensors.power = target + (before - target) * np.exp(-seconds / POWER_LAG)
    sensors.energy += np.where(on, 0.5 * (before + sensors.power) * seconds, 0.0)
    settle = np.exp(-seconds / HEAT_LAG)
    level = conditions.inlet + constants.resistance / conditions.cooling * sensors.power
    sensors.temperature = (level + (sensors.temperature - level) * settle).clip(-20.0, 120.0)
    hbm = sensors.temperature + np.where(on, 5.0 + 7.0 * activity * (0.4 + traffic), 0.0)
    sensors.memory_temperature = (hbm + (sensors.memory_temperature - hbm) * settle).clip(-20.0, 120.0)
    _show(sensors, constants, on, activity, tensor_share, memory, traffic, throttle, wanted)
    _count_errors(sensors, conditions, seconds, rng)


def _show(
    sensors: Sensors,
    constants: Constants,
    on: npt.NDArray[np.bool_],
    activity: Floats,
    tensor_share: Floats,
    memory: Floats,
    traffic: Floats,
    throttle: Floats,
    wanted: Floats,
) -> None:
    capped = wanted > constants.limit
    hot = throttle < 0.99
    resident = memory > 0.01
    cap_factor = np.sqrt(np.minimum(1.0, constants.limit / np.maximum(wanted, 1.0)))
    clock = np.where(resident, constants.top_clock * cap_factor * throttle, constants.idle_clock)
    sensors.sm_clock = np.where(on, np.round(clock / 15.0) * 15.0, 0.0)
    sensors.activity = np.where(on, activity * 100, 0.0)
    sensors.tensor = sensors.activity * tensor_share
    sensors.memory_activity = sensors.activity * (0.25 + 0.5 * (1 - tensor_share))
    sensors.memory_share = np.where(on, memory, 0.0)
    sensors.traffic = np.where(on, traffic * activity, 0.0)
    busy = activity > 0.01
    sensors.reasons = (
        np.where(busy & capped, REASON_POWER_CAP, 0)
        | np.where(busy & hot, REASON_THERMAL, 0)
        | np.where(on & ~busy, REASON_IDLE, 0)
    ).astype(np.int64)


def _count_errors(sensors: Sensors, conditions: Conditions, seconds: float, rng: np.random.Generator) -> None:
    count = len(sensors.power)
    hours = seconds / 3600.0
    rate = np.where(conditions.growing_ecc, GROWING_ECC_PER_HOUR, ORDINARY_ECC_PER_HOUR)
    on = conditions.powered
    corrected = rng.poisson(rate * hours, count)
    sensors.ecc_corrected += np.where(on, corrected, 0)
    # A bank that keeps failing is remapped: about one row for five hundred corrected errors.
    sensors.remapped_rows += np.where(on, rng.binomial(corrected, 0.002), 0)
    sensors.pcie_replays += np.where(on, rng.poisson(0.002 * hours, count), 0)
    sensors.nvlink_errors += np.where(on, rng.poisson(0.001 * hours, count), 0)


def reset_counters(sensors: Sensors, number: int) -> None:
    """What a driver reload does to one card: its volatile counters start again at zero."""
    for name in COUNTERS:
        if name != "remapped_rows":  # kept in the card itself
            getattr(sensors, name)[number] = 0.0


def split(seconds: float, most_steps: int = 240) -> list[float]:
    """A span cut into steps short enough for the lags; a very long one into `most_steps` longer ones."""
    if seconds <= 0:
        return []
    steps = min(most_steps, max(1, int(np.ceil(seconds / LONGEST_STEP))))
    return [seconds / steps] * steps
