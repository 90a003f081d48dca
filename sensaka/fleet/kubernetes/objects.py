"""The objects that the fleet keeps in a simulated API server."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from inventory.drivers.fake.kubernetes.store import timestamp
from sensaka.fleet.plan import NodePlan
from sensaka.fleet.workload import Holder

FLEET = "simulated-fleet"
MANAGED = {"app.kubernetes.io/managed-by": FLEET}
GPU = "nvidia.com/gpu"
_IMAGES = {"serving": "registry.example/inference:1.9", "notebook": "registry.example/notebook:4.2"}

Object = dict[str, Any]


def resource_of(profile: str) -> str:
    """The resource of a MIG profile, or of a whole card for ""."""
    return f"nvidia.com/mig-{profile}" if profile else GPU


def node_labels(node: NodePlan) -> dict[str, str]:
    """Labels as NVIDIA's feature discovery sets them, and that the node is simulated."""
    return {
        "nvidia.com/gpu.product": node.kind.name.replace(" ", "-"),
        "nvidia.com/gpu.present": "true",
        "nvidia.com/mig.strategy": "mixed" if node.mig else "none",
        "simulated": "true",
    }


def workload_name(holder: Holder, profile: str) -> str:
    """The Deployment of a service; one for each MIG profile, because a template asks for one resource."""
    return f"{holder.name}-{profile.replace('.', '-')}" if profile else holder.name


def pod_spec(kind: str, resource: str) -> Object:
    """A pod of one container with one device."""
    asked = {"cpu": "8", "memory": "64Gi", resource: "1"}
    return {"containers": [{"name": "main", "image": _IMAGES.get(kind, ""), "resources": {"limits": asked}}]}


def pod(holder: Holder, node: str, resource: str, owner: Object | None) -> Object:
    """A pod of the fleet on its node."""
    app = owner["name"] if owner else holder.name
    meta: Object = {"name": holder.pod, "namespace": holder.namespace, "labels": {**MANAGED, "app": app}}
    if holder.user:
        meta["labels"]["user"] = holder.user
    if owner is not None:
        meta["ownerReferences"] = [owner]
    return {"metadata": meta, "spec": {**pod_spec(holder.kind, resource), "nodeName": node}}


def running(value: Object, holder: Holder, devices: Mapping[str, list[str]]) -> None:
    """Write into a pod that it has run since its holder began."""
    since = timestamp(datetime.fromtimestamp(holder.started_at, UTC))
    kinds = ("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
    told = [{"name": name, "resources": [{"resourceID": one, "health": "Healthy"} for one in ids]}
            for name, ids in devices.items()]  # fmt: skip
    value["status"] = {
        **value["status"],
        "phase": "Running",
        "startTime": since,
        "hostIP": "127.0.0.1",
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": since} for kind in kinds],
        "containerStatuses": [
            {"name": "main", "state": {"running": {"startedAt": since}}, "lastState": {}, "ready": True,
             "restartCount": 0, "image": value["spec"]["containers"][0]["image"], "imageID": "",
             "containerID": f"containerd://{holder.container_id}", "allocatedResourcesStatus": told},
        ],
    }  # fmt: skip


def deployment(name: str, namespace: str, kind: str, resource: str, replicas: int) -> Object:
    """A service."""
    labels = {**MANAGED, "app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(kind, resource)}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": spec}


def budget(name: str, namespace: str) -> Object:
    """At most two of a service's pods are evicted at a time."""
    spec = {"maxUnavailable": 2, "selector": {"matchLabels": {"app": name}}}
    return {"metadata": {"name": name, "namespace": namespace, "labels": MANAGED}, "spec": spec}
