"""The fleet as it is now: which card sits where, what is switched off or broken, what the sensors show.

Everything that a door shows comes from here, so an act changes every door of a node at once.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from sensaka.fleet.hardware import MIG_CAPABLE, MIG_LAYOUTS, MIG_PROFILES
from sensaka.fleet.layout import Door
from sensaka.fleet.physics import KEPT, Conditions, Constants, Sensors, reset_counters, split, step
from sensaka.fleet.plan import SLOTS, CardPlan, NodePlan, Plan
from sensaka.fleet.seeds import fraction, identifier
from sensaka.fleet.slices import Partitioning, SliceState, instance_ids
from sensaka.fleet.slurm.cluster import SlurmCluster
from sensaka.fleet.workload import IDLE, Demand, Workload

DEMAND_EVERY = 10.0  # s between two looks at the work schedule
_NOTES_KEPT = 200  # entries of one node's event log
_MIG_SLICES = 7  # compute slices of a whole card


class StateError(RuntimeError):
    """The state folder can't be used; the message says why and what to do."""


@dataclass
class NodeState:
    """The switches of one node."""

    os_up: bool = True
    power_on: bool = True
    agent_up: bool = True
    line_up: bool = True
    bmc_up: bool = True
    exporter_silent: bool = False
    boots: int = 0


