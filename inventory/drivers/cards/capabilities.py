"""What a source of card readings on a node can do."""

from typing import Protocol

from inventory.observations import NodeReading


class ReadsCards(Protocol):
    """Reads every card of this node: identity, values, slices and processes.

    `deadline` is in seconds and is enforced outside the vendor's library, because a call into it
    may hang when a card has fallen off the bus. One dead card never hides the others.
    """

    def read(self, *, deadline: float) -> NodeReading: ...

    def close(self) -> None: ...
