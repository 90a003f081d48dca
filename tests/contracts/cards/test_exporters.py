"""Pages of dcgm-exporter and AMD's device-metrics-exporter, of several ages (I4). Pages are self-made."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.drivers.cards.exporters import read_page
from inventory.observations import FailureKind, NodeReading

DATA = Path(__file__).parents[2] / "data" / "exporters"
NOW = datetime(2026, 11, 1, tzinfo=UTC)
FIRST, SECOND = "GPU-0a1b2c3d-1111-2222-3333-444455556666", "GPU-77777777-8888-9999-aaaa-bbbbbbbbbbbb"


def read(name: str) -> tuple[NodeReading, str]:
    reading, flavour = read_page((DATA / name).read_text(), what=name, observed_at=NOW)
    # What a page gives must pass every bound of the wire format.
    return msgspec.json.decode(msgspec.json.encode(reading), type=NodeReading), flavour


def test_a_page_with_the_long_lived_names():
    """I4: MiB to bytes, mJ to J, 0-1 to percent; the enforced name of each field."""
    reading, flavour = read("dcgm-3.3.prom")
    assert (flavour, reading.hostname, reading.driver_version, reading.complete) == ("dcgm", "n01", "535.129.03", True)
    card = reading.cards[0]
    assert (card.uuid, card.model_name, card.vendor, card.index) == (FIRST, "NVIDIA H100 80GB HBM3", "NVIDIA", 0)
    assert card.memory_total == (80000 + 1024 + 535) * 1024**2
    values = card.values
    assert (values.utilization, values.temperature, values.memory_temperature, values.power) == (97, 64, 71, 612.345)
    assert (values.energy, values.sm_clock, values.memory_clock, values.throttle_reasons) == (5e9, 1980, 2619, 4)
    assert (values.tensor_activity, values.memory_activity) == (pytest.approx(41.2345), 25)
    assert (values.memory_used, values.pcie_replays, values.pcie_tx, values.nvlink_rx) == (1024**3, 3, 2**20, 2**21)


def test_sm_activity_goes_before_graphics_engine_activity():
    assert read("dcgm-3.3.prom")[0].cards[0].values.sm_activity == 80


def test_counters_that_come_in_parts_are_added():
    values = read("dcgm-3.3.prom")[0].cards[0].values
    assert (values.remapped_rows, values.nvlink_errors) == (3, 5)


def test_blank_sentinels_are_no_values():
    """Trap: 9223372036854775794 of int64, 2147483632 of int32, 140737488355328 of double."""
    values = read("dcgm-3.3.prom")[0].cards[1].values
    assert (values.memory_temperature, values.memory_activity, values.sm_activity) == (None, None, None)
    assert (values.remapped_rows, values.nvlink_errors) == (None, None)


def test_a_counter_may_pass_the_int32_sentinel():
    """Trap: 2147483632 mJ is 2147 kJ, not "no value"."""
    assert read("dcgm-3.3.prom")[0].cards[1].values.energy == pytest.approx(2147483.632)


def test_a_temperature_spike_is_refused_by_name():
    """Trap: exporters printed 4278190080 degrees."""
    card = read("dcgm-3.3.prom")[0].cards[1]
    assert card.values.temperature is None
    assert [(failure.kind, failure.what) for failure in card.failures] == [(FailureKind.IMPLAUSIBLE, SECOND)]


def test_the_last_xid_is_kept_and_zero_is_none():
    first, second = read("dcgm-3.3.prom")[0].cards
    assert (first.values.xid, second.values.xid) == (79, None)


@pytest.mark.parametrize("page", ["dcgm-3.3.prom", "dcgm-4.6.prom"])
def test_nvlink_bandwidth_total_is_neither_a_counter_nor_one_direction(page):
    """Trap: declared a counter, behaves as a rate of both directions together: no column holds it."""
    values = read(page)[0].cards[0].values
    assert (values.nvlink_tx, values.nvlink_errors) != (431.25, 431.25)
    assert values.nvlink_tx is None


def test_a_page_with_the_names_of_the_second_rename():
    """I4: canonical names of DCGM 4.6, `hostname` in lower case, PCI address in sysfs spelling."""
    reading, flavour = read("dcgm-4.6.prom")
    assert (flavour, reading.hostname, reading.driver_version) == ("dcgm", "n02", "580.95.05")
    card = reading.cards[1]
    assert (card.pci_address, card.model_name) == ("0000:2a:00.0", "NVIDIA B200")
    values = reading.cards[0].values
    assert (values.temperature, values.memory_temperature, values.power) == (55, 60, 812.5)
    assert (values.power_limit, values.pcie_replays, values.remapped_rows, values.xid) == (900, 7, 3, None)
    assert (values.sm_activity, values.tensor_activity, values.memory_activity) == (75, 40, 30)


@pytest.mark.parametrize("page", ["dcgm-4.6.prom", "dcgm-4.7.prom"])
def test_gpu_util_ratio_is_a_percentage_or_a_ratio_by_its_spelling(page):
    """Trap: 0-100 in spite of its name up to 4.6, a true ratio from 4.7 (printed with decimals)."""
    first, second = read(page)[0].cards
    assert (first.values.utilization, second.values.utilization) == (97, 0)


def test_base_units_of_dcgm_4_7():
    values = read("dcgm-4.7.prom")[0].cards[0].values
    assert (values.energy, values.sm_clock, values.memory_used) == (5e6, 1965, 91000 * 1024**2)


def test_mig_rows_give_one_card_and_its_slices():
    """Trap: the parent's power is repeated on every instance row and must not be added up."""
    reading, _ = read("dcgm-mig.prom")
    (card,) = reading.cards
    assert (card.mig_enabled, card.values.power, card.values.temperature, card.values.energy) == (True, 310, 58, 7)
    assert (card.values.utilization, card.values.memory_used) == (None, None)
    large, small = card.slices
    assert (large.uuid, large.profile, large.instance_id) == (f"MIG-{FIRST}/1", "3g.40gb", "1")
    assert (small.memory_total, small.values.memory_used) == (9856 * 1024**2, 512 * 1024**2)
    assert (small.values.sm_activity, small.values.power) == (10, None)


