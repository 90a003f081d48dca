"""A job to start, as an (indexed) Job. Pure."""

import hashlib
from typing import Any

from inventory.drivers.clusters.capabilities import JobSpec
from inventory.drivers.clusters.kubernetes.errors import refused
from inventory.drivers.clusters.kubernetes.names import (
    JOB_NAME,
    KUEUE_QUEUE,
    MANAGED_BY,
    MANAGER,
    MARK,
    USER,
    VOLCANO_QUEUE,
    checked_value,
    slug,
)
from inventory.drivers.clusters.kubernetes.queues import KUEUE, VOLCANO
from inventory.drivers.clusters.readings import Accelerators, CardKind, ClusterNode

_DAY = 86_400  # s that an ended Job is kept, long enough to be read
_LONGEST_NAME = 40  # of a Job's name before its suffix: pods add theirs, and all of it is a label
_DEFAULT_SHELL = "/bin/sh"
_HOSTNAME = "kubernetes.io/hostname"


def name_of(job: JobSpec) -> str:
    """The Job's name: one for each mark, so that a mark can't become two Jobs."""
    digest = hashlib.sha256(job.mark.encode()).hexdigest()[:10]
    return f"{slug(job.name, _LONGEST_NAME)}-{digest}"


def command_of(script: str) -> list[str]:
    """The interpreter of the script's first line with `-c`, else a shell.

    Kubernetes replaces $(NAME) in commands and makes $$ one $; doubled, every $ arrives as it is.
    """
    first = script.partition("\n")[0]
    words = first[2:].split() if first.startswith("#!") else []
    return [*(words or [_DEFAULT_SHELL]), "-c", script.replace("$", "$$")]


def resource_of(job: JobSpec, nodes: list[ClusterNode]) -> tuple[str, Accelerators | None]:
    """The resource to ask for and what it is; KubernetesError where the nodes have no such cards, or too few.

    `nodes` are those that the job may run on.
    """
    if not job.cards:
        return "", None
    wanted = [
        (node, one)
        for node in nodes
        for one in node.accelerators
        if one.kind is job.card_kind and one.resource and job.card_type in ("", one.type, one.resource)
    ]
    able = [(node, one) for node, one in wanted if one.total - one.unhealthy >= job.cards]
    count = len(job.nodes) or job.node_count
    if len({node.name for node, _ in able}) < count:
        what = job.card_type or job.card_kind
        raise refused("submit", f"too few nodes have {job.cards} healthy cards of {what}: {len(able)}, not {count}")
    resources = {one.resource for _, one in able}
    if len(resources) > 1:
        raise refused("submit", f"name the card type: the nodes have {', '.join(sorted(resources))}")
    return able[0][1].resource, able[0][1]


def job_body(
    job: JobSpec, namespace: str, resource: str, product: dict[str, str], queueing: set[str]
) -> dict[str, Any]:
    """The Job. `product` is the node label that chooses the card's type; `queueing` what is installed."""
    if not job.image:
        raise refused("submit", "a job on Kubernetes needs an image")
    if job.card_total:
        raise refused("submit", "the pods of a Job are alike: ask for as many cards on each node")
    count = len(job.nodes) or job.node_count
    name = name_of(job)
    labels, annotations = {MANAGED_BY: MANAGER}, {MARK: job.mark}
    if job.user:
        annotations[USER] = job.user
    pod_annotations, kueue, volcano = dict(annotations), False, False
    if job.queue:
        kueue, volcano = KUEUE in queueing, KUEUE not in queueing and VOLCANO in queueing
        if not kueue and not volcano:
            raise refused("submit", f"there is no queue {job.queue[:100]!r}: neither Kueue nor Volcano is installed")
    if kueue:
        labels[KUEUE_QUEUE] = checked_value("queue", job.queue)
    if volcano:
        pod_annotations[VOLCANO_QUEUE] = job.queue
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [_container(job, resource)],
        "nodeSelector": product,
        "affinity": _affinity(job, name, count),
        "tolerations": _tolerations(resource),
        "priorityClassName": job.qos,
        "schedulerName": "volcano" if volcano else "",
    }
    spec: dict[str, Any] = {
        "parallelism": count,
        "completions": count,
        "completionMode": "Indexed" if count > 1 else "NonIndexed",
        "backoffLimit": 0,
        "podFailurePolicy": _failure_policy(job),
        "activeDeadlineSeconds": job.time_limit,
        "ttlSecondsAfterFinished": _DAY,
        "suspend": job.held or kueue,
        "template": {"metadata": {"labels": labels, "annotations": pod_annotations}, "spec": _kept(pod)},
    }
    meta = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": _kept(spec)}


def _kept(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "", {}, [])}


def _container(job: JobSpec, resource: str) -> dict[str, Any]:
    amounts: dict[str, str] = {}
    if resource:
        amounts[resource] = str(job.cards)
    if job.cpus:
        amounts["cpu"] = str(job.cpus)
    if job.memory:
        amounts["memory"] = str(job.memory)
    for name, value in job.environment.items():
        if not name or "=" in name or "\0" in name + value:
            raise refused("submit", f"{name[:80]!r} can't be a variable")
    return _kept(
        {
            "name": "main",
            "image": job.image,
            "command": command_of(job.script),
            "workingDir": job.working_directory,
            "env": [{"name": name, "value": value.replace("$", "$$")} for name, value in job.environment.items()],
            "resources": {"requests": amounts, "limits": amounts} if amounts else {},
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        }
    )


def _affinity(job: JobSpec, name: str, count: int) -> dict[str, Any]:
    """Onto the named nodes (a term each: a field selector takes one name), and one pod a node."""
    found: dict[str, Any] = {}
    if job.nodes:
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} for node in job.nodes]
        found["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    if count > 1:
        term = {"labelSelector": {"matchLabels": {JOB_NAME: name}}, "topologyKey": _HOSTNAME}
        found["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return found


def _tolerations(resource: str) -> list[dict[str, str]]:
    """Nodes with cards are often tainted with the resource's name, those with MIG with the card's."""
    if not resource:
        return []
    keys = {resource, "nvidia.com/gpu"} if resource.startswith("nvidia.com/") else {resource}
    return [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in sorted(keys)]


def _failure_policy(job: JobSpec) -> dict[str, Any]:
    """A pod that was pushed out, or lost its node, is started again where that is wished, else the Job fails."""
    action = "Ignore" if job.requeue else "FailJob"
    return {"rules": [{"action": action, "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}


def is_whole(kind: CardKind) -> bool:
    """Whether cards of this kind are told apart by the node's product label."""
    return kind is CardKind.CARD
