"""Sensors of a whole server: where they are, what they read, its power and its inlet temperature."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from inventory.drivers.bmc.redfish import dell
from inventory.drivers.bmc.redfish.reader import Reader
from inventory.drivers.bmc.redfish.resources import Resource, excerpt, is_silent, number, path_of, pick, same, words
from inventory.drivers.bmc.redfish.sensors import (
    consumed_power,
    old_power,
    old_temperatures,
    sensor_reading,
    sensor_state,
)
from inventory.observations import SensorReading
from sensaka.kernel.units import plausible

_MOST_SINGLE_SENSORS = 300
_ROT = re.compile(r"e?[ir]ot_|erot|irot", re.IGNORECASE)
_INLET = re.compile(r"inlet|ambient|intake|front", re.IGNORECASE)
_NOT_INLET = re.compile(
    r"psu|p/s|power.?supply|pdb|gpu|\bgb|_gb|nic|dimm|cx\d|hgx|module|board inlet|water|coolant|liquid|exhaust|ssd|"
    r"pcie",
    re.IGNORECASE,
)
_POWER_NAME = re.compile(r"pwr|power|watt", re.IGNORECASE)
_TOTAL_POWER = re.compile(r"total|system|\bsys|chassis|consumption|node|server", re.IGNORECASE)
_NOT_TOTAL = re.compile(r"gpu|cpu|dimm|dram|memory|fan|hgx|storage|pcie|\bgb|_gb|nic", re.IGNORECASE)


@dataclass(slots=True)
class SensorSet:
    """Sensors by comparable path: the resource where there is one, and what it says."""

    resources: dict[str, Resource] = field(default_factory=dict)
    readings: dict[str, SensorReading] = field(default_factory=dict)
    pages: list[str] = field(default_factory=list)
    power: float | None = None

    def path(self, key: str) -> str:
        """The path behind a comparable path, as the service spells it."""
        return key if "#" in key else path_of(self.resources.get(key)) or key

    def add(self, other: "SensorSet") -> None:
        """Takes over another set."""
        self.resources |= other.resources
        self.readings |= other.readings
        self.pages += other.pages
        self.power = self.power if self.power is not None else other.power

    def add_dell(self, members: Iterable[Resource]) -> None:
        """Takes over iDRAC's own GPU sensors."""
        for member in members:
            for place, reading in dell.gpu_sensors(member):
                key = f"{same(path_of(member))}#{place}"
                self.resources[key], self.readings[key] = {"Reading": reading.value}, reading

    def add_resources(self, sensors: Iterable[Resource]) -> None:
        """Takes over Sensor resources; absent ones are dropped."""
        for sensor in sensors:
            key = same(path_of(sensor))
            reading = sensor_reading(sensor)
            self.resources[key] = sensor
            if reading is not None:
                self.readings[key] = reading


async def find_sensors(reader: Reader, chassis: Sequence[Resource], systems: Sequence[Resource]) -> SensorSet:
    """Every sensor of these chassis, by the new model where it comes in few requests, else by the old one."""
    found = SensorSet()
    useful = [entry for entry in chassis if not _ROT.search(words(pick(entry, "Id")))]
    for part in await asyncio.gather(*(_of_chassis(reader, entry) for entry in useful)):
        found.add(part)
    pages = dell.gpu_sensor_pages(systems)
    if pages:
        found.add(await read_pages(reader, pages))
        found.pages += pages
    return found


async def _of_chassis(reader: Reader, chassis: Resource) -> SensorSet:
    found = SensorSet()
    collection = path_of(pick(chassis, "Sensors"))
    thermal, power = path_of(pick(chassis, "Thermal")), path_of(pick(chassis, "Power"))
    if collection and (reader.levels or not thermal):
        members = await reader.members(collection, optional=True)
        if members is not None:
            found.add_resources(members.members[:_MOST_SINGLE_SENSORS])
            if members.members:
                found.pages.append(collection)
    if not found.readings:
        found.add(await read_old(reader, [path for path in (thermal, power) if path]))
    return found


async def read_old(reader: Reader, paths: Sequence[str]) -> SensorSet:
    """Thermal and Power resources."""
    found = SensorSet()
    for key, resource in (await reader.fetch_all(paths, optional=True)).items():
        for place, entry, reading in old_power(resource) if key.endswith("/power") else old_temperatures(resource):
            found.readings[f"{key}#{place}"] = reading
            found.resources[f"{key}#{place}"] = {**entry, "Reading": reading.value}
        found.pages.append(next(path for path in paths if same(path) == key))
        found.power = consumed_power(resource) if key.endswith("/power") else found.power
    return found


