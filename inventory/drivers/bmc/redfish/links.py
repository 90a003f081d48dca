"""What one visit learns and the next one needs: where things are, who the cards are, what sensors mean.

Plain data that survives JSON, so that a caller may keep it between processes. Links that no longer
decode (another version) are worth nothing and are learnt anew.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from inventory.observations import BmcReading, CardReading, SensorReading

VERSION = 1


class CardLinks(Struct, kw_only=True, omit_defaults=True):
    """One card: its identity as last read, and the paths of what changes.

    `sensors` maps temperature, memory_temperature, power and energy to the path of their sensor.
    `chassis` are the card's own chassis, which firmware entries and sensors refer to.
    """

    processor: str
    card: CardReading
    device: str = ""
    environment: str = ""
    metrics: str = ""
    memory: list[str] = field(default_factory=list)
    memory_metrics: list[str] = field(default_factory=list)
    chassis: list[str] = field(default_factory=list)
    sensors: dict[str, str] = field(default_factory=dict)
    temperature_is_margin: bool = False


class Links(Struct, kw_only=True, omit_defaults=True):
    """Everything a poll needs. `node` is the last reading of the server itself, without its parts.

    `levels` is how far `$expand` is trusted; `reports` are metric reports that tell card values;
    `sensor_pages` are collections and old resources with sensors; `sensor_meta` is what a sensor is, by
    path; `power` and `inlet` name the resources with the server's power and inlet temperature, `single`
    those of them that no page or report brings along. `others` are processors that are no cards,
    `broken` members that a collection lists and the service does not have.
    """

    sessions: str = ""
    levels: int = 0
    host: str = ""
    last_reset: str = ""
    node: BmcReading
    processors: list[str] = field(default_factory=list)
    memory: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    complete: bool = True
    cards: list[CardLinks] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    sensor_pages: list[str] = field(default_factory=list)
    sensor_meta: dict[str, SensorReading] = field(default_factory=dict)
    power: str = ""
    inlet: str = ""
    single: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


def export(links: Links) -> dict[str, Any]:
    """Links as plain JSON types."""
    built: dict[str, Any] = msgspec.to_builtins(links)
    return {**built, "version": VERSION}


def restored(data: Mapping[str, Any] | None) -> Links | None:
    """Links from what `export` gave; None when there are none or they are of another version."""
    if not data or data.get("version") != VERSION:
        return None
    try:
        return msgspec.convert({key: value for key, value in data.items() if key != "version"}, Links)
    except msgspec.ValidationError:
        return None
