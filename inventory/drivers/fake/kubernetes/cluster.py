"""What is in a stand-in's cluster: nodes with devices, namespaces, and what others do by hand there."""

from collections.abc import Mapping
from typing import Any

from inventory.drivers.fake.kubernetes.admission import JOBS, NAMESPACES, PODS, admitted
from inventory.drivers.fake.kubernetes.amounts import finished
from inventory.drivers.fake.kubernetes.kubelet import delete_pod
from inventory.drivers.fake.kubernetes.patches import record
from inventory.drivers.fake.kubernetes.scheduling import NODES, set_condition
from inventory.drivers.fake.kubernetes.server import KubernetesServer
from inventory.drivers.fake.kubernetes.store import Object

_KUBECTL = "kubectl-cordon"


def add_node(
    server: KubernetesServer,
    name: str,
    devices: Mapping[str, list[str]],
    *,
    labels: Mapping[str, str] | None = None,
    cpus: int = 96,
    memory: str = "1000Gi",
    taints: list[dict[str, str]] | None = None,
    system_uuid: str = "",
) -> None:
    """A ready node with these devices, by resource and id."""
    server.kubelets.devices[name] = {resource: list(ids) for resource, ids in devices.items()}
    amounts = {"cpu": str(cpus), "memory": memory, "pods": "110", "ephemeral-storage": "500Gi"}
    amounts |= {resource: str(len(ids)) for resource, ids in devices.items()}
    value: Object = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}, "annotations": {}},
        "spec": {"taints": taints} if taints else {},
        "status": {
            "capacity": amounts,
            "allocatable": dict(amounts),
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
            "nodeInfo": {"kubeletVersion": "v1.36.2", "systemUUID": system_uuid or f"u-{name}", "machineID": ""},
        },
    }
    set_condition(value, "Ready", "True", reason="KubeletReady", message="kubelet is posting ready status")
    server.store.create(NODES, value)


def add_namespace(server: KubernetesServer, name: str, labels: Mapping[str, str] | None = None) -> None:
    """A namespace that somebody made."""
    value = {"metadata": {"name": name, "labels": dict(labels or {})}}
    server.store.create(NAMESPACES, admitted(server.store, NAMESPACES, value))


def add_pod(server: KubernetesServer, namespace: str, pod: dict[str, Any]) -> Object:
    """A pod that somebody started; it is admitted as any other."""
    pod["metadata"]["namespace"] = namespace
    with server.store.lock:
        return server.store.create(PODS, admitted(server.store, PODS, pod))


def cordon_by_hand(server: KubernetesServer, node: str, *, cordoned: bool = True) -> None:
    """`kubectl cordon` or `uncordon` by somebody else."""
    store = server.store
    with store.lock:
        before = store.entry(NODES, "", node).value
        spec = {key: value for key, value in before["spec"].items() if key != "unschedulable"}
        after = {**before, "spec": {**spec, "unschedulable": True} if cordoned else spec}
        record(before, after, _KUBECTL)
        if after != before:
            store.replace(NODES, after)


def pods_of_job(server: KubernetesServer, namespace: str, name: str) -> list[Object]:
    """The unfinished pods of a Job."""
    job = server.store.find(JOBS, namespace, name)
    uid = job["metadata"]["uid"] if job is not None else ""
    return [
        pod
        for pod in server.store.all(PODS, namespace)
        if not finished(pod) and any(one["uid"] == uid for one in pod["metadata"].get("ownerReferences", []))
    ]


def finish_job(server: KubernetesServer, namespace: str, name: str, code: int) -> None:
    """The containers of a Job's running pods end with this code."""
    with server.store.lock:
        for pod in pods_of_job(server, namespace, name):
            server.kubelets.end(namespace, pod["metadata"]["name"], code)


def delete_pod_by_hand(server: KubernetesServer, namespace: str, name: str) -> None:
    """`kubectl delete pod` by somebody else."""
    with server.store.lock:
        delete_pod(server.store, server.store.entry(PODS, namespace, name).value)


def set_ready(server: KubernetesServer, node: str, ready: bool) -> None:
    """A kubelet stops posting, or posts again."""
    told = {"reason": "KubeletReady", "message": "kubelet is posting ready status"}
    if not ready:
        told = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}

    def edit(value: Object) -> None:
        set_condition(value, "Ready", "True" if ready else "Unknown", **told)

    server.store.change(NODES, "", node, edit)


def remove_node(server: KubernetesServer, node: str) -> None:
    """`kubectl delete node`: the machine is given up."""
    server.store.remove(NODES, "", node)
