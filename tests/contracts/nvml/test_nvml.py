"""The NVML driver on the real pynvml and ctypes, with a stand-in for the vendor's library (I4)."""

import time

import pytest

from inventory.observations import FailureKind
from tests.contracts.nvml.conftest import by_index

UUID = "GPU-00000000-0000-4000-8000-{:012d}"
MIG = {
    "4.mig": 1,
    "4.mig.0": "9:0:1g.10gb:9856:MIG-aaaaaaaa-0000-4000-8000-000000000009:1048576:42.5",
    "4.mig.3": "1:0:3g.40gb:40192:MIG-bbbbbbbb-0000-4000-8000-000000000001:2097152:7.25",
}


def settled(probe):
    """A reading whose rates cover an interval: samples must lie 100 ms apart."""
    probe.read()
    time.sleep(0.12)
    return probe.read()


def test_eight_cards_come_with_identity_and_values(probe):
    """I4: everything that NVML knows of a card, in our units; slots are right though all are read at once."""
    reading = settled(probe)
    assert (reading.complete, reading.failures, reading.driver_version, reading.runtime_version) == (
        True, (), "550.90.07", "12.4",
    )  # fmt: skip
    cards = by_index(reading)
    assert [cards[i].uuid for i in range(8)] == [UUID.format(i) for i in range(8)]
    assert [cards[i].slot for i in range(8)] == [str(i + 1) for i in range(8)]
    card = cards[2]
    assert (card.serial, card.pci_address, card.pci_id) == ("1651223000002", "0000:1a:00.0", "10de:2330")
    assert (card.model_name, card.vendor, card.vbios) == ("NVIDIA H100 80GB HBM3", "NVIDIA", "96.00.74.00.01")
    assert (card.part_number, card.minor, card.memory_total) == ("692-2G520-0200-000", 2, 85520809984)
    assert (card.mig_enabled, card.nvlink_active, card.pcie_generation, card.pcie_width) == (False, 18, 5, 16)
    values = card.values
    assert (values.power, values.power_limit, values.energy) == (612.345, 700.0, 5e9)  # mW and mJ
    assert (values.utilization, values.sm_activity, values.tensor_activity) == (97, 83.5, 41.25)
    assert (values.temperature, values.memory_temperature, values.memory_activity) == (64, 71, 37.5)
    assert (values.sm_clock, values.memory_clock, values.throttle_reasons) == (1980, 2619, 4)
    assert (values.ecc_corrected, values.remapped_rows, values.pcie_replays, values.xid) == (0, 3, 0, None)
    assert values.nvlink_tx == 100 * 1024**2  # MiB/s


def test_used_memory_leaves_out_what_the_driver_reserves(probe):
    """Trap: the old call counts the reserved part as used; it serves only where the new one is missing."""
    probe.set(**{"1.fail.nvmlDeviceGetMemoryInfo_v2": 13})
    cards = by_index(probe.read())
    assert cards[0].values.memory_used == 1073741824
    assert cards[1].values.memory_used == 1073741824 + 500000000


def test_mig_instances_are_measured_against_their_own_grant(start_probe):
    """I4: sparse places, instance memory and activity; the parent keeps power and loses utilization."""
    probe = start_probe(**MIG)
    card = by_index(settled(probe))[4]
    assert card.mig_enabled is True
    assert card.values.utilization is None
    assert card.values.power == 612.345
    small, large = card.slices
    assert (small.uuid, small.profile) == ("MIG-aaaaaaaa-0000-4000-8000-000000000009", "1g.10gb")
    assert (small.instance_id, small.memory_total, small.kind) == ("9", 9856 * 1024**2, "mig")
    assert (small.values.memory_used, small.values.sm_activity, small.values.power) == (1048576, 42.5, None)
    assert (large.profile, large.values.sm_activity) == ("3g.40gb", 7.25)
    assert probe.calls("nvmlDeviceGetUtilizationRates") == 2 * 7


def test_compute_instances_that_share_a_gpu_instance_are_told_apart(start_probe):
    lines = {
        "0.mig": 1,
        "0.mig.0": "1:0:1c.3g.40gb:40192:MIG-a:0:1",
        "0.mig.1": "1:1:1c.3g.40gb:40192:MIG-b:0:1",
    }
    card = by_index(start_probe(**lines).read())[0]
    assert [one.instance_id for one in card.slices] == ["1/0", "1/1"]


def test_what_mig_takes_away_comes_back_when_it_is_turned_off(start_probe):
    """Trap: remapped rows and link counters are NotSupported on a card that is cut up."""
    gone = {"0.fail.nvmlDeviceGetRemappedRows": 3, "0.field.161": 3, "0.field.162": 3, "0.field.163": 3}
    probe = start_probe(count=1, **{"0.mig": 1}, **gone)
    probe.read()
    probe.set(**{"0.mig": 0}, **dict.fromkeys(gone))
    values = probe.read().cards[0].values
    assert (values.remapped_rows, values.nvlink_errors, values.utilization) == (3, 0, 97)


