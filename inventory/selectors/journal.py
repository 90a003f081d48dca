"""The journal, newest first, page by page without counting."""

from datetime import datetime
from uuid import UUID

from inventory.models import JournalEntry


def journal_page(
    *,
    node: UUID | None = None,
    card: UUID | None = None,
    kinds: tuple[str, ...] = (),
    before: tuple[datetime, UUID] | None = None,
    limit: int = 50,
) -> list[JournalEntry]:
    """At most `limit` entries older than `before` (time and id of the last one shown), with their things."""
    rows = JournalEntry.objects.select_related("node", "card", "actor").order_by("-at", "-id")
    if node is not None:
        rows = rows.filter(node=node)
    if card is not None:
        rows = rows.filter(card=card)
    if kinds:
        rows = rows.filter(kind__in=kinds)
    if before is not None:
        at, key = before
        rows = rows.filter(at__lte=at).exclude(at=at, id__gte=key)
    return list(rows[:limit])
