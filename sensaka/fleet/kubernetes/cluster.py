"""One Kubernetes cluster of the fleet: an API server that shows the fleet's pods and runs what others start.

What the fleet wants stands in `World.wanted`: which pod holds which card or MIG instance. The API server gets it as
pods of Deployments under the same names and UIDs that the agents report. What others do there counts: an evicted pod
stays away, and a pod of somebody else on a free card makes that card work (`World.overrides`).
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from inventory.drivers.fake.kubernetes import KubernetesServer
from inventory.drivers.fake.kubernetes.admission import NAMESPACES, PODS, admitted
from inventory.drivers.fake.kubernetes.amounts import finished
from inventory.drivers.fake.kubernetes.cluster import add_namespace, add_node, set_ready
from inventory.drivers.fake.kubernetes.jobs import owner_of
from inventory.drivers.fake.kubernetes.scheduling import NODES
from inventory.drivers.fake.kubernetes.services import BUDGETS, DEPLOYMENTS, SETS
from sensaka.fleet.kubernetes import objects
from sensaka.fleet.kubernetes.batch import Batch
from sensaka.fleet.plan import SLOTS, NodePlan
from sensaka.fleet.seeds import between, fraction
from sensaka.fleet.workload import IDLE, Demand, Holder
from sensaka.fleet.world import World

_REMEMBERED = 3000  # pods of ours that are known for such, so that none comes back under its UID
_SETTLE = 0.5  # s between two looks of its controllers
_VERSIONS_A_SECOND = 10  # versions go on from the clock, so that none comes twice after a restart
_SHORTEST, _LONGEST = 300.0, 1800.0  # s that a Job of somebody else runs


@dataclass(frozen=True, slots=True)
class Wanted:
    """One pod of the fleet with its device."""

    node: str
    device: str
    profile: str
    holder: Holder

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.holder.namespace, self.holder.pod


class KubernetesCluster:
    """`sync` brings API server and world together; call it from the world's thread."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.server = KubernetesServer(tick=_SETTLE)
        self._world = world
        self._nodes = [node for node in world.plan.nodes if node.cluster == name]
        self._made: dict[str, tuple[str, str]] = {}  # our pods by UID, those too that were taken away
        self._devices: dict[str, dict[str, list[str]]] = {}
        self._ready: dict[str, bool] = {}
        self._batch = Batch(self.server, world, name)

    # keeping

    def state(self) -> bytes:
        """All objects, and which devices pods have."""
        store, kubelets = self.server.store, self.server.kubelets
        with store.lock:
            told = {"objects": store.dump(), "given": kubelets.given, "made": self._made}
            return json.dumps(told).encode()

    def restore(self, state: bytes) -> None:
        """Take over a kept state. ValueError when it is none."""
        told = json.loads(state)
        try:
            objects_kept, given, made = told["objects"], told["given"], told["made"]
        except (KeyError, TypeError) as error:
            raise ValueError(f"no state of a cluster: {error}") from error
        self.server.store.restore(objects_kept, self._version())
        for uid, devices in given.items():
            self.server.kubelets.give(uid, devices)
        self._made = {uid: (place[0], place[1]) for uid, place in made.items()}

    def _version(self) -> int:
        return int(self._world.at * _VERSIONS_A_SECOND)

    # bringing together

    def sync(self) -> None:
        """Nodes, the fleet's pods, and what others' pods do to the cards."""
        self.server.log.clear()
        store = self.server.store
        with store.lock:
            if store.version < self._version() - 24 * 3600 * _VERSIONS_A_SECOND:
                store.restore({}, self._version())
            for node in self._nodes:
                self._keep_node(node)
            wanted = list(self._wanted())
            foreign = self._foreign()
            self._keep_services(wanted)
            self._keep_pods(wanted, {device for _, devices in foreign for device in devices})
            self._load(wanted, foreign)
            self._batch.look()

    def _keep_node(self, node: NodePlan) -> None:
        devices = self._devices_of(node)
        store = self.server.store
        if store.find(NODES, "", node.name) is None:
            add_node(self.server, node.name, devices, labels=objects.node_labels(node), cpus=192, memory="2000Gi",
                     system_uuid=node.system_uuid)  # fmt: skip
        elif self._devices.get(node.name) != devices:
            self.server.kubelets.devices[node.name] = devices
            amounts = {resource: str(len(ids)) for resource, ids in devices.items()}

            def edit(value: dict[str, Any]) -> None:
                for part in ("capacity", "allocatable"):
                    known = {key: told for key, told in value["status"][part].items() if "/" not in key}
                    value["status"][part] = {**known, **amounts}

            store.change(NODES, "", node.name, edit)
        self._devices[node.name] = devices
        runs = self._world.runs(node)
        if self._ready.get(node.name) is not runs:
            set_ready(self.server, node.name, runs)
            self._ready[node.name] = runs

    def _devices_of(self, node: NodePlan) -> dict[str, list[str]]:
        """Ids by resource as the device plugin tells them: cards that work, or their MIG instances."""
        found: dict[str, list[str]] = {}
        for slot in range(SLOTS):
            card = self._world.card_at(node, slot)
            if card is None or card.number in self._world.lost:
                continue
            slices = self._world.slices_of(card.number)
            for part in slices:
                found.setdefault(objects.resource_of(part.profile), []).append(part.uuid)
            if not slices:
                found.setdefault(objects.GPU, []).append(card.uuid)
        return found

    def _wanted(self) -> Iterable[Wanted]:
        for device, (node, profile, demand) in self._world.wanted.items():
            if node.cluster == self.name and demand.job is not None:
                yield Wanted(node.name, device, profile, demand.job)

    def _foreign(self) -> list[tuple[dict[str, Any], list[str]]]:
        """Pods of others that run on devices of ours."""
        given = self.server.kubelets.given
        found = []
        for pod in self.server.store.all(PODS):
            uid = pod["metadata"]["uid"]
            if uid in self._made or pod["status"]["phase"] != "Running":
                continue
            self._end_when_due(pod)
            found.append((pod, [one for ids in given.get(uid, {}).values() for one in ids]))
        return found

    def _end_when_due(self, pod: dict[str, Any]) -> None:
        """A container of a Job ends after a while; a few of them badly."""
        meta = pod["metadata"]
        if not any(owner["kind"] == "Job" for owner in meta.get("ownerReferences", [])):
            return
        seed, uid = self._world.plan.seed, meta["uid"]
        age = self._world.at - datetime.fromisoformat(pod["status"]["startTime"]).timestamp()
        if age >= between(_SHORTEST, _LONGEST, seed, "job runs", uid):
            code = 1 if fraction(seed, "job ends", uid) < 0.05 else 0
            self.server.kubelets.end(meta["namespace"], meta["name"], code)

    def _keep_services(self, wanted: list[Wanted]) -> None:
        """Namespaces, and a Deployment with a budget for each service, as large as the fleet wants it."""
        store = self.server.store
        for namespace in {one.holder.namespace for one in wanted}:
            if store.find(NAMESPACES, "", namespace) is None:
                add_namespace(self.server, namespace, objects.MANAGED)
        counts = Counter(place for one in wanted if (place := _service(one)))
        for value in store.all(DEPLOYMENTS):
            meta = value["metadata"]
            if meta.get("labels", {}).items() >= objects.MANAGED.items():
                _resize(self.server, meta["namespace"], meta["name"], counts.pop(_place(value), 0))
        for (namespace, name, kind, resource), replicas in counts.items():
            made = store.create(DEPLOYMENTS, objects.deployment(name, namespace, kind, resource, replicas))
            owner = owner_of(made, "Deployment", "apps/v1")
            body = {"name": f"{name}-5d4f8", "namespace": namespace, "ownerReferences": [owner]}
            store.create(SETS, {"metadata": body, "spec": {"replicas": replicas, "template": made["spec"]["template"]}})
            store.create(BUDGETS, objects.budget(name, namespace))

    def _keep_pods(self, wanted: list[Wanted], taken: set[str]) -> None:
        store = self.server.store
        by_uid = {one.holder.pod_uid: one for one in wanted}
        for uid, (namespace, name) in self._made.items():
            known = None if uid in by_uid else store.find(PODS, namespace, name)
            if known is None or known["metadata"]["uid"] != uid:
                continue
            if self._world.runs(self._world.plan.by_name[known["spec"]["nodeName"]]):
                store.remove(PODS, namespace, name)
        for uid in list(self._made)[:-_REMEMBERED]:
            del self._made[uid]
        for uid, one in by_uid.items():
            out = (store.find(NODES, "", one.node) or {}).get("spec", {}).get("unschedulable")
            if uid in self._made or one.device in taken or out or store.find(PODS, *one.key) is not None:
                continue
            self._make(one)

    def _make(self, one: Wanted) -> None:
        store = self.server.store
        resource = objects.resource_of(one.profile)
        place = _service(one)
        parent = store.find(SETS, place[0], f"{place[1]}-5d4f8") if place else None
        owner = owner_of(parent, "ReplicaSet", "apps/v1") if parent is not None else None
        value = admitted(store, PODS, objects.pod(one.holder, one.node, resource, owner))
        devices = {resource: [one.device]}
        objects.running(value, one.holder, devices)
        self.server.kubelets.give(one.holder.pod_uid, devices)
        store.create(PODS, value, uid=one.holder.pod_uid, at=value["status"]["startTime"])
        self._made[one.holder.pod_uid] = one.key

    def _load(self, wanted: list[Wanted], foreign: list[tuple[dict[str, Any], list[str]]]) -> None:
        """Tell the world which devices do something else than the fleet wants."""
        store, world = self.server.store, self._world
        overrides: dict[str, Demand] = {}
        for one in wanted:
            known = store.find(PODS, *one.key)
            if known is None or known["metadata"]["uid"] != one.holder.pod_uid or finished(known):
                overrides[one.device] = IDLE
        for pod, devices in foreign:
            for device in devices:
                overrides[device] = _demand_of(pod, world.plan.seed)
        ours = {device for devices in self._devices.values() for ids in devices.values() for device in ids}
        kept = {device: demand for device, demand in world.overrides.items() if device not in ours}
        if (changed := {**kept, **overrides}) != world.overrides:
            world.overrides = changed
            world.changed()


