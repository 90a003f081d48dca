"""AMD cards through the JSON of `amd-smi`, in the shapes of ROCm 5, 6 and 7 (I4). Answers are self-made."""

import json
import os
import stat
import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.drivers.cards.amd import AmdSmiCards
from inventory.drivers.cards.amd.cards import read_cards
from inventory.drivers.cards.amd.devices import read_devices
from inventory.drivers.cards.amd.documents import load, number
from inventory.observations import FailureKind, NodeReading

DATA = Path(__file__).parents[2] / "data" / "amd"


def read(release: str):
    documents = {path.stem: load(path.read_text()) for path in (DATA / release).glob("*.json")}
    return read_cards(read_devices(documents))


def test_rocm_5_prints_plain_numbers():
    """I4: no units, memory in MB, the serial of the chip where the board has none."""
    (card,), processes = read("rocm5")
    assert (card.uuid, card.serial) == ("b6ff740f-0000-1000-80a5-4f44ad5ac8b4", "0xA54F44AD5AC8B4")
    assert (card.pci_address, card.pci_id, card.model_name) == ("0000:c1:00.0", "1002:740f", "AMD Instinct MI210")
    assert (card.pcie_generation, card.pcie_width, card.memory_total) == (4, 16, 65520 * 1024**2)
    values = card.values
    assert (values.utilization, values.memory_activity, values.power, values.power_limit) == (37, 12, 142, 300)
    assert (values.temperature, values.memory_temperature, values.sm_clock, values.memory_clock) == (48, 52, 1700, 1600)
    assert (values.memory_used, values.ecc_corrected, values.pcie_replays, values.energy) == (1024**3, 2, 1, None)
    assert processes == ()


def test_rocm_6_prints_value_and_unit_behind_a_banner():
    """Trap: watch mode prints a line of text before the JSON."""
    cards, _ = read("rocm6")
    assert [card.slot for card in cards] == ["0", "1"]
    card = cards[1]
    assert (card.serial, card.part_number, card.vbios) == ("692409005401", "102-G30211-0C", "022.040.003.043.000001")
    assert (card.partition_mode, card.slices, card.pcie_generation) == ("spx", (), 5)
    values = card.values
    assert (values.utilization, values.power, values.temperature) == (93, 612, 71)
    assert (values.sm_clock, values.energy) == (2100, pytest.approx(70368744.177))
    assert (values.ecc_corrected, values.ecc_uncorrected, values.memory_used) == (7, 1, 2 * 1024**3)


def test_the_same_pid_on_two_cards_is_two_bindings():
    """Trap: key by card and pid; an entry without a pid is none."""
    cards, processes = read("rocm6")
    assert [(p.pid, p.card_uuid, p.memory_used, p.name) for p in processes] == [
        (4242, cards[0].uuid, 1024**3, "python3"),
        (4242, cards[1].uuid, 2 * 1024**3, "python3"),
    ]


def test_rocm_7_partitions_are_slices_of_one_card():
    """Trap: secondary partitions print "N/A" for most; the board's figures come from the first alone."""
    (card,), processes = read("rocm7")
    assert (card.partition_mode, card.memory_total, len(card.slices)) == ("cpx", None, 8)
    assert (card.values.power, card.values.temperature, card.values.utilization) == (612, 71, None)
    assert card.vbios == "022.040.003.043.000001"
    assert {one.profile for one in card.slices} == {"cpx_nps4"}
    assert [one.instance_id for one in card.slices] == [str(k) for k in range(8)]
    third = card.slices[3]
    assert (third.values.utilization, third.values.power, third.memory_total) == (55, None, 24574 * 1024**2)
    assert len({card.uuid, *(one.uuid for one in card.slices)}) == 9
    assert [(p.pid, p.card_uuid, p.slice_uuid) for p in processes] == [(77, card.uuid, third.uuid)]


def test_a_group_may_be_a_text():
    """Trap: "usage": "N/A" on an APU."""
    (card,), _ = read("apu")
    assert (card.uuid, card.pci_address, card.values) == ("", "0000:05:00.0", None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("N/A", None),
        (None, None),
        (True, None),
        (65535, None),
        ({"value": 0xFFFFFFFF, "unit": "W"}, None),
        ({"value": "N/A", "unit": "W"}, None),
        ({"value": 750000000, "unit": "uW"}, 750),
        ({"value": 2, "unit": "GB"}, 2 * 1024**3),
        ({"value": {"value": 1}}, None),
        ("42", 42),
        ([], None),
        (10**400, None),
    ],
)
def test_a_number_is_a_number_or_none(value, expected):
    """Trap: compare the type before doing arithmetic."""
    assert number(value) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10) | st.just("N/A"),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["gpu", "gpu_data", "value", "unit", "usage", "gfx_activity", "power", "socket_power", "clock", "gfx_0",
                 "clk", "temperature", "hotspot", "mem_usage", "used_vram", "total_vram", "energy", "ecc", "pcie",
                 "bdf", "uuid", "asic", "bus", "partition", "partition_id", "accelerator_partition", "process_list",
                 "vram", "process_info", "pid", "memory_usage", "vram_mem", "size", "device_id",
                 "current_partition", "limit"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)  # fmt: skip


