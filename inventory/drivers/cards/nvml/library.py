"""NVML as a whole: opened, counted, and opened again when its driver changed under it.

Runs in one thread of its own, because opening the library wakes cards up and may hang like they do.
"""

from dataclasses import dataclass

import pynvml

from inventory.drivers.cards.nvml.calls import STALE
from inventory.drivers.cards.nvml.events import XidEvents


@dataclass(frozen=True, slots=True)
class Survey:
    """What the library says before any card is touched. `fresh`: it was opened for this round."""

    count: int
    driver_version: str
    runtime_version: str
    fresh: bool


def _text(answer: str | bytes) -> str:
    return answer.decode(errors="replace") if isinstance(answer, bytes) else answer


def _cuda(version: int) -> str:
    # 12040 is 12.4
    return f"{version // 1000}.{version % 1000 // 10}"


class Library:
    """Opens NVML once and notices when that has to happen again."""

    def __init__(self) -> None:
        self.events = XidEvents()
        self._open = False
        self._seen: tuple[int, str] | None = None

    def survey(self, *, reopen: bool, may_reopen: bool = True) -> Survey:
        """Count the cards, opening the library first where needed. Raises NVMLError.

        A different driver version or number of cards means that the driver was loaded again: handles
        of before are worth nothing then. Without `may_reopen` (a call still hangs in the library) that
        raises IN_USE instead of pulling the library away under the call.
        """
        fresh = reopen or not self._open
        if fresh:
            self._reopen()
        try:
            seen = self._look()
            if not fresh and seen != self._seen:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_UNINITIALIZED)
        except pynvml.NVMLError as error:
            if fresh or error.value not in STALE:
                raise
            if not may_reopen:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_IN_USE) from error
            fresh = True
            self._reopen()
            seen = self._look()
        self._seen = seen
        self.events.poll()
        return Survey(count=seen[0], driver_version=seen[1], runtime_version=self._runtime(), fresh=fresh)

    def _look(self) -> tuple[int, str]:
        # The count includes cards whose handle is refused, which is what makes a reading incomplete.
        return int(pynvml.nvmlDeviceGetCount()), _text(pynvml.nvmlSystemGetDriverVersion())

    def _runtime(self) -> str:
        try:
            return _cuda(int(pynvml.nvmlSystemGetCudaDriverVersion()))
        except pynvml.NVMLError:
            return ""

    def _reopen(self) -> None:
        self.close()
        pynvml.nvmlInit()
        self._open = True
        self.events.open()

    def close(self) -> None:
        """Shut the library down. Init and shutdown are counted, and this one opened it once."""
        if not self._open:
            return
        self._open = False
        for step in (self.events.close, pynvml.nvmlShutdown):
            try:
                step()
            except pynvml.NVMLError:
                continue  # it was gone already, which is what was wanted
