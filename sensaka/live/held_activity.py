"""What the cards of a request do now, as far as it can be told for its holder alone."""

from collections.abc import Iterable
from dataclasses import dataclass

from pools.models import Allocation
from sensaka.live.card_cells import activity_cell
from sensaka.live.cells import Cell, percent, unknown
from sensaka.live.fleet import CardRow, fleet
from sensaka.live.words import KIND_TAGS, KIND_WORDS


@dataclass(frozen=True, slots=True)
class HeldNow:
    """A row of the ledger with what its card does: a mark, and the activity in percent."""

    allocation: Allocation
    kind: Cell
    activity: Cell


def held_now(rows: Iterable[Allocation]) -> list[HeldNow]:
    """Each row with its card's present activity. Of what is over, and of parts that can't be told apart, none."""
    cards = fleet().by_id
    return [HeldNow(row, *_doing(row, cards.get(row.card_id))) for row in rows]


def _doing(row: Allocation, card: CardRow | None) -> tuple[Cell, Cell]:
    if row.span.upper is not None:
        return Cell("Given back", "off"), Cell("")
    if card is None:
        return Cell("Unknown", "unknown", hint="The card is not installed."), unknown()
    if row.slice_id is not None:
        piece = next((one for one in card.slices if one.id == row.slice_id), None)
        sample = piece.sample if piece is not None else None
        if sample is None or not sample.fresh(fleet().at):
            return Cell("Unknown", "unknown", hint="No fresh sample of this slice."), unknown()
        return _judged(sample.activity, card.threshold)
    if row.share.upper - row.share.lower < 1000:
        hint = "Several share this card: what each of them does can't be told apart."
        return Cell("Unknown", "unknown", hint=hint), unknown(hint)
    kind = "unknown" if card.activity is None else "busy" if card.activity >= card.threshold else "idle"
    return Cell(KIND_WORDS[kind], KIND_TAGS[kind], hint=f"Busy from {card.threshold:g} % on."), activity_cell(card)


def _judged(activity: float | None, threshold: float) -> tuple[Cell, Cell]:
    if activity is None:
        return Cell("Unknown", "unknown", hint="No source reports its activity."), unknown()
    kind = "busy" if activity >= threshold else "idle"
    mark = Cell(KIND_WORDS[kind], KIND_TAGS[kind], hint=f"Busy from {threshold:g} % on.")
    return mark, Cell(percent(activity), fill=activity)
