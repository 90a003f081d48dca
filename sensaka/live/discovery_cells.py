"""The topic `discovery:<id>`: how far a search of an address range is."""

from uuid import UUID

from inventory.models import Discovery
from sensaka.live.cells import Cell, Cells, count, version

_STATES = {"running": ("Searching", "warn"), "done": ("Done", "good"), "failed": ("Failed", "bad")}


def cells(discovery_id: UUID) -> Cells:
    """Progress in addresses, and a version of the results."""
    row = Discovery.objects.filter(pk=discovery_id).first()
    if row is None:
        return {}
    text, state = _STATES[row.state]
    share = 100 * row.tried / row.total if row.total else (100.0 if row.state != "running" else 0.0)
    return {
        "discovery.state": Cell(text, state),
        "discovery.progress": Cell(f"{count(row.tried)} of {count(row.total)} addresses tried", fill=share),
        "discovery.found": Cell(count(row.found)),
        "discovery.version": version(row.state, row.tried, row.found, len(row.results)),
    }
