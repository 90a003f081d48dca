"""Kubernetes' objects as readings: vendors' names, states, ends, owners, cordons. No server."""

from typing import Any

import msgspec
import pytest

from inventory.drivers.clusters.kubernetes import wire
from inventory.drivers.clusters.kubernetes.accelerators import accelerators_of, asked_of, offer_of
from inventory.drivers.clusters.kubernetes.claims import (
    ResourceClaim,
    ResourceSlice,
    accelerators_by_node,
    bindings_of_claims,
    devices_of,
)
from inventory.drivers.clusters.kubernetes.errors import KubernetesError
from inventory.drivers.clusters.kubernetes.names import parsed_job
from inventory.drivers.clusters.kubernetes.nodes import reading_of_node
from inventory.drivers.clusters.kubernetes.owners import Owners
from inventory.drivers.clusters.kubernetes.pods import Surroundings, reading_of_pod, state_when_gone
from inventory.drivers.clusters.kubernetes.quantities import whole
from inventory.drivers.clusters.readings import Accelerators, CardKind, JobState, NodeLoad

T0, T1, T2 = "2026-03-01T10:00:00Z", "2026-03-01T10:00:30Z", "2026-03-01T10:01:00Z"


@pytest.mark.parametrize(
    ("text", "number"),
    [("8", 8), (8, 8), ("1500m", 1), ("500Gi", 500 * 2**30), ("128M", 128_000_000), ("2e3", 2000), ("0.5", 0),
     ("1Ei", 2**60), ("", None), ("8 cards", None), (None, None), ("--1", None), ("1" * 40, None)],
)  # fmt: skip
def test_quantities(text: str | int | None, number: int | None) -> None:
    """P11: what is no quantity is None and never zero."""
    assert whole(text) == number