def _service(one: Wanted) -> tuple[str, str, str, str] | None:
    """Namespace, name, kind and resource of the Deployment that a pod is of; a notebook is of none."""
    if one.holder.kind != "serving":
        return None
    name = objects.workload_name(one.holder, one.profile)
    return one.holder.namespace, name, one.holder.kind, objects.resource_of(one.profile)


def _place(value: dict[str, Any]) -> tuple[str, str, str, str]:
    meta = value["metadata"]
    limits = value["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    return meta["namespace"], meta["name"], "serving", next(name for name in limits if "/" in name)


def _resize(server: KubernetesServer, namespace: str, name: str, replicas: int) -> None:
    def edit(value: dict[str, Any]) -> None:
        value["spec"]["replicas"] = replicas

    server.store.change(DEPLOYMENTS, namespace, name, edit)
    server.store.change(SETS, namespace, f"{name}-5d4f8", edit)


def _demand_of(pod: dict[str, Any], seed: int) -> Demand:
    """What a pod of somebody else asks of each of its devices."""
    meta = pod["metadata"]
    uid = meta["uid"]
    statuses = pod["status"].get("containerStatuses") or [{}]
    holder = Holder(
        kind="serving",
        name=meta["name"],
        user=meta.get("labels", {}).get("user", ""),
        started_at=datetime.fromisoformat(pod["status"]["startTime"]).timestamp(),
        namespace=meta["namespace"],
        pod=meta["name"],
        pod_uid=uid,
        container_id=statuses[0].get("containerID", "").removeprefix("containerd://"),
    )
    return Demand(holder, between(0.5, 0.97, seed, "foreign", uid), 0.7, 0.5, 0.3)
