"""One snapshot function per topic: it serves the first paint of a page and every live message after it.

A snapshot is a flat dictionary of cells. Keys are stable, so a page names the cell that it shows and
the consumer sends those that changed.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from sensaka.identity.models import User
from sensaka.live import (
    attention,
    branches,
    card_cells,
    cluster_cells,
    collector_cells,
    discovery_cells,
    fleet,
    fleet_cells,
    holding_cells,
    idle_cells,
    job_cells,
    node_cells,
    offer_cells,
    reach,
    request_cells,
)
from sensaka.live.cells import Cells
from sensaka.live.fleet import Shared
from sensaka.live.topics import Topic

_WHOLE: dict[str, Shared[Cells]] = {
    "fleet": Shared(fleet_cells.cells),
    "collectors": Shared(collector_cells.cells),
    "clusters": Shared(cluster_cells.cells),
    "holdings": Shared(holding_cells.cells),
}
_ONE: dict[str, Callable[[UUID], Cells]] = {
    "node": node_cells.cells,
    "card": card_cells.cells,
    "discovery": discovery_cells.cells,
    "cluster": cluster_cells.one,
    "job": job_cells.cells,
}
_LISTS: dict[str, Callable[[tuple[UUID, ...]], Cells]] = {
    "cards": card_cells.list_cells,
    "nodes": node_cells.list_cells,
    "jobs": job_cells.list_cells,
}


def own(topic: Topic, user: User) -> Cells:
    """Every cell of a topic that shows each person what is theirs; of what is not, none."""
    match topic.kind:
        case "request" if topic.id is not None:
            return request_cells.cells(user, topic.id)
        case "offers":
            return offer_cells.cells(user)
        case "idle":
            return idle_cells.cells(user)
    return request_cells.list_cells(user, topic.ids)


def snapshot(topic: Topic) -> Cells:
    """Every cell of a topic. A node, card or discovery that is gone has none."""
    if topic.kind in _LISTS:
        return _LISTS[topic.kind](topic.ids)
    if topic.kind == "branches":
        return branches.cells(topic.path)
    if topic.id is None:
        return _WHOLE[topic.kind].get()
    return _ONE[topic.kind](topic.id)


def wire(topic: Topic) -> dict[str, Any]:
    """A snapshot as it goes over the WebSocket."""
    return _short(snapshot(topic))


def own_wire(topic: Topic, user: User) -> dict[str, Any]:
    """A person's snapshot as it goes over the WebSocket."""
    return _short(own(topic, user))


def _short(cells: Cells) -> dict[str, Any]:
    return {key: cell.wire() for key, cell in cells.items()}


def forget() -> None:
    """The next snapshots are read anew (after an act of a person; between tests)."""
    fleet.forget()
    attention.forget()
    reach.forget()
    offer_cells.forget()
    for shared in _WHOLE.values():
        shared.forget()
