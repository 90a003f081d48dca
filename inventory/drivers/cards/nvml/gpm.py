"""GPU performance monitoring (Hopper and newer): activity of SMs, tensor cores and memory, and link rates.

A metric is what happened between two samples at least 100 ms apart. The sample of the round before is
the first one, so nobody waits and the figures cover the whole interval.
"""

import time
from typing import Any

import pynvml

from inventory.drivers.cards.nvml.calls import Calls
from sensaka.kernel.units import MIB

_SHORTEST = 0.1
_SM, _GRAPHICS = pynvml.NVML_GPM_METRIC_SM_UTIL, pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL
_ACTIVITY = {
    _SM: ("sm_activity", 1.0),
    pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL: ("tensor_activity", 1.0),
    pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL: ("memory_activity", 1.0),
    _GRAPHICS: ("_graphics", 1.0),
}
_LINKS = {
    pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC: ("pcie_tx", MIB),
    pynvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC: ("pcie_rx", MIB),
    pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC: ("nvlink_tx", MIB),
    pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC: ("nvlink_rx", MIB),
}


class _Pair:
    """The sample of the round before and the buffer for the next one."""

    def __init__(self) -> None:
        self.previous = pynvml.nvmlGpmSampleAlloc()
        self.following = pynvml.nvmlGpmSampleAlloc()
        self.taken_at: float | None = None

    def free(self) -> None:
        for sample in (self.previous, self.following):
            pynvml.nvmlGpmSampleFree(sample)


class Gpm:
    """Performance samples of one card (instance None) and of its MIG instances."""

    def __init__(self) -> None:
        self._supported: bool | None = None
        self._pairs: dict[int | None, _Pair] = {}
        self._request: Any = None

    def read(self, calls: Calls, handle: Any, instance: int | None = None) -> dict[str, float | None]:
        """Values by field name since the round before; empty at the first round and where unsupported."""
        if self._supported is None:
            answer = calls.ask("performance monitoring", pynvml.nvmlGpmQueryDeviceSupport, handle)
            self._supported = bool(answer is not None and answer.isSupportedDevice)
        if not self._supported:
            return {}
        pair = self._pairs.get(instance)
        if pair is None:
            pair = calls.ask("performance sample buffer", _Pair)
            if pair is None:
                return {}
            self._pairs[instance] = pair
        now = time.monotonic()
        if pair.taken_at is not None and now - pair.taken_at < _SHORTEST:
            return {}
        if not self._sample(calls, handle, instance, pair):
            pair.taken_at = None
            return {}
        first, pair.taken_at = pair.taken_at is None, now
        pair.previous, pair.following = pair.following, pair.previous
        # After the swap `previous` is the newer one.
        return {} if first else self._metrics(calls, pair.following, pair.previous, instance)

    def _sample(self, calls: Calls, handle: Any, instance: int | None, pair: _Pair) -> bool:
        if instance is None:
            return calls.ask("performance sample", pynvml.nvmlGpmSampleGet, handle, pair.following) is not None
        name = "performance sample of an instance"
        return calls.ask(name, pynvml.nvmlGpmMigSampleGet, handle, instance, pair.following) is not None

    def _metrics(self, calls: Calls, older: Any, newer: Any, instance: int | None) -> dict[str, float | None]:
        wanted = _ACTIVITY if instance is not None else {**_ACTIVITY, **_LINKS}
        if self._request is None:
            self._request = pynvml.c_nvmlGpmMetricsGet_t()
        request = self._request
        request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(wanted)
        request.sample1, request.sample2 = older, newer
        for position, number in enumerate(wanted):
            request.metrics[position].metricId = number
        if calls.ask("performance metrics", pynvml.nvmlGpmMetricsGet, request) is None:
            return {}
        values: dict[str, float | None] = {}
        for position, (name, scale) in enumerate(wanted.values()):
            metric = request.metrics[position]
            values[name] = metric.value * scale if metric.nvmlReturn == pynvml.NVML_SUCCESS else None
        graphics = values.pop("_graphics")
        if values["sm_activity"] is None:
            values["sm_activity"] = graphics
        return values

    def keep(self, instances: set[int]) -> None:
        """Free the buffers of instances that no longer exist."""
        for instance in [one for one in self._pairs if one is not None and one not in instances]:
            self._pairs.pop(instance).free()

    def close(self) -> None:
        """Free all buffers; the library must still be open."""
        for pair in self._pairs.values():
            pair.free()
        self._pairs.clear()
