"""From what is known and one reading to what follows: a pure plan that a service applies.

What decides (I5): the newest observation wins over older ones; the operating system wins over a BMC
about what is on a node; silence moves and removes nothing; a card goes missing only by a complete
reading of a source that lists cards; two nodes that report one identity in turn are a conflict, not
a card that flies to and fro. Applying a plan and reading the same again yields no change.
"""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from inventory.rules.changes import (
    PRECEDENCE,
    Appear,
    Change,
    Conflict,
    ConflictEnd,
    Fail,
    Identify,
    Join,
    KnownCard,
    Look,
    Move,
    ObservedCard,
    Place,
    Plan,
    Recover,
    Relocate,
    Return,
    Seen,
    Supersede,
    Vanish,
)
from inventory.rules.identity import CardIdentity, serial_key, shared_serials, uuid_key
from inventory.rules.matching import Matches, match
from inventory.rules.placing import place_after, slice_changes


def reconcile(look: Look, known: Sequence[KnownCard]) -> Plan:
    """The plan for one look. `known` must hold every card of the node and every card elsewhere that
    has a UUID or serial of the look."""
    look = _without_repeats(look)
    matches = match(look, known)
    if look.last_at is not None and look.at < look.last_at:
        return _history_only(look, matches)
    return _Reconciler(look, known, matches).run()


def _without_repeats(look: Look) -> Look:
    """A reading that lists one UUID or PCI address twice means it once; a board's serial names no card."""
    shared = shared_serials(card.identity.serial for card in look.cards)
    uuids: set[str] = set()
    addresses: set[str] = set()
    cards: list[ObservedCard] = []
    for card in look.cards:
        identity = card.identity
        if identity.uuid and uuid_key(identity.uuid) in uuids:
            identity = CardIdentity()
        elif identity.pci_address and identity.pci_address in addresses:
            identity = replace(identity, pci_address="")
        if not identity.uuid and serial_key(identity.serial) in shared:
            identity = replace(identity, serial="")
        if look.in_band and not (identity.uuid or identity.serial or identity.pci_address):
            identity = CardIdentity()  # a slot alone can't be told from another card's at the next boot
        uuids.add(uuid_key(identity.uuid))
        addresses.add(identity.pci_address)
        cards.append(card if identity is card.identity else replace(card, identity=identity))
    return replace(look, cards=tuple(cards))


def _history_only(look: Look, matches: Matches) -> Plan:
    """An old reading that comes late: cards that nobody knew become history, nothing else changes."""
    changes = tuple(
        Appear(index, card.identity, _place(look, card), past=True)
        for index, card in enumerate(look.cards)
        if index not in matches.pairs and index not in matches.unmatched and not card.identity.says_nothing()
    )
    return Plan(changes=changes, stale=True)


def _place(look: Look, card: ObservedCard) -> Place:
    return Place(look.node, card.identity.slot, card.identity.pci_address)


