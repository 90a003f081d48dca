"""What the pods of the Kubernetes clusters do at a moment: a pure function of the seed, the plan and the wall clock.

Serving follows the day of its site; on interactive nodes some people hold memory and compute nothing. Asking for the
same moment twice gives the same answer, so a restarted fleet goes on where it was. What Slurm runs is in
sensaka.fleet.slurm.
"""

import math
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from sensaka.fleet.layout import SCHEDULERS, Work
from sensaka.fleet.plan import SLOTS, NodePlan, Plan
from sensaka.fleet.seeds import between, fraction, hexadecimal, identifier, pick

HOUR = 3600.0
_USERS = ("amara", "bjorn", "chen", "divya", "elif", "farid", "greta", "hiro")
_SERVICES = ("chat-70b", "embed-large", "code-34b", "translate-8b", "vision-qa")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Holder:
    """What holds a card: one process a card, with the job or pod that it belongs to."""

    kind: str  # training, serving, notebook
    name: str
    user: str
    started_at: float
    slurm_job_id: str = ""
    namespace: str = ""
    pod: str = ""
    pod_uid: str = ""
    container_id: str = ""


@dataclass(frozen=True, slots=True)
class Demand:
    """What one card is asked to do. `activity` and the others are 0-1."""

    job: Holder | None = None
    activity: float = 0.0
    memory: float = 0.0
    tensor: float = 0.0
    traffic: float = 0.0


IDLE = Demand()


@lru_cache(maxsize=16)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def daylight(at: float, time_zone: str) -> float:
    """How busy people are, 0-1: lowest at four in the morning, highest at four in the afternoon, less at weekends."""
    local = datetime.fromtimestamp(at, _zone(time_zone))
    hour = local.hour + local.minute / 60
    level: float = (0.5 - 0.5 * math.cos(2 * math.pi * (hour - 4) / 24)) ** 1.4
    return level * (0.55 if local.weekday() >= 5 else 1.0)


def _window(at: float, length: float, seed: int, *keys: object) -> tuple[int, float]:
    """The number and the start of the window of `length` s that `at` is in; each key has its own phase."""
    phase = length * fraction(seed, "phase", *keys)
    number = math.floor((at + phase) / length)
    return number, number * length - phase


class Workload:
    """The pods of one fleet."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.seed = plan.seed

    def demands(self, at: float) -> list[Demand]:
        """What each place (node by node, slot by slot) is asked to do at `at` (epoch seconds); Slurm's have nothing."""
        result: list[Demand] = [IDLE] * (len(self.plan.nodes) * SLOTS)
        for node in self.plan.nodes:
            if SCHEDULERS[node.cluster] == "slurm":
                continue
            first = node.number * SLOTS
            if node.work is Work.SERVING:
                result[first : first + SLOTS] = self._serving(at, node)
            elif node.work is Work.INTERACTIVE:
                result[first : first + SLOTS] = [self._interactive(at, node, slot) for slot in range(SLOTS)]
        return result

    def _serving(self, at: float, node: NodePlan) -> list[Demand]:
        level = 0.03 + 0.8 * daylight(at, node.site.time_zone)
        return [self._replica(at, node, slot, level) for slot in range(SLOTS)]

    def _replica(self, at: float, node: NodePlan, slot: int, level: float) -> Demand:
        day, start = _window(at, 48 * HOUR, self.seed, "replica", node.name, slot)
        draw = fraction(self.seed, "replica", node.name, slot, day)
        if draw < 0.06:
            return IDLE
        service = pick(_SERVICES, self.seed, "service", node.name, slot // 2, day)
        pod = f"{service}-{hexadecimal(5, self.seed, 'pod', node.name, slot, day).lower()}"
        job = self._pod(service, "serving", pod, node, slot, day, start)
        if draw < 0.12:  # a replica that nobody calls: it holds its memory and waits
            return Demand(job, 0.002, 0.82, 0.3, 0.0)
        share = between(0.55, 1.15, self.seed, "share", node.name, slot, day)
        return Demand(job, min(level * share, 0.97), between(0.8, 0.93, self.seed, "kv", service), 0.35, 0.12)

    def slice_demand(self, at: float, node: NodePlan, slot: int, index: int, generation: int) -> Demand:
        """What one MIG instance is asked to do: a small service of its own, or nothing; 0-1 of the instance."""
        key = (node.name, slot, index, generation)
        day, start = _window(at, 20 * HOUR, self.seed, "slice", *key)
        draw = fraction(self.seed, "slice", *key, day)
        if draw < 0.3:
            return IDLE
        service = pick(_SERVICES, self.seed, "slice", *key, day)
        pod = f"{service}-{hexadecimal(5, self.seed, 'slice', *key, day).lower()}"
        job = self._pod(service, "edge", pod, node, slot * 10 + index, day, start)
        if draw < 0.42:
            return Demand(job, 0.002, 0.6, 0.3)
        level = (0.05 + 0.85 * daylight(at, node.site.time_zone)) * between(0.5, 1.1, self.seed, "sl", *key, day)
        return Demand(job, min(level, 0.98), between(0.45, 0.9, self.seed, "sm", *key, day), 0.35)

    def _interactive(self, at: float, node: NodePlan, slot: int) -> Demand:
        number, start = _window(at, 11 * HOUR, self.seed, "desk", node.name, slot)
        draw = fraction(self.seed, "desk", node.name, slot, number)
        if draw < 0.25:
            return IDLE
        user = pick(_USERS, self.seed, "desk", node.name, slot, number)
        job = self._pod(f"notebook-{user}", "research", f"notebook-{user}-{slot}", node, slot, number, start, user)
        memory = between(0.25, 0.75, self.seed, "held", node.name, slot, number)
        if draw < 0.7:  # an idle hoarder
            return Demand(job, 0.001, memory, 0.2, 0.0)
        burst = fraction(self.seed, "burst", node.name, slot, int(at // 180)) < 0.25 + 0.5 * daylight(
            at, node.site.time_zone
        )
        return Demand(job, 0.72 if burst else 0.01, memory, 0.4, 0.1)

    def _pod(
        self, name: str, namespace: str, pod: str, node: NodePlan, slot: int, number: int, start: float, user: str = ""
    ) -> Holder:
        key = (node.name, slot, number)
        return Holder(
            kind="notebook" if namespace == "research" else "serving",
            name=name,
            user=user,
            started_at=start,
            namespace=namespace,
            pod=pod,
            pod_uid=identifier(self.seed, "pod", *key),
            container_id=hexadecimal(32, self.seed, "c", *key).lower() * 2,
        )
