"""Calls that never return, a driver that is loaded again, and no driver at all (I4)."""

import time

import pytest

from inventory.observations import FailureKind
from tests.contracts.nvml.conftest import by_index
from tests.contracts.nvml.test_nvml import UUID


def test_a_hanging_call_costs_one_card_and_one_thread(probe):
    """Trap: a call may hang, not only fail. Every round says so, the others go on, no thread is added."""
    probe.read()
    threads = probe.do(do="threads")
    probe.set(**{"2.hang.nvmlDeviceGetPowerUsage": 1})
    for _ in range(3):
        started = time.monotonic()
        reading = probe.read(deadline=0.5)
        assert time.monotonic() - started < 5
        assert reading.complete is False
        assert [(f.what, f.kind) for f in reading.failures] == [("NVML index 2", FailureKind.TIMEOUT)]
        cards = by_index(reading)
        assert len(cards) == 8
        assert all(cards[i].values.power == 612.345 for i in range(8) if i != 2)
        assert (cards[2].uuid, cards[2].values, cards[2].present) == (UUID.format(2), None, True)
        assert cards[2].failures[0].kind is FailureKind.TIMEOUT
    assert probe.do(do="threads") == threads == 9
    probe.set(**{"2.hang.nvmlDeviceGetPowerUsage": None})
    assert _eventually(probe, lambda reading: reading.complete)


def test_a_handle_that_hangs_holds_up_nobody(start_probe):
    probe = start_probe(**{"6.hang.nvmlDeviceGetHandleByIndex_v2": 1})
    reading = probe.read(deadline=0.5)
    assert (len(reading.cards), reading.complete) == (7, False)
    assert reading.failures[0].kind is FailureKind.TIMEOUT


def test_a_library_that_hangs_leaves_every_known_card_in_its_place(probe):
    probe.read()
    probe.set(**{"hang.nvmlDeviceGetCount_v2": 1})
    for _ in range(2):
        reading = probe.read(deadline=0.3)
        assert (len(reading.cards), reading.complete) == (8, False)
        assert {card.values for card in reading.cards} == {None}
        assert [(f.what, f.kind) for f in reading.failures] == [("NVML", FailureKind.TIMEOUT)]
    assert probe.do(do="threads") == 9
    probe.set(**{"hang.nvmlDeviceGetCount_v2": None})
    assert _eventually(probe, lambda reading: reading.complete)


def test_opening_again_and_again_while_the_library_hangs_adds_no_threads(start_probe):
    probe = start_probe(**{"hang.nvmlInitWithFlags": 1})
    for _ in range(3):
        assert probe.do(do="open", deadline=0.1)[0] is False
        probe.do(do="close")
    assert probe.do(do="threads") == 1


def test_a_driver_loaded_again_is_opened_again(probe):
    """Trap: old handles are invalid after a reload; the first round after it already reads everything."""
    probe.read()
    probe.set(generation=2, driver="570.133.20")
    reading = probe.read()
    assert (len(reading.cards), reading.complete, reading.driver_version) == (8, True, "570.133.20")


def test_a_driver_that_is_gone_is_told_and_found_again(probe):
    probe.read()
    probe.set(**{"fail.nvmlDeviceGetCount_v2": 9, "fail.nvmlInitWithFlags": 9})
    reading = probe.read()
    assert reading.failures[0].kind is FailureKind.UNREACHABLE
    assert (len(reading.cards), reading.complete) == (8, False)
    probe.set(**{"fail.nvmlDeviceGetCount_v2": None, "fail.nvmlInitWithFlags": None})
    assert probe.read().complete is True


def test_a_driver_is_not_opened_again_under_a_call_that_hangs(probe):
    """Pulling the library away under a call would crash the agent."""
    probe.read()
    probe.set(**{"2.hang.nvmlDeviceGetPowerUsage": 1})
    probe.read(deadline=0.3)
    probe.set(generation=2)
    reading = probe.read(deadline=0.3)
    assert reading.failures[0].kind is FailureKind.BUSY
    assert probe.calls("nvmlShutdown") == 0
    probe.set(**{"2.hang.nvmlDeviceGetPowerUsage": None})
    assert _eventually(probe, lambda reading: reading.complete)


def test_a_card_that_left_with_a_reload_is_gone(probe):
    probe.read()
    probe.set(generation=2, count=7)
    reading = probe.read()
    assert (len(reading.cards), reading.complete) == (7, True)


def test_an_index_is_never_an_identity(probe):
    """Trap: a reload reorders indices; a card that answers elsewhere is not also reported as lost."""
    probe.read()
    swapped = {"0.uuid": UUID.format(1), "1.uuid": UUID.format(0)}
    probe.set(generation=2, **swapped, **{"0.fail.nvmlDeviceGetHandleByIndex_v2": 999})
    reading = probe.read()
    assert [card.uuid for card in reading.cards].count(UUID.format(0)) == 1
    assert (len(reading.cards), reading.complete) == (7, False)


def test_a_version_mismatch_says_what_to_do(start_probe):
    """Trap: a driver that was updated without a reboot."""
    probe = start_probe(**{"fail.nvmlInitWithFlags": 18})
    reading = probe.read()
    assert reading.failures[0].kind is FailureKind.MISSING_LIBRARY
    assert "reboot" in reading.failures[0].detail


def test_a_node_without_the_library_says_so(bare_probe):
    """`sensaka-agent check` tells what can't be read, and why."""
    sources, same = bare_probe.do(do="local")
    assert same is True
    assert [(name, available) for name, available, _ in sources] == [("NVML", False), ("AMD SMI", False)]
    assert "libnvidia-ml.so.1" in sources[0][2]
    assert "amd-smi is not installed" in sources[1][2]
    assert "amdgpu is not loaded" in sources[1][2]
    assert bare_probe.read().failures[0].kind is FailureKind.MISSING_LIBRARY


def test_a_node_with_cards_says_how_many(probe):
    assert probe.do(do="open", deadline=5) == [True, "driver 550.90.07, 8 cards"]
    assert probe.do(do="close")[0] is False
    assert len(probe.read().cards) == 8


def test_a_round_of_eight_cards_costs_little(probe):
    """X7: under 1 % of a core at 8 cards every 10 s is 100 ms a round, and 60 MB for the whole agent."""
    seconds, kilobytes = probe.do(do="cost", rounds=20)
    assert seconds < 0.1
    assert kilobytes < 30_000


@pytest.mark.parametrize("card", [0, 7])
def test_the_process_exits_while_a_call_hangs(start_probe, card):
    """The fixture fails when the process does not end by itself."""
    probe = start_probe(**{f"{card}.hang.nvmlDeviceGetName": 1})
    assert probe.read(deadline=0.3).complete is False


def _eventually(probe, condition) -> bool:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if condition(probe.read(deadline=5)):
            return True
    return False