SHARED = {
    "nvidia.com/gpu.product": "NVIDIA-A10-SHARED",
    "nvidia.com/gpu.replicas": "4",
    "nvidia.com/gpu.sharing-strategy": "time-slicing",
}
OFFERS = [
    ("nvidia.com/gpu", {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, (CardKind.CARD, "NVIDIA-H100-80GB-HBM3")),
    ("nvidia.com/gpu", {}, (CardKind.CARD, "nvidia")),
    ("nvidia.com/gpu", SHARED, (CardKind.SHARD, "NVIDIA-A10")),
    ("nvidia.com/gpu", SHARED | {"nvidia.com/gpu.replicas": "1"}, (CardKind.CARD, "NVIDIA-A10")),
    ("nvidia.com/gpu", SHARED | {"nvidia.com/gpu.sharing-strategy": "mps"}, (CardKind.MPS, "NVIDIA-A10")),
    ("nvidia.com/gpu", {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}, (CardKind.MIG, "1g.5gb")),
    ("nvidia.com/gpu.shared", SHARED, (CardKind.SHARD, "NVIDIA-A10")),
    ("nvidia.com/mig-1g.10gb", {}, (CardKind.MIG, "1g.10gb")),
    ("nvidia.com/mig-3g.20gb.shared", {}, (CardKind.SHARD, "3g.20gb")),
    ("amd.com/gpu", {"amd.com/gpu.product-name": "AMD_Instinct_MI300X"}, (CardKind.CARD, "AMD_Instinct_MI300X")),
    ("amd.com/cpx_nps4", {}, (CardKind.MIG, "cpx_nps4")),
    ("amd.com/spx_nps1", {}, (CardKind.CARD, "amd")),
    ("gpu.intel.com/i915", {"gpu.intel.com/product": "Max_1550"}, (CardKind.CARD, "Max_1550")),
    ("gpu.intel.com/xe", {}, (CardKind.CARD, "intel")),
    ("habana.ai/gaudi", {}, (CardKind.CARD, "gaudi")),
    ("huawei.com/Ascend910", {}, (CardKind.CARD, "Ascend910")),
    ("huawei.com/Ascend910B", {"node.kubernetes.io/npu.chip.name": "910B3"}, (CardKind.CARD, "910B3")),
    ("huawei.com/Ascend910-4c", {}, (CardKind.MIG, "Ascend910-4c")),
    ("gpu.intel.com/i915_monitoring", {}, None),
    ("gpu.intel.com/memory.max", {}, None),
    ("nvidia.com/gpumem", {}, None),
    ("rdma/hca", {}, None),
]


@pytest.mark.parametrize(("resource", "labels", "offer"), OFFERS)
def test_what_a_resource_stands_for(resource: str, labels: dict[str, str], offer: tuple[CardKind, str] | None) -> None:
    """P11: names of NVIDIA, AMD, Intel, Habana and Huawei; MIG, partitions, shares; nothing else is a card."""
    found = offer_of(resource, labels)
    assert (None if found is None else (found.kind, found.type)) == offer


def test_what_a_node_has() -> None:
    """P11: several resources on one node; what is not allocatable is unhealthy; 0 of something is nothing."""
    capacity = {"cpu": "96", "nvidia.com/gpu": "8", "nvidia.com/mig-1g.10gb": "7", "amd.com/gpu": "0"}
    allocatable = {"cpu": "95", "nvidia.com/gpu": "7", "nvidia.com/mig-1g.10gb": "7"}
    found = accelerators_of(capacity, allocatable, {}, {"nvidia.com/gpu": 3})
    assert [(one.kind, one.total, one.unhealthy, one.used, one.resource) for one in found] == [
        (CardKind.CARD, 8, 1, 3, "nvidia.com/gpu"),
        (CardKind.MIG, 7, 0, 0, "nvidia.com/mig-1g.10gb"),
    ]


def container(**amounts: int) -> wire.Container:
    return wire.Container(resources=wire.Resources(limits={f"nvidia.com/{name}": n for name, n in amounts.items()}))


def test_what_a_pod_takes() -> None:
    """P12: containers add up, init containers take turns, sidecars stay; a limit without a request counts."""
    sidecar = wire.Container(resources=wire.Resources(requests={"nvidia.com/gpu": "1"}), restart_policy="Always")
    assert asked_of([container(gpu=2), container(gpu=1)], [container(gpu=6), container(gpu=4)]) == {"nvidia.com/gpu": 6}
    assert asked_of([container(gpu=2)], [sidecar]) == {"nvidia.com/gpu": 3}
    assert asked_of(None) == {}


def pod(phase: str = "Running", **changes: Any) -> wire.Pod:
    """A pod on a node with one container of two cards; `changes` are merged into its parts."""
    status: dict[str, Any] = {
        "phase": phase,
        "startTime": T0,
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": T0}],
    }
    meta = {"name": "p", "namespace": "team-a", "uid": "u1", "creationTimestamp": T0}
    resources = {"requests": {"nvidia.com/gpu": "2"}}
    spec = {"nodeName": "gpu-1", "containers": [{"name": "main", "resources": resources}]}
    merged = {
        "metadata": meta | changes.get("metadata", {}),
        "spec": spec | changes.get("spec", {}),
        "status": status | changes.get("status", {}),
    }
    return msgspec.convert(merged, wire.Pod)


def ended(code: int, at: str = T1, reason: str = "") -> dict[str, Any]:
    terminated = {"exitCode": code, "finishedAt": at, "startedAt": T0, "reason": reason}
    return {"containerStatuses": [{"name": "main", "state": {"terminated": terminated}}]}


def disrupted(reason: str) -> dict[str, Any]:
    return {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": T1}]}


BY_JOB = {"ownerReferences": [{"kind": "Job", "name": "train", "uid": "j1", "controller": True}]}
REMOVED = {"deletionTimestamp": T1, "deletionGracePeriodSeconds": 30}  # asked for at T0
STATES: list[tuple[str, dict[str, Any], JobState]] = [
    ("Pending", {"spec": {"nodeName": ""}}, JobState.PENDING),
    ("Pending", {}, JobState.RUNNING),  # it has a node, and with it the cards
    ("Running", {}, JobState.RUNNING),
    ("Running", {"metadata": REMOVED}, JobState.COMPLETING),
    ("Succeeded", {"status": ended(0)}, JobState.COMPLETED),
    ("Failed", {"status": ended(3)}, JobState.FAILED),
    ("Failed", {"status": ended(137, reason="OOMKilled")}, JobState.OUT_OF_MEMORY),
    ("Failed", {"status": ended(143) | {"reason": "DeadlineExceeded"}}, JobState.TIMEOUT),
    ("Failed", {"metadata": REMOVED, "status": ended(143)}, JobState.CANCELLED),
    ("Succeeded", {"metadata": REMOVED, "status": ended(0)}, JobState.CANCELLED),  # it ended by SIGTERM, politely
    ("Succeeded", {"metadata": REMOVED | {"deletionTimestamp": T2}, "status": ended(0, T0)}, JobState.COMPLETED),
    ("Failed", {"status": ended(137) | disrupted("PreemptionByScheduler")}, JobState.PREEMPTED),
    ("Failed", {"status": ended(137) | disrupted("TerminationByKubelet")}, JobState.PREEMPTED),
    ("Failed", {"status": disrupted("DeletionByPodGC")}, JobState.NODE_FAIL),
    ("Failed", {"status": disrupted("EvictionByEvictionAPI")}, JobState.CANCELLED),
    ("Failed", {"metadata": BY_JOB, "status": disrupted("EvictionByEvictionAPI")}, JobState.REQUEUED),
    ("Unknown", {}, JobState.UNKNOWN),
]


@pytest.mark.parametrize(("phase", "changes", "state"), STATES)
def test_states_of_a_pod(phase: str, changes: dict[str, Any], state: JobState) -> None:
    """P12: a pod's phase, removal and disruption as one of our states."""
    reading = reading_of_pod(pod(phase, **changes), Surroundings())
    assert reading.state is state
    assert (reading.ended_at is not None) == (state not in ("pending", "running", "completing", "unknown"))


JOB_ENDS: list[tuple[dict[str, Any] | None, JobState]] = [
    (None, JobState.CANCELLED),
    ({}, JobState.REQUEUED),
    ({"metadata": {"deletionTimestamp": T1}}, JobState.CANCELLED),
    ({"conditions": [{"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded"}]}, JobState.TIMEOUT),
    ({"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}, JobState.CANCELLED),
]


@pytest.mark.parametrize(("changes", "state"), JOB_ENDS)
def test_why_a_running_pod_was_removed(changes: dict[str, Any] | None, state: JobState) -> None:
    """P12: its Job goes on: requeued; is removed: cancelled; passed its deadline: timeout."""
    job = None
    if changes is not None:
        job = msgspec.convert(
            {
                "metadata": {"name": "train", "uid": "j1"} | changes.get("metadata", {}),
                "spec": {"template": {"spec": {}}},
                "status": {"conditions": changes.get("conditions", [])},
            },
            wire.Job,
        )
    assert state_when_gone(pod(metadata=BY_JOB | REMOVED), job) is state


def test_how_a_pod_ended() -> None:
    """P12: the container that failed first gives the exit code; the last end is the end."""
    status = {
        "containerStatuses": [
            {"name": "a", "state": {"terminated": {"exitCode": 0, "finishedAt": T0}}},
            {"name": "b", "state": {"terminated": {"exitCode": 9, "finishedAt": T1, "signal": 9}}},
            {"name": "c", "state": {"terminated": {"exitCode": 1, "finishedAt": T2}}},
        ]
    }
    reading = reading_of_pod(pod("Failed", status=status), Surroundings())
    assert (reading.exit_code, reading.exit_signal) == (9, 9)
    assert str(reading.ended_at) == "2026-03-01 10:01:00+00:00"


def told(*ids: str, resource: str = "nvidia.com/gpu") -> dict[str, Any]:
    devices = [{"resourceID": one, "health": "Healthy"} for one in ids]
    return {
        "containerStatuses": [{"name": "main", "allocatedResourcesStatus": [{"name": resource, "resources": devices}]}]
    }


A, B = "GPU-8d042338-e67f-9c48-92b4-5b55c7c2aa01", "GPU-8d042338-e67f-9c48-92b4-5b55c7c2aa02"
BINDINGS: list[tuple[str, tuple[str, ...], dict[str, Any]]] = [
    ("nvidia.com/gpu", (A, B), {"uuids": (A, B)}),
    ("nvidia.com/mig-1g.10gb", ("MIG-1", "MIG-2"), {}),  # too short to be ids: unknown
    ("nvidia.com/gpu", (A,), {}),  # one of two: unknown
    ("nvidia.com/gpu", (A, A), {}),  # one card twice is not two whole cards
    ("nvidia.com/gpu", (), {}),
    ("amd.com/gpu", ("0000:0C:00.0", "0000:22:00.0"), {"addresses": ("0000:0c:00.0", "0000:22:00.0")}),
    ("gpu.intel.com/i915", ("card1-0", "card0-0"), {"indices": (0, 1)}),
    ("huawei.com/Ascend910", ("Ascend910-7", "Ascend910-2"), {"indices": (2, 7)}),
]


@pytest.mark.parametrize(("resource", "ids", "expected"), BINDINGS)
def test_which_cards_a_pod_holds(resource: str, ids: tuple[str, ...], expected: dict[str, Any]) -> None:
    """P12: what the kubelet tells, by vendor; where it does not account for all, the cards are unknown."""
    containers = [{"name": "main", "resources": {"limits": {resource: 2}}}]
    reading = reading_of_pod(pod(spec={"containers": containers}, status=told(*ids, resource=resource)), Surroundings())
    assert (reading.cards, reading.cards_known) == (2, bool(expected))
    found = [{name: value for name in ("uuids", "addresses", "indices") if (value := getattr(one, name))}
             for one in reading.bindings]  # fmt: skip
    assert found == ([expected] if expected else [])


def test_shares_of_one_card() -> None:
    """P12: two time slices of one card are two shares on one UUID."""
    around = Surroundings(labels={"gpu-1": SHARED})
    reading = reading_of_pod(pod(status=told(f"{A}::1", f"{A}::3")), around)
    assert (reading.cards, reading.shares, reading.cards_known) == (0, 2, True)
    assert [(one.kind, one.count, one.uuids) for one in reading.bindings] == [(CardKind.SHARD, 2, (A,))]


def test_the_annotation_of_huaweis_plugin() -> None:
    """P12: where the kubelet tells nothing, the plugin's own annotation does."""
    containers = [{"name": "main", "resources": {"limits": {"huawei.com/Ascend910": 2}}}]
    metadata = {"annotations": {"huawei.com/AscendReal": "Ascend910-0,Ascend910-5"}}
    reading = reading_of_pod(pod(metadata=metadata, spec={"containers": containers}), Surroundings())
    assert (reading.cards_known, reading.bindings[0].indices) == (True, (0, 5))


def test_devices_given_by_claims() -> None:
    """P11 P12: a claim names driver, pool and device; the slice says which card that is."""
    attributes = {"uuid": {"string": A}, "productName": {"string": "NVIDIA H100"}, "type": {"string": "gpu"}}
    spec = {
        "driver": "gpu.nvidia.com",
        "nodeName": "gpu-1",
        "pool": {"name": "gpu-1"},
        "devices": [{"name": "gpu-0", "attributes": attributes}],
    }
    result = {"driver": "gpu.nvidia.com", "pool": "gpu-1", "device": "gpu-0"}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [{"resource": "pods", "name": "p"}]}
    claim = msgspec.convert({"metadata": {"name": "c", "namespace": "team-a"}, "status": status}, ResourceClaim)
    devices = devices_of([msgspec.convert({"spec": spec}, ResourceSlice)])
    around = Surroundings(claims=bindings_of_claims([claim], devices))
    wanted = {"containers": [{"name": "main"}], "resourceClaims": [{"name": "gpu"}]}
    reading = reading_of_pod(pod(spec=wanted), around)
    assert (reading.cards, reading.cards_known, reading.bindings[0].uuids) == (1, True, (A,))
    assert not reading_of_pod(pod(spec=wanted), Surroundings()).cards_known
    assert accelerators_by_node(devices.values()) == {
        "gpu-1": (Accelerators(kind=CardKind.CARD, type="NVIDIA H100", total=1),)
    }


def owner(kind: str, name: str, uid: str) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": kind, "name": name, "uid": uid, "controller": True}]}


OWNED: list[tuple[dict[str, Any], list[tuple[str, str, str, str]], str, str]] = [
    ({}, [], "team-a/pod/p", "Pod/p"),
    (BY_JOB, [], "team-a/job/train", "Job/train"),
    (BY_JOB, [("j1", "CronJob", "nightly", "c1")], "team-a/job/train", "CronJob/nightly"),
    (
        owner("ReplicaSet", "llm-5d", "r1"),
        [("r1", "Deployment", "llm", "d1")],
        "team-a/deployment/llm",
        "Deployment/llm",
    ),
    (owner("PyTorchJob", "bert", "t1"), [], "team-a/pytorchjob/bert", "PyTorchJob/bert"),
    (BY_JOB, [("j1", "JobSet", "set", "s1")], "team-a/jobset/set", "JobSet/set"),
    (owner("StatefulSet", "a", "x1"), [("x1", "StatefulSet", "a", "x1")], "team-a/statefulset/a", "StatefulSet/a"),
]


@pytest.mark.parametrize(("metadata", "links", "job_id", "workload"), OWNED)
def test_owners_up_to_the_workload(
    metadata: dict[str, Any], links: list[tuple[str, str, str, str]], job_id: str, workload: str
) -> None:
    """P12: acts steer the topmost controller, but a CronJob's Job and not the clock; a circle ends."""
    owners = Owners()
    for uid, kind, name, of in links:
        owners.learn(msgspec.convert({"name": "x", "uid": uid} | owner(kind, name, of), wire.Meta))
    reading = reading_of_pod(pod(metadata=metadata), Surroundings(owners=owners))
    assert (reading.job_id, reading.workload) == (job_id, workload)
    assert str(parsed_job(job_id)) == job_id


@pytest.mark.parametrize("address", ["", "7", "a/b", "a/b/c/d", "team-a/job/../x", "Team/job/x", "a/job/x?y=1"])
def test_what_is_no_address(address: str) -> None:
    """P11: nothing that could change a path reaches one."""
    with pytest.raises(KubernetesError):
        parsed_job(address)


def node(**changes: Any) -> wire.Node:
    meta = {"name": "gpu-1", "annotations": changes.get("annotations", {})}
    if "manager" in changes:
        fields = {"f:spec": {"f:unschedulable": {}}}
        entry = {"manager": changes["manager"], "operation": "Update", "time": T1, "fieldsV1": fields}
        meta["managedFields"] = [entry]
    ready = changes.get("ready", "True")
    condition = {
        "type": "Ready",
        "status": ready,
        "reason": "KubeletStopped",
        "message": "no word",
        "lastTransitionTime": T2,
    }
    spec, status = {"unschedulable": changes.get("cordoned", True)}, {"conditions": [condition]}
    encoded = msgspec.json.encode({"metadata": meta, "spec": spec, "status": status})
    return msgspec.json.decode(encoded, type=wire.Node)


OURS = {"sensaka/cordon": "sensaka:c1 ecc"}
CORDONS: list[tuple[dict[str, Any], str, str]] = [
    ({"annotations": OURS, "manager": "sensaka"}, "c1", "sensaka:c1 ecc"),
    ({"annotations": OURS}, "c1", "sensaka:c1 ecc"),  # a server that keeps no record of fields
    ({"annotations": OURS, "manager": "kubectl-cordon"}, "", "cordoned by kubectl-cordon"),
    ({"manager": "kubectl-cordon"}, "", "cordoned by kubectl-cordon"),
    ({"manager": "sensaka"}, "", "cordoned by sensaka"),
    ({}, "", "cordoned by somebody"),
]


@pytest.mark.parametrize(("changes", "holder", "reason"), CORDONS)
def test_whose_cordon_it_is(changes: dict[str, Any], holder: str, reason: str) -> None:
    """H6: ours only with our mark and set by us last: our annotation outlives a cordon that others lifted."""
    reading = reading_of_node(node(**changes), {})
    assert (reading.cordoned, reading.owner, reading.reason) == (True, holder, reason)


def test_a_node_that_is_down() -> None:
    """P11: not ready is down, with the kubelet's words and since when."""
    reading = reading_of_node(node(cordoned=False, ready="Unknown", annotations=OURS), {})
    assert (reading.load, reading.responding, reading.cordoned) == (NodeLoad.DOWN, False, False)
    assert (reading.reason, reading.owner) == ("KubeletStopped: no word", "")
    assert reading.reason_at is not None
