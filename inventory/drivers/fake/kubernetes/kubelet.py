"""What kubelets do: start containers on devices, let them end, and finish the removal of pods."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from inventory.drivers.fake.kubernetes.admission import PODS
from inventory.drivers.fake.kubernetes.amounts import asked, finished
from inventory.drivers.fake.kubernetes.scheduling import NODES, condition, set_condition
from inventory.drivers.fake.kubernetes.store import Object, Store, timestamp

RUN_SECONDS = "sensaka-fake/run-seconds"  # an annotation: how long the pod's containers run
_TERMINATED = 143  # 128 + SIGTERM


class Kubelets:
    """All nodes' kubelets. `devices` are the ids of each node's devices by resource.

    `tells_devices` is the feature gate ResourceHealthStatus: without it nobody says which devices a pod has.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.devices: dict[str, dict[str, list[str]]] = {}
        self.tells_devices = True
        self._given: dict[str, dict[str, list[str]]] = {}  # by the pod's UID

    def give(self, uid: str, devices: Mapping[str, list[str]]) -> None:
        """A pod, by its UID, has these devices by resource; what is not given so is chosen when it starts."""
        self._given[uid] = {resource: list(ids) for resource, ids in devices.items()}

    @property
    def given(self) -> dict[str, dict[str, list[str]]]:
        """The devices of each pod, by its UID and their resource."""
        return {uid: dict(devices) for uid, devices in self._given.items()}

    def work(self) -> None:
        """One look at every pod that has a node."""
        ready = {node["metadata"]["name"] for node in self._store.all(NODES) if _is_ready(node)}
        pods = self._store.all(PODS)
        present = {pod["metadata"]["uid"] for pod in pods if not finished(pod)}
        self._given = {uid: given for uid, given in self._given.items() if uid in present}
        for pod in pods:
            node = pod["spec"].get("nodeName")
            if not node:
                if pod["metadata"].get("deletionTimestamp"):
                    remove_when_free(self._store, pod)
            elif node in ready:
                self._look(pod, node)

    def _look(self, pod: Object, node: str) -> None:
        meta = pod["metadata"]
        if meta.get("deletionTimestamp"):
            if not finished(pod):
                self.end(meta["namespace"], meta["name"], _TERMINATED)
            remove_when_free(self._store, self._store.find(PODS, meta["namespace"], meta["name"]))
        elif pod["status"]["phase"] == "Pending":
            self._start(pod, node)
        elif pod["status"]["phase"] == "Running" and (code := _due(pod)) is not None:
            self.end(meta["namespace"], meta["name"], code)

    def _start(self, pod: Object, node: str) -> None:
        meta = pod["metadata"]
        given = self._given.setdefault(meta["uid"], self._take(node, asked(pod["spec"])))
        present = timestamp()

        def edit(value: Object) -> None:
            status = value["status"]
            status |= {"phase": "Running", "startTime": present, "hostIP": "127.0.0.1"}
            for name in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"):
                set_condition(value, name, "True")
            status["containerStatuses"] = [
                _container(one["name"], {"running": {"startedAt": present}}, ready=True)
                for one in value["spec"]["containers"]
            ]
            if given and self.tells_devices:
                status["containerStatuses"][0]["allocatedResourcesStatus"] = [
                    {"name": resource, "resources": [{"resourceID": one, "health": "Healthy"} for one in ids]}
                    for resource, ids in sorted(given.items())
                ]

        self._store.change(PODS, meta["namespace"], meta["name"], edit)

    def _take(self, node: str, wanted: Mapping[str, object]) -> dict[str, list[str]]:
        """Free devices of a node for what a pod asks for."""
        used = {one for given in self._given.values() for ids in given.values() for one in ids}
        found: dict[str, list[str]] = {}
        for resource, ids in self.devices.get(node, {}).items():
            count = int(str(wanted.get(resource, 0)))
            if count:
                found[resource] = [one for one in ids if one not in used][:count]
        return found

    def end(self, namespace: str, name: str, code: int, *, reason: str = "", oom: bool = False) -> None:
        """A running pod's containers end with this code."""
        present = timestamp()

        def edit(value: Object) -> None:
            status = value["status"]
            if status["phase"] in ("Succeeded", "Failed"):
                return
            status["phase"] = "Failed" if code else "Succeeded"
            if reason:
                status["reason"] = reason
            told = "OOMKilled" if oom else "Error" if code else "Completed"
            for one in ("Ready", "ContainersReady"):
                set_condition(value, one, "False", reason="PodFailed" if code else "PodCompleted")
            for one in status.get("containerStatuses", []):
                started = one.get("state", {}).get("running", {}).get("startedAt", present)
                ended = {"exitCode": code, "reason": told, "startedAt": started, "finishedAt": present}
                one |= {"state": {"terminated": ended}, "ready": False}
                one.pop("allocatedResourcesStatus", None)

        self._store.change(PODS, namespace, name, edit)


def _is_ready(node: Object) -> bool:
    told = condition(node, "Ready")
    return told is not None and told["status"] == "True"


def _container(name: str, state: Object, *, ready: bool) -> Object:
    return {
        "name": name,
        "state": state,
        "lastState": {},
        "ready": ready,
        "restartCount": 0,
        "image": "",
        "imageID": "",
    }


def _due(pod: Object) -> int | None:
    """The exit code of a pod whose time has come, None while it runs."""
    started = pod["status"].get("startTime")
    if not started:
        return None
    spent = datetime.now(UTC) - datetime.fromisoformat(started)
    limit = pod["spec"].get("activeDeadlineSeconds")
    if limit is not None and spent >= timedelta(seconds=limit):
        return _TERMINATED
    told = pod["metadata"].get("annotations", {}).get(RUN_SECONDS)
    return 0 if told is not None and spent >= timedelta(seconds=float(told)) else None


def delete_pod(store: Store, pod: Object, grace: int | None = None) -> None:
    """Asks a pod to end; one without a node is gone at once."""
    meta = pod["metadata"]
    if meta.get("deletionTimestamp"):
        return
    seconds = pod["spec"].get("terminationGracePeriodSeconds", 30) if grace is None else grace
    if finished(pod) or not pod["spec"].get("nodeName"):
        seconds = 0

    def edit(value: Object) -> None:
        end = datetime.now(UTC) + timedelta(seconds=seconds)
        value["metadata"] |= {"deletionTimestamp": timestamp(end), "deletionGracePeriodSeconds": seconds}

    changed = store.change(PODS, meta["namespace"], meta["name"], edit)
    if seconds == 0 and changed is not None:
        remove_when_free(store, changed)


def remove_when_free(store: Store, pod: Object | None) -> None:
    """Forgets a pod that is to go, once nobody holds it by a finalizer."""
    if pod is not None and not pod["metadata"].get("finalizers"):
        store.remove(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"])


def drop_finalizer(store: Store, pod: Object) -> None:
    """The Job controller has counted a pod."""

    def edit(value: Object) -> None:
        value["metadata"].pop("finalizers", None)

    store.change(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"], edit)
