"""What can be done to the fleet from outside: cards pulled, swapped and lost, doors closed, power cut.

An act changes the world; all doors of a node show it at their next answer. An act that makes no
sense (an empty slot, an unknown node) is refused with an ActError that says what would.
"""

from collections.abc import Callable

from sensaka.fleet.arguments import ActError, Arguments, find_node, own_place, place
from sensaka.fleet.hardware import MIG_LAYOUTS, MIG_PROFILES
from sensaka.fleet.job_acts import JOB_ACTS
from sensaka.fleet.layout import Door
from sensaka.fleet.physics import reset_counters
from sensaka.fleet.plan import CardPlan, NodePlan
from sensaka.fleet.slices import Partitioning
from sensaka.fleet.world import World


def _card(world: World, node: NodePlan, slot: int) -> CardPlan:
    card = world.card_at(node, slot)
    if card is None:
        raise ActError(f"slot {slot} of {node.name} is empty")
    return card


def _insert(world: World, node: NodePlan, slot: int, number: int) -> None:
    """Put a card into a slot: its driver is loaded anew, so its counters start again."""
    world.places[node.number][slot] = number
    world.lost.discard(number)
    reset_counters(world.sensors, number)


def _fits(node: NodePlan, card: CardPlan) -> None:
    if card.kind.module != node.kind.module or card.kind.vendor != node.kind.vendor:
        raise ActError(f"{card.kind.name} does not fit into {node.name}, whose baseboard takes {node.kind.name}")


def pull_card(world: World, arguments: Arguments) -> str:
    """Take a card out and lay it on the shelf."""
    node, slot = own_place(world, arguments)
    card = _card(world, node, slot)
    world.places[node.number][slot] = None
    world.shelf.append(card.number)
    return f"{card.serial} was pulled from slot {slot} of {node.name} and lies on the shelf"


def return_card(world: World, arguments: Arguments) -> str:
    """Put a card from the shelf (the given serial, or the one pulled last) into an empty slot."""
    node, slot = own_place(world, arguments)
    if not world.shelf:
        raise ActError("no card lies on the shelf")
    if world.places[node.number][slot] is not None:
        raise ActError(f"slot {slot} of {node.name} is not empty")
    wanted = arguments.get("serial")
    fitting = [number for number in world.shelf if wanted in (None, "", world.plan.cards[number].serial)]
    if not fitting:
        raise ActError(f"no card with the serial number {wanted} lies on the shelf")
    card = world.plan.cards[fitting[-1]]
    _fits(node, card)
    world.shelf.remove(card.number)
    _insert(world, node, slot, card.number)
    return f"{card.serial} was put into slot {slot} of {node.name}"


def swap_cards(world: World, arguments: Arguments) -> str:
    """Exchange the cards of two places."""
    (first, a), (second, b) = place(world, arguments, "a"), place(world, arguments, "b")
    if (first.name, a) == (second.name, b):
        raise ActError("these are the same place")
    one, other = _card(world, first, a), _card(world, second, b)
    _fits(second, one)
    _fits(first, other)
    _insert(world, first, a, other.number)
    _insert(world, second, b, one.number)
    return f"{one.serial} ({first.name}:{a}) and {other.serial} ({second.name}:{b}) were exchanged"


def move_card(world: World, arguments: Arguments) -> str:
    """Move a card to an empty place."""
    (source, a), (target, b) = place(world, arguments, "a"), place(world, arguments, "b")
    card = _card(world, source, a)
    if world.places[target.number][b] is not None:
        raise ActError(f"slot {b} of {target.name} is not empty: pull its card first, or use swap_cards")
    _fits(target, card)
    world.places[source.number][a] = None
    _insert(world, target, b, card.number)
    return f"{card.serial} was moved from {source.name}:{a} to {target.name}:{b}"


def lose_card(world: World, arguments: Arguments) -> str:
    """A card falls off the bus: the driver can't reach it, it still sits in its slot."""
    node, slot = own_place(world, arguments)
    card = _card(world, node, slot)
    world.lost.add(card.number)
    return f"{card.serial} in slot {slot} of {node.name} has fallen off the bus"


def grow_ecc(world: World, arguments: Arguments) -> str:
    """A card begins to collect corrected memory errors; `on` false ends it."""
    node, slot = own_place(world, arguments)
    card = _card(world, node, slot)
    if arguments.get("on", True) in (False, "false", "0", "no"):
        world.growing_ecc.discard(card.number)
        return f"{card.serial} collects no more errors than others"
    world.growing_ecc.add(card.number)
    return f"{card.serial} in slot {slot} of {node.name} collects corrected errors"


def reconfigure_mig(world: World, arguments: Arguments) -> str:
    """Make the MIG instances of a card anew: the given profiles, `off`, or the next layout."""
    node, slot = own_place(world, arguments)
    card = _card(world, node, slot)
    if not world.mig_possible(card):
        raise ActError(f"{card.kind.name} can't be cut into MIG instances here")
    old = world.partitions.get(card.number)
    wanted = arguments.get("profiles")
    if wanted == "off":
        if old is None:
            raise ActError(f"MIG is off on {card.serial} already")
        del world.partitions[card.number]
        return f"MIG was switched off on {card.serial} ({node.name}:{slot})"
    profiles = _profiles(wanted) if wanted else _next_layout(old)
    world.partitions[card.number] = Partitioning(profiles, old.generation + 1 if old else 0)
    return f"{card.serial} ({node.name}:{slot}) was cut into {', '.join(profiles)}"


