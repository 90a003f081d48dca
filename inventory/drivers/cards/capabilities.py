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


class LocalCards(ReadsCards, Protocol):
    """A source on this node that may or may not have cards: `reason` says which, in words.

    `read` of a source that is not available tries again, so a driver that is loaded after the agent
    started is found; while it is not there the reading holds the failure and no cards.
    """

    name: str

    @property
    def available(self) -> bool: ...

    @property
    def reason(self) -> str: ...

    def open(self, *, deadline: float = ...) -> None: ...
