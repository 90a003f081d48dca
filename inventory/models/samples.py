"""The sample tables' columns. They are partitioned and written by SQL (migration 0004), so no Django model stands here.

`inventory_sample`: one row a series, source and second. `inventory_rollup_5m`, `inventory_rollup_1h`: one row a
series and bucket that any sample touched; a bucket without a row is unknown throughout.
"""

from inventory.observations import VALUE_FIELDS

GAUGES: tuple[str, ...] = (
    "utilization", "sm_activity", "tensor_activity", "memory_activity", "memory_used", "temperature",
    "memory_temperature", "power", "power_limit", "sm_clock", "memory_clock", "pcie_tx", "pcie_rx", "nvlink_tx",
    "nvlink_rx",
)  # fmt: skip
"""Rolled up as min, mean (weighted by the seconds each sample holds) and max."""

COUNTERS: tuple[str, ...] = (
    "energy", "ecc_corrected", "ecc_uncorrected", "pcie_replays", "nvlink_errors", "remapped_rows",
)  # fmt: skip
"""Rolled up as first, last and growth: the increments between samples that follow within the hold; a fall is a
reset and counts from zero."""

OTHERS: tuple[str, ...] = ("throttle_reasons", "xid")
"""Rolled up as one value: all reasons seen (bitwise or), the last XID."""

FLOAT8: frozenset[str] = frozenset({"energy"})
INT8: frozenset[str] = frozenset(
    {"memory_used", "throttle_reasons", "ecc_corrected", "ecc_uncorrected", "pcie_replays", "nvlink_errors",
     "remapped_rows", "xid"}
)  # fmt: skip
"""What is not here or in FLOAT8 is real."""

assert {*GAUGES, *COUNTERS, *OTHERS} == set(VALUE_FIELDS)
