"""What happens to a fleet by itself some time after its first start, once for each state folder."""

import logging

from sensaka.fleet.acts import perform
from sensaka.fleet.layout import Door
from sensaka.fleet.plan import NodePlan
from sensaka.fleet.world import World

log = logging.getLogger("sensaka.fleet")

ENROLLED = "enrolled"
OS_DOWN_AFTER = 90.0  # s from when all nodes stand in the tree
SWAP_AFTER = 240.0
MIG_AFTER = 360.0


def note_enrolled(world: World) -> None:
    """The fleet stands in the tree: from now on the events are counted."""
    if world.enrolled_at is None:
        world.enrolled_at = world.at


def due_events(world: World) -> bool:
    """Let what is due happen; whether anything did."""
    if world.enrolled_at is None:
        return False
    age = world.at - world.enrolled_at
    done = False
    for name, after in (("os_down", OS_DOWN_AFTER), ("swap", SWAP_AFTER), ("mig", MIG_AFTER)):
        if name not in world.events and age >= after:
            world.events.add(name)
            for act in _acts(world, name):
                log.info("%s", perform(world, act))
                done = True
    return done


def _acts(world: World, name: str) -> list[dict[str, object]]:
    if name == "os_down":
        down = [node for node in world.plan.nodes if node.os_down and world.runs(node)]
        return [{"do": "os_down", "node": node.name} for node in down]
    if name == "mig":
        cut = next(((node, slot) for node in world.plan.nodes for slot in _partitioned(world, node)), None)
        return [] if cut is None else [{"do": "reconfigure_mig", "node": cut[0].name, "slot": cut[1]}]
    pair = _pair(world)
    return [] if pair is None else [{"do": "swap_cards", "a": f"{pair[0].name}:2", "b": f"{pair[1].name}:5"}]


def _partitioned(world: World, node: NodePlan) -> list[int]:
    return [slot for slot, number in enumerate(world.places[node.number]) if number in world.partitions]


def _pair(world: World) -> tuple[NodePlan, NodePlan] | None:
    """Two nodes of one model with agents, whose cards can be exchanged."""
    whole = [
        node
        for node in world.plan.nodes
        if node.door is Door.AGENT and not node.mig and not node.os_down and world.runs(node)
    ]
    for first in whole:
        others = [node for node in whole if node.kind is first.kind and node is not first and node.site is first.site]
        if others and None not in (world.places[first.number][2], world.places[others[-1].number][5]):
            return first, others[-1]
    return None
