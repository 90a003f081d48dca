"""What a person may do about a node's place in scheduling."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from inventory.models import Cordon, CordonPurpose


@dataclass(frozen=True, slots=True)
class CordonAct:
    """An act on a node: cordon, drain or return."""

    name: str
    title: str
    icon: str


def possible(cordons: Iterable[Cordon]) -> list[CordonAct]:
    """The acts that fit a node with these cordons: none lifts somebody else's."""
    open_ones = [row for row in cordons if row.lifted_at is None]
    ours = next((row for row in open_ones if row.ours), None)
    if ours is not None:
        if ours.lift_requested_at is not None:
            return []
        back = CordonAct("return", _("Return to scheduling"), "player-play")
        deeper = CordonAct("drain", _("Drain"), "arrow-down")
        return [back] if ours.drain or ours.purpose != CordonPurpose.OPERATOR else [deeper, back]
    return [
        CordonAct("cordon", _("Cordon"), "player-pause"),
        CordonAct("drain", _("Drain"), "arrow-down"),
    ]
