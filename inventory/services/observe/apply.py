"""A plan becomes rows: cards, placements, slices and the journal entries that tell of them.

The caller holds the rows of all nodes concerned and has opened the transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatchmethod
from uuid import UUID

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from inventory.models import Card, JournalKind, Node, Placement, Slice
from inventory.observations import CardReading
from inventory.rules import changes as rule
from inventory.rules.changes import Look, Place, Plan
from inventory.rules.lifecycle import CARD
from inventory.services.journal import Note
from inventory.services.observe import sentences
from inventory.services.observe.placements import Placements
from inventory.services.observe.snapshot import Snapshot

# What reconciliation may change of a card; facts are written apart.
CARD_FIELDS = (
    "node", "state", "state_since", "uuid", "serial", "pci_address", "slot", "conflict", "first_seen_at",
)  # fmt: skip


@dataclass(slots=True)
class Applied:
    """Rows that were made or changed in memory, what is to be written of them, and the journal."""

    by_index: dict[int, Card] = field(default_factory=dict)
    new: list[Card] = field(default_factory=list)
    changed: dict[UUID, Card] = field(default_factory=dict)
    nodes: set[UUID] = field(default_factory=set)
    notes: list[Note] = field(default_factory=list)
    slices: dict[str, Slice] = field(default_factory=dict)


class Applier:
    """Carries out one plan. `names` are the names of the nodes concerned."""

    def __init__(
        self, *, look: Look, snapshot: Snapshot, readings: Sequence[CardReading], names: Mapping[UUID, str],
        simulated: bool,
    ) -> None:  # fmt: skip
        self.look = look
        self.snapshot = snapshot
        self.readings = readings
        self.names = names
        self.simulated = simulated
        self.placements = Placements()
        self.result = Applied()
        self._slices_before: dict[UUID, list[str]] = {}
        self._slice_cards: dict[UUID, Card] = {}
        self._fresh: set[UUID] = set()

    def run(self, plan: Plan) -> Applied:
        """Applies every change in order, then writes cards before what refers to them."""
        for index, card in plan.seen.items():
            self.result.by_index[index] = self.snapshot.cards[card]
        appeared = [change for change in plan.changes if isinstance(change, rule.Appear)]
        self._create(appeared)
        for change in plan.changes:
            self._apply(change)
        self._slice_notes()
        Card.objects.bulk_update(self.result.changed.values(), CARD_FIELDS)
        return self.result

    # -- bookkeeping --------------------------------------------------------------------------------------------------

    def _touch(self, card: UUID) -> Card:
        row = self.snapshot.cards[card]
        self.result.changed[card] = row
        if row.node_id:
            self.result.nodes.add(row.node_id)
        self.result.nodes.add(self.look.node)
        return row

    def _state(self, card: Card, event: str) -> None:
        if CARD.allows(card.state, event):
            card.state = CARD.target(card.state, event)
            card.state_since = self.look.at

    def _note(self, kind: JournalKind, text: str, card: Card, *, node: UUID | None = None, **detail: object) -> None:
        at, source = self.look.at, self.look.source
        where = node or self.look.node
        self.result.notes.append(Note(kind, sentences.sentence(text), at, where, card.id, source, detail))

    def _where(self, place: Place) -> str:
        return sentences.place_name(place, self.names)

    def _occupy(self, card: Card, place: Place) -> None:
        card.node_id, card.slot, card.pci_address = place.node, place.slot, place.pci_address
        self.result.nodes.add(place.node)
        self.placements.open(card=card.id, place=place, at=self.look.at)

    # -- one change after the other -----------------------------------------------------------------------------------

    def _create(self, appeared: Sequence[rule.Appear]) -> None:
        if not appeared:
            return
        at = self.look.at
        rows = [
            Card(
                node_id=change.place.node,
                state="missing" if change.past else "failed" if change.lost else "present",
                uuid=change.identity.uuid,
                serial=change.identity.serial,
                pci_address=change.place.pci_address,
                slot=change.place.slot,
                vendor=self.readings[change.index].vendor,
                model_name=self.readings[change.index].model_name,
                first_seen_at=at,
                state_since=self.look.last_at if change.past and self.look.last_at else at,
                simulated=self.simulated,
            )
            for change in appeared
        ]
        spans = []
        for change, card in zip(appeared, rows, strict=True):
            card.save(force_insert=True)  # bulk_create would not bring back ids that the database makes
            self.snapshot.cards[card.id] = card
            self.result.by_index[change.index] = card
            self.result.new.append(card)
            self._fresh.add(card.id)
            span = DateTimeTZRange(at, self.look.last_at if change.past else None)
            place = change.place
            spans.append(
                Placement(card=card, node_id=place.node, slot=place.slot, pci_address=place.pci_address, span=span)
            )
        Placement.objects.bulk_create(spans)
        self.result.nodes.add(self.look.node)

    @singledispatchmethod
    def _apply(self, change: object) -> None:
        raise TypeError(f"no way to apply {change!r}")

    @_apply.register
    def _(self, change: rule.Appear) -> None:
        card = self.result.by_index[change.index]
        who = sentences.source_name(self.look.source)
        model = f" ({card.model_name})" if card.model_name and card.uuid else ""
        if change.past:
            text = f"{sentences.card_name(card)}{model} was in {self._where(change.place)} by a late report of {who}"
        else:
            text = f"{sentences.card_name(card)}{model} appeared in {self._where(change.place)}, seen by {who}"
        self._note(JournalKind.CARD_APPEARED, text, card)
        if change.lost:
            self._note(JournalKind.CARD_FAILED, f"{sentences.card_name(card)} does not answer", card)

    @_apply.register
    def _(self, change: rule.Identify) -> None:
        card = self._touch(change.card)
        before, silent = sentences.card_name(card), bool(card.uuid) and not change.serial
        card.uuid, card.serial = change.uuid or card.uuid, change.serial or card.serial
        if silent or self._is_joined(card):
            return  # only the spelling changed, or the joining tells it
        gained = " and ".join(
            f"{what} {value}" for what, value in (("UUID", change.uuid), ("serial", change.serial)) if value
        )
        text = f"{before} was identified by {sentences.source_name(self.look.source)}: {gained}"
        self._note(JournalKind.CARD_IDENTIFIED, text, card, uuid=change.uuid, serial=change.serial)

    def _is_joined(self, card: Card) -> bool:
        return any(note.card == card.id and "joined" in note.detail for note in self.result.notes)

    @_apply.register
    def _(self, change: rule.Join) -> None:
        card, other = self._touch(change.card), self._touch(change.other)
        card.first_seen_at = min(card.first_seen_at, other.first_seen_at)
        text = f"{sentences.card_name(other)} is the same as {sentences.card_name(card)}; its record is closed"
        self._retire(other)
        self._note(JournalKind.CARD_IDENTIFIED, text, other, joined=str(card.id))
        self._note(JournalKind.CARD_IDENTIFIED, text, card, joined=str(other.id))

    @_apply.register
    def _(self, change: rule.Supersede) -> None:
        card = self._touch(change.card)
        self._retire(card)
        text = (
            f"the record of {sentences.card_name(card)}, which only the BMC of {self.names.get(self.look.node)} "
            f"reported, is closed, because {sentences.source_name(self.look.source)} lists the cards"
        )
        self._note(JournalKind.CARD_IDENTIFIED, text, card)

    def _retire(self, card: Card) -> None:
        self._state(card, "retire")
        card.conflict = ""
        self.placements.close(card=card.id, at=self.look.at)

    @_apply.register
    def _(self, change: rule.Move) -> None:
        card = self._touch(change.card)
        self._state(card, "return")
        self._occupy(card, change.after)
        text = f"{sentences.card_name(card)} moved from {self._where(change.before)} to {self._where(change.after)}"
        origin, target = str(change.before.node), str(change.after.node)
        self._note(JournalKind.CARD_MOVED, text, card, origin=origin, target=target)

    @_apply.register
    def _(self, change: rule.Relocate) -> None:
        card = self._touch(change.card)
        card.slot, card.pci_address = change.place.slot, change.place.pci_address
        self.placements.rename(card=card.id, place=change.place)

    @_apply.register
    def _(self, change: rule.Vanish) -> None:
        card = self._touch(change.card)
        self._state(card, "vanish")
        self.placements.close(card=card.id, at=self.look.at)
        name, place = sentences.card_name(card), self._where(change.place)
        taker = self.result.by_index.get(change.replaced_by) if change.replaced_by is not None else None
        if taker is None:
            text = f"{name} vanished from {place}: {sentences.source_name(self.look.source)} no longer lists it"
            self._note(JournalKind.CARD_VANISHED, text, card, node=change.place.node)
            return
        text = f"{name} in {place} was replaced by {sentences.card_name(taker)}"
        detail = {"removed": str(card.id), "inserted": str(taker.id)}
        self._note(JournalKind.CARD_SWAPPED, text, card, node=change.place.node, **detail)

    @_apply.register
    def _(self, change: rule.Return) -> None:
        card = self._touch(change.card)
        self._state(card, "return")
        self._occupy(card, change.place)
        self._note(
            JournalKind.CARD_RETURNED, f"{sentences.card_name(card)} is back in {self._where(change.place)}", card
        )

    @_apply.register
    def _(self, change: rule.Fail) -> None:
        card = self._touch(change.card)
        self._state(card, "fail")
        text = f"{sentences.card_name(card)} in {self._where(change.place)} stopped answering"
        self._note(JournalKind.CARD_FAILED, text, card)

    @_apply.register
    def _(self, change: rule.Recover) -> None:
        card = self._touch(change.card)
        self._state(card, "recover")
        text = f"{sentences.card_name(card)} in {self._where(change.place)} answers again"
        self._note(JournalKind.CARD_RECOVERED, text, card)

    @_apply.register
    def _(self, change: rule.Conflict) -> None:
        card = self._touch(change.card)
        first, second = (self.names.get(node, "another node") for node in change.nodes)
        card.conflict = f"Reported by {first} and {second} at the same time"[:200]
        text = f"{sentences.card_name(card)} is reported by {first} and {second} at the same time"
        self._note(JournalKind.CARD_DUPLICATE, text, card, node=card.node_id)

    @_apply.register
    def _(self, change: rule.ConflictEnd) -> None:
        self._touch(change.card).conflict = ""

    @_apply.register
    def _(self, change: rule.OpenSlice) -> None:
        card = self.result.by_index[change.index]
        self._slices_touched(card)
        reading = self.readings[change.index].slices[change.slice]
        elsewhere = [one for one in self._all_slices() if one.uuid == reading.uuid and one.closed_at is None]
        for one in elsewhere:
            self._close_slice(one)
        row = Slice.objects.create(
            card=card,
            kind=reading.kind,
            uuid=reading.uuid,
            profile=reading.profile,
            instance_id=reading.instance_id,
            memory_total=reading.memory_total,
            opened_at=self.look.at,
        )
        self.snapshot.slices.setdefault(card.id, []).append(row)

    @_apply.register
    def _(self, change: rule.CloseSlice) -> None:
        self._slices_touched(self.snapshot.cards[change.card])
        for one in self.snapshot.slices[change.card]:
            if one.id == change.slice:
                self._close_slice(one)

    # -- slices -------------------------------------------------------------------------------------------------------

    def _all_slices(self) -> list[Slice]:
        rows = [one for rows in self.snapshot.slices.values() for one in rows]
        return [*rows, *self.snapshot.foreign_slices]

    def _close_slice(self, one: Slice) -> None:
        one.closed_at = max(self.look.at, one.opened_at)
        Slice.objects.filter(pk=one.pk).update(closed_at=one.closed_at)

    def _slices_touched(self, card: Card) -> None:
        if card.id not in self._slices_before:
            self._slices_before[card.id] = [one.profile for one in self._open_of(card)]
            self._slice_cards[card.id] = card
            self.result.nodes.add(self.look.node)

    def _open_of(self, card: Card) -> list[Slice]:
        return [one for one in self.snapshot.slices.get(card.id, ()) if one.closed_at is None]

    def _slice_notes(self) -> None:
        for key, before in self._slices_before.items():
            card = self._slice_cards[key]
            now = [one.profile for one in self._open_of(card)]
            if key in self._fresh:
                continue  # the card itself is new: its slices are no change
            text = (
                f"{sentences.card_name(card)} was partitioned again: {sentences.slices_name(now)} "
                f"instead of {sentences.slices_name(before)}"
            )
            self._note(JournalKind.SLICES_CHANGED, text, card)

    def open_slices(self) -> dict[str, int]:
        """The series of every open slice of the cards seen, by UUID."""
        cards = self.result.by_index.values()
        return {one.uuid: one.series for card in cards for one in self._open_of(card)}


def names_of(nodes: set[UUID]) -> dict[UUID, str]:
    """Names for the sentences."""
    return dict(Node.objects.filter(pk__in=nodes).values_list("id", "name"))