def test_sample_buffers_of_vanished_instances_are_freed(start_probe):
    probe = start_probe(**MIG)
    probe.read()
    with_two = probe.do(do="samples")
    probe.set(**{"4.mig.3": None})
    assert len(by_index(probe.read())[4].slices) == 1
    assert probe.do(do="samples") == with_two - 2


def test_a_lost_card_keeps_its_identity_and_the_others_their_values(probe):
    """I4, trap: GPU_IS_LOST at one card loses only that one, and it is not taken for gone."""
    probe.read()
    probe.set(**{"5.lost": 15})
    reading = probe.read()
    assert reading.complete is False
    assert [(f.what, f.kind) for f in reading.failures] == [("NVML index 5", FailureKind.LOST)]
    assert UUID.format(5) in reading.failures[0].detail
    cards = by_index(reading)
    assert len(cards) == 8
    assert all(cards[i].values.power == 612.345 for i in range(8) if i != 5)
    lost = cards[5]
    assert (lost.uuid, lost.serial, lost.present, lost.values) == (UUID.format(5), "1651223000005", True, None)
    assert lost.failures[0].kind is FailureKind.LOST
    assert UUID.format(5) in lost.failures[0].what


def test_a_lost_card_keeps_its_slices(start_probe):
    probe = start_probe(**MIG)
    probe.read()
    probe.set(**{"4.lost": 16})
    card = by_index(probe.read())[4]
    assert [one.profile for one in card.slices] == ["1g.10gb", "3g.40gb"]
    assert [one.values for one in card.slices] == [None, None]


def test_a_card_lost_before_it_was_ever_known_makes_the_reading_incomplete(start_probe):
    reading = start_probe(**{"5.lost": 15}).read()
    assert (len(reading.cards), reading.complete) == (7, False)
    assert reading.failures[0].what == "NVML index 5"


def test_a_handle_refused_by_a_device_filter_is_a_permission_failure(start_probe):
    """Trap: the count includes cards that a cgroup hides."""
    reading = start_probe(**{"0.fail.nvmlDeviceGetHandleByIndex_v2": 4}).read()
    assert (len(reading.cards), reading.complete) == (7, False)
    assert reading.failures[0].kind is FailureKind.PERMISSION


def test_a_lost_card_that_was_reset_comes_back(start_probe):
    """The library is opened again for it after a while, because before that the card stays lost."""
    probe = start_probe(retry_lost=0, **{"5.lost": 15})
    probe.read()
    opened = probe.calls("nvmlInitWithFlags")
    probe.set(**{"5.lost": None})
    reading = probe.read()
    assert (len(reading.cards), reading.complete) == (8, True)
    assert probe.calls("nvmlInitWithFlags") == opened + 1
    probe.read()
    assert probe.calls("nvmlInitWithFlags") == opened + 1


@pytest.mark.parametrize(
    ("call", "field"),
    [
        ("nvmlDeviceGetPowerUsage", "power"),
        ("nvmlDeviceGetTotalEnergyConsumption", "energy"),
        ("nvmlDeviceGetTotalEccErrors", "ecc_corrected"),
        ("nvmlDeviceGetRemappedRows", "remapped_rows"),
        ("nvmlDeviceGetEnforcedPowerLimit", "power_limit"),
        ("nvmlDeviceGetPcieReplayCounter", "pcie_replays"),
    ],
)
def test_what_a_board_does_not_support_is_told_once_and_not_asked_again(start_probe, call, field):
    """Trap: NotSupported is per call, never per card; and null, not zero."""
    probe = start_probe(count=1, **{f"0.fail.{call}": 3})
    card = probe.read().cards[0]
    assert getattr(card.values, field) is None
    assert card.values.temperature == 64
    assert {failure.kind for failure in card.failures} == {FailureKind.NOT_SUPPORTED}
    asked = probe.calls(call)
    again = probe.read().cards[0]
    assert (again.failures, probe.calls(call)) == ((), asked)


@pytest.mark.parametrize(
    ("code", "kind"), [(4, FailureKind.PERMISSION), (10, FailureKind.TIMEOUT), (999, FailureKind.UNKNOWN)]
)
def test_a_call_that_fails_for_another_reason_is_asked_again(start_probe, code, kind):
    probe = start_probe(count=1, **{"0.fail.nvmlDeviceGetPowerUsage": code})
    for _ in range(2):
        card = probe.read().cards[0]
        assert [(failure.what, failure.kind) for failure in card.failures] == [("power", kind)]
    probe.set(**{"0.fail.nvmlDeviceGetPowerUsage": None})
    assert probe.read().cards[0].values.power == 612.345