def test_sm_activity_above_one_on_a_slice_is_a_full_slice():
    """Trap: DCGM reports SM activity above 1 on MIG."""
    assert read("dcgm-mig.prom")[0].cards[0].slices[0].values.sm_activity == 100


def test_pods_are_bound_without_a_process():
    """I7: a page knows pods and jobs but no pid; 0 stands for that."""
    reading, _ = read("dcgm-3.3.prom")
    assert [(p.pid, p.card_uuid, p.namespace, p.pod, p.name) for p in reading.processes] == [
        (0, FIRST, "ml", "job-a-0", "train")
    ]
    (bound,) = read("dcgm-mig.prom")[0].processes
    assert (bound.slice_uuid, bound.pod) == (f"MIG-{FIRST}/9", "notebook-1")


def test_labels_that_prometheus_renamed_are_the_true_ones():
    """Trap: without honor_labels the plain pod label is the exporter's own pod, on idle cards too."""
    reading, _ = read("dcgm-federated.prom")
    assert [(p.card_uuid, p.namespace, p.pod, p.name) for p in reading.processes] == [(FIRST, "ml", "job-b-1", "train")]


def test_several_jobs_on_a_card_are_bindings_and_not_more_values():
    """Trap: a series is printed once for each hpc_job."""
    reading, _ = read("dcgm-hpc.prom")
    assert {p.slurm_job_id for p in reading.processes} == {"48211", "48212"}
    assert (reading.cards[0].values.utilization, reading.cards[0].values.nvlink_errors) == (88, 5)


def test_a_page_from_before_exporter_2_0():
    reading, flavour = read("dcgm-1.7.prom")
    (card,) = reading.cards
    assert (flavour, card.uuid, card.values.utilization, card.values.power) == ("dcgm", FIRST, 42, 123.4)
    assert card.memory_total == 1000 * 1024**2
    assert [(p.namespace, p.pod, p.name) for p in reading.processes] == [("team", "p-1", "c")]


def test_an_amd_page_of_whole_cards():
    reading, flavour = read("amd-spx.prom")
    assert (flavour, reading.hostname, reading.driver_version, len(reading.cards)) == ("amd", "n06", "6.12.12", 2)
    card = reading.cards[0]
    assert (card.serial, card.vendor, card.model_name) == ("692409005400", "AMD", "AMD Instinct MI300X OAM")
    assert (card.uuid, card.partition_mode, card.slices) == ("00ff74a1-0000-1000-80e0-c6d49f5b0d86", "spx", ())
    assert card.memory_total == 196592 * 1024**2
    values = card.values
    assert (values.utilization, values.power, values.temperature, values.energy) == (10, 750, 61, 5e6)
    assert (values.sm_clock, values.memory_clock, values.ecc_corrected) == (2100, 900, 1)


def test_an_amd_page_of_partitions_is_cards_with_slices():
    """Trap: partitions share a serial number, and only the first has power and temperature."""
    reading, _ = read("amd-cpx.prom")
    assert [(card.serial, len(card.slices)) for card in reading.cards] == [("692409005400", 8), ("692409005401", 8)]
    card = reading.cards[0]
    assert (card.values.power, card.values.temperature, card.values.utilization) == (750, 61, None)
    assert (card.memory_total, card.partition_mode) == (None, "cpx")
    assert {one.profile for one in card.slices} == {"cpx_nps4"}
    uuids = [one.uuid for each in reading.cards for one in each.slices] + [each.uuid for each in reading.cards]
    assert len(set(uuids)) == 18
    assert (card.slices[3].values.utilization, card.slices[3].values.power) == (13, None)
    (bound,) = reading.processes
    assert (bound.card_uuid, bound.slice_uuid, bound.pod) == (card.uuid, card.slices[1].uuid, "infer-1")


