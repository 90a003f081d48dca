"""XID errors. NVML has no call for "the last XID", only events, and those from before the
registration are lost; the kernel log tells of them."""

from ctypes import c_void_p, cast
from typing import Any

import pynvml

from inventory.drivers.cards.nvml.calls import Calls

_AT_ONCE = 64  # a faulty card repeats itself in bursts; the rest is read the next round


def address(handle: Any) -> int:
    """A handle as a number, to find the card of an event."""
    return cast(handle, c_void_p).value or 0


class XidEvents:
    """The last XID of each card since the library was opened, like dcgm-exporter's gauge."""

    def __init__(self) -> None:
        self._set: Any = None
        self._last: dict[int, int] = {}

    def open(self) -> None:
        """Make an event set where the driver offers one; cards are read without it as well."""
        try:
            self._set = pynvml.nvmlEventSetCreate()
        except pynvml.NVMLError:
            self._set = None

    def register(self, calls: Calls, handle: Any) -> None:
        """Ask for a card's XIDs. The supported types are looked up first: one unsupported bit is refused."""
        if self._set is None:
            return
        supported = calls.ask("event types", pynvml.nvmlDeviceGetSupportedEventTypes, handle)
        if supported is not None and supported & pynvml.nvmlEventTypeXidCriticalError:
            wanted = pynvml.nvmlEventTypeXidCriticalError
            calls.ask("XID events", pynvml.nvmlDeviceRegisterEvents, handle, wanted, self._set)

    def poll(self) -> None:
        """Take what has happened, without waiting."""
        if self._set is None:
            return
        for _ in range(_AT_ONCE):
            try:
                event = pynvml.nvmlEventSetWait_v2(self._set, 0)
            except pynvml.NVMLError:  # TIMEOUT: nothing more
                return
            if event.eventType & pynvml.nvmlEventTypeXidCriticalError:
                self._last[address(event.device)] = int(event.eventData)

    def last(self, handle: Any) -> int | None:
        """The last XID of a card, None while there was none."""
        return self._last.get(address(handle))

    def close(self) -> None:
        """Free the set; the library must still be open."""
        if self._set is not None:
            pynvml.nvmlEventSetFree(self._set)
        self._set = None
        self._last.clear()