def test_a_consumer_board_without_most_calls_is_still_a_card(start_probe):
    """Trap: no serial, no part number, no ECC, no remapping, no links, no MIG."""
    refused = (
        "Serial",
        "BoardPartNumber",
        "TotalEccErrors",
        "RemappedRows",
        "MigMode",
        "ModuleId",
        "InforomImageVersion",
    )
    probe = start_probe(count=1, **{f"0.fail.nvmlDeviceGet{name}": 3 for name in refused}, **{"0.links": 0, "0.gpm": 0})
    card = settled(probe).cards[0]
    assert (card.uuid, card.serial, card.slot, card.mig_enabled) == (UUID.format(0), "", "", None)
    assert (card.nvlink_active, card.values.nvlink_errors, card.values.sm_activity) == (None, None, None)
    assert (card.values.utilization, card.values.memory_activity) == (97, 31)


def test_an_old_driver_is_asked_by_the_old_names(start_probe):
    """Trap: TemperatureV and the event reasons are missing before their driver."""
    probe = start_probe(
        count=1,
        **{"0.fail.nvmlDeviceGetTemperatureV": 13, "0.fail.nvmlDeviceGetCurrentClocksEventReasons": 13},
        **{"0.field.165": 2},
    )
    card = probe.read().cards[0]
    assert (card.values.temperature, card.values.throttle_reasons, card.nvlink_active) == (64, 4, 18)


def test_memory_temperature_zero_on_gddr_is_none(start_probe):
    probe = start_probe(count=2, **{"0.memory_temperature": 0, "1.field.82": 3})
    assert [card.values.memory_temperature for card in probe.read().cards] == [None, None]


def test_a_field_that_failed_has_no_value(start_probe):
    """Trap: after a failure the union of a field value holds anything."""
    probe = start_probe(count=1, **{"0.field.161": 999, "0.field.162": 999, "0.field.163": 999})
    assert probe.read().cards[0].values.nvlink_errors is None


def test_absurd_numbers_are_refused_by_name(start_probe):
    probe = start_probe(count=1, **{"0.temperature": 345, "0.power": 4294967295})
    card = probe.read().cards[0]
    assert (card.values.temperature, card.values.power, card.values.sm_clock) == (None, None, 1980)
    assert [failure.kind for failure in card.failures] == [FailureKind.IMPLAUSIBLE] * 2
    assert "345" in card.failures[0].detail


def test_down_links_and_link_errors_are_counted(start_probe):
    probe = start_probe(count=1, **{"0.links_up": 17, "0.link_errors": 3})
    card = probe.read().cards[0]
    assert (card.nvlink_active, card.values.nvlink_errors) == (17, 3 * 18)


def test_rates_come_of_byte_counters_where_there_is_no_performance_monitoring(start_probe):
    """A fall is a reset and gives no rate; a 32-bit counter wraps too fast to mean anything."""
    lines = {"*.gpm": 0, "*.pcie_tx": 10**9, "*.nvlink_tx": 10**6, "1.pcie_counter_type": 1}
    probe = start_probe(count=2, **lines)
    first = by_index(probe.read())[0].values
    assert (first.pcie_tx, first.nvlink_tx) == (None, None)
    started = time.monotonic()
    probe.set(**{"*.pcie_tx": 3 * 10**9, "*.nvlink_tx": 2 * 10**6})
    both = by_index(probe.read())
    longest = time.monotonic() - started
    assert both[0].values.pcie_tx >= 2e9 / (longest + 1)
    assert both[0].values.nvlink_tx == pytest.approx(both[0].values.pcie_tx / 2e9 * 1e6 * 1024, rel=0.01)
    assert both[1].values.pcie_tx is None
    probe.set(**{"*.pcie_tx": 0})
    assert by_index(probe.read())[0].values.pcie_tx is None
    assert probe.calls("nvmlDeviceGetPcieThroughput") == 0


def test_performance_samples_too_close_together_give_nothing(probe):
    probe.read()
    assert probe.read().cards[0].values.sm_activity in (None, 83.5)
    assert not [failure for card in probe.read().cards for failure in card.failures]


def test_an_xid_is_told_until_another_one_comes(probe):
    probe.read()
    probe.set(**{"3.xid": 79, "3.xid.serial": 1})
    cards = by_index(probe.read())
    assert [cards[i].values.xid for i in range(8)] == [None, None, None, 79, None, None, None, None]
    assert by_index(probe.read())[3].values.xid == 79
    probe.set(**{"3.xid": 31, "3.xid.serial": 2})
    assert by_index(probe.read())[3].values.xid == 31


def test_event_types_a_board_lacks_are_not_registered(start_probe):
    """Trap: one unsupported bit refuses the whole registration."""
    probe = start_probe(count=1, **{"0.event_types": 0x3})
    assert probe.read().cards[0].failures == ()
    assert probe.calls("nvmlDeviceRegisterEvents") == 0
