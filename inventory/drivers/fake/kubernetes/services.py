"""Deployments and ReplicaSets, budgets, quotas in use, and the removal of what lost its owner."""

from typing import Any

from inventory.drivers.fake.kubernetes import answers
from inventory.drivers.fake.kubernetes.admission import JOBS, PODS, QUOTAS, admitted, used_in
from inventory.drivers.fake.kubernetes.amounts import finished
from inventory.drivers.fake.kubernetes.jobs import FOREGROUND, owned_by, owner_of
from inventory.drivers.fake.kubernetes.kinds import KINDS, Kind
from inventory.drivers.fake.kubernetes.kubelet import delete_pod
from inventory.drivers.fake.kubernetes.scheduling import set_condition
from inventory.drivers.fake.kubernetes.store import Object, Store, timestamp

SETS, DEPLOYMENTS = KINDS["apps", "replicasets"], KINDS["apps", "deployments"]
BUDGETS = KINDS["policy", "poddisruptionbudgets"]
_OWNERS = (JOBS, SETS, DEPLOYMENTS, KINDS["apps", "statefulsets"])
_EVICTING = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}


def work(store: Store) -> None:
    """One look at everything that keeps a number of pods, and at what nobody owns any more."""
    for deployment in store.all(DEPLOYMENTS):
        _keep_set(store, deployment)
    sets = store.all(SETS)
    pods = owned_by(store.all(PODS)) if sets else {}
    for one in sets:
        _keep_pods(store, one, pods.get(one["metadata"]["uid"], []))
    _collect(store)
    for quota in store.all(QUOTAS):
        _note_use(store, quota)


def _keep_set(store: Store, deployment: Object) -> None:
    meta, spec = deployment["metadata"], deployment["spec"]
    name, namespace = f"{meta['name']}-5d4f8", meta["namespace"]
    replicas = spec.get("replicas", 1)
    if store.find(SETS, namespace, name) is None:
        owner = owner_of(deployment, "Deployment", "apps/v1")
        body = {"name": name, "namespace": namespace, "ownerReferences": [owner]}
        store.create(SETS, {"metadata": body, "spec": {"replicas": replicas, "template": spec["template"]}})
        return

    def edit(value: Object) -> None:
        value["spec"]["replicas"] = replicas

    store.change(SETS, namespace, name, edit)


def _keep_pods(store: Store, one: Object, pods: list[Object]) -> None:
    meta, template = one["metadata"], one["spec"]["template"]
    active = [pod for pod in pods if not finished(pod) and not pod["metadata"].get("deletionTimestamp")]
    replicas = one["spec"].get("replicas", 1)
    for pod in active[replicas:]:
        delete_pod(store, pod)
    for _ in range(replicas - len(active)):
        pod = {
            "metadata": {
                "generateName": f"{meta['name']}-",
                "namespace": meta["namespace"],
                "labels": dict(template.get("metadata", {}).get("labels", {})),
                "ownerReferences": [owner_of(one, "ReplicaSet", "apps/v1")],
            },
            "spec": dict(template["spec"]),
        }
        try:
            store.create(PODS, admitted(store, PODS, pod))
        except answers.Refused:
            return  # over its quota: it tries again


def _collect(store: Store) -> None:
    """Removes pods whose owner is gone or going, and owners whose pods are gone."""
    alive = {value["metadata"]["uid"]: value for kind in _OWNERS for value in store.all(kind)}
    pods = store.all(PODS)
    owned = owned_by(pods)
    for uid, held in owned.items():
        owner = alive.get(uid)
        leaving = owner is not None and FOREGROUND in owner["metadata"].get("finalizers", [])
        external = owner is None and held[0]["metadata"]["ownerReferences"][0]["kind"] not in _KNOWN
        if (owner is None and not external) or leaving:
            for pod in held:
                _release(store, pod)
                delete_pod(store, pod)
    for kind in _OWNERS:
        for value in store.all(kind):
            meta = value["metadata"]
            if meta.get("deletionTimestamp") and meta["uid"] not in owned:
                store.remove(kind, meta["namespace"], meta["name"])


_KNOWN = frozenset(kind.kind for kind in _OWNERS)


def _release(store: Store, pod: Object) -> None:
    """A pod whose Job is gone or going is counted by nobody."""
    if finished(pod) or not pod["spec"].get("nodeName"):
        store.change(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"], _without_finalizers)


def _without_finalizers(value: Object) -> None:
    value["metadata"].pop("finalizers", None)


def delete(store: Store, kind: Kind, value: Object, options: dict[str, Any]) -> Object:
    """Removes an object as DELETE does; its last state."""
    meta = value["metadata"]
    name, namespace = meta["name"], meta.get("namespace", "")
    wanted = (options.get("preconditions") or {}).get("uid")
    if wanted and wanted != meta["uid"]:
        raise answers.other_uid(kind, name)
    if kind is PODS:
        delete_pod(store, value, options.get("gracePeriodSeconds"))
        return store.find(kind, namespace, name) or value
    if kind in _OWNERS and options.get("propagationPolicy") == "Foreground":

        def edit(changed: Object) -> None:
            fixed = {"deletionTimestamp": timestamp(), "deletionGracePeriodSeconds": 0, "finalizers": [FOREGROUND]}
            changed["metadata"] |= fixed

        return store.change(kind, namespace, name, edit) or value
    store.remove(kind, namespace, name)
    return value


def evict(store: Store, pod: Object, options: dict[str, Any]) -> None:
    """Evicts a pod, or refuses (429) where a disruption budget forbids it now."""
    meta = pod["metadata"]
    wanted = (options.get("preconditions") or {}).get("uid")
    if wanted and wanted != meta["uid"]:
        raise answers.other_uid(PODS, meta["name"])
    if not finished(pod) and pod["spec"].get("nodeName"):
        for budget in store.all(BUDGETS, meta["namespace"]):
            _within(store, budget, pod)

    def edit(value: Object) -> None:
        set_condition(value, "DisruptionTarget", "True", **_EVICTING)

    changed = store.change(PODS, meta["namespace"], meta["name"], edit)
    if changed is not None:
        delete_pod(store, changed, options.get("gracePeriodSeconds"))


def _within(store: Store, budget: Object, pod: Object) -> None:
    labels = budget["spec"]["selector"]["matchLabels"].items()
    if not labels <= pod["metadata"].get("labels", {}).items():
        return
    same = [one for one in store.all(PODS, pod["metadata"]["namespace"]) if labels <= _labels(one).items()]
    healthy = sum(one["status"]["phase"] == "Running" and not one["metadata"].get("deletionTimestamp") for one in same)
    spec = budget["spec"]
    needed = spec["minAvailable"] if "minAvailable" in spec else len(same) - spec["maxUnavailable"]
    if healthy - 1 < needed:
        raise answers.over_budget(budget["metadata"]["name"], needed, healthy)


def _labels(pod: Object) -> dict[str, str]:
    found: dict[str, str] = pod["metadata"].get("labels", {})
    return found


def _note_use(store: Store, quota: Object) -> None:
    meta, hard = quota["metadata"], quota.get("spec", {}).get("hard", {})
    used = used_in(store, meta["namespace"])

    def edit(value: Object) -> None:
        value["status"] = {"hard": hard, "used": {key: str(used.get(key, 0)) for key in hard}}

    store.change(QUOTAS, meta["namespace"], meta["name"], edit)
