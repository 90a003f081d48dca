"""One Slurm cluster of the fleet: its controller, its people, and what its jobs make the cards do."""

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from inventory.drivers.fake.slurmrestd import Account, Controller, Job, Layout, Node, Partition, Qos, Reservation, Share
from inventory.drivers.fake.slurmrestd.keeping import dump, restore
from sensaka.fleet.hardware import MINORS
from sensaka.fleet.layout import Work
from sensaka.fleet.plan import SLOTS, NodePlan, Plan
from sensaka.fleet.seeds import hexadecimal
from sensaka.fleet.slurm.people import INTERACTIVE, People
from sensaka.fleet.slurm.recipes import NOTEBOOK, USERS, Behaviour, recipe_of
from sensaka.fleet.workload import Demand, Holder, daylight

WARM_UP = 6 * 3600  # s of history that a first start has
CATCH_UP = 2 * 24 * 3600  # s that are made up for after a longer stop
CPUS, MEMORY = 192, 2_000_000  # of every node; MiB
_TICK = 60
_CHECK = "NHC: "  # what the node health check writes in front of its reasons
_LIMITED = {"speech": 0.35}  # accounts with a limit (GrpTRES), in parts of the cluster's cards
_TAKEN_OUT = "fan 3 replaced, burn-in until Friday"


def layout_of(name: str, nodes: Sequence[NodePlan]) -> Layout:
    """Partitions by card model, one more for interactive nodes; accounts with their users."""
    queues: dict[str, list[str]] = {}
    for node in nodes:
        queues.setdefault(INTERACTIVE if node.work is Work.INTERACTIVE else node.kind.key, []).append(node.name)
    total = len(nodes) * SLOTS
    accounts = tuple(
        Account(account, users, account.capitalize(), "Research",
                cards=int(total * _LIMITED[account]) if account in _LIMITED else None)
        for account, users in USERS.items()
    )  # fmt: skip
    partitions = tuple(Partition(queue, tuple(names), limit=24 * 60) for queue, names in sorted(queues.items()))
    return Layout(name, partitions, accounts, (Qos("normal", 10), Qos("high", 100)))


