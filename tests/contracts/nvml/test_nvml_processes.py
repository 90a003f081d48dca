"""Processes on whole cards and MIG instances, through the real pynvml (I4, I7)."""

from tests.contracts.nvml.test_nvml import MIG, UUID

NOT_AVAILABLE = 2**64 - 1


def test_a_process_in_two_lists_is_one_process(start_probe):
    probe = start_probe(count=2, **{"0.processes": "42:1024:-1:-1,43:2048:-1:-1", "0.graphics": "42:1024:-1:-1"})
    found = sorted((one.pid, one.card_uuid, one.slice_uuid, one.memory_used) for one in probe.read().processes)
    assert found == [(42, UUID.format(0), "", 1024), (43, UUID.format(0), "", 2048)]


def test_the_same_pid_on_two_cards_is_two_bindings(start_probe):
    probe = start_probe(count=2, **{"*.processes": "42:1024:-1:-1"})
    assert {one.card_uuid for one in probe.read().processes} == {UUID.format(0), UUID.format(1)}


def test_memory_that_is_not_available_is_none(start_probe):
    probe = start_probe(count=1, **{"0.processes": f"42:{NOT_AVAILABLE}:-1:-1"})
    assert probe.read().processes[0].memory_used is None


def test_processes_are_put_on_their_instance(start_probe):
    probe = start_probe(**MIG, **{"4.processes": "42:1024:9:0,43:2048:1:0,44:1:7:7"})
    found = {one.pid: one.slice_uuid for one in probe.read().processes}
    assert found == {
        42: "MIG-aaaaaaaa-0000-4000-8000-000000000009",
        43: "MIG-bbbbbbbb-0000-4000-8000-000000000001",
        44: "",
    }


def test_without_privileges_each_instance_is_asked(start_probe):
    """Trap: the card's own list is for privileged callers only while MIG is on."""
    lines = {f"4.fail.nvmlDeviceGet{name}RunningProcesses_v3": 3 for name in ("Graphics", "MPSCompute")}
    probe = start_probe(**MIG, **lines, **{"4.processes": "42:1024:9:0,43:2048:1:0"})
    assert {one.pid for one in probe.read().processes} == {42, 43}


def test_processes_that_may_not_be_listed_are_a_failure_not_an_empty_list(start_probe):
    probe = start_probe(count=1, **{"0.fail.nvmlDeviceGetComputeRunningProcesses_v3": 4})
    reading = probe.read()
    assert reading.processes == ()
    assert [failure.what for failure in reading.cards[0].failures] == ["compute processes"]
