"""The lists as CSV files: the address is the list's own, with the same filters and order."""

from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponseBase

from inventory.models import JournalEntry
from sensaka.cockpit.csv_files import Column, download
from sensaka.cockpit.tables import in_order
from sensaka.cockpit.views import cards, collectors, journal, nodes
from sensaka.identity.access import inventory_page

_CARDS: tuple[Column, ...] = (
    ("id", lambda card: card.id),
    ("site", lambda card: card.site),
    ("cluster", lambda card: card.cluster),
    ("rack", lambda card: card.rack),
    ("node", lambda card: card.node),
    ("slot", lambda card: card.slot),
    ("model", lambda card: card.model),
    ("uuid", lambda card: card.uuid),
    ("serial", lambda card: card.serial),
    ("pci_address", lambda card: card.pci_address),
    ("state", lambda card: card.kind),
    ("available", lambda card: card.available),
    ("slices", lambda card: len(card.slices)),
    ("activity_percent", cards.SORTS["activity"]),
    ("memory_used_bytes", cards.SORTS["memory"]),
    ("memory_total_bytes", lambda card: card.memory_total),
    ("temperature_celsius", cards.SORTS["temperature"]),
    ("power_watts", cards.SORTS["power"]),
    ("read_at", cards.SORTS["read"]),
)
_NODES: tuple[Column, ...] = (
    ("id", lambda line: line.node.id),
    ("name", lambda line: line.node.name),
    ("site", lambda line: line.node.site.name),
    ("cluster", lambda line: line.node.cluster.name if line.node.cluster else None),
    ("rack", lambda line: line.node.rack.name if line.node.rack else None),
    ("state", lambda line: line.node.state),
    ("manufacturer", lambda line: line.node.manufacturer),
    ("product", lambda line: line.node.product),
    ("serial", lambda line: line.node.system_serial),
    ("cards_installed", lambda line: line.numbers.installed),
    ("cards_available", lambda line: line.numbers.available),
    ("cards_busy", lambda line: line.numbers.busy),
    ("cards_idle", lambda line: line.numbers.idle),
    ("cards_unknown", lambda line: line.numbers.unknown),
    ("cards_failed", lambda line: line.numbers.failed),
    ("cards_missing", lambda line: line.numbers.missing),
    ("power_watts", lambda line: line.power),
    ("read_at", lambda line: line.read_at),
)
_COLLECTORS: tuple[Column, ...] = (
    ("id", lambda line: line.source.id),
    ("kind", lambda line: line.kind),
    ("source", lambda line: line.title),
    ("node", lambda line: line.node.name if line.node else None),
    ("cluster", lambda line: line.cluster.name if line.cluster else None),
    ("result", lambda line: line.result),
    ("read_at", lambda line: line.source.succeeded_at),
    ("failing_since", lambda line: line.source.failing_since),
    ("error", lambda line: line.source.error_detail),
    ("parts_missing", lambda line: len(line.source.failures)),
    ("elapsed_seconds", lambda line: line.source.elapsed),
    ("requests", lambda line: line.source.requests),
    ("cards_seen", lambda line: line.source.cards_seen),
    ("interval_seconds", lambda line: line.source.interval),
    ("enabled", lambda line: line.source.enabled),
)
_JOURNAL: tuple[Column, ...] = (
    ("id", lambda entry: entry.id),
    ("at", lambda entry: entry.at),
    ("kind", lambda entry: entry.kind),
    ("text", lambda entry: entry.text),
    ("node", lambda entry: entry.node.name if entry.node else None),
    ("card_uuid", lambda entry: entry.card.uuid if entry.card else None),
    ("card_slot", lambda entry: entry.card.slot if entry.card else None),
    ("source", lambda entry: entry.source),
    ("user", lambda entry: entry.actor.username if entry.actor else None),
)
_ENTRIES = 2000


@inventory_page
def cards_csv(request: HttpRequest) -> HttpResponseBase:
    """The cards that the list shows."""
    rows, _ = in_order(request, cards.rows(request), cards.SORTS, cards.ORDER)
    return download("cards", _CARDS, rows)


@inventory_page
def nodes_csv(request: HttpRequest) -> HttpResponseBase:
    """The nodes that the list shows."""
    rows, _ = in_order(request, nodes.lines(request), nodes.SORTS, nodes.ORDER)
    return download("nodes", _NODES, rows)


@inventory_page
def collectors_csv(request: HttpRequest) -> HttpResponseBase:
    """The collectors that the list shows."""
    rows, _ = in_order(request, collectors.lines(request), collectors.SORTS, collectors.ORDER)
    return download("collectors", _COLLECTORS, rows)


@inventory_page
def journal_csv(request: HttpRequest) -> HttpResponseBase:
    """The whole journal, or what its filters leave."""
    return download("journal", _JOURNAL, _entries(journal.rows(request)))


def _entries(rows: QuerySet[JournalEntry]) -> Iterator[JournalEntry]:
    """Every entry, the newest first, without a cursor that stays open while a slow reader loads the file."""
    after: tuple[datetime, UUID] | None = None
    while True:
        left = rows if after is None else rows.filter(Q(at__lt=after[0]) | Q(at=after[0], id__lt=after[1]))
        some = list(left[:_ENTRIES])
        yield from some
        if len(some) < _ENTRIES:
            return
        after = some[-1].at, some[-1].id
