"""AMD cards of this node: through the library where its Python package is there, else through `amd-smi`.

The tool starts a Python of its own for every question, which costs a good part of a CPU second; so
identity is asked for once a while and only `metric` and `process` in each round.
"""

import time
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from inventory.drivers.cards.amd.cards import read_cards
from inventory.drivers.cards.amd.command import Command
from inventory.drivers.cards.amd.devices import read_devices
from inventory.drivers.cards.amd.documents import entries, load
from inventory.observations import CardReading, FailureKind, NodeReading, ReadFailure

_FIXED = ("list", "static")
_MOVING = ("metric", "process")


class AmdSmiCards:
    """Reads the AMD cards of this node with `amd-smi`. `read` never raises.

    `refresh` is after how many seconds identity and partitions are asked for again.
    """

    name = "amd-smi"

    def __init__(self, *, program: str = "amd-smi", refresh: float = 600.0) -> None:
        self.available = False
        self.reason = "not tried yet"
        self._command = Command(program)
        self._refresh = refresh
        self._fixed: dict[str, Any] = {}
        self._fixed_at = float("-inf")

    def open(self, *, deadline: float = 10.0) -> None:
        """Find out whether there are cards to read, and why not: sets `available` and `reason`.

        What was available once stays so: from then on a failure is a fact about cards that exist.
        """
        self._ask(_FIXED[:1], time.monotonic() + deadline, [])

    def read(self, *, deadline: float) -> NodeReading:
        """One reading of all cards within `deadline` seconds. See ReadsCards."""
        until = time.monotonic() + deadline
        observed_at = datetime.now(UTC)
        failures: list[ReadFailure] = []
        documents = self._ask(_MOVING, until, failures)
        changed = _indices(documents) != _indices(self._fixed)  # a partition mode was changed
        old = time.monotonic() - self._fixed_at > self._refresh
        if documents and (changed or old):  # a tool that does not answer is not asked more
            fixed = self._ask(_FIXED, until, failures)
            if len(fixed) == len(_FIXED):
                self._fixed, self._fixed_at = fixed, time.monotonic()
        documents |= self._fixed
        devices = read_devices(documents)
        cards, processes = read_cards(devices)
        if "metric" not in documents:
            cards = tuple(_without_values(card, failures) for card in cards)
        return NodeReading(
            observed_at=observed_at,
            driver_version=next((one.driver_version for one in devices if one.driver_version), ""),
            cards=tuple(card for card in cards if card.uuid or card.serial or card.pci_address),
            processes=processes,
            failures=tuple(failures),
            complete=not failures and all(card.uuid or card.serial or card.pci_address for card in cards),
        )

    def close(self) -> None:
        """Nothing is held between two rounds."""

    def _ask(self, names: tuple[str, ...], until: float, failures: list[ReadFailure]) -> dict[str, Any]:
        """The documents that answered; what did not is added to `failures`."""
        found: dict[str, Any] = {}
        for name in names:
            answer = self._command.run(name, "--json", until=until)
            document = None if isinstance(answer, ReadFailure) else load(answer)
            if isinstance(answer, ReadFailure):
                failures.append(answer)
                self.reason = answer.detail
            elif document is None:
                failures.append(
                    ReadFailure(what=f"amd-smi {name}", kind=FailureKind.PROTOCOL, detail="no JSON in the answer")
                )
                self.reason = "amd-smi gave no JSON"
            else:
                found[name] = document
                count = len(entries(document))
                self.available, self.reason = self.available or count > 0, f"{count} GPUs"
                continue
            if self._command.path is None:
                break  # one line says it
        return found


def _without_values(card: CardReading, failures: list[ReadFailure]) -> CardReading:
    """A card that is known but was not measured: what its identity documents say of limits is no sample."""
    slices = tuple(replace(one, values=None) for one in card.slices)
    return replace(card, values=None, slices=slices, failures=tuple(failures[:1]))


def _indices(documents: dict[str, Any]) -> set[int]:
    return {index for document in documents.values() for index in entries(document)}
