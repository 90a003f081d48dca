"""What a round puts into the spool, and when (I4)."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from inventory.agent.clock import utc
from inventory.agent.identity import Identity
from inventory.agent.processes import ProcessTable
from inventory.agent.rounds import CATCH_UP, REPORT_EVERY, Rounds, sample_key
from inventory.agent.segments import Kind
from inventory.agent.sources import NodeReader, Place, SimulatedCards, merged, opener
from inventory.agent.spool import Spool
from inventory.observations import (
    CardReading,
    CardValues,
    FailureKind,
    NodeReading,
    ProcessReading,
    ReadFailure,
    SliceReading,
)
from tests.inventory.agent.doubles import Cards, SetClock, card, node

IDENTITY = Identity(hostname="gpu-01", machine_id="m", system_serial="S", system_uuid="u", boot_id="b")


class Bench:
    """A round's parts, put together."""

    def __init__(self, folder: Path, reading: NodeReading | None = None) -> None:
        self.clock = SetClock()
        self.source = Cards(reading or node(card(1), card(2)))
        self.spool = Spool(folder)
        place = Place(IDENTITY, ProcessTable(folder / "proc"))
        self.rounds = Rounds(NodeReader(lambda: [self.source], place, self.clock), self.spool, self.clock)

    def run(self, times: int = 1, *, step: float = 10.0) -> None:
        for _ in range(times):
            self.rounds.run()
            self.clock.pass_time(step)

    def kinds(self) -> list[tuple[str, int]]:
        """What lies in the spool since the last look."""
        found = []
        while batch := self.spool.peek(max_samples=1, max_bytes=1):
            found += [(record.kind.name.lower(), record.count) for record in batch.records]
            self.last = batch.records[-1]
            self.spool.acknowledge(batch)
        return found


def test_the_report_comes_before_the_samples_and_then_only_when_something_changed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.run(3)
    assert bench.kinds() == [("report", 0), ("samples", 2), ("samples", 2), ("samples", 2)]
    bench.source.reading = node(card(1), card(2), card(3))
    bench.run(2)
    assert bench.kinds() == [("report", 0), ("samples", 3), ("samples", 3)]


