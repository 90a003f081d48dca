"""What becomes of pods whose node stops answering, or is removed from the cluster."""

from datetime import UTC, datetime

from inventory.drivers.fake.kubernetes.admission import PODS
from inventory.drivers.fake.kubernetes.amounts import finished
from inventory.drivers.fake.kubernetes.kubelet import delete_pod, remove_when_free
from inventory.drivers.fake.kubernetes.scheduling import NODES, condition, set_condition
from inventory.drivers.fake.kubernetes.store import Object, Store

_TAINTED = {"reason": "DeletionByTaintManager", "message": "Taint manager: deleting due to NoExecute taint"}
_ORPHANED = {"reason": "DeletionByPodGC", "message": "PodGC: node no longer exists"}


def work(store: Store, patience: float) -> None:
    """Asks pods to leave a node that has not been ready for `patience` s, and ends those whose node is gone."""
    nodes = {node["metadata"]["name"]: node for node in store.all(NODES)}
    for pod in store.all(PODS):
        name = pod["spec"].get("nodeName")
        if name and name not in nodes:
            _end(store, pod)
        elif (
            name and not finished(pod) and _lost(nodes[name], patience) and not pod["metadata"].get("deletionTimestamp")
        ):
            marked = _marked(store, pod, _TAINTED)
            if marked is not None:
                delete_pod(store, marked)  # and there it stays: its kubelet does not answer


def _lost(node: Object, patience: float) -> bool:
    told = condition(node, "Ready")
    if told is None or told["status"] == "True":
        return False
    since = datetime.now(UTC) - datetime.fromisoformat(told["lastTransitionTime"])
    return since.total_seconds() >= patience


def _marked(store: Store, pod: Object, fields: dict[str, str], phase: str = "") -> Object | None:
    def edit(value: Object) -> None:
        if condition(value, "DisruptionTarget") is None:
            set_condition(value, "DisruptionTarget", "True", **fields)
        if phase:
            value["status"]["phase"] = phase

    return store.change(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"], edit)


def _end(store: Store, pod: Object) -> None:
    marked = pod if finished(pod) else _marked(store, pod, _ORPHANED, "Failed")
    if marked is not None:
        delete_pod(store, marked, 0)
    remove_when_free(store, store.find(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"]))
