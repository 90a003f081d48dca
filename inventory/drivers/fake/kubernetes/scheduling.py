"""Gives pods their nodes, as the default scheduler does, or says why it can't."""

from collections import Counter
from fractions import Fraction
from typing import Any

from inventory.drivers.fake.kubernetes.admission import PODS
from inventory.drivers.fake.kubernetes.amounts import asked, finished, number
from inventory.drivers.fake.kubernetes.kinds import KINDS
from inventory.drivers.fake.kubernetes.store import Object, Store, timestamp

NODES = KINDS["", "nodes"]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def condition(value: Object, name: str) -> Object | None:
    """A condition of an object."""
    return next((one for one in value.get("status", {}).get("conditions", []) if one["type"] == name), None)


def set_condition(value: Object, name: str, status: str, **fields: Any) -> None:
    """Sets a condition; its time moves only when its status does."""
    conditions = value.setdefault("status", {}).setdefault("conditions", [])
    known = next((one for one in conditions if one["type"] == name), None)
    if known is None:
        known = {"type": name, "lastProbeTime": None}
        conditions.append(known)
    if known.get("status") != status:
        known["lastTransitionTime"] = timestamp()
    known |= {"status": status, **fields}


def schedule(store: Store) -> None:
    """Tries every pod that has no node."""
    pods = store.all(PODS)
    waiting = [pod for pod in pods if _waits(pod)]
    if not waiting:
        return
    nodes = store.all(NODES)
    free = _free(nodes, pods)
    for pod in sorted(waiting, key=lambda one: int(one["metadata"]["resourceVersion"])):
        wanted = {**asked(pod["spec"]), "pods": Fraction(1)}
        reasons: Counter[str] = Counter()
        for node in nodes:
            reason = _obstacle(pod, node, wanted, free[node["metadata"]["name"]], pods)
            if reason is None:
                name = node["metadata"]["name"]
                for resource, value in wanted.items():
                    free[name][resource] = free[name].get(resource, Fraction(0)) - value
                _bind(store, pod, name)
                pods = store.all(PODS)
                break
            reasons[reason] += 1
        else:
            _unschedulable(store, pod, len(nodes), reasons)


def _waits(pod: Object) -> bool:
    spec, meta = pod["spec"], pod["metadata"]
    return not (spec.get("nodeName") or spec.get("schedulingGates") or finished(pod) or meta.get("deletionTimestamp"))


def _free(nodes: list[Object], pods: list[Object]) -> dict[str, dict[str, Fraction]]:
    free = {
        node["metadata"]["name"]: {
            name: number(value) for name, value in node.get("status", {}).get("allocatable", {}).items()
        }
        for node in nodes
    }
    for pod in pods:
        name = pod["spec"].get("nodeName")
        if name in free and not finished(pod):
            for resource, value in {**asked(pod["spec"]), "pods": Fraction(1)}.items():
                free[name][resource] = free[name].get(resource, Fraction(0)) - value
    return free


def _obstacle(
    pod: Object, node: Object, wanted: dict[str, Fraction], free: dict[str, Fraction], pods: list[Object]
) -> str | None:
    spec = pod["spec"]
    if node.get("spec", {}).get("unschedulable"):
        return "node(s) were unschedulable"
    ready = condition(node, "Ready")
    if ready is None or ready["status"] != "True":
        return "node(s) were not ready"
    if any(not _tolerated(taint, spec.get("tolerations", [])) for taint in node.get("spec", {}).get("taints", [])):
        return "node(s) had untolerated taint(s)"
    labels = node["metadata"].get("labels", {})
    if any(labels.get(name) != value for name, value in spec.get("nodeSelector", {}).items()):
        return "node(s) didn't match Pod's node affinity/selector"
    terms = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED, {}).get("nodeSelectorTerms")
    if terms and not any(_matches(term, node) for term in terms):
        return "node(s) didn't match Pod's node affinity/selector"
    if _repelled(pod, node["metadata"]["name"], pods):
        return "node(s) didn't match pod anti-affinity rules"
    for resource, value in wanted.items():
        if value > free.get(resource, Fraction(0)):
            return f"Insufficient {resource}" if resource != "pods" else "Too many pods"
    return None


def _tolerated(taint: Object, tolerations: list[Object]) -> bool:
    if taint["effect"] == "PreferNoSchedule":
        return True
    return any(
        one.get("key") in (None, "", taint["key"])
        and one.get("effect") in (None, "", taint["effect"])
        and (one.get("operator") == "Exists" or one.get("value", "") == taint.get("value", ""))
        for one in tolerations
    )


def _matches(term: Object, node: Object) -> bool:
    meta = node["metadata"]
    fields = all(meta["name"] in one["values"] for one in term.get("matchFields", []))
    return fields and all(
        meta.get("labels", {}).get(one["key"]) in one.get("values", []) for one in term.get("matchExpressions", [])
    )


def _repelled(pod: Object, node: str, pods: list[Object]) -> bool:
    rules = ((pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}).get(_REQUIRED, [])
    wanted = [rule["labelSelector"]["matchLabels"].items() for rule in rules]
    return any(
        other["spec"].get("nodeName") == node
        and not finished(other)
        and other["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and labels <= other["metadata"].get("labels", {}).items()
        for other in pods
        if wanted
        for labels in wanted
    )


def _bind(store: Store, pod: Object, node: str) -> None:
    def edit(value: Object) -> None:
        value["spec"]["nodeName"] = node
        set_condition(value, "PodScheduled", "True")
        for one in value["status"]["conditions"]:
            one.pop("reason", None)
            one.pop("message", None)

    store.change(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"], edit)


def _unschedulable(store: Store, pod: Object, nodes: int, reasons: "Counter[str]") -> None:
    told = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    message = f"0/{nodes} nodes are available: {told}." if told else "no nodes available to schedule pods"

    def edit(value: Object) -> None:
        set_condition(value, "PodScheduled", "False", reason="Unschedulable", message=message)

    store.change(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"], edit)
