"""Names, units and blank values of DCGM fields as dcgm-exporter prints them.

Three vocabularies feed one table: the lower-case names before exporter 2.0, the long-lived
`DCGM_FI_DEV_*` / `DCGM_FI_PROF_*` names, and the canonical names of DCGM 4.6 and later (…_CELSIUS,
…_WATTS, …_RATIO, …_TOTAL, then …_BYTES, …_HERTZ, …_JOULES_TOTAL in 4.7). The prefixes are dropped here.
"""

from inventory.drivers.cards.exporters.assembly import Metric
from sensaka.kernel.units import MIB

# Blank, not found, not supported, not permitted: DcgmValues of each width. float64 can't tell the
# four int64 ones apart, so everything from 9.2e18 up is one of them.
INT32_BLANKS = frozenset(range(2147483632, 2147483636))
INT64_BLANK = 9.2e18
FP64_BLANK = 140737488355328.0

_DEVICE = {
    "GPU_UTIL": Metric("utilization"),
    "GPU_UTIL_RATIO": Metric("utilization"),
    "MEM_COPY_UTIL": Metric("memory_activity", rank=1),
    "MEMORY_UTIL_RATIO": Metric("memory_activity", rank=1),
    "GPU_TEMP": Metric("temperature"),
    "GPU_TEMP_CELSIUS": Metric("temperature"),
    "MEMORY_TEMP": Metric("memory_temperature"),
    "MEMORY_TEMP_CELSIUS": Metric("memory_temperature"),
    "POWER_USAGE": Metric("power"),
    "BOARD_POWER_WATTS": Metric("power"),
    "POWER_USAGE_INSTANT": Metric("power", rank=1),
    "BOARD_POWER_RAW_WATTS": Metric("power", rank=1),
    # The enforced limit is the lowest of all limiters, also those set out of band.
    "ENFORCED_POWER_LIMIT": Metric("power_limit"),
    "BOARD_POWER_LIMIT_ENFORCED_WATTS": Metric("power_limit"),
    "POWER_MGMT_LIMIT": Metric("power_limit", rank=1),
    "BOARD_POWER_LIMIT_REQUESTED_WATTS": Metric("power_limit", rank=1),
    "TOTAL_ENERGY_CONSUMPTION": Metric("energy", scale=1e-3),
    "GPU_ENERGY_JOULES_TOTAL": Metric("energy", rank=1),
    "SM_CLOCK": Metric("sm_clock"),
    "SM_CLOCK_HERTZ": Metric("sm_clock", scale=1e-6, rank=1),
    "MEM_CLOCK": Metric("memory_clock"),
    "MEMORY_CLOCK_HERTZ": Metric("memory_clock", scale=1e-6, rank=1),
    "CLOCKS_EVENT_REASONS": Metric("throttle_reasons"),
    "CLOCK_THROTTLE_REASONS": Metric("throttle_reasons"),
    "CLOCKS_THROTTLE_REASONS": Metric("throttle_reasons"),
    "XID_ERRORS": Metric("xid"),
    "XID_ERROR": Metric("xid"),
    "PCIE_REPLAY_COUNTER": Metric("pcie_replays"),
    "PCIE_REPLAY_TOTAL": Metric("pcie_replays"),
    # Volatile counters are what NVML gives as well; lifetime ones serve where only they are exported.
    "ECC_SBE_VOL_TOTAL": Metric("ecc_corrected"),
    "ECC_SBE_AGG_TOTAL": Metric("ecc_corrected", rank=1),
    "ECC_DBE_VOL_TOTAL": Metric("ecc_uncorrected"),
    "ECC_DBE_AGG_TOTAL": Metric("ecc_uncorrected", rank=1),
    "UNCORRECTABLE_REMAPPED_ROWS": Metric("remapped_rows", part="uncorrectable"),
    "ROW_REMAP_UNCORRECTABLE_TOTAL": Metric("remapped_rows", part="uncorrectable"),
    "CORRECTABLE_REMAPPED_ROWS": Metric("remapped_rows", part="correctable"),
    "ROW_REMAP_CORRECTABLE_TOTAL": Metric("remapped_rows", part="correctable"),
    "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": Metric("nvlink_errors", part="flit"),
    "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": Metric("nvlink_errors", part="data"),
    "NVLINK_REPLAY_ERROR_COUNT_TOTAL": Metric("nvlink_errors", part="replay"),
    "NVLINK_RECOVERY_ERROR_COUNT_TOTAL": Metric("nvlink_errors", part="recovery"),
    "NVLINK_CRC_ERROR_TOTAL": Metric("nvlink_errors", part="data"),
    "NVLINK_REPLAY_TOTAL": Metric("nvlink_errors", part="replay"),
    "NVLINK_RECOVERY_TOTAL": Metric("nvlink_errors", part="recovery"),
    # Identity-like figures, kept apart from the samples by their names.
    "PCIE_LINK_GEN": Metric("_pcie_generation"),
    "PCIE_LINK_WIDTH": Metric("_pcie_width"),
    "MIG_MODE": Metric("_mig_mode"),
    # NVLINK_BANDWIDTH_TOTAL (NVLINK_THROUGHPUT_TOTAL) is left out on purpose: it is declared a
    # counter but is a rate, and one number for both directions, which our two columns can't hold.
}

