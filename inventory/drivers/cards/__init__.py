"""Sources of card readings. `open_local_cards` finds those of this node; pages of exporters have a
package of their own, which the agent does not import."""

from inventory.drivers.cards.amd import AmdCards
from inventory.drivers.cards.capabilities import LocalCards
from inventory.drivers.cards.nvml import NvmlCards

__all__ = ["LocalCards", "open_local_cards"]


# One a process, like the libraries behind them: looking for cards again must not start new threads
# beside one that hangs.
_SOURCES: tuple[LocalCards, ...] = (NvmlCards(), AmdCards())


def open_local_cards(*, deadline: float = 10.0) -> list[LocalCards]:
    """Every kind of source this program knows, each tried with `deadline` seconds.

    All are returned, the same objects each time: `available` says which have cards here and `reason`
    why the others have none.
    """
    for source in _SOURCES:
        source.open(deadline=deadline)
    return list(_SOURCES)