def _profiles(wanted: object) -> tuple[str, ...]:
    names = tuple(wanted.split(",")) if isinstance(wanted, str) else tuple(wanted) if isinstance(wanted, list) else ()
    unknown = [name for name in names if name not in MIG_PROFILES]
    if unknown or not names:
        raise ActError(f"profiles are a list of {', '.join(MIG_PROFILES)}, or off; not {unknown or wanted}")
    slices = sum(MIG_PROFILES[name].slices for name in names)
    # A profile of three slices takes half of the memory, as one of four does.
    memory = sum({1: 1, 2: 2, 3: 4, 4: 4}[MIG_PROFILES[name].slices] for name in names)
    if slices > 7 or memory > 8:
        raise ActError(f"{', '.join(names)} is more than one card holds (7 compute and 8 memory slices)")
    return names


def _next_layout(old: Partitioning | None) -> tuple[str, ...]:
    if old is None or old.profiles not in MIG_LAYOUTS:
        return MIG_LAYOUTS[0]
    return MIG_LAYOUTS[(MIG_LAYOUTS.index(old.profiles) + 1) % len(MIG_LAYOUTS)]


def _agent_node(world: World, arguments: Arguments) -> NodePlan:
    node = find_node(world, arguments)
    if node.door not in (Door.AGENT, Door.REAL_AGENT):
        raise ActError(f"{node.name} has no agent: its cards are read by {node.door}")
    return node


def _switch(field: str, value: bool, agent: bool, text: str) -> Callable[[World, Arguments], str]:
    def act(world: World, arguments: Arguments) -> str:
        node = _agent_node(world, arguments) if agent else find_node(world, arguments)
        if getattr(world.nodes[node.number], field) == value:
            raise ActError(f"nothing to do: {text.format(node.name)} already")
        setattr(world.nodes[node.number], field, value)
        return text.format(node.name)

    return act


def silence_exporter(world: World, arguments: Arguments) -> str:
    """The exporter takes connections and never answers."""
    node = find_node(world, arguments)
    if node.door is not Door.EXPORTER:
        raise ActError(f"{node.name} has no exporter: its cards are read by {node.door}")
    world.nodes[node.number].exporter_silent = True
    return f"the exporter of {node.name} takes connections and answers nothing"


def os_down(world: World, arguments: Arguments) -> str:
    """The operating system stops; the power stays on and the BMC answers."""
    node = find_node(world, arguments)
    if not world.runs(node):
        raise ActError(f"the operating system of {node.name} is down already")
    world.nodes[node.number].os_up = False
    return f"the operating system of {node.name} is down"


def os_up(world: World, arguments: Arguments) -> str:
    """The operating system boots (and power comes on first when it was off)."""
    node = find_node(world, arguments)
    if world.runs(node):
        raise ActError(f"the operating system of {node.name} runs already")
    state = world.nodes[node.number]
    state.os_up = state.power_on = True
    world.boot(node)
    return f"{node.name} has booted"


def power_off(world: World, arguments: Arguments) -> str:
    """The node loses its power; its BMC runs on standby power."""
    node = find_node(world, arguments)
    if not world.nodes[node.number].power_on:
        raise ActError(f"{node.name} is off already")
    world.nodes[node.number].power_on = False
    return f"{node.name} is off"


def restore(world: World, arguments: Arguments) -> str:
    """Everything of a node works again: power, system, agent, line, BMC, exporter, cards in it.

    Cards stay where they are; what was pulled stays on the shelf.
    """
    node = find_node(world, arguments)
    state = world.nodes[node.number]
    if not world.runs(node):
        world.boot(node)
    state.os_up = state.power_on = state.agent_up = state.line_up = state.bmc_up = True
    state.exporter_silent = False
    for number in world.places[node.number]:
        if number is not None:
            world.lost.discard(number)
            world.growing_ecc.discard(number)
            world.blocked.discard(number)
    return f"everything of {node.name} works"


ACTS: dict[str, Callable[[World, Arguments], str]] = {
    "pull_card": pull_card,
    "return_card": return_card,
    "swap_cards": swap_cards,
    "move_card": move_card,
    "lose_card": lose_card,
    "grow_ecc": grow_ecc,
    "reconfigure_mig": reconfigure_mig,
    "stop_bmc": _switch("bmc_up", False, False, "the BMC of {} does not answer"),
    "start_bmc": _switch("bmc_up", True, False, "the BMC of {} answers"),
    "stop_agent": _switch("agent_up", False, True, "the agent of {} is stopped"),
    "start_agent": _switch("agent_up", True, True, "the agent of {} runs"),
    "cut_agent_line": _switch("line_up", False, True, "the agent of {} can't reach the server"),
    "silence_exporter": silence_exporter,
    "os_down": os_down,
    "os_up": os_up,
    "power_off": power_off,
    "power_on": os_up,
    "restore": restore,
    **JOB_ACTS,
}


_GRAVE = frozenset({"lose_card", "os_down", "power_off"})


def perform(world: World, arguments: Arguments) -> str:
    """Do what `do` names and say what was done. Raises ActError."""
    name = arguments.get("do")
    act = ACTS.get(name) if isinstance(name, str) else None
    if act is None:
        raise ActError(f"there is no act {name!r}; there are: {', '.join(sorted(ACTS))}")
    told = act(world, arguments)
    if name in JOB_ACTS:  # nothing that a BMC would know
        world.changed()
        return told
    names = {str(arguments.get("node", "")), *(str(arguments.get(key, "")).rpartition(":")[0] for key in ("a", "b"))}
    for node in (world.plan.by_name[name] for name in sorted(names) if name in world.plan.by_name):
        world.note(node, told, "Critical" if name in _GRAVE else "OK")
    world.changed()
    return told


__all__ = ["ACTS", "ActError", "perform"]
