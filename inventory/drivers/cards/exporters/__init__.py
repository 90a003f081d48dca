"""Exporter pages that a site already runs: dcgm-exporter and AMD's device-metrics-exporter.

Needs httpx, which the agent does not carry: only the server imports this package.
"""

from inventory.drivers.cards.exporters.scrape import read_page, scrape

__all__ = ["read_page", "scrape"]
