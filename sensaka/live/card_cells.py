"""The topic `card:<id>`: every present value with its source and age, of the card and of its slices."""

from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from inventory.models import JournalEntry, ProcessBinding
from inventory.selectors.samples import CurrentSample
from sensaka.live.cells import Cell, Cells, decimal, moment, percent, size, unknown, version
from sensaka.live.fleet import CardRow, SliceRow, fleet
from sensaka.live.held_cells import held_versions
from sensaka.live.measures import MEASURES
from sensaka.live.words import CARD_STATES, KIND_TAGS, KIND_WORDS, SOURCES

_GIB = 1024**3
PROCESS_KEEP = timedelta(minutes=5)
"""A process that no reading has shown for this long is over."""


def value_cell(sample: CurrentSample | None, field: str, *, fresh: bool) -> Cell:
    """One value of a sample, with where it comes from."""
    measure = MEASURES[field]
    if sample is None:
        return unknown(f"{measure.title}: no source has reported this card in the last 14 days.")
    value = measure.of(sample.values)
    source = SOURCES.get(sample.source, sample.source)
    if value is None:
        return unknown(f"{measure.title}: {source} does not report it.")
    hint = f"{measure.title}\nSource: {source}, every {sample.interval} s."
    if not fresh:
        hint += "\nStale: older than three intervals."
    fill = value if 0 <= value <= 100 and measure.write is percent else None
    return Cell(
        measure.write(value), measure.judge(value) if fresh else "stale", at=sample.sampled_at, hint=hint, fill=fill
    )


def activity_cell(card: CardRow) -> Cell:
    """The activity that decides busy or idle."""
    activity = card.activity
    if activity is None:
        if card.sample is not None and card.sample.activity is not None:
            hint = "Activity in the last sample, which is older than three intervals: it counts as unknown."
            return Cell(percent(card.sample.activity), "stale", at=card.sample.sampled_at, hint=hint)
        return unknown("Activity: no source reports it for this card.")
    at = card.sample.sampled_at if card.sample is not None else None
    which = card.sample.activity_source if card.sample is not None else None
    name = MEASURES[which].title if which else "busiest slice"
    hint = f"Activity ({name}); busy from {card.threshold:g} % on."
    return Cell(percent(activity), at=at, hint=hint, fill=activity)


def kind_cell(card: CardRow) -> Cell:
    """Busy, idle, unknown, failed ... as a word; the page gives it its mark."""
    hint = f"Since {card.state_since:%Y-%m-%d %H:%M} UTC: {CARD_STATES[card.state]}"
    if card.kind in {"busy", "idle"}:
        hint = f"By its activity in the last sample against the threshold of {card.threshold:g} %."
    elif card.kind == "unknown":
        hint = "No fresh sample of its activity."
    elif card.kind == "out" and card.conflict:
        hint = f"Two sources contradict each other about it, so it is not available. {card.conflict}"
    elif card.kind == "out" and card.base.facts.cordoned:
        hint = "Its node is taken out of scheduling, so the card is not available, whatever runs on it."
        return Cell("Cordoned", KIND_TAGS["out"], hint=hint)
    elif card.kind == "out":
        hint = f"Its node is {card.node_state or 'not known'}, so the card is not available."
    return Cell(KIND_WORDS[card.kind], KIND_TAGS[card.kind], hint=hint)


def memory_cell(card: CardRow) -> Cell:
    """Memory used of what the card has."""
    used = card.sample.values.memory_used if card.sample is not None else None
    if card.sample is None or used is None:
        return unknown("Memory: not reported.")
    total = card.memory_total
    text = size(used) if not total else of_total(used, total)
    state = "" if card.fresh else "stale"
    return Cell(text, state, at=card.sample.sampled_at, hint="Memory used", fill=100 * used / total if total else None)


def of_total(used: int, total: int) -> str:
    """Bytes of bytes, in GiB: `41.8 of 80 GiB`."""
    return f"{used / _GIB:,.1f} of {decimal(total / _GIB, 'GiB')}"


def row_cells(prefix: str, card: CardRow) -> Cells:
    """The cells of a card in a list."""
    found = {
        f"{prefix}.{field}": value_cell(card.sample, field, fresh=card.fresh) for field in ("temperature", "power")
    }
    found[f"{prefix}.activity"] = activity_cell(card)
    found[f"{prefix}.memory"] = memory_cell(card)
    found[f"{prefix}.kind"] = kind_cell(card)
    found[f"{prefix}.read"] = moment(
        card.sample.sampled_at if card.sample else None,
        hint=f"Last sample, from {SOURCES.get(card.sample.source, card.sample.source)}" if card.sample else "",
        state="" if card.fresh else "stale",
    )
    return found


def list_cells(ids: Iterable[UUID]) -> Cells:
    """The rows of a list of cards; one that is gone has none."""
    known = fleet().by_id
    found: Cells = {}
    for card_id in ids:
        if (card := known.get(card_id)) is not None:
            found.update(row_cells(f"card.{card_id}", card))
    return found


def _slice_cells(piece: SliceRow) -> Cells:
    now = timezone.now()
    fresh = piece.sample is not None and piece.sample.fresh(now)
    prefix = f"slice.{piece.id}"
    found = {
        f"{prefix}.{field}": value_cell(piece.sample, field, fresh=fresh)
        for field in ("sm_activity", "tensor_activity", "memory_activity", "utilization")
    }
    used = piece.sample.values.memory_used if piece.sample is not None else None
    if piece.sample is None or used is None:
        found[f"{prefix}.memory"] = unknown("Memory of this slice: not reported.")
    else:
        text = size(used) if not piece.memory_total else of_total(used, piece.memory_total)
        share = 100 * used / piece.memory_total if piece.memory_total else None
        hint = "Measured against the slice's own grant."
        found[f"{prefix}.memory"] = Cell(
            text, "" if fresh else "stale", at=piece.sample.sampled_at, hint=hint, fill=share
        )
    return found


def cells(card_id: UUID) -> Cells:
    """Everything on the card page that moves."""
    card = fleet().by_id.get(card_id)
    if card is None:
        return {}
    found = row_cells("card", card)
    for field in MEASURES:
        found[f"value.{field}"] = value_cell(card.sample, field, fresh=card.fresh)
    for piece in card.slices:
        found.update(_slice_cells(piece))
    seen = timezone.now() - PROCESS_KEEP
    processes = ProcessBinding.objects.filter(card=card_id, seen_at__gte=seen).values_list("pid", "slice_id", "owner")
    newest = JournalEntry.objects.filter(card=card_id).values_list("id", flat=True)[:1]
    found["processes.version"] = version(sorted(processes, key=str))
    found["slices.version"] = version([str(piece.id) for piece in card.slices])
    found["journal.version"] = version(list(newest), card.node_id, card.slot)
    found.update(held_versions(card=card_id, node=card.node_id))
    return found
