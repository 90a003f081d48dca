"""What acts are told: nodes, places, numbers, as words that a person typed."""

from collections.abc import Mapping
from typing import Any

from sensaka.fleet.plan import SLOTS, NodePlan
from sensaka.fleet.world import World

Arguments = Mapping[str, Any]


class ActError(ValueError):
    """The act can't be done; the message is for the person who asked."""


def find_node(world: World, arguments: Arguments, key: str = "node") -> NodePlan:
    """The node that an argument names. Raises ActError."""
    name = str(arguments.get(key, ""))
    node = world.plan.by_name.get(name)
    if node is None:
        raise ActError(f"there is no node {name!r}" if name else f"the argument {key!r} is missing: name a node")
    return node


def slot_number(value: object) -> int:
    """A slot, 0 to 7. Raises ActError."""
    if not isinstance(value, str | int) or not str(value).isdecimal() or not 0 <= int(value) < SLOTS:
        raise ActError(f"{value!r} is no slot: use 0 to {SLOTS - 1}")
    return int(value)


def place(world: World, arguments: Arguments, key: str) -> tuple[NodePlan, int]:
    """A place written `node:slot`. Raises ActError."""
    name, colon, slot = str(arguments.get(key, "")).rpartition(":")
    if not colon:
        raise ActError(f"the argument {key!r} is a place: NODE:SLOT, such as {world.plan.nodes[0].name}:0")
    return find_node(world, {"node": name}), slot_number(slot)


def own_place(world: World, arguments: Arguments) -> tuple[NodePlan, int]:
    """The place that the arguments `node` and `slot` name. Raises ActError."""
    if "slot" not in arguments:
        raise ActError(f"the argument 'slot' is missing: 0 to {SLOTS - 1}")
    return find_node(world, arguments), slot_number(arguments["slot"])


def number(arguments: Arguments, key: str, default: int, most: int) -> int:
    """A whole number from 1 to `most`. Raises ActError."""
    value = arguments.get(key, default)
    if not isinstance(value, str | int) or not str(value).isdecimal() or not 1 <= int(value) <= most:
        raise ActError(f"the argument {key!r} is a whole number from 1 to {most}, not {value!r}")
    return int(value)
