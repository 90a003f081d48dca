"""Who owns a pod, up to the workload that a user started, and what of it acts can steer. Pure."""

from dataclasses import dataclass, field

from inventory.drivers.clusters.kubernetes import wire
from inventory.drivers.clusters.kubernetes.names import JobAddress

_MOST_STEPS = 8
_CLOCKS = frozenset({"CronJob"})  # start Jobs by time; steering one run of them is steering the Job


@dataclass(frozen=True, slots=True)
class Step:
    """One object in a chain of owners."""

    kind: str
    name: str


@dataclass(slots=True)
class Owners:
    """What owns which object, by the owned one's UID; None for what nobody owns."""

    of: dict[str, wire.Owner | None] = field(default_factory=dict)

    def learn(self, meta: wire.Meta) -> None:
        """Keeps the controller of one object that owns pods or their owners."""
        self.of[meta.uid] = meta.controller()

    def chain(self, pod: wire.Meta) -> list[Step]:
        """The pod's controllers, the nearest first, as far as they are known."""
        found: list[Step] = []
        owner = pod.controller()
        while owner is not None and len(found) < _MOST_STEPS:
            found.append(Step(owner.kind, owner.name))
            owner = self.of.get(owner.uid)
        return found


def address_of(namespace: str, pod: str, chain: list[Step]) -> JobAddress:
    """What acts on this pod's job steer: the topmost controller, but not the clock that starts it."""
    steered = [step for step in chain if step.kind not in _CLOCKS]
    if not steered:
        return JobAddress(namespace, "pod", pod)
    return JobAddress(namespace, steered[-1].kind.lower(), steered[-1].name)


def workload_of(pod: str, chain: list[Step]) -> str:
    """The workload that a user knows, "CronJob/nightly"."""
    return f"{chain[-1].kind}/{chain[-1].name}" if chain else f"Pod/{pod}"


def belongs_to_node(pod: wire.Meta, mirror: str) -> bool:
    """Whether the pod is part of its node: of a DaemonSet, or a static pod's mirror."""
    owner = pod.controller()
    return mirror in pod.annotations or (owner is not None and owner.kind in ("DaemonSet", "Node"))
