"""Jobs that people start on a Kubernetes cluster beside its services: one card each, a while, where one is free."""

from datetime import datetime

from inventory.drivers.fake.kubernetes import KubernetesServer
from inventory.drivers.fake.kubernetes.admission import JOBS, NAMESPACES, admitted
from inventory.drivers.fake.kubernetes.cluster import add_namespace
from inventory.drivers.fake.kubernetes.jobs import is_over
from inventory.drivers.fake.kubernetes.scheduling import condition
from inventory.drivers.fake.kubernetes.store import Object
from sensaka.fleet.kubernetes import objects
from sensaka.fleet.seeds import fraction, hexadecimal, pick
from sensaka.fleet.world import World

NAMESPACE = "batch"
_LOOK_EVERY = 120  # s
_MOST_OPEN = 4
_KEPT = 900  # s that a Job is listed after its end (ttlSecondsAfterFinished)
_NAMES = ("embed-docs", "eval-nightly", "transcribe", "finetune-lora", "rerank-index")
_USERS = ("amara", "chen", "greta", "hiro")


class Batch:
    """The people of one cluster; a Job more every few minutes, by the seed and the clock."""

    def __init__(self, server: KubernetesServer, world: World, cluster: str) -> None:
        self._server, self._world, self._cluster = server, world, cluster
        self._looked = int(world.at) // _LOOK_EVERY

    def look(self) -> None:
        """Forget Jobs that ended some time ago, and start one when it is time."""
        store = self._server.store
        ours = [job for job in store.all(JOBS, NAMESPACE) if job["metadata"].get("labels", {}).items() >= _LABELS]
        for job in ours:
            if _ended(job) and self._world.at - _ended(job) > _KEPT:
                store.remove(JOBS, NAMESPACE, job["metadata"]["name"])
        turn = int(self._world.at) // _LOOK_EVERY
        if turn == self._looked:
            return
        self._looked = turn
        seed = self._world.plan.seed
        if sum(not is_over(job) for job in ours) < _MOST_OPEN and fraction(seed, "batch", self._cluster, turn) < 0.6:
            self._start(seed, turn)

    def _start(self, seed: int, turn: int) -> None:
        store = self._server.store
        if store.find(NAMESPACES, "", NAMESPACE) is None:
            add_namespace(self._server, NAMESPACE, objects.MANAGED)
        key = (self._cluster, turn)
        name = f"{pick(_NAMES, seed, 'batch name', *key)}-{hexadecimal(6, seed, 'batch', *key).lower()}"
        labels = {**objects.MANAGED, "user": pick(_USERS, seed, "batch user", *key)}
        spec = {**objects.pod_spec("serving", objects.GPU), "restartPolicy": "Never"}
        job = {
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
            "spec": {"backoffLimit": 1, "template": {"metadata": {"labels": labels}, "spec": spec}},
        }
        if store.find(JOBS, NAMESPACE, name) is None:
            store.create(JOBS, admitted(store, JOBS, job))


_LABELS = objects.MANAGED.items()


def _ended(job: Object) -> float:
    """When a Job was over, epoch seconds; 0 while it is not."""
    for kind in ("Complete", "Failed"):
        told = condition(job, kind)
        if told is not None and told["status"] == "True":
            return datetime.fromisoformat(told["lastTransitionTime"]).timestamp()
    return 0.0
