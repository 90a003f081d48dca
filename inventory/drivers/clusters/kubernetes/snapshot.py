"""All pods and Jobs with what their readings need, read in an order that leaves nothing without its owner."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec import Raw

from inventory.drivers.clusters.kubernetes import wire
from inventory.drivers.clusters.kubernetes.accelerators import LABELS, asked_of
from inventory.drivers.clusters.kubernetes.claims import (
    ResourceClaim,
    ResourceSlice,
    bindings_of_claims,
    devices_of,
)
from inventory.drivers.clusters.kubernetes.connection import PARTIAL, Connection, Listing, path_of
from inventory.drivers.clusters.kubernetes.errors import KubernetesError
from inventory.drivers.clusters.kubernetes.jobs import reading_of_waiting, waits
from inventory.drivers.clusters.kubernetes.names import MIRROR
from inventory.drivers.clusters.kubernetes.owners import Owners, belongs_to_node
from inventory.drivers.clusters.kubernetes.pods import Surroundings, reading_of_pod
from inventory.drivers.clusters.readings import ENDED, CardBinding, JobReading
from inventory.observations import FailureKind, ReadFailure

PODS = "/api/v1/pods"
JOBS = "/apis/batch/v1/jobs"
_METADATA = ("/apis/apps/v1/replicasets", "/apis/apps/v1/statefulsets")
OWNER_PATHS = {
    "Job": ("apis/batch/v1", "jobs"),
    "ReplicaSet": ("apis/apps/v1", "replicasets"),
    "StatefulSet": ("apis/apps/v1", "statefulsets"),
}
_AT_ONCE = 8
_NODES = "/api/v1/nodes"
_CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
POD = msgspec.json.Decoder(wire.Pod)
JOB = msgspec.json.Decoder(wire.Job)
_PARTIAL = msgspec.json.Decoder(wire.PartialObject)
_CLAIM = msgspec.json.Decoder(ResourceClaim)
_SLICE = msgspec.json.Decoder(ResourceSlice)

T = TypeVar("T")


class Snapshot(msgspec.Struct):
    """Every run, and where pods and Jobs stood."""

    jobs: list[JobReading]
    around: Surroundings
    pods_version: str = ""
    jobs_version: str = ""
    failures: list[ReadFailure] = []


def counts_as_job(pod: wire.Pod) -> bool:
    """Whether a pod is a run of a job: what belongs to its node is not, unless it takes accelerators."""
    if not belongs_to_node(pod.metadata, MIRROR):
        return True
    return bool(asked_of(pod.spec.containers, pod.spec.init_containers) or pod.spec.resource_claims)


async def take_snapshot(connection: Connection, cluster: str, *, until: float) -> Snapshot:
    """Reads everything in pages; KubernetesError when pods or Jobs can't be read.

    Jobs come before pods: what a pod's Job was is known then. Bounded by one page of each kind and the
    readings themselves.
    """
    around = Surroundings(cluster=cluster)
    around.labels, jobs, around.claims = await asyncio.gather(
        node_labels(connection, until), _jobs(connection, around, until), read_claims(connection, until)
    )
    await asyncio.gather(*(_owners(connection, path, around, until) for path in _METADATA))
    busy: set[str] = set()  # Jobs that have pods

    def convert(raw: Raw) -> JobReading | None:
        pod = POD.decode(raw)
        if not counts_as_job(pod):
            return None
        reading = reading_of_pod(pod, around)
        if (owner := pod.metadata.controller()) is not None and reading.state not in ENDED:
            busy.add(owner.uid)
        return reading

    pods = await connection.listed(PODS, convert, until=until)
    readings = pods.items
    for uid, job in around.jobs.items():
        if uid not in busy and waits(job):
            readings.append(reading_of_waiting(job, around.owners, cluster))
    return Snapshot(
        jobs=readings,
        around=around,
        pods_version=pods.version,
        jobs_version=jobs.version,
        failures=[*jobs.failures, *pods.failures],
    )


async def _jobs(connection: Connection, around: Surroundings, until: float) -> Listing[None]:
    def convert(raw: Raw) -> None:
        job = JOB.decode(raw)
        around.jobs[job.metadata.uid] = job
        around.owners.learn(job.metadata)

    return await connection.listed(JOBS, convert, until=until)


async def _owners(connection: Connection, path: str, around: Surroundings, until: float) -> None:
    def convert(raw: Raw) -> None:
        meta = _PARTIAL.decode(raw).metadata
        if meta.owner_references:
            around.owners.learn(meta)

    await connection.listed(path, convert, until=until, accept=PARTIAL)


async def node_labels(connection: Connection, until: float) -> dict[str, Mapping[str, str]]:
    """Of each node, the labels that say what its accelerators are."""

    def convert(raw: Raw) -> tuple[str, Mapping[str, str]] | None:
        meta = _PARTIAL.decode(raw).metadata
        kept = {name: meta.labels[name] for name in LABELS if name in meta.labels}
        return (meta.name, kept) if kept else None

    return dict((await connection.listed(_NODES, convert, until=until, accept=PARTIAL)).items)


async def learn_owners(connection: Connection, pods: Iterable[wire.Pod], *, until: float) -> Owners:
    """Who owns these pods, one question for each owner; for few pods, where lists of all owners are too much."""
    asked = {
        (owner.kind, pod.metadata.namespace, owner.name)
        for pod in pods
        if (owner := pod.metadata.controller()) is not None and owner.kind in OWNER_PATHS
    }
    owners = Owners()
    slots = asyncio.Semaphore(_AT_ONCE)

    async def ask(kind: str, namespace: str, name: str) -> None:
        root, plural = OWNER_PATHS[kind]
        async with slots:
            try:
                data = await connection.get(path_of(root, "namespaces", namespace, plural, name), until=until)
            except KubernetesError as error:
                if error.note != "missing":
                    raise
            else:
                owners.learn(_PARTIAL.decode(data).metadata)

    await asyncio.gather(*(ask(*one) for one in sorted(asked)))
    return owners


async def read_slices(connection: Connection, until: float) -> list[ResourceSlice]:
    """Devices that are given by claims; none where the API is older or we may not read them."""
    return await _optional(connection, _SLICES, _SLICE, until)


async def read_claims(connection: Connection, until: float) -> Mapping[tuple[str, str], tuple[CardBinding, ...]]:
    """What pods hold by claims, by namespace and name of the pod."""
    claims = await _optional(connection, _CLAIMS, _CLAIM, until)
    if not claims:
        return {}
    return bindings_of_claims(claims, devices_of(await read_slices(connection, until)))


async def _optional(connection: Connection, path: str, decoder: msgspec.json.Decoder[T], until: float) -> list[T]:
    try:
        return (await connection.listed(path, decoder.decode, until=until)).items
    except KubernetesError as error:
        if error.note == "missing" or error.kind is FailureKind.PERMISSION:
            return []
        raise
