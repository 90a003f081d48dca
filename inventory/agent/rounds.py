"""One round: read, and make of the reading what goes into the spool."""

import hashlib
import logging
from collections.abc import Iterator

import msgspec

from inventory.agent.bounds import bounded
from inventory.agent.clock import Clock
from inventory.agent.segments import Kind, Record
from inventory.agent.sources import NodeReader
from inventory.agent.spool import Spool
from inventory.agent.telling import Teller
from inventory.observations import CardReading, CardValues, NodeReading
from inventory.rules.identity import card_identity

log = logging.getLogger("sensaka.agent")

REPORT_EVERY = 300.0  # s; a report goes out at once when anything but values changed
# A clock set back by less than this (s) waits until it has caught up, so that no second is sampled twice with
# different values. Set back further, it was wrong before, and the new time is taken.
CATCH_UP = 3600


class Sample(CardValues, frozen=True, kw_only=True, omit_defaults=True):
    """One sample as the server takes it: which card or slice, a whole UTC second, the values."""

    card: str
    sampled_at: str


def stripped(reading: NodeReading) -> NodeReading:
    """The reading without values: what a report carries."""
    return msgspec.structs.replace(reading, cards=tuple(_bare(card) for card in reading.cards))


def _bare(card: CardReading) -> CardReading:
    slices = tuple(msgspec.structs.replace(part, values=None) for part in card.slices)
    return msgspec.structs.replace(card, values=None, slices=slices)


def fingerprint(report: NodeReading) -> bytes:
    """What of a report makes it worth sending: all of it but times, memory of processes and wording of failures."""
    cards = tuple(
        msgspec.structs.replace(card, failures=tuple(msgspec.structs.replace(f, detail="") for f in card.failures))
        for card in report.cards
    )
    same = msgspec.structs.replace(
        report,
        observed_at=report.observed_at.replace(year=2000, month=1, day=1, hour=0, minute=0, second=0),
        cards=cards,
        processes=tuple(msgspec.structs.replace(process, memory_used=None) for process in report.processes),
        failures=tuple(msgspec.structs.replace(failure, detail="") for failure in report.failures),
    )
    return hashlib.blake2b(msgspec.json.encode(same), digest_size=16).digest()


def sample_key(card: CardReading) -> str:
    """What the server finds a card by: its UUID, else its serial, else its PCI address, spelled as it stores them."""
    vendor = card.vendor or card.model_name.partition(" ")[0]
    known = card_identity(uuid=card.uuid, serial=card.serial, pci=card.pci_address, slot=card.slot, vendor=vendor)
    return known.uuid or known.serial or known.pci_address


def samples(reading: NodeReading) -> Iterator[Sample]:
    """A sample of each card and slice that can be named and has any value."""
    at = reading.observed_at.strftime("%Y-%m-%dT%H:%M:%SZ")
    for card in reading.cards:
        for name, values in ((sample_key(card), card.values), *((part.uuid, part.values) for part in card.slices)):
            if name and values is not None and values != CardValues():
                yield Sample(card=name, sampled_at=at, **msgspec.structs.asdict(values))


class Rounds:
    """Reads round after round and puts each into the spool."""

    def __init__(self, reader: NodeReader, spool: Spool, clock: Clock) -> None:
        self._reader, self._spool, self._clock = reader, spool, clock
        self._tell = Teller(log, clock)
        self._last = spool.last_second
        self._print = b""
        self._reported_at = -REPORT_EVERY
        self._newest: bytes | None = None
        self.reading: NodeReading | None = None

    def newest_report(self) -> bytes | None:
        """The report of the latest round, for a server that lacks one."""
        return self._newest

    def run(self) -> bool:
        """One round; False when it was skipped because its second was sampled before."""
        second = int(self._clock.wall())
        if not self._is_new(second):
            return False
        self._last = second
        self.reading = reading = self._within_bounds(self._reader.read(second))
        report = stripped(reading)
        self._newest = msgspec.json.encode(report)
        self._append_report(report, second)
        encoded = [msgspec.json.encode(sample) for sample in samples(reading)]
        if encoded:
            self._append(Record(Kind.SAMPLES, second, len(encoded), b",".join(encoded)))
        return True

    def _within_bounds(self, reading: NodeReading) -> NodeReading:
        cards = tuple(self._bounded_card(card) for card in reading.cards)
        processes = tuple(bounded(process)[0] for process in reading.processes)
        return msgspec.structs.replace(reading, cards=cards, processes=processes)

    def _bounded_card(self, card: CardReading) -> CardReading:
        slices = []
        for part in card.slices:
            values, bad = bounded(part.values) if part.values else (None, ())
            self._tell_bad(part.uuid, bad)
            slices.append(msgspec.structs.replace(part, values=values))
        values, bad = bounded(card.values) if card.values else (None, ())
        self._tell_bad(card.uuid, bad)
        card, bad = bounded(msgspec.structs.replace(card, values=values, slices=tuple(slices)))
        self._tell_bad(card.uuid, bad)
        return card

    def _tell_bad(self, uuid: str, fields: tuple[str, ...]) -> None:
        if fields:
            self._tell.warning(f"bounds {uuid}", "%s: outside what can be, left out: %s", uuid, ", ".join(fields))

    def _is_new(self, second: int) -> bool:
        behind = self._last - second
        if behind < 0:
            return True
        if behind <= CATCH_UP:
            self._spool.count(skipped=1)
            self._tell.warning("clock", "the clock went back; %d s until it is where it was, not sampling", behind + 1)
            return False
        self._tell.warning("clock", "the clock went back by %d s; going on from the new time", behind)
        return True

    def _append_report(self, report: NodeReading, second: int) -> None:
        now = self._clock.monotonic()
        print_ = fingerprint(report)
        if print_ != self._print or now - self._reported_at >= REPORT_EVERY:
            assert self._newest is not None
            self._append(Record(Kind.REPORT, second, 0, self._newest))
            self._print, self._reported_at = print_, now

    def _append(self, record: Record) -> None:
        if not self._spool.append(record):
            self._tell.error(
                "disk",
                "the spool can't be written (%s): readings wait in memory, %d records lost so far",
                self._spool.trouble,
                self._spool.progress.dropped,
            )
