"""An in-memory tree that applies plans, as small as the rules' own vocabulary allows."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

from inventory.rules import changes as rule
from inventory.rules.changes import KnownCard, KnownSlice, Look, ObservedCard, ObservedSlice, Plan, Seen
from inventory.rules.identity import CardIdentity
from inventory.rules.lifecycle import CARD
from inventory.rules.reconcile import reconcile

START = datetime(2026, 1, 5, tzinfo=UTC)
AGENT = {number: UUID(int=0xA0 + number) for number in range(4)}
BMC = {number: UUID(int=0xB0 + number) for number in range(4)}
EXPORTER = {number: UUID(int=0xE0 + number) for number in range(4)}
NODE = {number: UUID(int=0x10 + number) for number in range(4)}
_COLLECTORS = {"agent": AGENT, "bmc": BMC, "exporter": EXPORTER}


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def gpu(number: int) -> str:
    return f"GPU-00000000-0000-4000-8000-{number:012x}"


def card(number: int, slot: int | str | None = None, **fields: str) -> CardIdentity:
    """Card `number` as the driver identifies it."""
    slot = number if slot is None else slot
    base = {
        "uuid": gpu(number),
        "serial": f"165{number:04d}",
        "pci_address": f"0000:{int(slot):02x}:00.0" if str(slot).isdecimal() else "",
        "slot": str(slot),
    }
    return CardIdentity(**(base | fields))


def seen(
    identity: CardIdentity, *, lost: bool = False, slices: tuple[ObservedSlice, ...] | None = None, vendor: str = ""
) -> ObservedCard:
    return ObservedCard(identity, vendor, lost, slices)


@dataclass
class Tree:
    """Cards and stays; `look` reconciles and applies."""

    cards: dict[UUID, KnownCard] = field(default_factory=dict)
    stays: list[tuple[UUID, UUID, datetime, datetime | None]] = field(default_factory=list)
    made: int = 0
    read_at: dict[UUID, datetime] = field(default_factory=dict)

    def look(
        self,
        node: int,
        second: float,
        *cards: CardIdentity | ObservedCard,
        source: str = "agent",
        complete: bool = True,
        lost: frozenset[str] = frozenset(),
    ) -> Plan:
        collector = _COLLECTORS[source][node]
        sightings = [one for known in self.cards.values() for one in known.sightings if one.node == NODE[node]]
        senior = None
        if source == "bmc":
            senior = self.read_at.get(NODE[node])
        elif source == "exporter":
            senior = max((one.at for one in sightings if one.source == "agent"), default=None)
        look = Look(
            NODE[node],
            source,
            collector,
            at(second),
            tuple(one if isinstance(one, ObservedCard) else seen(one) for one in cards),
            complete,
            lost,
            max((one.at for one in sightings if one.collector == collector), default=None),
            senior,
        )
        plan = reconcile(look, list(self.cards.values()))
        self.apply(look, plan)
        return plan

    def apply(self, look: Look, plan: Plan) -> None:
        by_index = dict(plan.seen)
        for change in plan.changes:
            if isinstance(change, rule.Appear):
                self.made += 1
                key = UUID(int=0xC000 + self.made)
                by_index[change.index] = key
                state = "missing" if change.past else "failed" if change.lost else "present"
                since = look.last_at if change.past and look.last_at else look.at
                place = change.place
                identity = replace(change.identity, slot=place.slot, pci_address=place.pci_address)
                self.cards[key] = KnownCard(key, identity, place.node, state, since, look.at)
                self.stays.append((key, place.node, look.at, look.last_at if change.past else None))
        for change in plan.changes:
            self._change(change, look, by_index)
        if plan.stale:
            return
        for index, key in by_index.items():
            said = look.cards[index].identity
            sighting = Seen(look.source, look.collector, look.node, look.at, said.slot, said.pci_address)
            others = tuple(one for one in self.cards[key].sightings if one.collector != look.collector)
            self.cards[key] = replace(self.cards[key], sightings=(*others, sighting))
        if look.in_band:
            self.read_at[look.node] = max(look.at, self.read_at.get(look.node, look.at))

    def _change(self, change: rule.Change, look: Look, by_index: dict[int, UUID]) -> None:
        if isinstance(change, rule.Appear):
            return
        if isinstance(change, rule.OpenSlice):
            one = (look.cards[change.index].slices or ())[change.slice]
            row = self.cards[by_index[change.index]]
            new = KnownSlice(
                UUID(int=hash((one.uuid, look.at, change.slice)) & (2**128 - 1)), one.uuid, one.profile, one.instance_id
            )
            self.cards[row.id] = replace(row, slices=(*row.slices, new))
            return
        row = self.cards[change.card]
        match change:
            case rule.Identify():
                row = replace(
                    row,
                    identity=replace(
                        row.identity, uuid=change.uuid or row.identity.uuid, serial=change.serial or row.identity.serial
                    ),
                )
            case rule.Join():
                self._state(self.cards[change.other], "retire", look)
                self._leave(change.other, look.at)
            case rule.Supersede():
                self._state(row, "retire", look)
                self._leave(row.id, look.at)
                return
            case rule.Move(after=place) | rule.Return(place=place):
                row = self._state(row, "return", look)
                row = replace(
                    row, node=place.node, identity=replace(row.identity, slot=place.slot, pci_address=place.pci_address)
                )
                self._leave(row.id, look.at)
                self.stays.append((row.id, place.node, look.at, None))
            case rule.Relocate(place=place):
                row = replace(row, identity=replace(row.identity, slot=place.slot, pci_address=place.pci_address))
            case rule.Vanish():
                row = self._state(row, "vanish", look)
                self._leave(row.id, look.at)
            case rule.Fail():
                row = self._state(row, "fail", look)
            case rule.Recover():
                row = self._state(row, "recover", look)
            case rule.Conflict():
                row = replace(row, conflict=True)
            case rule.ConflictEnd():
                row = replace(row, conflict=False)
            case rule.CloseSlice():
                row = replace(row, slices=tuple(one for one in row.slices if one.id != change.slice))
        self.cards[row.id] = row

    def _state(self, row: KnownCard, event: str, look: Look) -> KnownCard:
        if CARD.allows(row.state, event):
            row = replace(row, state=CARD.target(row.state, event), state_since=look.at)
            self.cards[row.id] = row
        return row

    def _leave(self, key: UUID, when: datetime) -> None:
        self.stays = [
            (card, node, start, max(when, start) if card == key and end is None else end)
            for card, node, start, end in self.stays
        ]

    def of(self, number: int) -> KnownCard:
        [row] = [row for row in self.cards.values() if row.identity.uuid == gpu(number)]
        return row

    def check(self) -> None:
        """What must hold at any time."""
        for key in self.cards:
            rows = [(start, end) for card, _, start, end in self.stays if card == key and start != end]
            stays = sorted(rows, key=lambda row: row[0])
            assert sum(end is None for _, end in stays) <= 1, "two open stays"
            for (_, end), (start, _) in pairwise(stays):
                assert end is not None, "a stay after an open one"
                assert end <= start, f"stays of {key} overlap: {stays}"
        standing = [row for row in self.cards.values() if row.stands]
        for row in standing:
            assert [node for card, node, _, end in self.stays if card == row.id and end is None] == [row.node]
        places = [(row.node, row.identity.pci_address) for row in standing if row.identity.pci_address]
        assert len(places) == len(set(places)), "two cards at one address"
        uuids = [row.identity.uuid.lower().removeprefix("gpu-") for row in self.cards.values() if row.identity.uuid]
        assert len(uuids) == len(set(uuids)), "one UUID on two records"


def kinds(plan: Plan) -> list[str]:
    return [type(change).__name__ for change in plan.changes]
