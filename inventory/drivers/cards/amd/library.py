"""AMD cards through the Python package `amdsmi`, which comes with ROCm and must match its version.

Preferred to the tool because a round costs milliseconds. The package is asked for nothing on a node
without AMD's kernel driver: importing it there prints to standard output and costs memory. Its
answers are put in the shape of the tool's documents, so one reader serves both.
"""

import contextlib
import importlib
import io
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from inventory.drivers.cards.amd.cards import read_cards
from inventory.drivers.cards.amd.devices import Device
from inventory.drivers.cards.amd.handle import Handle
from inventory.drivers.cards.workers import Job, Worker
from inventory.observations import FailureKind, NodeReading, ReadFailure

T = TypeVar("T")
_DRIVER = Path("/sys/module/amdgpu")


class AmdLibraryCards:
    """Reads the AMD cards of this node with the package `amdsmi`. `read` never raises."""

    name = "amdsmi"

    def __init__(self, *, driver: Path = _DRIVER) -> None:
        self.available = False
        self.reason = "not tried yet"
        self._driver = driver
        self._smi: Any = None
        self._control = Worker("amdsmi")
        self._workers: dict[int, Worker] = {}
        self._handles: list[Handle] = []
        self._known: dict[int, Device] = {}

    def open(self, *, deadline: float = 10.0) -> None:
        """Find out whether there are cards to read, and why not: sets `available` and `reason`."""
        self._find(time.monotonic() + deadline)

    def read(self, *, deadline: float) -> NodeReading:
        """One reading of all cards within `deadline` seconds. See ReadsCards."""
        until, observed_at = time.monotonic() + deadline, datetime.now(UTC)
        handles = self._find(until)
        if isinstance(handles, ReadFailure):
            return self._reading(observed_at, {}, [handles], list(self._known))
        jobs = {
            index: self._workers.setdefault(index, Worker(f"amdsmi-{index}")).submit(handle.read)
            for index, handle in enumerate(handles)
        }
        devices: dict[int, Device] = {}
        failures: list[ReadFailure] = []
        missed: list[int] = []
        for index, job in jobs.items():
            answer = _outcome(job, until, f"GPU {index}")
            if isinstance(answer, ReadFailure):
                failures.append(answer)
                missed.append(index)
            else:
                devices[index], refused = answer
                failures += refused
        self._known = {index: devices.get(index, self._known.get(index, Device(index))) for index in jobs}
        return self._reading(observed_at, devices, failures, missed)

    def _reading(
        self, observed_at: datetime, devices: dict[int, Device], failures: list[ReadFailure], missed: list[int]
    ) -> NodeReading:
        """What was read, and what was known of those that did not answer, without values."""
        stand_ins = [_bare(self._known[index]) for index in missed if index in self._known]
        everything = sorted((*devices.values(), *stand_ins), key=lambda device: device.index)
        cards, processes = read_cards(everything)
        return NodeReading(
            observed_at=observed_at,
            driver_version=next((one.driver_version for one in everything if one.driver_version), ""),
            cards=tuple(card for card in cards if card.uuid or card.serial or card.pci_address),
            processes=processes,
            failures=tuple(failures),
            complete=not missed and bool(devices or not failures),
        )

    def close(self) -> None:
        """Let the threads end; one that hangs is kept."""
        for worker in (self._control, *self._workers.values()):
            worker.close()
        self.available, self.reason = False, "closed"

    def _find(self, until: float) -> list[Handle] | ReadFailure:
        if not self._driver.exists():
            self.reason = "the kernel driver amdgpu is not loaded"
            return ReadFailure(what="amdsmi", kind=FailureKind.UNREACHABLE, detail=self.reason)
        answer = _outcome(self._control.submit(self._enumerate), until, "amdsmi")
        if isinstance(answer, ReadFailure):
            self.reason = answer.detail
        else:
            self.available, self.reason = self.available or bool(answer), f"{len(answer)} GPUs"
        return answer

    def _enumerate(self) -> list[Handle]:
        """In the library's thread. Handles are invalid after a change of partitions, and so is their number."""
        if self._smi is None:
            with contextlib.redirect_stdout(io.StringIO()):  # the package prints when it finds no library
                smi = importlib.import_module("amdsmi")
            smi.amdsmi_init()
            self._smi = smi
        found = self._smi.amdsmi_get_processor_handles()
        if len(found) != len(self._handles):
            self._handles = [Handle(self._smi, handle, index) for index, handle in enumerate(found)]
        return self._handles


def _bare(device: Device) -> Device:
    """A logical GPU's identity alone."""
    fields = {
        name: getattr(device, name) for name in Device.__dataclass_fields__ if name not in ("values", "processes")
    }
    return Device(**fields)


def _outcome(job: Job[T] | None, until: float, what: str) -> T | ReadFailure:
    if job is None:
        return ReadFailure(what=what, kind=FailureKind.TIMEOUT, detail="a call of an earlier round still hangs")
    if not job.wait(until - time.monotonic()):
        return ReadFailure(what=what, kind=FailureKind.TIMEOUT, detail="no answer within the deadline")
    try:
        return job.result()
    except ImportError as error:
        return ReadFailure(what=what, kind=FailureKind.MISSING_LIBRARY, detail=str(error)[:2000])
    except Exception as error:  # the package fails at import in many ways where its library does not fit
        detail = " ".join(f"{type(error).__name__}: {error}".split())
        return ReadFailure(what=what, kind=FailureKind.UNKNOWN, detail=detail[:2000])
