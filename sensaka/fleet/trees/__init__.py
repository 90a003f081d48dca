"""Redfish trees of simulated nodes in the manner of four vendors."""

from inventory.drivers.fake.redfish import Behaviour
from sensaka.fleet.plan import NodePlan
from sensaka.fleet.trees.base import NodeTree
from sensaka.fleet.trees.dell import DellTree
from sensaka.fleet.trees.hpe import HpeTree
from sensaka.fleet.trees.lenovo import LenovoTree
from sensaka.fleet.trees.supermicro import SupermicroTree
from sensaka.fleet.world import World

STYLES: dict[str, type[NodeTree]] = {
    "dell": DellTree,
    "hpe": HpeTree,
    "lenovo": LenovoTree,
    "supermicro": SupermicroTree,
}


def make_tree(world: World, node: NodePlan) -> NodeTree:
    """The tree of a node's BMC."""
    return STYLES[node.chassis.style](world, node)


def behaviour_of(style: str) -> Behaviour:
    """How the service of a style answers besides its tree."""
    if style == "dell":
        return Behaviour(session_limit=8, page_size=50)
    if style == "hpe":
        return Behaviour(session_limit=13, etag_prefix="W/")
    if style == "lenovo":
        return Behaviour(session_limit=32, require_if_match=True)
    return Behaviour(session_limit=16)


__all__ = ["STYLES", "NodeTree", "behaviour_of", "make_tree"]
