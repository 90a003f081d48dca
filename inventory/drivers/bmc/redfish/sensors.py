"""Sensors of the new model (Sensor) and the old one (Thermal, Power) as SensorReading. Pure.

Absent and disabled ones are dropped: Supermicro X10 and iLO give them a reading of 0. A threshold of
null, -1 or 0 is no threshold, except that a margin's caution level may be 0.
"""

import re
from collections.abc import Iterator, Mapping

from inventory.drivers.bmc.redfish.resources import (
    Resource,
    dig,
    entries_in,
    excerpt,
    is_absent,
    is_silent,
    name_in,
    number,
    paths_in,
    pick,
    state_of,
    words,
)
from inventory.observations import SensorReading

MARGIN = "margin"
_UNITS: Mapping[str, str] = {"cel": "C", "°c": "C", "degreec": "C", "percent": "%", "w": "W", "watts": "W", "j": "J"}
# ReadingType (DSP0268, Sensor) to the kinds that IPMI sensors have too.
_KINDS: Mapping[str, tuple[str, str]] = {
    "temperature": ("temperature", "C"),
    "power": ("power", "W"),
    "energyjoules": ("energy", "J"),
    "energykwh": ("energy", "kWh"),
    "rotational": ("fan", "RPM"),
    "percent": ("percent", "%"),
    "voltage": ("voltage", "V"),
    "current": ("current", "A"),
    "humidity": ("humidity", "%"),
    "liquidflow": ("flow", "L/min"),
    "liquidflowlpm": ("flow", "L/min"),
    "pressure": ("pressure", "Pa"),
    "pressurekpa": ("pressure", "kPa"),
    "altitude": ("pressure", "Pa"),
    "frequency": ("frequency", "Hz"),
    "airflow": ("airflow", "cft_i/min"),
}
_KIND_OF_UNIT: Mapping[str, str] = {
    "C": "temperature",
    "W": "power",
    "J": "energy",
    "RPM": "fan",
    "V": "voltage",
    "A": "current",
    "L/min": "flow",
}
_MARGIN_NAME = re.compile(r"(?<![a-z])t[\s_.-]?limit|margin|headroom|^HGX[_ ]GPU[_ ].*TEMP[_ ]1$", re.IGNORECASE)


def is_margin(sensor: Resource) -> bool:
    """Whether a temperature sensor tells the distance to a limit and not a temperature.

    HGX boards call it TEMP_1 and older ones leave ReadingBasis out; a temperature has no negative lower
    thresholds alone.
    """
    basis = words(pick(sensor, "ReadingBasis")).lower()
    if basis:
        return basis in ("headroom", "delta")
    text = f"{words(pick(sensor, 'Id'))}\n{words(pick(sensor, 'Name'))}\n{words(pick(sensor, 'Description'))}"
    if any(_MARGIN_NAME.search(line) for line in text.splitlines()):
        return True
    thresholds = pick(sensor, "Thresholds")
    levels = {
        name: excerpt(pick(thresholds, name))
        for name in ("LowerCritical", "LowerFatal", "UpperCaution", "UpperCritical")
    }
    lower = [level for level in (levels["LowerCritical"], levels["LowerFatal"]) if level is not None]
    upper = [level for level in (levels["UpperCaution"], levels["UpperCritical"]) if level is not None]
    return bool(lower) and max(lower) < 0 and not upper


def named_like_margin(path: str) -> bool:
    """Whether a sensor's path alone gives a margin away."""
    return bool(_MARGIN_NAME.search(name_in(path)))


def sensor_reading(sensor: Resource) -> SensorReading | None:
    """A Sensor resource; None when it is absent or has no kind that we know."""
    if is_absent(sensor):
        return None
    unit = _UNITS.get(words(pick(sensor, "ReadingUnits")).lower(), words(pick(sensor, "ReadingUnits")))
    kind, default_unit = _kind(sensor, unit)
    if not kind:
        return None
    if kind == "temperature" and is_margin(sensor):
        kind = MARGIN
    levels = pick(sensor, "Thresholds")
    value = None if is_silent(sensor) else number(pick(sensor, "Reading"))
    return SensorReading(
        name=_name(sensor),
        kind=kind,
        unit=unit or default_unit,
        value=value,
        upper_caution=_threshold(dig(levels, "UpperCaution", "Reading"), kind),
        upper_critical=_threshold(dig(levels, "UpperCritical", "Reading"), kind),
        lower_caution=_threshold(dig(levels, "LowerCaution", "Reading"), kind),
        lower_critical=_threshold(dig(levels, "LowerCritical", "Reading"), kind),
        state=sensor_state(sensor),
    )


