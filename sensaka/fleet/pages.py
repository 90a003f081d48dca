"""Exporter pages of simulated nodes, in the form of dcgm-exporter and of AMD's device-metrics-exporter."""

from collections.abc import Iterable

from inventory.observations import CardValues
from sensaka.fleet.hardware import MEBIBYTE
from sensaka.fleet.physics import XID_FALLEN_OFF_THE_BUS
from sensaka.fleet.plan import SLOTS, CardPlan, NodePlan
from sensaka.fleet.readings import DRIVER, card_values
from sensaka.fleet.slices import SliceState
from sensaka.fleet.workload import Holder
from sensaka.fleet.world import World

# name, type, field of the sample, what the sample is multiplied with, whether the number is a double
_DCGM: tuple[tuple[str, str, str, float, bool], ...] = (
    ("DCGM_FI_DEV_SM_CLOCK", "gauge", "sm_clock", 1, False),
    ("DCGM_FI_DEV_MEM_CLOCK", "gauge", "memory_clock", 1, False),
    ("DCGM_FI_DEV_GPU_TEMP", "gauge", "temperature", 1, False),
    ("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "memory_temperature", 1, False),
    ("DCGM_FI_DEV_POWER_USAGE", "gauge", "power", 1, True),
    ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "gauge", "power_limit", 1, True),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "energy", 1e3, False),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "pcie_replays", 1, False),
    ("DCGM_FI_DEV_GPU_UTIL", "gauge", "utilization", 1, False),
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "gauge", "throttle_reasons", 1, False),
    ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", "ecc_corrected", 1, False),
    ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "ecc_uncorrected", 1, False),
    ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", "remapped_rows", 1, False),
    ("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "counter", "nvlink_errors", 1, False),
    ("DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", "pcie_tx", 1, False),
    ("DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", "pcie_rx", 1, False),
    ("DCGM_FI_PROF_NVLINK_TX_BYTES", "gauge", "nvlink_tx", 1, False),
    ("DCGM_FI_PROF_NVLINK_RX_BYTES", "gauge", "nvlink_rx", 1, False),
)
# What an instance has of its own.
_DCGM_INSTANCE: tuple[tuple[str, str, str, float, bool], ...] = (
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "sm_activity", 0.01, True),
    ("DCGM_FI_PROF_SM_ACTIVE", "gauge", "sm_activity", 0.01, True),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "tensor_activity", 0.01, True),
    ("DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "memory_activity", 0.01, True),
    ("DCGM_FI_DEV_FB_USED", "gauge", "memory_used", 1 / MEBIBYTE, False),
)

_AMD: tuple[tuple[str, str, str, float, str], ...] = (
    ("gpu_package_power", "gauge", "power", 1, ""),
    ("gpu_junction_temperature", "gauge", "temperature", 1, ""),
    ("gpu_memory_temperature", "gauge", "memory_temperature", 1, ""),
    ("gpu_gfx_activity", "gauge", "utilization", 1, ""),
    ("gpu_umc_activity", "gauge", "memory_activity", 1, ""),
    ("gpu_used_vram", "gauge", "memory_used", 1 / MEBIBYTE, ""),
    ("gpu_energy_consumed", "counter", "energy", 1e6, ""),
    ("gpu_clock", "gauge", "sm_clock", 1, 'clock_index="0",clock_type="system",'),
    ("gpu_clock", "gauge", "memory_clock", 1, 'clock_index="8",clock_type="memory",'),
    ("gpu_ecc_correct_total", "counter", "ecc_corrected", 1, ""),
    ("gpu_ecc_uncorrect_total", "counter", "ecc_uncorrected", 1, ""),
    ("pcie_replay_count", "counter", "pcie_replays", 1, ""),
)

Rows = dict[tuple[str, str], list[str]]
_SIMULATED = (
    "# HELP sensaka_simulated This page comes from a simulated node.\n"
    "# TYPE sensaka_simulated gauge\n"
    "sensaka_simulated 1\n"
)


def page(world: World, node: NodePlan) -> str:
    """The metrics page of a node as its exporter would print it now."""
    rows: Rows = {}
    for slot in range(SLOTS):
        card = world.card_at(node, slot)
        if card is None:
            continue
        if node.kind.vendor == "amd":
            _amd_card(world, node, slot, card, rows)
        else:
            _dcgm_card(world, node, slot, card, rows)
    return _SIMULATED + "".join(_family(name, kind, lines) for (name, kind), lines in rows.items())


