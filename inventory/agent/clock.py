"""Time as the agent needs it: wall time for samples, monotonic time for its rhythm."""

import threading
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Seconds since the epoch, seconds of a clock that never jumps, and waiting that an event ends."""

    def wall(self) -> float: ...

    def monotonic(self) -> float: ...

    def wait(self, event: threading.Event, seconds: float) -> bool: ...


class SystemClock:
    """The clock of the machine."""

    def wall(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return event.wait(max(0.0, seconds))


def utc(second: int) -> datetime:
    """A whole second since the epoch as an aware datetime."""
    return datetime.fromtimestamp(second, UTC)