def sensor_state(sensor: Resource) -> str:
    """Health in lower case, or the state when it is not simply enabled."""
    state = state_of(sensor)
    if state and state != "enabled":
        return state
    return words(dig(sensor, "Status", "Health")).lower()


def _kind(sensor: Resource, unit: str) -> tuple[str, str]:
    reading_type = words(pick(sensor, "ReadingType")).lower()
    if reading_type in _KINDS:
        return _KINDS[reading_type]
    if unit in _KIND_OF_UNIT:
        return _KIND_OF_UNIT[unit], unit
    # iLO leaves type and unit out of its temperature sensors; only those have a place and a reading.
    context = words(pick(sensor, "PhysicalContext"))
    if not reading_type and not unit and context and pick(sensor, "Thresholds") is not None and _hpe(sensor):
        return "temperature", "C"
    return "", ""


def _hpe(sensor: Resource) -> bool:
    kind = dig(sensor, "Oem", "Hpe", "@odata.type")
    return "seaofsensors" in words(kind).lower()


def _name(sensor: Resource) -> str:
    """The id where it says something; iLO numbers its sensors, there the name does."""
    own = words(pick(sensor, "Id")) or words(pick(sensor, "MemberId"))
    return (words(pick(sensor, "Name")) or own if own.isdigit() or not own else own)[:200]


def _threshold(value: object, kind: str) -> float | None:
    level = number(value)
    if level is None or level == -1 or (level == 0 and kind != MARGIN):
        return None
    return level


def related_paths(sensor: Resource) -> list[str]:
    """What a sensor belongs to, by its RelatedItem."""
    return paths_in(pick(sensor, "RelatedItem"))


def old_temperatures(thermal: Resource) -> Iterator[tuple[str, Resource, SensorReading]]:
    """The sensors of a Thermal resource, each with its place in it and as it stands there; fans in RPM or percent."""
    for turn, entry in enumerate(entries_in(pick(thermal, "Temperatures"))):
        reading = _old(entry, kind="temperature", unit="C", value=pick(entry, "ReadingCelsius"))
        if reading is not None:
            yield f"temperatures/{turn}", entry, reading
    for turn, entry in enumerate(entries_in(pick(thermal, "Fans"))):
        percent = words(pick(entry, "ReadingUnits")).lower() == "percent"
        value = _either(entry, "Reading", "CurrentReading")
        reading = _old(entry, kind="percent" if percent else "fan", unit="%" if percent else "RPM", value=value)
        if reading is not None:
            yield f"fans/{turn}", entry, reading


def old_power(power: Resource) -> Iterator[tuple[str, Resource, SensorReading]]:
    """The voltages and supplies of a Power resource, each with its place in it and as it stands there."""
    for turn, entry in enumerate(entries_in(pick(power, "Voltages"))):
        reading = _old(entry, kind="voltage", unit="V", value=pick(entry, "ReadingVolts"))
        if reading is not None:
            yield f"voltages/{turn}", entry, reading
    for turn, entry in enumerate(entries_in(pick(power, "PowerSupplies"))):
        value = _either(entry, "PowerInputWatts", "LastPowerOutputWatts")
        reading = _old(entry, kind="power", unit="W", value=value)
        if reading is not None:
            yield f"powersupplies/{turn}", entry, reading


def _either(entry: Resource, *names: str) -> object:
    return next((value for value in (pick(entry, name) for name in names) if value is not None), None)


def consumed_power(power: Resource) -> float | None:
    """Watts of the whole system from a Power resource; entries for CPU or DIMM domains are passed over."""
    entries = list(entries_in(pick(power, "PowerControl")))
    named = [entry for entry in entries if words(pick(entry, "MemberId")) in ("0", "PowerControl")]
    system = [entry for entry in entries if "system" in words(pick(entry, "Name")).lower()]
    for entry in [*named, *system, *entries[:1]]:
        value = number(pick(entry, "PowerConsumedWatts"))
        if value is not None:
            return value
    return None


def _old(entry: Resource, *, kind: str, unit: str, value: object) -> SensorReading | None:
    if is_absent(entry):
        return None
    name = words(pick(entry, "Name")) or words(pick(entry, "FanName")) or words(pick(entry, "MemberId"))
    if kind == "temperature" and _MARGIN_NAME.search(name):
        kind = MARGIN
    return SensorReading(
        name=name[:200],
        kind=kind,
        unit=unit,
        value=None if is_silent(entry) else number(value),
        upper_caution=_threshold(pick(entry, "UpperThresholdNonCritical"), kind),
        upper_critical=_threshold(pick(entry, "UpperThresholdCritical"), kind),
        lower_caution=_threshold(pick(entry, "LowerThresholdNonCritical"), kind),
        lower_critical=_threshold(pick(entry, "LowerThresholdCritical"), kind),
        state=sensor_state(entry),
    )