class _Reconciler:
    def __init__(self, look: Look, known: Sequence[KnownCard], matches: Matches) -> None:
        self.look = look
        self.matches = matches
        self.here = [card for card in known if card.node == look.node]
        self.changes: list[Change] = []
        self.seen: dict[int, UUID] = {}
        # Where each card stands after this look, as far as it stands here: no two at one PCI address.
        self.places: dict[UUID | int, Place] = {}
        self.gone: set[UUID] = {card.id for card in matches.superseded.values()}
        self.gone |= {card.id for doubles in matches.doubles.values() for card in doubles}

    def run(self) -> Plan:
        for index, card in sorted(self.matches.pairs.items()):
            self._known_card(index, self.look.cards[index], card)
        self._named_as_lost()
        for index, observed in enumerate(self.look.cards):
            if index not in self.matches.pairs and index not in self.matches.unmatched:
                self._new_card(index, observed)
        self._vanished()
        changes = self._one_card_an_address()
        appeared = {change.index for change in changes if isinstance(change, Appear)}
        changes += [Supersede(card.id) for index, card in self.matches.superseded.items() if index in appeared]
        changes += slice_changes(self.look, self.matches.pairs, self.seen, self.places)
        return Plan(seen=self.seen, changes=tuple(changes), unmatched=tuple(self.matches.unmatched))

    # -- one card -----------------------------------------------------------------------------------------------------

    def _known_card(self, index: int, observed: ObservedCard, card: KnownCard) -> None:
        if not self._believed(card):
            return
        if card.node not in (None, self.look.node) and card.state != "retired" and not self._comes_here(card):
            self.seen[index] = card.id  # it is seen here too: that is what the conflict is about
            return
        self.seen[index] = card.id
        self._identify(index, observed, card)
        if card.conflict and not self._rivals(card):
            self.changes.append(ConflictEnd(card.id))
        if card.node == self.look.node and card.stands:
            self._stays(index, observed, card)
        else:
            self._arrives(index, observed, card)
        self._answers(observed, card)

    def _believed(self, card: KnownCard) -> bool:
        """Whether this look may say anything about the card's place."""
        look = self.look
        if look.at < card.state_since and not card.stands:
            return False
        if any(seen.at > look.at for seen in card.sightings if seen.node != look.node):
            return False
        if card.node == look.node:
            if card.state == "retired" and not look.in_band:
                return False  # it was closed on purpose while the BMC went on listing it
            # A junior source can't bring back what a senior one, still looking, no longer lists.
            return card.stands or not self._senior_looks()
        return look.in_band or not any(seen.source != "bmc" for seen in self._elsewhere(card))

    def _senior_looks(self) -> bool:
        return self.look.senior_at is not None and self.look.fresh(self.look.senior_at)

    def _elsewhere(self, card: KnownCard) -> list[Seen]:
        return [seen for seen in card.sightings if seen.node != self.look.node and self.look.fresh(seen.valid_at)]

    def _rivals(self, card: KnownCard) -> list[Seen]:
        """Current sightings at other nodes by sources that this one can't simply overrule."""
        rank = PRECEDENCE[self.look.source]
        return [seen for seen in self._elsewhere(card) if PRECEDENCE[seen.source] <= max(rank, 1)]

    def _comes_here(self, card: KnownCard) -> bool:
        """Whether a card that stands elsewhere moved here; flags a conflict when both nodes keep reporting it."""
        rivals = self._rivals(card)
        if not rivals or not card.stands:
            return True
        newest = max(rivals, key=lambda seen: seen.at)
        before = any(
            (seen.source != "bmc") == self.look.in_band
            for seen in card.sightings
            if seen.node == self.look.node and self.look.fresh(seen.valid_at)
        )
        if not before and not card.conflict:
            return True  # first seen here: it moved, and the other node's next reading will lack it
        if not card.conflict:
            self.changes.append(Conflict(card.id, (newest.node, self.look.node)))
        return False

    def _identify(self, index: int, observed: ObservedCard, card: KnownCard) -> None:
        doubles = self.matches.doubles.get(index, [])
        self.changes += [Join(card.id, other.id) for other in doubles]
        uuid, serial = observed.identity.uuid, observed.identity.serial
        for other in doubles:
            serial = serial or other.identity.serial
        uuid_gain = uuid if uuid and _better_uuid(uuid, card.identity.uuid) else ""
        serial_gain = serial if serial and not card.identity.serial else ""
        if uuid_gain or serial_gain:
            self.changes.append(Identify(card.id, uuid_gain, serial_gain))

    def _stays(self, index: int, observed: ObservedCard, card: KnownCard) -> None:
        before = Place(self.look.node, card.identity.slot, card.identity.pci_address)
        after, moved = place_after(self.look, observed, card)
        self.places[card.id] = after
        if moved:
            self.changes.append(Move(card.id, index, before, after))
        elif after != before:
            self.changes.append(Relocate(card.id, after))

    def _arrives(self, index: int, observed: ObservedCard, card: KnownCard) -> None:
        place = _place(self.look, observed)
        before = card.place()
        returned = not card.stands
        if before is not None and before.node == self.look.node:
            # The same place when the source names no other one.
            place = Place(place.node, place.slot or before.slot, place.pci_address or before.pci_address)
            mine = next((seen for seen in card.sightings if seen.collector == self.look.collector), None)
            slots = {before.slot, mine.slot if mine else ""} - {""}
            if place.slot in slots or not slots or not observed.identity.slot:
                renumbered = bool(slots) or place.pci_address == before.pci_address or not before.pci_address
                if renumbered:
                    self._settle(card.id, place)
                    self.changes.append(Return(card.id, index, place))
                    return
        self._settle(card.id, place)
        if before is None:
            self.changes.append(Return(card.id, index, place))
        else:
            self.changes.append(Move(card.id, index, before, place, returned))

    def _settle(self, key: UUID | int, place: Place) -> None:
        self.places[key] = place

    def _answers(self, observed: ObservedCard, card: KnownCard) -> None:
        if not self.look.in_band:
            return
        place = self.places.get(card.id) or _place(self.look, observed)
        state = card.state if card.stands else "present"
        if observed.lost and state == "present":
            self.changes.append(Fail(card.id, place))
        elif not observed.lost and state == "failed":
            self.changes.append(Recover(card.id, place))

    def _new_card(self, index: int, observed: ObservedCard) -> None:
        identity = observed.identity
        if identity.says_nothing():
            return
        place = _place(self.look, observed)
        self._settle(index, place)
        self.changes.append(Appear(index, identity, place, lost=observed.lost and self.look.in_band))

    # -- the node as a whole ------------------------------------------------------------------------------------------

    def _named_as_lost(self) -> None:
        if not (self.look.in_band and self.look.lost):
            return
        for card in self.here:
            if card.id in self.seen.values() or not self._is_named_lost(card) or card.state_since > self.look.at:
                continue
            if card.state == "present":
                place = card.place()
                assert place is not None
                self.changes.append(Fail(card.id, place))

    def _is_named_lost(self, card: KnownCard) -> bool:
        names = {uuid_key(card.identity.uuid), serial_key(card.identity.serial), card.identity.pci_address} - {""}
        return bool(names & self.look.lost)

    def _vanished(self) -> None:
        matched = {card.id for card in self.matches.pairs.values()}
        for card in self.here:
            if not card.stands or card.id in matched or card.id in self.gone:
                continue
            taker = self._taker(card)
            if self._may_vanish(card, taker is not None):
                place = card.place()
                assert place is not None
                self.changes.append(Vanish(card.id, place, taker))
                if card.conflict:
                    self.changes.append(ConflictEnd(card.id))

    def _may_vanish(self, card: KnownCard, replaced: bool) -> bool:
        look = self.look
        rank = PRECEDENCE[look.source]
        later = [seen for seen in card.sightings if seen.at > look.at]
        if card.state_since > look.at or any(PRECEDENCE[seen.source] <= rank for seen in later):
            return False
        here = [seen.at for seen in card.sightings if seen.node == look.node]
        if here and min(here) > look.at:
            return False  # it came after this reading
        if self._is_named_lost(card) and not replaced:
            return False
        if rank and any(
            PRECEDENCE[seen.source] < rank and look.fresh(seen.valid_at)
            for seen in card.sightings
            if seen.node == look.node
        ):
            return False
        if rank == 0:
            return look.complete or replaced
        listed = any(seen.collector == look.collector and seen.node == look.node for seen in card.sightings)
        return listed and (look.complete or replaced)

    def _taker(self, card: KnownCard) -> int | None:
        """The observed card that newly has this card's place."""
        mine = next(
            (
                seen.slot
                for seen in card.sightings
                if seen.collector == self.look.collector and seen.node == self.look.node
            ),
            "",
        )
        slots = {card.identity.slot, mine} - {""}
        for change in self.changes:
            place = change.after if isinstance(change, Move) else getattr(change, "place", None)
            if not isinstance(change, Move | Appear | Return) or not isinstance(place, Place):
                continue
            if place.slot in slots or (place.pci_address and place.pci_address == card.identity.pci_address):
                return change.index
        return None

    def _one_card_an_address(self) -> list[Change]:
        """Takes a PCI address away from the weaker claim when two cards would stand at it.

        Cards that stay unseen keep theirs (this source may not remove them), then come those that
        this look saw at the address, last those that only kept it from earlier readings.
        """
        gone = self.gone | {change.card for change in self.changes if isinstance(change, Vanish)}
        for card in self.here:
            if card.stands and card.id not in gone:
                self.places.setdefault(card.id, Place(self.look.node, card.identity.slot, card.identity.pci_address))
        owner: dict[str, UUID | int] = {}
        for key in sorted(self.places, key=self._claim):
            owner.setdefault(self.places[key].pci_address, key)
        for key, place in self.places.items():
            if place.pci_address and owner[place.pci_address] != key:
                self.places[key] = replace(place, pci_address="")
        told = [change for change in map(self._with_final_place, self.changes) if change is not None]
        placed = {change.card for change in told if isinstance(change, Move | Relocate | Return)}
        for card in self.here:
            final = self.places.get(card.id)
            if final is not None and card.stands and card.id not in placed and final != card.place():
                told.append(Relocate(card.id, final))
        return told

    def _claim(self, key: UUID | int) -> int:
        saw = {known: index for index, known in self.seen.items()}
        index = key if isinstance(key, int) else saw.get(key)
        if index is None:
            return 0
        said = self.look.cards[index].identity.pci_address
        if said and said != self.places[key].pci_address:
            return 0  # a source that is trusted more holds it there
        return 1 if said else 2

    def _with_final_place(self, change: Change) -> Change | None:
        """The change with the place that is left to its card; None when nothing of it is left."""
        if isinstance(change, Appear):
            place = self.places[change.index]
            identity = replace(change.identity, pci_address=place.pci_address)
            if identity.says_nothing():
                del self.places[change.index]
                return None
            return replace(change, place=place, identity=identity)
        if isinstance(change, Move):
            after = self.places[change.card]
            return None if after == change.before else replace(change, after=after)
        if isinstance(change, Relocate | Return):
            place = self.places[change.card]
            unchanged = isinstance(change, Relocate) and self._stands_at(change.card) == place
            return None if unchanged else replace(change, place=place)
        return change

    def _stands_at(self, card: UUID) -> Place | None:
        return next((known.place() for known in self.here if known.id == card), None)


def _better_uuid(new: str, old: str) -> bool:
    """Whether a UUID is new, or is the driver's spelling of one that a BMC gave bare."""
    return not old or (new != old and uuid_key(new) == uuid_key(old) and new.startswith("GPU-"))