def _family(name: str, kind: str, lines: Iterable[str]) -> str:
    return f"# TYPE {name} {kind}\n" + "".join(lines)


def _workload(job: Holder | None) -> str:
    if job is None:
        return ""
    if job.slurm_job_id:
        return f',hpc_job="{job.slurm_job_id}"'
    return f',container="{job.name}",namespace="{job.namespace}",pod="{job.pod}",pod_uid="{job.pod_uid}"'


def _dcgm_card(world: World, node: NodePlan, slot: int, card: CardPlan, rows: Rows) -> None:
    labels = (
        f'gpu="{slot}",UUID="{card.uuid}",pci_bus_id="{node.pci_addresses[slot]}",device="nvidia{slot}",'
        f'modelName="{card.kind.name}"'
    )
    tail = f',Hostname="{node.name}",DCGM_FI_DRIVER_VERSION="{DRIVER["nvidia"]}"'
    if card.number in world.lost:  # nothing can be read of it any more, only the last error is known
        error = f',err_code="{XID_FALLEN_OFF_THE_BUS}",err_msg="GPU has fallen off the bus"'
        _add(rows, "DCGM_FI_DEV_XID_ERRORS", "gauge", labels + tail + error, str(XID_FALLEN_OFF_THE_BUS))
        return
    values = card_values(world, card)
    states = world.slices_of(card.number)
    if not states:
        every = labels + tail + _workload(world.demand_of(card.number).job)
        _dcgm_rows(rows, every, values, (*_DCGM, *_DCGM_INSTANCE))
        _free(rows, every, values.memory_used or 0, card.kind.memory)
        _add(rows, "DCGM_FI_DEV_XID_ERRORS", "gauge", every, "0")
    for state in states:
        every = f'{labels},GPU_I_PROFILE="{state.profile}",GPU_I_ID="{state.instance_id}"{tail}'
        every += _workload(state.demand.job)
        _dcgm_rows(rows, every, values, _DCGM)  # figures of the whole card stand on every instance
        _dcgm_rows(rows, every, _instance_values(state), _DCGM_INSTANCE)
        _free(rows, every, state.memory_used, state.memory_total)


def _instance_values(state: SliceState) -> CardValues:
    return CardValues(
        sm_activity=state.activity,
        tensor_activity=state.activity * 0.3,
        memory_activity=state.activity * 0.5,
        memory_used=state.memory_used,
    )


def _dcgm_rows(
    rows: Rows, labels: str, values: CardValues, metrics: Iterable[tuple[str, str, str, float, bool]]
) -> None:
    for name, kind, field, scale, double in metrics:
        value = getattr(values, field)
        if value is not None:
            _add(rows, name, kind, labels, f"{value * scale:.6f}" if double else str(int(value * scale)))


def _free(rows: Rows, labels: str, used: int, total: int) -> None:
    _add(rows, "DCGM_FI_DEV_FB_FREE", "gauge", labels, str(max(0, (total - used) // MEBIBYTE)))


def _amd_card(world: World, node: NodePlan, slot: int, card: CardPlan, rows: Rows) -> None:
    if card.number in world.lost:
        return
    values = card_values(world, card)
    job = world.demand_of(card.number).job
    work = f',job_id="{job.slurm_job_id}",job_user="{job.user}"' if job is not None and job.slurm_job_id else ""
    labels = (
        f'gpu_id="{slot}",gpu_uuid="{card.uuid}",gpu_partition_id="0",gpu_compute_partition_type="spx",'
        f'gpu_memory_partition_type="nps1",serial_number="{card.serial}",card_model="{card.part_number}",'
        f'card_series="{card.kind.name}",card_vendor="Advanced Micro Devices Inc.",'
        f'driver_version="{DRIVER["amd"]}",vbios_version="{card.kind.vbios}",hostname="{node.name}"{work}'
    )
    for name, kind, field, scale, extra in _AMD:
        value = getattr(values, field)
        if value is not None:
            _add(rows, name, kind, extra + labels, f"{value * scale:.6g}" if scale < 1 else repr(float(value * scale)))
    _add(rows, "gpu_total_vram", "gauge", labels, str(card.kind.memory // MEBIBYTE))
    _add(rows, "gpu_health", "gauge", labels, "1")


def _add(rows: Rows, name: str, kind: str, labels: str, value: str) -> None:
    rows.setdefault((name, kind), []).append(f"{name}{{{labels}}} {value}\n")