def test_an_amd_page_with_a_prefix_and_capitals_is_the_same():
    """Sites add a prefix; old releases print names and labels in capitals."""
    text = (DATA / "amd-spx.prom").read_text()
    plain, _ = read_page(text, what="x", observed_at=NOW)
    prefixed = "".join(f"amd_{line}\n" for line in text.splitlines())
    assert read_page(prefixed, what="x", observed_at=NOW)[0] == plain


def test_an_amd_zero_is_no_power_and_no_temperature():
    """Trap: the exporter turns "no value" into 0."""
    text = 'gpu_package_power{gpu_id="0",gpu_uuid="u"} 0\ngpu_gfx_activity{gpu_id="0",gpu_uuid="u"} 0\n'
    (card,) = read_page(text, what="x", observed_at=NOW)[0].cards
    assert (card.values.power, card.values.utilization) == (None, 0)


def test_an_amd_card_without_any_identity_is_a_failure():
    reading, _ = read_page('gpu_gfx_activity{gpu_id="3"} 5\n', what="x", observed_at=NOW)
    assert (reading.cards, reading.complete) == ((), False)
    assert "gpu_id 3" in reading.failures[0].what


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("<html><body>Not found</body></html>\n", "no series of a known exporter"),
        ("", "no series of a known exporter"),
        ("node_load1 0.5\n", "no series of a known exporter"),
        (f'DCGM_FI_DEV_GPU_UTIL{{UUID="{FIRST}"}} 9', "cut off"),
    ],
    ids=["a web page", "nothing", "another exporter", "half a page"],
)
def test_a_page_that_can_not_be_used_is_a_failure(text, detail):
    reading, flavour = read_page(text, what="http://x/metrics", observed_at=NOW)
    assert (reading.cards, reading.complete, flavour) == ((), False, "")
    assert reading.failures[0].kind is FailureKind.PROTOCOL
    assert detail in reading.failures[0].detail


def test_lines_that_can_not_be_read_are_told_and_make_the_reading_incomplete():
    reading, _ = read_page((DATA / "dcgm-3.3.prom").read_text() + "what is this\n", what="x", observed_at=NOW)
    assert (len(reading.cards), reading.complete) == (2, False)
    assert "1 lines not understood" in reading.failures[0].detail


def test_a_card_of_which_only_xid_79_is_left_is_lost():
    """The number is sticky: beside other values it is history."""
    row = f'DCGM_FI_DEV_XID_ERRORS{{UUID="{FIRST}",Hostname="n",err_code="79",err_msg="fallen off"}} 79\n'
    (card,) = read_page(row, what="x", observed_at=NOW)[0].cards
    assert (card.present, [failure.kind for failure in card.failures]) == (True, [FailureKind.LOST])
    assert read("dcgm-3.3.prom")[0].cards[0].failures == ()


def test_a_page_that_says_it_is_simulated_gives_a_simulated_reading():
    page = (DATA / "dcgm-3.3.prom").read_text()
    assert read_page(page, what="x", observed_at=NOW)[0].simulated is False
    assert read_page(page + "sensaka_simulated 1\n", what="x", observed_at=NOW)[0].simulated is True


def test_a_page_of_several_hosts_is_refused():
    """A federated page would move the cards of many nodes into one."""
    page = (DATA / "dcgm-3.3.prom").read_text()
    other = page.replace("n01", "n07").replace(FIRST, "GPU-3").replace(SECOND, "GPU-4")
    reading, _ = read_page(page + other, what="x", observed_at=NOW)
    assert (reading.cards, reading.complete) == ((), False)
    assert "n01, n07" in reading.failures[0].detail


def test_a_page_whose_rows_name_no_card_is_not_an_empty_node():
    reading, flavour = read_page('DCGM_FI_DEV_GPU_UTIL{gpu="0"} 5\n', what="x", observed_at=NOW)
    assert (flavour, reading.cards, reading.complete) == ("dcgm", (), False)
    assert "UUID" in reading.failures[0].detail


NAMES = st.sampled_from(
    ["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_TOTAL",
     "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_MIG_MODE", "gpu_gfx_activity",
     "gpu_total_vram", "gpu_clock", "DCGM_FI_DEV_PCIE_LINK_GEN"]
)  # fmt: skip
LABELS = st.dictionaries(
    st.sampled_from(["UUID", "gpu", "GPU_I_ID", "gpu_id", "gpu_uuid", "serial_number", "gpu_partition_id", "pod",
                     "gpu_compute_partition_type", "Hostname", "pci_bus_id", "exported_pod"]),
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters='"\\\n'), max_size=300)
    | st.sampled_from([FIRST, "cpx"]),
)  # fmt: skip


@given(st.lists(st.tuples(NAMES, LABELS, st.floats() | st.integers(-(2**70), 2**70)), max_size=8))
def test_whatever_numbers_and_labels_a_page_has_the_reading_fits_the_wire(rows):
    text = "".join(
        f"{name}{{{','.join(f'{key}={chr(34)}{value}{chr(34)}' for key, value in labels.items())}}} {number}\n"
        for name, labels, number in rows
    )
    reading, _ = read_page(text, what="x", observed_at=NOW)
    assert msgspec.json.decode(msgspec.json.encode(reading), type=NodeReading) == reading