_MEMORY = {
    "FB_USED": Metric("memory_used", scale=MIB, whole_card=False),
    "FB_USED_BYTES": Metric("memory_used", rank=1, whole_card=False),
    "FB_FREE": Metric("_memory_free", scale=MIB, whole_card=False),
    "FB_FREE_BYTES": Metric("_memory_free", rank=1, whole_card=False),
    "FB_RESERVED": Metric("_memory_reserved", scale=MIB, whole_card=False),
    "FB_RESERVED_BYTES": Metric("_memory_reserved", rank=1, whole_card=False),
    "FB_TOTAL": Metric("_memory_total", scale=MIB, whole_card=False),
    "FB_CAPACITY_BYTES": Metric("_memory_total", rank=1, whole_card=False),
}

_PROFILING = {
    "SM_ACTIVE": Metric("sm_activity", scale=100, whole_card=False),
    "SM_UTIL_RATIO": Metric("sm_activity", scale=100, whole_card=False),
    "GR_ENGINE_ACTIVE": Metric("sm_activity", scale=100, rank=1, whole_card=False),
    "GR_ENGINE_UTIL_RATIO": Metric("sm_activity", scale=100, rank=1, whole_card=False),
    "PIPE_TENSOR_ACTIVE": Metric("tensor_activity", scale=100, whole_card=False),
    "TENSOR_UTIL_RATIO": Metric("tensor_activity", scale=100, whole_card=False),
    "DRAM_ACTIVE": Metric("memory_activity", scale=100, whole_card=False),
    "DRAM_UTIL_RATIO": Metric("memory_activity", scale=100, whole_card=False),
    "PCIE_TX_BYTES": Metric("pcie_tx"),
    "PCIE_RX_BYTES": Metric("pcie_rx"),
    "NVLINK_TX_BYTES": Metric("nvlink_tx"),
    "NVLINK_RX_BYTES": Metric("nvlink_rx"),
}

_BEFORE_2_0 = {
    "dcgm_gpu_utilization": "GPU_UTIL",
    "dcgm_mem_copy_utilization": "MEM_COPY_UTIL",
    "dcgm_gpu_temp": "GPU_TEMP",
    "dcgm_memory_temp": "MEMORY_TEMP",
    "dcgm_power_usage": "POWER_USAGE",
    "dcgm_total_energy_consumption": "TOTAL_ENERGY_CONSUMPTION",
    "dcgm_sm_clock": "SM_CLOCK",
    "dcgm_memory_clock": "MEM_CLOCK",
    "dcgm_fb_used": "FB_USED",
    "dcgm_fb_free": "FB_FREE",
    "dcgm_xid_errors": "XID_ERRORS",
    "dcgm_pcie_replay_counter": "PCIE_REPLAY_COUNTER",
    "dcgm_ecc_sbe_volatile_total": "ECC_SBE_VOL_TOTAL",
    "dcgm_ecc_dbe_volatile_total": "ECC_DBE_VOL_TOTAL",
}

METRICS: dict[str, Metric] = {
    **{f"DCGM_FI_DEV_{name}": metric for name, metric in {**_DEVICE, **_MEMORY}.items()},
    **{f"DCGM_FI_PROF_{name}": metric for name, metric in _PROFILING.items()},
    **{old: {**_DEVICE, **_MEMORY}[name] for old, name in _BEFORE_2_0.items()},
}
# Printed as 0 where the board has no sensor (GDDR memory) or no event happened yet.
ZERO_MEANS_NONE = frozenset({"memory_temperature", "xid"})
# Up to DCGM 4.6 these stayed 0-100 in spite of their name; 4.7 made them true ratios of type double.
# Doubles are printed with decimals and integers without, so the spelling tells which one it is.
PERCENT_OR_RATIO = frozenset({"DCGM_FI_DEV_GPU_UTIL_RATIO", "DCGM_FI_DEV_MEMORY_UTIL_RATIO"})
