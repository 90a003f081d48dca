"""One card between two openings of the library. Everything here runs in the card's own thread."""

from typing import Any

import pynvml
from msgspec.structs import replace

from inventory.drivers.cards.nvml.calls import Calls
from inventory.drivers.cards.nvml.events import XidEvents
from inventory.drivers.cards.nvml.fields import Fields
from inventory.drivers.cards.nvml.figures import read_figures
from inventory.drivers.cards.nvml.gpm import Gpm
from inventory.drivers.cards.nvml.identity import read_identity
from inventory.drivers.cards.nvml.mig import Slices, list_instances, mig_enabled
from inventory.drivers.cards.nvml.processes import read_processes
from inventory.drivers.cards.values import card_values
from inventory.observations import CardReading, ProcessReading


class CardSession:
    """A card's handle and what is remembered from round to round."""

    def __init__(self, index: int, events: XidEvents) -> None:
        """Open the card. The driver initialises it at this first call: it may fail, and it may hang."""
        self.calls = Calls()
        self._index = index
        self._mig: bool | None = None
        self._rounds = 0
        self._events = events
        self._handle: Any = pynvml.nvmlDeviceGetHandleByIndex(index)
        self._fields = Fields()
        self._gpm = Gpm()
        self._slices = Slices()
        self._identity = read_identity(self.calls, self._handle, index)
        events.register(self.calls, self._handle)

    def read(self) -> tuple[CardReading, tuple[ProcessReading, ...]]:
        """One round. Raises NVMLError when the card is lost or the library must be opened again."""
        calls, handle = self.calls, self._handle
        if not self._identity.uuid:  # a passing fault at the opening must not leave it nameless for good
            self._identity = read_identity(calls, handle, self._index)
        mig = self._mig_mode()
        raw: dict[str, float | None] = read_figures(calls, handle, mig=bool(mig))
        from_fields, links = self._fields.read(calls, handle)
        from_gpm = self._gpm.read(calls, handle)
        for source in (from_fields, from_gpm):  # the later one is the better one
            raw |= {name: value for name, value in source.items() if value is not None}
        raw["xid"] = self._events.last(handle)
        instances = list_instances(calls, handle) if mig else []
        slices = self._slices.read(calls, handle, self._gpm, instances)
        uuid = self._identity.uuid
        processes = read_processes(calls, handle, card_uuid=uuid, instances=instances) if uuid else ()
        values, refused = card_values(raw, what=uuid or f"NVML index {self._identity.index}")
        card = replace(
            self._identity,
            mig_enabled=mig,
            nvlink_active=links,
            # The width stays at idle; one below what the slot has is a fault that should show.
            pcie_width=calls.whole("PCIe width", pynvml.nvmlDeviceGetCurrPcieLinkWidth, handle),
            values=values,
            slices=slices,
            failures=calls.drain() + refused,
        )
        return card, processes

    def _mig_mode(self) -> bool | None:
        """Whether MIG is on. When that changes, what the card supports changes with it: ECC counters,
        remapped rows and link counters of a card go away while it is cut up, and come back."""
        mig = mig_enabled(self.calls, self._handle)
        if self._rounds and mig != self._mig:
            self.calls.absent.clear()
            self._fields = Fields()
        self._mig = mig
        self._rounds += 1
        return mig

    def close(self) -> None:
        """Free what the library holds for this card; the library must still be open."""
        self._gpm.close()
