"""Counts of the fleet at /metrics: no names, so that the page may stay open inside the organisation."""

from collections.abc import Iterator

from django.db import Error as DatabaseError
from prometheus_client import REGISTRY
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from inventory.selectors.collectors import ORDER, sources
from sensaka.live.fleet import fleet
from sensaka.live.fleet_cells import tally


class FleetCollector(Collector):
    """Cards by what they do and sources by result, at the moment of the scrape."""

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Names only: registering must not ask the database."""
        yield GaugeMetricFamily("sensaka_cards", "Cards by count")
        yield GaugeMetricFamily("sensaka_collectors", "Sources by condition")

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Nothing while the database is away: a gap is honest, a zero is not."""
        try:
            yield from self._families()
        except DatabaseError:
            return

    def _families(self) -> Iterator[GaugeMetricFamily]:
        state = fleet()
        numbers = tally(state.cards)
        cards = GaugeMetricFamily("sensaka_cards", "Cards by count", labels=["count"])
        for name in ("installed", "available", "standby", "busy", "idle", "unknown", "failed", "missing", "out"):
            cards.add_metric([name], getattr(numbers, name))
        collectors = GaugeMetricFamily("sensaka_collectors", "Sources by condition", labels=["condition"])
        found = dict.fromkeys(ORDER, 0)
        for source in sources(now=state.at):
            found[source.condition] += 1
        for name, number in found.items():
            collectors.add_metric([name], number)
        yield cards
        yield collectors


def register() -> None:
    """Add the collector to the process's registry, once."""
    if not getattr(register, "done", False):
        REGISTRY.register(FleetCollector())
        register.done = True  # type: ignore[attr-defined]
