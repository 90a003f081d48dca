"""Figures that NVML gives as numbered fields, all in one call: memory temperature, NVLink, PCIe bytes.

The first call asks for everything on every possible link; entries that the board refuses are left
out of the later ones. PCIe throughput has a call of its own which blocks 20 ms for each direction,
320 ms a round at 8 cards and three times the CPU time allowed; the byte counters cost nothing more.
"""

import time
from typing import Any

import pynvml

from inventory.drivers.cards.nvml.calls import Calls

_ALL_LINKS = 0xFFFFFFFF
_KIB = 1024
_MEMORY_TEMPERATURE = pynvml.NVML_FI_DEV_MEMORY_TEMP
_STATE = pynvml.NVML_FI_DEV_NVLINK_GET_STATE
_UP = frozenset({1, 2})  # active; asleep to save power, wakes by itself
_PCIE = {"pcie_tx": pynvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES, "pcie_rx": pynvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES}
_NVLINK = {
    "nvlink_tx": pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
    "nvlink_rx": pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
}
# Link errors, best source first: per link up to Hopper, per link from NVLink 5, totals of old boards.
_ERRORS: tuple[tuple[bool, tuple[int, ...]], ...] = (
    (
        True,
        (
            pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY,
            pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY,
            pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_CRC,
        ),
    ),
    (
        True,
        (
            pynvml.NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS,
            pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS,
            pynvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS,
        ),
    ),
    (
        False,
        (
            pynvml.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
            pynvml.NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
            pynvml.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL,
            pynvml.NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL,
        ),
    ),
)
_MEMBERS = {
    pynvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_SHORT: "usVal",
}
_NEVER = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_INVALID_ARGUMENT,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_DEPRECATED,
    }
)

Key = tuple[int, int]


class Rate:
    """A counter's rise a second; None at its first reading and after it fell (reset or wrap)."""

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None

    def step(self, value: float, now: float) -> float | None:
        """The rate since the previous step. `now` is a monotonic clock in seconds."""
        last, self._last = self._last, (value, now)
        if last is None or now <= last[1] or value < last[0]:
            return None
        return (value - last[0]) / (now - last[1])


def _everything() -> list[Key]:
    links = range(pynvml.NVML_NVLINK_MAX_LINKS)
    keys = [(_MEMORY_TEMPERATURE, 0)]
    keys += [(number, 0) for number in _PCIE.values()]
    keys += [(number, _ALL_LINKS) for number in _NVLINK.values()]
    keys += [(_STATE, link) for link in links]
    for per_link, numbers in _ERRORS:
        keys += [(number, link) for number in numbers for link in (links if per_link else (0,))]
    return keys


class Fields:
    """The fields of one card, and what their counters were the round before."""

    def __init__(self) -> None:
        self._wanted = _everything()
        self._rates = {name: Rate() for name in (*_PCIE, *_NVLINK)}
        self._links: list[int] | None = None

    def read(self, calls: Calls, handle: Any) -> tuple[dict[str, float | None], int | None]:
        """Values by field name and the number of NVLinks that are up (None: not known)."""
        found, wide = self._ask(calls, handle)
        now = time.monotonic()
        values: dict[str, float | None] = {
            # GDDR boards have no sensor there and some say 0 for that.
            "memory_temperature": found.get((_MEMORY_TEMPERATURE, 0)) or None,
            "nvlink_errors": _errors(found),
        }
        for name, number in _PCIE.items():
            # A 32-bit byte counter wraps several times a second on a modern link: no rate comes of it.
            if (number, 0) in wide:
                values[name] = self._rates[name].step(found[number, 0], now)
        for name, number in _NVLINK.items():
            if (number, _ALL_LINKS) in found:
                rate = self._rates[name].step(found[number, _ALL_LINKS], now)
                values[name] = None if rate is None else rate * _KIB
        states = [value for (number, _), value in found.items() if number == _STATE]
        active = sum(value in _UP for value in states) if states else self._count_links(calls, handle)
        return values, active

    def _ask(self, calls: Calls, handle: Any) -> tuple[dict[Key, float], set[Key]]:
        answer = calls.ask("fields", pynvml.nvmlDeviceGetFieldValues, handle, self._wanted) if self._wanted else None
        found: dict[Key, float] = {}
        wide: set[Key] = set()
        refused = set()
        for key, entry in zip(self._wanted, answer if answer is not None else (), strict=False):
            # Each entry has its own return code; after a failure its value is whatever was there.
            if entry.nvmlReturn in _NEVER:
                refused.add(key)
            elif entry.nvmlReturn == pynvml.NVML_SUCCESS and entry.valueType in _MEMBERS:
                found[key] = getattr(entry.value, _MEMBERS[entry.valueType])
                if entry.valueType in (
                    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG,
                    pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG,
                ):
                    wide.add(key)
        if refused:
            self._wanted = [key for key in self._wanted if key not in refused]
        return found, wide

    def _count_links(self, calls: Calls, handle: Any) -> int | None:
        """Drivers without the state field: one call a link, only for links that exist."""
        if self._links is None:
            self._links = [link for link in range(pynvml.NVML_NVLINK_MAX_LINKS) if _exists(handle, link)]
        if not self._links:
            return None
        states = [calls.whole("NVLink state", pynvml.nvmlDeviceGetNvLinkState, handle, link) for link in self._links]
        return sum(state == 1 for state in states)


def _exists(handle: Any, link: int) -> bool:
    try:
        pynvml.nvmlDeviceGetNvLinkState(handle, link)
    except pynvml.NVMLError as error:
        if error.value in _NEVER:
            return False
        raise
    return True


def _errors(found: dict[Key, float]) -> float | None:
    for _, numbers in _ERRORS:
        counts = [value for (number, _), value in found.items() if number in numbers]
        if counts:
            return sum(counts)
    return None
