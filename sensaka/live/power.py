"""Power that the fleet draws now, each watt counted once.

A node whose BMC reports its power counts with that (it holds its cards); of the others only the
cards' own power is known, and the page says so. A slice never adds power: it is its card's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Max, Min

from inventory.models import Node
from sensaka.live.cells import count
from sensaka.live.fleet import Fleet

_FRESH_INTERVALS = 3


@dataclass(frozen=True, slots=True)
class Drawn:
    """`total` W: nodes by their BMC, else by their cards. `nodes` of `all_nodes` report the whole node."""

    total: float | None
    cards: float | None
    reporting_cards: int
    all_cards: int
    nodes: int
    all_nodes: int

    @property
    def complete(self) -> bool:
        """Whether every node reports its whole power."""
        return self.nodes == self.all_nodes

    @property
    def note(self) -> str:
        """How much of the fleet the figure covers."""
        return f"{count(self.nodes)} of {count(self.all_nodes)} nodes by their BMC"

    @property
    def explanation(self) -> str:
        """Where the total comes from."""
        rest = "" if self.complete else " Of the other nodes only the power of their cards is counted."
        return f"Now, from BMCs ({self.note}).{rest}"

    @property
    def cards_explanation(self) -> str:
        """Where the cards' figure comes from."""
        return f"Now, from fresh samples of {count(self.reporting_cards)} of {count(self.all_cards)} cards."


def node_power(at: datetime) -> Mapping[UUID, float]:
    """W of the nodes whose BMC was read in the last three intervals."""
    rows = (
        Node.objects.exclude(state="retired")
        .filter(power__isnull=False, bmcs__enabled=True)
        .annotate(read=Max("bmcs__succeeded_at"), rhythm=Min("bmcs__interval"))
        .values_list("id", "power", "read", "rhythm")
    )
    return {
        node: power
        for node, power, read, rhythm in rows
        if read is not None and power is not None and at - read <= timedelta(seconds=_FRESH_INTERVALS * rhythm)
    }


def now(state: Fleet) -> Drawn:
    """What the fleet draws at the moment of `state`."""
    measured = node_power(state.at)
    all_nodes = {card.node_id for card in state.cards if card.node_id is not None}
    total = sum(power for node, power in measured.items())
    cards = 0.0
    reporting = 0
    for card in state.cards:
        if not card.fresh or card.sample is None or card.sample.values.power is None:
            continue
        reporting += 1
        cards += card.sample.values.power
        if card.node_id not in measured:
            total += card.sample.values.power
    return Drawn(
        total=total if measured or reporting else None,
        cards=cards if reporting else None,
        reporting_cards=reporting,
        all_cards=len(state.cards),
        nodes=len(all_nodes & measured.keys()),
        all_nodes=len(all_nodes),
    )