@dataclass
class World:
    """State and motion of the fleet. Only acts (sensaka.fleet.acts) and `advance` change it."""

    plan: Plan
    at: float
    started_at: float
    nodes: list[NodeState]
    places: list[list[int | None]]
    shelf: list[int] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    growing_ecc: set[int] = field(default_factory=set)
    blocked: set[int] = field(default_factory=set)
    partitions: dict[int, Partitioning] = field(default_factory=dict)
    events: set[str] = field(default_factory=set)
    notes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    enrolled_at: float | None = None
    changes: int = 0

    def __post_init__(self) -> None:
        self.workload = Workload(self.plan)
        self.slurm: dict[str, SlurmCluster] = {}
        self.schedulers_down: set[str] = set()
        # By UUID of a card or MIG instance in Kubernetes: what the fleet wants there (its node, the MIG profile), and
        # what runs there instead by the will of others (sensaka.fleet.kubernetes).
        self.wanted: dict[str, tuple[NodePlan, str, Demand]] = {}
        self.overrides: dict[str, Demand] = {}
        self.constants = Constants([card.kind for card in self.plan.cards], self.plan.seed)
        self._rng = np.random.default_rng([self.plan.seed, int(self.at)])
        self._home = np.array([node.site.inlet for node in self.plan.nodes for _ in range(SLOTS)])
        self.sensors = Sensors.cold(len(self.plan.cards), self._home)
        self._demands: list[Demand] = []
        self._slices: dict[int, list[SliceState]] = {}
        self._looked_at = -1.0
        self._looked_changes = (-1, -1)

    @classmethod
    def fresh(cls, plan: Plan, at: float) -> "World":
        """A fleet at its first start: everything in its slot, a few things wrong from the beginning."""
        world = cls(
            plan=plan,
            at=at,
            started_at=at,
            nodes=[NodeState(exporter_silent=node.silent_exporter) for node in plan.nodes],
            places=[[node.number * SLOTS + slot for slot in range(SLOTS)] for node in plan.nodes],
        )
        for node in plan.nodes:
            if node.mig:
                for slot in range(SLOTS):
                    layout = MIG_LAYOUTS[int(fraction(plan.seed, "mig", node.name, slot) * len(MIG_LAYOUTS))]
                    world.partitions[node.number * SLOTS + slot] = Partitioning(layout)
        whole = [node for node in plan.nodes if node.door is Door.AGENT and not node.mig and not node.os_down]
        if whole:
            dying = whole[len(whole) // 3]
            world.growing_ecc.add(dying.number * SLOTS + 5)
            world.blocked.add(whole[len(whole) // 2].number * SLOTS + 2)
        world.slurm = {name: SlurmCluster.begin(plan, name, at) for name in plan.slurm_clusters}
        world.warm_up()
        return world

    def warm_up(self) -> None:
        """Bring heat and power to what the present work gives, and the lifetime counters to a plausible age."""
        rng = np.random.default_rng([self.plan.seed, 11])
        count = len(self.plan.cards)
        hours = rng.uniform(60, 900, count)  # since the driver was loaded
        self._look()
        for seconds in [2.0] * 5 + [30.0] * 10:
            self._step(seconds)
        self.sensors.energy = hours * 3600 * self.constants.limit * rng.uniform(0.35, 0.7, count)
        self.sensors.ecc_corrected += rng.poisson(0.4, count)

    # motion

    def advance(self, now: float) -> None:
        """Move to the wall-clock time `now`; a gap (the process was down) is walked through in steps."""
        for seconds in split(now - self.at):
            self.at += seconds
            self._schedule()
            if self.at - self._looked_at >= DEMAND_EVERY or self._looked_changes != self._moved():
                self._look()
            self._step(seconds)
        self.at = max(self.at, now)

    def _schedule(self) -> None:
        """Let the schedulers go on, with what they can see of the nodes."""
        for cluster in self.slurm.values():
            cluster.advance(self.at)
            cluster.notice(self.runs, self.working_slots)

    def _moved(self) -> tuple[int, int]:
        return self.changes, sum(cluster.changes[0] for cluster in self.slurm.values())

    def _look(self) -> None:
        """Ask pods and jobs what each card has to do, by the place where the card is."""
        self._looked_at, self._looked_changes = self.at, self._moved()
        by_place = self.workload.demands(self.at)
        for cluster in self.slurm.values():
            cluster.fill(by_place, self.at)
        demands = [IDLE] * len(self.plan.cards)
        self._slices.clear()
        self.wanted.clear()
        for node in self.plan.nodes:
            if not self.runs(node):
                continue
            for slot, number in enumerate(self.places[node.number]):
                if number is None or number in self.lost:
                    continue
                if number in self.partitions:
                    demands[number] = self._look_at_slices(node, slot, number)
                else:
                    wish = by_place[node.number * SLOTS + slot]
                    demands[number] = self._held(node, self.plan.cards[number].uuid, "", wish)
        self._demands = demands

    def _held(self, node: NodePlan, device: str, profile: str, wish: Demand) -> Demand:
        """What holds a device: the fleet's own wish, unless others had theirs."""
        if node.cluster not in self.slurm:
            self.wanted[device] = (node, profile, wish)
        return self.overrides.get(device, wish)

    def _look_at_slices(self, node: NodePlan, slot: int, number: int) -> Demand:
        card, layout = self.plan.cards[number], self.partitions[number]
        states: list[SliceState] = []
        activity = memory = 0.0
        for index, (name, instance) in enumerate(zip(layout.profiles, instance_ids(layout.profiles), strict=True)):
            profile = MIG_PROFILES[name]
            total = profile.memory * 1024**2
            uuid = f"MIG-{identifier(self.plan.seed, card.uuid, layout.generation, index)}"
            wish = self.workload.slice_demand(self.at, node, slot, index, layout.generation)
            demand = self._held(node, uuid, name, wish)
            jitter = 0.96 + 0.08 * fraction(self.plan.seed, "jitter", number, index, int(self.at))
            states.append(
                SliceState(
                    uuid=uuid,
                    profile=name,
                    instance_id=instance,
                    memory_total=total,
                    memory_used=int(demand.memory * total),
                    activity=min(100.0, 100 * demand.activity * jitter),
                    demand=demand,
                )
            )
            activity += demand.activity * profile.slices / _MIG_SLICES
            memory += demand.memory * total / card.kind.memory
        self._slices[number] = states
        return Demand(None, min(activity, 1.0), min(memory, 1.0), 0.35, 0.02)

    def _step(self, seconds: float) -> None:
        step(self.sensors, self.constants, self._conditions(), self._demands, seconds, self._rng)

    def _conditions(self) -> Conditions:
        count = len(self.plan.cards)
        powered, inlet, cooling = np.zeros(count, dtype=np.bool_), self._home.copy(), np.ones(count)
        growing = np.zeros(count, dtype=np.bool_)
        for node in self.plan.nodes:
            state = self.nodes[node.number]
            for number in self.places[node.number]:
                if number is not None:
                    powered[number] = state.power_on and number not in self.lost
                    inlet[number] = node.site.inlet
        cooling[list(self.blocked)] = 0.52
        growing[list(self.growing_ecc)] = True
        return Conditions(powered, inlet, cooling, growing)

    # views

    def runs(self, node: NodePlan) -> bool:
        """Whether the node's operating system runs."""
        state = self.nodes[node.number]
        return state.power_on and state.os_up

    def working_slots(self, node: NodePlan) -> frozenset[int]:
        """The slots (0-7) with a card that the driver reaches."""
        places = enumerate(self.places[node.number])
        return frozenset(slot for slot, number in places if number is not None and number not in self.lost)

    def card_at(self, node: NodePlan, slot: int) -> CardPlan | None:
        """The card in a slot (0-7), or None."""
        number = self.places[node.number][slot]
        return None if number is None else self.plan.cards[number]

    def demand_of(self, number: int) -> Demand:
        """What a card is doing at the moment."""
        return self._demands[number] if self._demands else IDLE

    def slices_of(self, number: int) -> list[SliceState]:
        """The MIG instances of a card, empty when MIG is off."""
        return self._slices.get(number, [])

    def place_of(self, number: int) -> tuple[NodePlan, int] | None:
        """Node and slot of a card; None when it is on the shelf."""
        for node in self.plan.nodes:
            if number in self.places[node.number]:
                return node, self.places[node.number].index(number)
        return None

    def boot_id(self, node: NodePlan) -> str:
        """Changes with every boot, as /proc/sys/kernel/random/boot_id does."""
        return identifier(self.plan.seed, "boot", node.name, self.nodes[node.number].boots)

    def node_power(self, node: NodePlan) -> float:
        """W of the whole server: its cards and 1.6 kW of processors, fans and switches; 25 W when off."""
        if not self.nodes[node.number].power_on:
            return 25.0
        cards = [number for number in self.places[node.number] if number is not None]
        total = float(self.sensors.power[cards].sum()) if cards else 0.0
        return 1100.0 + total * 1.12

    def mig_possible(self, card: CardPlan) -> bool:
        """Whether this simulation partitions the card's model."""
        return card.kind.key in MIG_CAPABLE

    def boot(self, node: NodePlan) -> None:
        """The operating system starts: new boot id, drivers loaded anew."""
        self.nodes[node.number].boots += 1
        for number in self.places[node.number]:
            if number is not None:
                reset_counters(self.sensors, number)

    def note(self, node: NodePlan, text: str, severity: str) -> None:
        """Write an entry into the node's event log, which its BMC shows."""
        entries = self.notes.setdefault(node.name, [])
        number = entries[-1]["number"] + 1 if entries else 1
        entries.append({"number": number, "at": round(self.at, 3), "text": text, "severity": severity})
        del entries[:-_NOTES_KEPT]

    def notes_of(self, node: NodePlan) -> list[tuple[int, dict[str, Any]]]:
        """The entries of a node's event log with their numbers, oldest first."""
        return [(entry["number"], entry) for entry in self.notes.get(node.name, [])]

    def changed(self) -> None:
        """Note that something else than time has changed the fleet."""
        self.changes += 1

    # keeping (sensaka.fleet.storage)

    def dump(self) -> dict[str, Any]:
        """The whole state as JSON values."""
        return {
            "version": 1,
            "seed": self.plan.seed,
            "size": len(self.plan.nodes),
            "at": self.at,
            "started_at": self.started_at,
            "nodes": {node.name: asdict(self.nodes[node.number]) for node in self.plan.nodes},
            "places": {node.name: self.places[node.number] for node in self.plan.nodes},
            "shelf": self.shelf,
            "lost": sorted(self.lost),
            "growing_ecc": sorted(self.growing_ecc),
            "blocked": sorted(self.blocked),
            "partitions": {str(number): asdict(layout) for number, layout in self.partitions.items()},
            "events": sorted(self.events),
            "notes": self.notes,
            "enrolled_at": self.enrolled_at,
            "sensors": {name: [round(float(v), 3) for v in getattr(self.sensors, name)] for name in KEPT},
        }

    @classmethod
    def restore(cls, plan: Plan, stored: dict[str, Any]) -> "World":
        """A fleet that was stopped; StateError when it was another one."""
        if (stored.get("seed"), stored.get("size")) != (plan.seed, len(plan.nodes)):
            raise StateError(
                f"this state folder holds a fleet of {stored.get('size')} nodes with seed {stored.get('seed')}, "
                f"not {len(plan.nodes)} with seed {plan.seed}: use the same again, or another folder"
            )
        world = cls(
            plan=plan,
            at=stored["at"],
            started_at=stored["started_at"],
            nodes=[NodeState(**stored["nodes"][node.name]) for node in plan.nodes],
            places=[list(stored["places"][node.name]) for node in plan.nodes],
            shelf=list(stored["shelf"]),
            lost=set(stored["lost"]),
            growing_ecc=set(stored["growing_ecc"]),
            blocked=set(stored["blocked"]),
            partitions={
                int(number): Partitioning(tuple(layout["profiles"]), layout["generation"])
                for number, layout in stored["partitions"].items()
            },
            events=set(stored["events"]),
            notes=stored["notes"],
            enrolled_at=stored["enrolled_at"],
        )
        for name in KEPT:
            setattr(world.sensors, name, np.array(stored["sensors"][name], dtype=np.float64))
        world._look()
        return world