async def read_pages(reader: Reader, pages: Sequence[str]) -> SensorSet:
    """The sensors of collections and old resources that discovery found worth reading again."""
    old = [path for path in pages if same(path).endswith(("/thermal", "/power"))]
    found = await read_old(reader, old)
    collections = [path for path in pages if path not in old]
    for members in await asyncio.gather(*(reader.members(path, optional=True) for path in collections)):
        if members is not None:
            found.add_resources(members.members)
            found.add_dell(members.members)
    return found


def reported_sensors(meta: Mapping[str, SensorReading], reported: Mapping[str, Resource]) -> dict[str, SensorReading]:
    """Known sensors with the values that metric reports tell."""
    found: dict[str, SensorReading] = {}
    for path, sensor in meta.items():
        value = number(pick(reported.get(path), "Reading"))
        if value is not None:
            found[path] = msgspec.structs.replace(sensor, value=value)
    return found


def unnamed_twice(readings: Iterable[SensorReading]) -> tuple[SensorReading, ...]:
    """The readings with names that are each used once: a number is added to the second of a name."""
    used: dict[str, int] = {}
    result: list[SensorReading] = []
    for reading in readings:
        used[reading.name] = used.get(reading.name, 0) + 1
        turn = used[reading.name]
        name = reading.name if turn == 1 else f"{reading.name[:190]} {turn}"
        result.append(msgspec.structs.replace(reading, name=name))
    return tuple(result)


def refreshed(sensor: SensorReading, resource: Resource) -> SensorReading:
    """A known sensor with what its resource says now."""
    value = None if is_silent(resource) else number(pick(resource, "Reading"))
    return msgspec.structs.replace(sensor, value=value, state=sensor_state(resource))


def choose_inlet(readings: Mapping[str, SensorReading], resources: Mapping[str, Resource]) -> str:
    """The path of the sensor that measures the air coming in; "" when none is recognisable.

    A name decides before PhysicalContext, because AMI marks every temperature as Intake. Of several the
    coolest is the outermost.
    """
    best: list[tuple[int, float, str]] = []
    intakes = [path for path, sensor in resources.items() if words(pick(sensor, "PhysicalContext")) == "Intake"]
    for path, reading in readings.items():
        if reading.kind != "temperature" or reading.value is None or not 0 < reading.value < 70:
            continue
        named = bool(_INLET.search(reading.name)) and not _NOT_INLET.search(f"{reading.name} {path}")
        by_place = path in intakes and len(intakes) <= 3
        if named or by_place:
            best.append((0 if named and path in intakes else 1 if named else 2, reading.value, path))
    return min(best, default=(0, 0.0, ""))[2]


async def find_power(reader: Reader, hosts: Sequence[Resource], sensors: SensorSet) -> tuple[str, float | None]:
    """Where the server's power is told and what it is: EnvironmentMetrics, Power, a total, or all supplies."""
    environments = [path for path in (path_of(pick(entry, "EnvironmentMetrics")) for entry in hosts) if path]
    for key, resource in (await reader.fetch_all(environments, optional=True)).items():
        value = excerpt(pick(resource, "PowerWatts"))
        if value is not None:
            return next(path for path in environments if same(path) == key), value
    if sensors.power is not None:
        path = next((page for page in sensors.pages if same(page).endswith("/power")), "")
        return path, sensors.power
    powers = [path for path in (path_of(pick(entry, "Power")) for entry in hosts) if path]
    for key, resource in (await reader.fetch_all(powers, optional=True)).items():
        value = consumed_power(resource)
        if value is not None:
            return next(path for path in powers if same(path) == key), value
    for path, reading in sensors.readings.items():
        told = reading.kind == "power" and reading.value is not None
        if told and _TOTAL_POWER.search(reading.name) and not _NOT_TOTAL.search(reading.name):
            return sensors.path(path), reading.value
    return await _power_by_name(reader, hosts)


async def _power_by_name(reader: Reader, hosts: Sequence[Resource]) -> tuple[str, float | None]:
    """A total among sensors that were too many to read one by one: their ids give it away."""
    collections = [path for path in (path_of(pick(entry, "Sensors")) for entry in hosts) if path]
    for names in await asyncio.gather(*(reader.references(path, optional=True) for path in collections)):
        for path in names or []:
            name = path.rsplit("/", 1)[-1]
            if _POWER_NAME.search(name) and _TOTAL_POWER.search(name) and not _NOT_TOTAL.search(name):
                resource = await reader.fetch(path, optional=True)
                value = number(pick(resource, "Reading"))
                if value is not None:
                    return path, value
    return "", None


def power_of(path: str, resource: Resource | None) -> float | None:
    """The server's power out of the resource that `find_power` chose."""
    if resource is None:
        return None
    if same(path).endswith("/power"):
        value = consumed_power(resource)
    else:
        value = excerpt(pick(resource, "PowerWatts"))
        value = number(pick(resource, "Reading")) if value is None else value
    return plausible(value, 0, 100_000)
