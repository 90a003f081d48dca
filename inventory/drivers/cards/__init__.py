"""Sources of card readings. `open_local_cards` finds those of this node; pages of exporters have a
package of their own, which the agent does not import."""

from inventory.drivers.cards.amd import AmdSmiCards
from inventory.drivers.cards.capabilities import LocalCards
from inventory.drivers.cards.nvml import NvmlCards

__all__ = ["LocalCards", "open_local_cards"]


def open_local_cards(*, deadline: float = 10.0) -> list[LocalCards]:
    """Every kind of source this program knows, each tried once with `deadline` seconds.

    All are returned: `available` says which have cards here and `reason` why the others have none.
    """
    sources: list[LocalCards] = [NvmlCards(), AmdSmiCards()]
    for source in sources:
        source.open(deadline=deadline)
    return sources
