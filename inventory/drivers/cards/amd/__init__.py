"""AMD cards through AMD SMI: its Python package where ROCm brought one, else its command."""

from inventory.drivers.cards.amd.library import AmdLibraryCards
from inventory.drivers.cards.amd.source import AmdSmiCards
from inventory.observations import NodeReading

__all__ = ["AmdCards", "AmdLibraryCards", "AmdSmiCards"]


class AmdCards:
    """Reads the AMD cards of this node by whichever way is there; never by both at once."""

    name = "AMD SMI"

    def __init__(self) -> None:
        self._library, self._command = AmdLibraryCards(), AmdSmiCards()

    @property
    def _chosen(self) -> AmdLibraryCards | AmdSmiCards:
        return self._library if self._library.available else self._command

    @property
    def available(self) -> bool:
        """Whether either way found cards."""
        return self._chosen.available

    @property
    def reason(self) -> str:
        """What the chosen way says, and of the other one why it was not chosen."""
        if self._library.available:
            return f"amdsmi: {self._library.reason}"
        return f"amd-smi: {self._command.reason}; amdsmi: {self._library.reason}"

    def open(self, *, deadline: float = 10.0) -> None:
        """Try the package, and the command where that has no cards."""
        self._library.open(deadline=deadline / 2)
        if not self._library.available:
            self._command.open(deadline=deadline / 2)

    def read(self, *, deadline: float) -> NodeReading:
        """One reading of all cards within `deadline` seconds. See ReadsCards."""
        return self._chosen.read(deadline=deadline)

    def close(self) -> None:
        """Let both go."""
        self._library.close()
        self._command.close()
