"""A node as its API server tells it, and who cordoned it. Pure."""

from collections.abc import Mapping
from datetime import datetime

from inventory.drivers.clusters.kubernetes import wire
from inventory.drivers.clusters.kubernetes.accelerators import accelerators_of
from inventory.drivers.clusters.kubernetes.names import CORDON, MANAGER
from inventory.drivers.clusters.kubernetes.quantities import whole
from inventory.drivers.clusters.marks import owner_of
from inventory.drivers.clusters.readings import Accelerators, CardKind, ClusterNode, NodeLoad

_ROLE = "node-role.kubernetes.io/"
_SHOWN = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region", "node.kubernetes.io/instance-type")
_UNSCHEDULABLE = b'"f:unschedulable"'


def cordoned_by(node: wire.Node) -> tuple[str, datetime | None]:
    """Who set `unschedulable` last, by the API server's own record of fields, and when; "" for nobody known."""
    for entry in node.metadata.managed_fields:
        if _UNSCHEDULABLE in bytes(entry.fields_v1):
            return entry.manager or "unknown", entry.time
    return "", None


def cordon_of(node: wire.Node) -> tuple[str, str]:
    """Owner and text of a cordon: ours only where our mark stands and we were the last who set it.

    Somebody may have lifted our cordon and set one of their own, which leaves our annotation behind.
    """
    mark = node.metadata.annotations.get(CORDON, "")
    manager, _ = cordoned_by(node)
    if mark and manager in ("", MANAGER):
        return owner_of(mark), mark
    return "", f"cordoned by {manager or 'somebody'}"


def reading_of_node(node: wire.Node, used: Mapping[str, int]) -> ClusterNode:
    """One node; `used` is what the pods on it take of each resource."""
    meta, status = node.metadata, node.status
    ready = next((one for one in status.conditions if one.type == "Ready"), None)
    responding = ready is not None and ready.status == "True"
    cordoned = node.spec.unschedulable
    owner, text = cordon_of(node) if cordoned else ("", "")
    manager, at = cordoned_by(node) if cordoned else ("", None)
    if not text and not responding and ready is not None:
        text, at = f"{ready.reason}: {ready.message}".strip(": "), ready.last_transition_time
    addresses = {one.type: one.address for one in status.addresses}
    info = status.node_info or wire.NodeInfo()
    cards = accelerators_of(status.capacity, status.allocatable, meta.labels, used)
    return ClusterNode(
        name=meta.name[:200],
        hostname=(meta.labels.get("kubernetes.io/hostname") or addresses.get("Hostname") or meta.name)[:200],
        address=addresses.get("InternalIP", "")[:200],
        machine_id=info.machine_id[:200],
        system_uuid=info.system_uuid[:200],
        load=_load(cards) if responding else NodeLoad.DOWN,
        raw_state=_raw_state(responding, cordoned, ready),
        cordoned=cordoned,
        responding=responding,
        reason=text[:2000],
        reason_by=manager[:200],
        reason_at=at,
        owner=owner,
        features=_features(meta.labels),
        accelerators=cards,
        cpus=whole(status.allocatable.get("cpu")),
        memory=whole(status.allocatable.get("memory")),
        version=info.kubelet_version[:200],
    )


def _load(cards: tuple[Accelerators, ...]) -> NodeLoad:
    handed = [one for one in cards if one.kind in (CardKind.CARD, CardKind.MIG)] or cards
    used, total = sum(one.used or 0 for one in handed), sum(one.total for one in handed)
    if not used:
        return NodeLoad.IDLE
    return NodeLoad.MIXED if used < total else NodeLoad.ALLOCATED


def _raw_state(responding: bool, cordoned: bool, ready: wire.Condition | None) -> str:
    state = "Ready" if responding else "NotReady" if ready is not None and ready.status == "False" else "Unknown"
    return f"{state},SchedulingDisabled" if cordoned else state


def _features(labels: Mapping[str, str]) -> tuple[str, ...]:
    roles = [name.removeprefix(_ROLE) for name in labels if name.startswith(_ROLE)]
    return tuple(sorted(roles)) + tuple(labels[name] for name in _SHOWN if labels.get(name))