class SlurmCluster:
    """Moves with the world's time; `controller` is what its slurmrestd shows."""

    def __init__(self, plan: Plan, name: str, at: float) -> None:
        self.name = name
        self.nodes = [node for node in plan.nodes if node.cluster == name]
        self._by_name = {node.name: node for node in self.nodes}
        site = self.nodes[0].site
        self._time_zone = site.time_zone
        self._behaviour = Behaviour(plan.seed, name)
        self._people = People(plan.seed, name, site.time_zone)
        first = 40_000 + int(hexadecimal(4, plan.seed, "first job", name), 16)
        made = [
            Node(node.name, SLOTS, node.kind.key, CPUS, MEMORY, (node.kind.key,), node.name, booted=int(at) - 86_400)
            for node in self.nodes
        ]
        self.controller = Controller(
            layout_of(name, self.nodes), made, now=int(at), work=self._behaviour.ending, first_job=first
        )

    @classmethod
    def begin(cls, plan: Plan, name: str, at: float) -> "SlurmCluster":
        """A cluster that has run for some hours, with one node that somebody has taken out."""
        cluster = cls(plan, name, at - WARM_UP)
        largest = max(cluster.controller.layout.partitions, key=lambda one: len(one.nodes))
        if len(largest.nodes) > SLOTS:
            cluster.controller.drain(largest.nodes[-2], _TAKEN_OUT)
        cluster.advance(at)
        return cluster

    @classmethod
    def kept(cls, plan: Plan, name: str, at: float, state: bytes) -> "SlurmCluster":
        """A cluster as it was saved. ValueError when the state can't be read."""
        cluster = cls(plan, name, at)
        restore(cluster.controller, state)
        return cluster

    def state(self) -> bytes:
        """What `kept` takes."""
        return dump(self.controller)

    @property
    def changes(self) -> tuple[int, int]:
        """Starts and ends of runs, and changes from outside, since the process began."""
        return self.controller.moves, self.controller.acts

    # motion

    def advance(self, at: float) -> None:
        """Let jobs come, start and end until `at`."""
        controller = self.controller
        controller.now = max(controller.now, int(at - CATCH_UP))
        tick = (controller.now // _TICK + 1) * _TICK
        while tick <= at:
            controller.advance(tick)
            self._reserve(tick)
            self._people.look(controller, tick)
            tick += _TICK
        controller.advance(at)

    def notice(self, runs: Callable[[NodePlan], bool], working: Callable[[NodePlan], frozenset[int]]) -> None:
        """See which nodes run, and which of their slots have a card that works; what ran elsewhere fails."""
        for node in self.nodes:
            self.controller.set_answering(node.name, runs(node))
            if runs(node):
                self._check(node, working(node))

    def _check(self, node: NodePlan, slots: frozenset[int]) -> None:
        """The node health check: drains a node that lacks cards, and returns what it has drained itself."""
        seen = self.controller.nodes[node.name]
        if len(slots) == SLOTS:
            if seen.drained and seen.reason.startswith(_CHECK):
                self.controller.resume_node(node.name)
            return
        missing = set(range(SLOTS)) - slots
        for job in self.controller.running():
            held = {slot for share in job.shares if share.node == node.name for slot in self.slots(share)}
            if held & missing and job.state == "RUNNING":
                self.controller.finish(job.id, 1)
        if not seen.drained:
            self.controller.drain(node.name, f"{_CHECK}{len(slots)} of {SLOTS} GPUs answer")

    def _reserve(self, tick: int) -> None:
        """Keep two nodes for the next weekly maintenance, Sunday from six to eight."""
        if self.controller.reservations or tick % 3600 or len(self.nodes) < SLOTS:
            return
        start = next_sunday(tick, self._time_zone)
        names = tuple(node.name for node in self.nodes if node.work is not Work.INTERACTIVE)[-2:]
        self.controller.reservations.append(
            Reservation("weekly-maintenance", names, start, start + 2 * 3600, flags=("MAINT", "SPEC_NODES"))
        )
        self.controller.refresh()

    # what it makes cards do

    def fill(self, demands: list[Demand], at: float) -> None:
        """Write what the jobs ask of their cards into `demands` (node by node, slot by slot)."""
        people = daylight(at, self._time_zone)
        for job in self.controller.running():
            demand = self._demand(job, at, people)
            for share in job.shares:
                node = self._by_name[share.node]
                for slot in self.slots(share):
                    demands[node.number * SLOTS + slot] = demand

    def _demand(self, job: Job, at: float, people: float) -> Demand:
        recipe = recipe_of(job)
        holder = Holder(
            kind="notebook" if job.wish.name == NOTEBOOK else "training",
            name=job.wish.name,
            user=job.wish.user,
            started_at=float(job.started),
            slurm_job_id=str(job.id),
        )
        level = self._behaviour.level(job, at, people)
        return Demand(holder, level, self._behaviour.memory(job), recipe.tensor, recipe.traffic)

    def slots(self, share: Share) -> list[int]:
        """The slots (0-7) of what a run holds on a node: gres numbers are the minor numbers of the device files."""
        minors = MINORS[self._by_name[share.node].kind.key]
        return [minors.index(card) for card in share.cards]


@lru_cache(maxsize=64)
def next_sunday(at: int, time_zone: str) -> int:
    """Epoch seconds of the next Sunday at six in the morning there."""
    local = datetime.fromtimestamp(at, UTC).astimezone(ZoneInfo(time_zone))
    start = local.replace(hour=6, minute=0, second=0, microsecond=0) + timedelta(days=6 - local.weekday())
    return math.floor((start if start > local else start + timedelta(days=7)).timestamp())