def test_a_report_comes_every_five_minutes_all_the_same(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    rounds = int(REPORT_EVERY // 10)
    bench.run(2 * rounds)
    kinds = [kind for kind, _ in bench.kinds()]
    assert [place for place, kind in enumerate(kinds) if kind == "report"] == [0, rounds + 1]


PROCESS = ProcessReading(pid=5, card_uuid="GPU-1", memory_used=100, name="python")
FAILURE = ReadFailure(what="fan", kind=FailureKind.TIMEOUT, detail="after 2.1 s")
CHANGES: dict[str, tuple[NodeReading, bool]] = {
    "values": (node(card(1, power=1.0), card(2)), False),
    "memory of a process": (node(card(1), card(2), processes=(replace(PROCESS, memory_used=7),)), False),
    "wording of a failure": (node(card(1), card(2), failures=(replace(FAILURE, detail="after 2.2 s"),)), False),
    "a card is gone": (node(card(1)), True),
    "firmware": (node(replace(card(1), vbios="96.00.9F"), card(2)), True),
    "a slice": (node(replace(card(1), slices=(SliceReading(uuid="MIG-1", profile="1g.10gb"),)), card(2)), True),
    "a process": (node(card(1), card(2), processes=(PROCESS, replace(PROCESS, pid=6))), True),
    "a failure": (node(card(1), card(2), failures=(FAILURE, replace(FAILURE, what="ecc"))), True),
    "another boot": (node(card(1), card(2), boot_id="another"), True),
}


@pytest.mark.parametrize(("after", "reported"), CHANGES.values(), ids=CHANGES.keys())
def test_what_is_worth_a_report(tmp_path: Path, after: NodeReading, reported: bool) -> None:
    before = replace(
        node(card(1), card(2)), processes=after.processes[:1] and (PROCESS,), failures=after.failures[:1] and (FAILURE,)
    )
    bench = Bench(tmp_path, before)
    bench.run()
    bench.kinds()
    bench.source.reading = after
    bench.run()
    assert ("report", 0) in bench.kinds() or not reported
    bench.source.reading = after
    bench.run()
    assert ("report", 0) not in bench.kinds()


def test_a_report_carries_no_values_and_who_the_node_is(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.run()
    report = msgspec.json.decode(bench.rounds.newest_report() or b"", type=NodeReading)
    assert [c.values for c in report.cards] == [None, None]
    assert (report.hostname, report.machine_id, report.system_serial, report.boot_id) == ("gpu-01", "m", "S", "b")
    assert report.observed_at == datetime.fromtimestamp(1_800_000_000, UTC)


def test_slices_are_sampled_and_empty_or_nameless_cards_are_not(tmp_path: Path) -> None:
    part = SliceReading(
        uuid="MIG-0b5c8f0e-6a3d-4f52-9d4a-1c2e3f405162", profile="1g.10gb", values=CardValues(sm_activity=3.0)
    )
    reading = node(
        replace(card(1), slices=(part,)),
        replace(card(2), values=CardValues()),
        replace(card(3), values=None),
        replace(card(4), uuid="N/A", serial="[N/A]"),
    )
    bench = Bench(tmp_path, reading)
    bench.run()
    assert bench.kinds() == [("report", 0), ("samples", 2)]
    sent = msgspec.json.decode(b"[%b]" % bench.last.payload)
    assert [sample["card"] for sample in sent] == [card(1).uuid, part.uuid]
    assert sent[1] == {"card": part.uuid, "sampled_at": "2027-01-15T08:00:00Z", "sm_activity": 3.0}


NAMES = {
    "UUID": (
        replace(card(1), uuid="GPU-0B5C8F0E-6A3D-4F52-9D4A-1C2E3F405162"),
        "GPU-0b5c8f0e-6a3d-4f52-9d4a-1c2e3f405162",
    ),
    "bare UUID": (
        replace(card(1), uuid="0b5c8f0e-6a3d-4f52-9d4a-1c2e3f405162"),
        "GPU-0b5c8f0e-6a3d-4f52-9d4a-1c2e3f405162",
    ),
    "serial": (replace(card(1), uuid=""), card(1).serial),
    "PCI address": (replace(card(1), uuid="", serial="", pci_address="00000000:3B:00.0"), "0000:3b:00.0"),
}


@pytest.mark.parametrize(("reading", "name"), NAMES.values(), ids=NAMES.keys())
def test_a_sample_names_its_card_as_the_server_does(reading: CardReading, name: str) -> None:
    assert sample_key(reading) == name


def test_a_value_outside_what_can_be_is_left_out_and_the_rest_goes(tmp_path: Path) -> None:
    bench = Bench(tmp_path, node(card(1, utilization=101.0, power=-1.0), replace(card(2), minor=-5)))
    bench.run()
    bench.kinds()
    sent = msgspec.json.decode(b"[%b]" % bench.last.payload)
    assert "utilization" not in sent[0]
    assert "power" not in sent[0]
    assert sent[0]["temperature"] == 61.0
    report = msgspec.json.decode(bench.rounds.newest_report() or b"", type=NodeReading)
    assert (report.cards[1].uuid, report.cards[1].minor) == (card(2).uuid, None)


def test_a_clock_set_back_repeats_no_second(tmp_path: Path) -> None:
    """I4: no second is sampled twice; the rounds left out are counted."""
    bench = Bench(tmp_path)
    bench.run(3)
    bench.clock.now -= 25
    bench.run(5)
    seconds = []
    while batch := bench.spool.peek(max_samples=1, max_bytes=1):
        seconds += [record.second for record in batch.records if record.kind is Kind.SAMPLES]
        bench.spool.acknowledge(batch)
    assert seconds == sorted(set(seconds))
    assert len(seconds) == 6
    assert bench.spool.progress.skipped == 2


def test_a_clock_set_back_far_was_wrong_before(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.run()
    bench.clock.now -= 10 * CATCH_UP
    bench.run(2)
    assert [kind for kind, _ in bench.kinds()].count("samples") == 3
    assert bench.spool.progress.skipped == 0


def test_a_restart_within_the_same_second_samples_it_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert bench.rounds.run()
    again = Bench(tmp_path)
    assert not again.rounds.run()


class Broken(Cards):
    name = "broken"

    def read(self, *, deadline: float) -> NodeReading:
        raise RuntimeError("a fault of the driver")


class Absent(Cards):
    name = "absent"
    available = False
    reason = "libnvidia-ml.so.1 is not installed"
    tries = 0

    def read(self, *, deadline: float) -> NodeReading:
        self.tries += 1
        return NodeReading(observed_at=utc(0), complete=False)


def reader(*sources: Cards) -> tuple[NodeReader, SetClock]:
    clock = SetClock()
    return NodeReader(lambda: list(sources), Place(IDENTITY, ProcessTable()), clock), clock


def test_a_source_that_raises_leaves_the_others(tmp_path: Path) -> None:
    reading = reader(Broken(node()), Cards(node(card(1))))[0].read(5)
    assert [c.uuid for c in reading.cards] == [card(1).uuid]
    assert reading.failures[0].what == "broken"
    assert not reading.complete


def test_no_source_is_a_failure_and_no_proof_that_cards_are_gone() -> None:
    absent = Absent(node())
    read, clock = reader(absent)
    reading = read.read(5)
    assert not reading.complete
    assert reading.failures[0].detail == absent.reason
    assert absent.tries == 0
    clock.pass_time(61)
    read.read(6)
    read.read(7)
    assert absent.tries == 1


def test_an_absent_library_is_no_failure_where_another_has_cards() -> None:
    reading = reader(Absent(node()), Cards(node(card(1))))[0].read(5)
    assert reading.failures == ()
    assert reading.complete


def test_two_sources_make_one_reading() -> None:
    one = merged([node(card(1), driver_version="550"), node(card(2), driver_version="6.8", complete=False)], 9)
    assert [c.uuid for c in one.cards] == [card(1).uuid, card(2).uuid]
    assert (one.driver_version, one.complete, one.observed_at) == ("550", False, utc(9))


def test_a_simulated_node_is_marked_and_its_processes_are_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "node.json"
    process = ProcessReading(pid=1, card_uuid="GPU-1", name="train", user="ada")
    page.write_bytes(msgspec.json.encode(node(card(1), processes=(process,), machine_id="simulated-1")))
    read, _ = reader(SimulatedCards(str(page)))  # type: ignore[arg-type]
    reading = read.read(5)
    assert reading.simulated
    assert reading.processes == (process,)
    assert reading.machine_id == "simulated-1"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"observed_at": 7}', b"[" * 100_000])
def test_a_simulated_page_that_makes_no_sense_is_a_failure(tmp_path: Path, content: bytes) -> None:
    page = tmp_path / "node.json"
    page.write_bytes(content)
    reading = SimulatedCards(str(page)).read(deadline=1)
    assert reading.failures[0].kind == FailureKind.PROTOCOL
    assert not reading.complete


def test_a_simulated_page_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    for place in (str(tmp_path / "none"), "http://127.0.0.1:9/node"):
        reading = SimulatedCards(place).read(deadline=1)
        assert (reading.failures[0].kind, reading.cards) == (FailureKind.UNREACHABLE, ())


@pytest.mark.parametrize("source", ["", "simulated", "simulated:", "nvml"])
def test_an_unknown_source_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="no source of readings"):
        opener(source)


def test_a_card_reading_without_any_value_is_still_reported(tmp_path: Path) -> None:
    lost = CardReading(uuid=card(1).uuid, failures=(FAILURE,))
    bench = Bench(tmp_path, node(lost))
    bench.run()
    assert bench.kinds() == [("report", 0)]
