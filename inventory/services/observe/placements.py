"""The stays of cards: closed and opened so that no two stays of one card overlap."""

from datetime import datetime
from uuid import UUID

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from inventory.models import Placement
from inventory.rules.changes import Place


class Placements:
    """Writes stays. Each call is one or two statements; they only run when something changed."""

    def _current(self, card: UUID) -> Placement | None:
        return Placement.objects.filter(card=card, span__upper_inf=True).first()

    def close(self, *, card: UUID, at: datetime) -> None:
        """Ends the open stay, if any. A stay that would have no length is removed."""
        stay = self._current(card)
        if stay is None:
            return
        if at <= stay.span.lower:
            stay.delete()
        else:
            Placement.objects.filter(pk=stay.pk).update(span=DateTimeTZRange(stay.span.lower, at))

    def open(self, *, card: UUID, place: Place, at: datetime) -> None:
        """Begins a stay at `at`, after ending the one before; never inside an earlier stay."""
        self.close(card=card, at=at)
        last = Placement.objects.filter(card=card).order_by("-span").first()
        start = max(at, last.span.upper) if last is not None and last.span.upper is not None else at
        Placement.objects.create(
            card_id=card,
            node_id=place.node,
            slot=place.slot,
            pci_address=place.pci_address,
            span=DateTimeTZRange(start, None),
        )

    def rename(self, *, card: UUID, place: Place) -> None:
        """Better names for the place of the open stay."""
        Placement.objects.filter(card=card, span__upper_inf=True).update(slot=place.slot, pci_address=place.pci_address)
