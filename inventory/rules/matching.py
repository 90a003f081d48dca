"""Which known card each observed card is: UUID, serial, PCI address, then place; each card once."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from inventory.rules.changes import KnownCard, Look, ObservedCard
from inventory.rules.identity import CardIdentity, serial_key, shared_serials, uuid_key
from inventory.rules.topology import join_positions


@dataclass(slots=True)
class Matches:
    """Pairs by index of the observed card. `doubles` are further records of a matched card;
    `unmatched` are observed cards whose known one can't be told; `superseded` the reverse."""

    pairs: dict[int, KnownCard] = field(default_factory=dict)
    doubles: dict[int, list[KnownCard]] = field(default_factory=dict)
    unmatched: list[int] = field(default_factory=list)
    superseded: dict[int, KnownCard] = field(default_factory=dict)


def match(look: Look, known: Sequence[KnownCard]) -> Matches:
    """Pairs the cards of a look with known ones."""
    return _Matcher(look, known).run()


class _Matcher:
    def __init__(self, look: Look, known: Sequence[KnownCard]) -> None:
        self.look = look
        # Of two records of one identity the one in use comes before a retired one.
        self.known = sorted(known, key=lambda card: (card.state == "retired", card.first_seen_at, card.id))
        self.here = [card for card in self.known if card.node == look.node]
        self.shared = shared_serials(card.identity.serial for card in look.cards) | shared_serials(
            card.identity.serial for card in self.known if card.state != "retired" and card.identity.uuid
        )
        self.taken: set[UUID] = set()
        self.matches = Matches()

    def run(self) -> Matches:
        self._by(self.known, self._same_uuid)
        self._by(self.known, self._same_serial)
        # One that stands there comes before one that used to.
        in_use = sorted((card for card in self.here if card.state != "retired"), key=lambda card: not card.stands)
        self._by(in_use, self._same_pci_address)
        self._by([card for card in self.here if card.stands], self._same_place_before)
        self._doubles()
        self._by_position()
        self._only_choice()
        self._set_aside()
        return self.matches

    def _open(self) -> Iterator[tuple[int, ObservedCard]]:
        for index, card in enumerate(self.look.cards):
            if index not in self.matches.pairs and not card.identity.says_nothing():
                yield index, card

    def _free(self, cards: Sequence[KnownCard]) -> list[KnownCard]:
        return [card for card in cards if card.id not in self.taken]

    def _pair(self, index: int, card: KnownCard) -> None:
        self.matches.pairs[index] = card
        self.taken.add(card.id)

    def _by(self, cards: Sequence[KnownCard], same: Callable[[ObservedCard, KnownCard], bool]) -> None:
        for index, observed in list(self._open()):
            for card in self._free(cards):
                if same(observed, card) and not observed.identity.contradicts(card.identity):
                    self._pair(index, card)
                    break

    def _same_uuid(self, observed: ObservedCard, card: KnownCard) -> bool:
        uuid = observed.identity.uuid
        return bool(uuid) and uuid_key(uuid) == uuid_key(card.identity.uuid)

    def _same_serial(self, observed: ObservedCard, card: KnownCard) -> bool:
        key = serial_key(observed.identity.serial)
        return bool(key) and key not in self.shared and key == serial_key(card.identity.serial)

    def _same_pci_address(self, observed: ObservedCard, card: KnownCard) -> bool:
        address = observed.identity.pci_address
        return bool(address) and address == card.identity.pci_address

    def _same_place_before(self, observed: ObservedCard, card: KnownCard) -> bool:
        """For sources that know neither UUID nor a serial of its own: the place in which this collector saw it last."""
        said = observed.identity
        if said.uuid or (said.serial and serial_key(said.serial) not in self.shared):
            return False
        return any(
            (said.slot and seen.slot == said.slot) or (said.pci_address and seen.pci_address == said.pci_address)
            for seen in card.sightings
            if seen.collector == self.look.collector and seen.node == self.look.node
        )

    def _strangers(self) -> list[KnownCard]:
        """Cards here that only the other side (operating system or BMC) has seen."""
        return [
            card
            for card in self._free(self.here)
            if card.stands
            and card.sightings
            and all((seen.source != "bmc") != self.look.in_band for seen in card.sightings if seen.node == card.node)
        ]

    def _could_be(self, observed: ObservedCard, card: KnownCard) -> bool:
        """Whether nothing speaks against it: no identifier that both have, or it would have matched."""
        vendors = {observed.vendor.lower(), card.vendor.lower()} - {""}
        return len(vendors) < 2 and not _comparable(observed.identity, card.identity)

    def _possible(self) -> list[tuple[int, KnownCard]]:
        strangers = self._strangers()
        return [
            (index, card) for index, observed in self._open() for card in strangers if self._could_be(observed, card)
        ]

    def _by_position(self) -> None:
        possible = self._possible()
        slots = {index: self.look.cards[index].identity.slot for index, _ in possible}
        strangers = {card.id: card for _, card in possible if card.identity.slot}
        joined = join_positions(
            {key: card.identity.slot for key, card in strangers.items()},
            {index: slot for index, slot in slots.items() if slot},
        )
        pairs = [(index, strangers[key]) for index, key in joined.items()]
        # One contradiction shows that the numberings do not fit after all.
        if all(self._could_be(self.look.cards[index], card) for index, card in pairs):
            for index, card in pairs:
                self._pair(index, card)

    def _only_choice(self) -> None:
        """Pairs what can only be each other."""
        possible = self._possible()
        for index, card in possible:
            if sum(one == index for one, _ in possible) == sum(other.id == card.id for _, other in possible) == 1:
                self._pair(index, card)

    def _doubles(self) -> None:
        """Records that a BMC made of a card whose UUID was known elsewhere in the tree."""
        for index, card in self.matches.pairs.items():
            observed = self.look.cards[index].identity
            for other in self._free(self.known):
                same = self._same_serial(self.look.cards[index], other) or (
                    other.node == self.look.node and self._same_pci_address(self.look.cards[index], other)
                )
                if same and other.state != "retired" and not _differ(observed, card.identity, other.identity):
                    self.matches.doubles.setdefault(index, []).append(other)
                    self.taken.add(other.id)

    def _set_aside(self) -> None:
        """Where nothing is comparable, a stranger stands for an observed card: count it once, not twice.

        The list of the operating system replaces records that only a BMC made; cards that only a
        BMC lists wait until they can be told.
        """
        possible = self._possible()
        if not self.look.in_band:
            self.matches.unmatched += sorted({index for index, _ in possible})
            return
        used: set[int] = set()
        closed: set[UUID] = set()
        for index, card in possible:
            if index not in used and card.id not in closed:
                used.add(index)
                closed.add(card.id)
                self.matches.superseded[index] = card


def _comparable(one: CardIdentity, other: CardIdentity) -> bool:
    """Whether both know an identifier of the same kind, so that a difference means something."""
    return bool((one.uuid and other.uuid) or (one.serial and other.serial) or (one.pci_address and other.pci_address))


def _differ(observed: CardIdentity, card: CardIdentity, other: CardIdentity) -> bool:
    return other.contradicts(observed) or other.contradicts(card)
