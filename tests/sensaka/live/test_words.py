"""How readings are written: sensors with their units, margins as margins, throttling as words (I1, U4)."""

from typing import Any

import pytest

from inventory.observations import CardValues
from sensaka.live import sensors
from sensaka.live.cells import UNKNOWN
from sensaka.live.measures import MEASURES

SENSORS: dict[str, tuple[dict[str, Any], str, str]] = {
    "temperature": ({"kind": "temperature", "unit": "C", "value": 49.0, "upper_critical": 90.0}, "49 °C", "90 °C"),
    "half a degree": ({"kind": "temperature", "unit": "Cel", "value": 23.5}, "23.5 °C", UNKNOWN),
    "margin": (
        {"kind": "margin", "unit": "C", "value": 38.0, "lower_critical": -2.0},
        "38 K to the limit",
        "below -2 K",
    ),
    "beyond": ({"kind": "margin", "unit": "C", "value": -3.0}, "3 K beyond the limit", UNKNOWN),
    "silent margin": ({"kind": "margin", "unit": "C", "value": None}, UNKNOWN, UNKNOWN),
    "fan": ({"kind": "fan", "unit": "RPM", "value": 11250.0}, "11,250 RPM", UNKNOWN),
    "power": ({"kind": "power", "unit": "W", "value": 10400.0}, "10.4 kW", UNKNOWN),
    "voltage": ({"kind": "voltage", "unit": "V", "value": 12.062, "upper_critical": 13.2}, "12.06 V", "13.20 V"),
    "energy": ({"kind": "energy", "unit": "J", "value": 7.2e6}, "2.0 kWh", UNKNOWN),
    "no unit": ({"kind": "power_supply", "unit": "", "value": 1.0}, "1", UNKNOWN),
}


@pytest.mark.parametrize(("sensor", "reading", "limit"), SENSORS.values(), ids=SENSORS)
def test_a_sensor(sensor: dict[str, Any], reading: str, limit: str) -> None:
    assert sensors.reading(sensor).replace("\u202f", " ") == reading
    assert sensors.limit(sensor).replace("\u202f", " ") == limit


def test_throttling_is_said_in_words_and_judged() -> None:
    measure = MEASURES["throttle_reasons"]
    mask = measure.of(CardValues(throttle_reasons=0x44))
    assert mask is not None
    assert measure.write(mask) == "Thermal slowdown by the hardware, power cap"
    assert measure.judge(mask) == "bad"
    assert measure.write(None) == UNKNOWN
