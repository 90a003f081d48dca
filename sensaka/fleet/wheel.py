"""One wheel that turns everything which happens again and again in the fleet's process."""

import asyncio
import heapq
import itertools
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

log = logging.getLogger("sensaka.fleet")


@dataclass(order=True)
class _Spoke:
    due: float
    number: int
    interval: float = field(compare=False)
    act: Callable[[], None] = field(compare=False)


class Wheel:
    """Calls functions at their intervals, on one task, each with its own phase. What is late is left out."""

    def __init__(self) -> None:
        self._spokes: list[_Spoke] = []
        self._numbers = itertools.count()

    def every(self, interval: float, act: Callable[[], None], *, phase: float = 0.0) -> None:
        """Call `act` each `interval` seconds, the first time `phase` seconds from now."""
        heapq.heappush(self._spokes, _Spoke(time.monotonic() + phase, next(self._numbers), interval, act))

    async def turn(self) -> None:
        """Run until cancelled. A function that raises is logged and called again at its next time."""
        while True:
            now = time.monotonic()
            while self._spokes and self._spokes[0].due <= now:
                spoke = self._spokes[0]
                try:
                    spoke.act()
                except Exception:
                    # One node's trouble must not stop the whole fleet; the log names it with its trace.
                    log.exception("a periodic act of the fleet failed")
                missed = max(0, int((time.monotonic() - spoke.due) // spoke.interval))
                spoke.due += spoke.interval * (missed + 1)
                heapq.heapreplace(self._spokes, spoke)
            pause = self._spokes[0].due - time.monotonic() if self._spokes else 1.0
            await asyncio.sleep(min(max(pause, 0.0), 1.0))