@given(st.fixed_dictionaries(dict.fromkeys(("list", "static", "metric", "process", "partition"), JSON)))
def test_any_json_gives_a_reading_that_fits_the_wire(documents):
    cards, processes = read_cards(read_devices(documents))
    for reading in (*cards, *processes):
        assert msgspec.json.decode(msgspec.json.encode(reading), type=type(reading)) == reading


@given(st.text(max_size=200))
def test_any_text_is_json_or_nothing(text):
    load(text)
    assert load(f"a line of text\n[1]\n{text}") == [1]


@given(JSON)
def test_a_document_survives_a_banner(document):
    text = json.dumps([document])
    assert json.dumps(load(f"'CTRL' + 'C' to stop:\n{text}\n")) == text


# The interpreter's path may hold a space, which a #! line can't say: the shell starts it.
SHELL = """#!/bin/sh
exec '{python}' '{script}' "$@"
"""
SCRIPT = """
import pathlib, sys, time
folder = pathlib.Path({folder!r})
(folder / "asked").open("a").write(sys.argv[1] + "\\n")
if (folder / "hang").exists():
    time.sleep(60)
if (folder / "fail").exists():
    sys.exit("ERROR: Permission denied, run as root")
assert sys.argv[2] == "--json"
print((folder / (folder / "release").read_text() / (sys.argv[1] + ".json")).read_text())
"""


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program called amd-smi on the path; its folder says how it behaves."""
    for release in DATA.iterdir():
        (tmp_path / release.name).symlink_to(release)
    (tmp_path / "release").write_text("rocm6")
    program = tmp_path / "bin" / "amd-smi"
    program.parent.mkdir()
    script = tmp_path / "amd_smi.py"
    script.write_text(SCRIPT.format(folder=str(tmp_path)))
    program.write_text(SHELL.format(python=sys.executable, script=script))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def asked(tool: Path) -> list[str]:
    lines = (tool / "asked").read_text().split()
    (tool / "asked").unlink()
    return lines


def test_a_round_runs_the_tool_and_asks_identity_only_at_first(tool):
    """The tool costs CPU time at every start: two runs a round, four at the first."""
    cards = AmdSmiCards()
    cards.open()
    assert (cards.available, cards.reason) == (True, "2 GPUs")
    asked(tool)
    reading = cards.read(deadline=30)
    assert (len(reading.cards), reading.complete, reading.driver_version) == (2, True, "6.8.5")
    assert msgspec.json.decode(msgspec.json.encode(reading), type=NodeReading) == reading
    assert asked(tool) == ["metric", "process", "list", "static"]
    assert len(cards.read(deadline=30).cards) == 2
    assert asked(tool) == ["metric", "process"]


def test_a_changed_partition_mode_is_seen_in_the_same_round(tool):
    """Trap: handles and numbers change with the mode."""
    cards = AmdSmiCards()
    cards.read(deadline=30)
    (tool / "release").write_text("rocm7")
    reading = cards.read(deadline=30)
    assert [len(card.slices) for card in reading.cards] == [8]


def test_a_tool_that_hangs_is_left_at_the_deadline_and_its_cards_keep_their_place(tool):
    cards = AmdSmiCards()
    before = cards.read(deadline=30)
    (tool / "hang").touch()
    started = time.monotonic()
    reading = cards.read(deadline=0.5)
    assert time.monotonic() - started < 10
    assert {failure.kind for failure in reading.failures} == {FailureKind.TIMEOUT}
    assert reading.complete is False
    assert [card.uuid for card in reading.cards] == [card.uuid for card in before.cards]
    assert {card.values for card in reading.cards} == {None}
    assert cards.available is True
    (tool / "hang").unlink()
    assert cards.read(deadline=30).complete is True


def test_a_tool_that_fails_says_why(tool):
    (tool / "fail").touch()
    cards = AmdSmiCards()
    cards.open()
    assert cards.available is False
    reading = cards.read(deadline=30)
    assert {failure.kind for failure in reading.failures} == {FailureKind.PERMISSION}
    assert "run as root" in reading.failures[0].detail


def test_a_node_without_the_tool_says_so_once(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    reading = AmdSmiCards().read(deadline=5)
    assert [failure.kind for failure in reading.failures] == [FailureKind.MISSING_LIBRARY]
