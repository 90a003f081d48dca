"""AMD cards through the package `amdsmi`, played by a module of ours with its functions' answers (I4)."""

import json
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from inventory.drivers.cards.amd import AmdCards, AmdLibraryCards
from inventory.observations import FailureKind, NodeReading


class Library:
    """The played package and its state."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def set(self, **state: object) -> None:
        fresh = self.folder / "fresh.json"
        fresh.write_text(json.dumps({"count": 2, **state}))
        fresh.replace(self.folder / "state.json")

    def cards(self) -> AmdLibraryCards:
        return AmdLibraryCards(driver=self.folder)

    def times_asked(self, name: str) -> int:
        return sys.modules["amdsmi"].asked.count(name)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = Path(__file__).with_name("amdsmi_stand_in.py").read_text()
    (tmp_path / "amdsmi.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "amdsmi", raising=False)
    played = Library(tmp_path)
    played.set()
    yield played
    played.set()
    sys.modules.pop("amdsmi", None)


def test_a_card_comes_with_identity_and_values(library):
    """I4: microwatts, an energy counter times its resolution, the power of whichever key holds it."""
    cards = library.cards()
    cards.open()
    assert (cards.available, cards.reason) == (True, "2 GPUs")
    reading = cards.read(deadline=10)
    assert msgspec.json.decode(msgspec.json.encode(reading), type=NodeReading) == reading
    assert (reading.complete, reading.driver_version, len(reading.cards)) == (True, "6.12.12", 2)
    card = reading.cards[1]
    assert (card.uuid, card.serial, card.slot) == ("01ff74a1-0000-1000-8000-000000000001", "692409005401", "1")
    assert (card.pci_address, card.pci_id, card.partition_mode) == ("0000:c2:00.0", "1002:74a1", "spx")
    assert (card.pcie_generation, card.memory_total) == (5, 196592 * 1024**2)
    values = card.values
    assert (values.power, values.power_limit, values.energy) == (612, 750, pytest.approx(15.3e6))
    assert (values.utilization, values.temperature, values.memory_temperature) == (93, 71, 55)
    assert (values.sm_clock, values.ecc_corrected, values.pcie_replays) == (2100, 7, 4)
    assert values.memory_used == 2048 * 1024**2
    assert {(p.pid, p.memory_used) for p in reading.processes} == {(42, 1024)}


def test_what_is_not_supported_is_told_once(library):
    """Trap: the edge sensor does not exist on MI300."""
    cards = library.cards()
    assert [failure.kind for failure in cards.read(deadline=10).failures] == [FailureKind.NOT_SUPPORTED] * 2
    assert cards.read(deadline=10).failures == ()


def test_identity_is_asked_once(library):
    cards = library.cards()
    for _ in range(3):
        cards.read(deadline=10)
    assert library.times_asked("get_gpu_asic_info") == 2
    assert library.times_asked("get_gpu_activity") == 6


def test_a_failing_call_costs_its_own_value(library):
    library.set(fail={"get_power_info": 10})
    reading = library.cards().read(deadline=10)
    assert {card.values.power for card in reading.cards} == {None}
    assert {card.values.utilization for card in reading.cards} == {93}
    assert FailureKind.PERMISSION in {failure.kind for failure in reading.failures}


def test_a_hanging_call_costs_one_card_and_one_thread(library):
    cards = library.cards()
    cards.read(deadline=10)
    before = threading.active_count()
    library.set(hang=[["get_power_info", 0]])
    for _ in range(3):
        reading = cards.read(deadline=0.5)
        assert [(f.what, f.kind) for f in reading.failures] == [("GPU 0", FailureKind.TIMEOUT)]
        assert [card.values is None for card in reading.cards] == [True, False]
        assert (reading.complete, reading.cards[0].serial) == (False, "692409005400")
    assert threading.active_count() == before
    library.set()
    until = time.monotonic() + 20
    while not cards.read(deadline=5).complete:
        assert time.monotonic() < until
    cards.close()


def test_another_number_of_gpus_means_new_handles(library):
    """Trap: handles are invalid after a change of partitions."""
    cards = library.cards()
    cards.read(deadline=10)
    library.set(count=3)
    assert len(cards.read(deadline=10).cards) == 3


def test_a_package_without_its_library_is_a_failure(library, capfd):
    """Trap: the package prints to standard output and fails in its own way."""
    library.set(broken=True)
    cards = library.cards()
    cards.open()
    assert cards.available is False
    assert cards.read(deadline=5).failures[0].kind is FailureKind.UNKNOWN
    assert capfd.readouterr().out == ""


def test_without_the_kernel_driver_the_package_is_not_imported(library, tmp_path):
    cards = AmdLibraryCards(driver=tmp_path / "absent")
    cards.open()
    assert (cards.available, cards.reason) == (False, "the kernel driver amdgpu is not loaded")
    assert "amdsmi" not in sys.modules


def test_without_either_way_both_reasons_are_told(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    cards = AmdCards()
    cards.open()
    assert cards.available is False
    assert "amd-smi is not installed" in cards.reason
    assert "amdgpu" in cards.reason
