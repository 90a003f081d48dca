"""Reading the values of cards: from expanded processors, from metric reports, or resource by resource."""

from collections.abc import Mapping, Sequence

import msgspec

from inventory.drivers.bmc.redfish.links import CardLinks
from inventory.drivers.bmc.redfish.metrics import CardParts, card_values
from inventory.drivers.bmc.redfish.parts import margin_source
from inventory.drivers.bmc.redfish.reader import Reader
from inventory.drivers.bmc.redfish.resources import Resource, dig, is_silent, number, path_of, pick, same
from inventory.observations import CardReading, FailureKind, ReadFailure

_REQUESTS_A_CARD = 3
# In a report that speaks of ProcessorMetrics in full this property is always there; GPM reports lack it.
_FULL_METRICS = "OperatingSpeedMHz"


class ValueSource:
    """Resources by comparable path that are known without asking: expanded ones and those of reports."""

    def __init__(self, *, expanded: Mapping[str, Resource], reported: Mapping[str, Resource]) -> None:
        self._expanded, self._reported = dict(expanded), reported

    def learn(self, resources: Mapping[str, Resource]) -> None:
        """Adds resources that were read."""
        self._expanded.update(resources)

    def resource(self, path: str) -> Resource | None:
        """A whole resource, or as much of it as a report tells."""
        known = self._expanded.get(same(path))
        reported = self._reported.get(same(path))
        if known is not None:
            return known
        if reported is not None and (_FULL_METRICS in reported or "Reading" in reported):
            return reported
        return None

    def sensor(self, path: str) -> float | None:
        """A sensor's reading, None when unknown or silent."""
        resource = self.resource(path)
        return None if resource is None or is_silent(resource) else number(pick(resource, "Reading"))

    def knows(self, path: str) -> bool:
        """Whether asking for this path is needless."""
        return not path or self.resource(path) is not None


def nested(resources: Mapping[str, Resource]) -> dict[str, Resource]:
    """The subordinates that came inside expanded resources, by comparable path, with the resources."""
    found: dict[str, Resource] = {}
    for key, resource in resources.items():
        found[key] = resource
        for inner in (
            pick(resource, "EnvironmentMetrics"),
            pick(resource, "Metrics"),
            dig(resource, "MemorySummary", "Metrics"),
        ):
            if isinstance(inner, dict) and len(inner) > 1 and path_of(inner):
                found[same(path_of(inner))] = inner
    return found


def wanted_paths(entry: CardLinks, source: ValueSource, *, most: int) -> list[str]:
    """What has to be asked for one card, the most telling first, at most `most` requests."""
    paths = [entry.environment, entry.metrics]
    if entry.temperature_is_margin or not entry.environment:
        paths.append(entry.sensors.get("temperature", ""))
    if not entry.environment:
        paths.append(entry.sensors.get("power", ""))
    paths += entry.memory_metrics[:1]
    paths.append(entry.sensors.get("memory_temperature", ""))
    # A place inside an old Thermal resource ("#") can't be asked for by itself.
    return [path for path in dict.fromkeys(paths) if not source.knows(path) and "#" not in path][:most]


async def read_values(
    reader: Reader, cards: Sequence[CardLinks], source: ValueSource, *, most: int = _REQUESTS_A_CARD
) -> list[CardReading]:
    """The cards with their values now; a card whose own resources all failed says so in its failures."""
    wanted = {entry.processor: wanted_paths(entry, source, most=most) for entry in cards}
    source.learn(await reader.fetch_all([path for paths in wanted.values() for path in paths], optional=True))
    return [_with_values(entry, source, wanted[entry.processor]) for entry in cards]


def _with_values(entry: CardLinks, source: ValueSource, asked: Sequence[str]) -> CardReading:
    environment = source.resource(entry.environment) or {}
    source_is_margin = entry.temperature_is_margin or margin_source(environment, {})
    parts = CardParts(
        processor=source.resource(entry.processor) or {},
        environment=environment,
        metrics=source.resource(entry.metrics) or {},
        memory_metrics=[found for found in map(source.resource, entry.memory_metrics) if found],
        sensors={quantity: source.sensor(path) for quantity, path in entry.sensors.items()},
        temperature_is_margin=source_is_margin,
    )
    missing = [path for path in asked if source.resource(path) is None]
    failures = tuple(
        ReadFailure(what=path[:200], kind=FailureKind.UNKNOWN, detail="not read; see the BMC's failures")
        for path in missing
    )
    values = card_values(parts, memory_total=entry.card.memory_total)
    return msgspec.structs.replace(entry.card, values=values, failures=failures)
