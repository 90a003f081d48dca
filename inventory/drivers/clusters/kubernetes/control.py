"""Starting jobs and steering them."""

import asyncio
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from inventory.drivers.clusters.capabilities import ActResult, JobSpec, Outcome
from inventory.drivers.clusters.kubernetes import wire
from inventory.drivers.clusters.kubernetes.accelerators import PRODUCT
from inventory.drivers.clusters.kubernetes.connection import MERGE, Connection, path_of
from inventory.drivers.clusters.kubernetes.cordons import read_node
from inventory.drivers.clusters.kubernetes.errors import KubernetesError, refused, unsupported
from inventory.drivers.clusters.kubernetes.jobs import is_over
from inventory.drivers.clusters.kubernetes.names import (
    KUEUE_QUEUE,
    MANAGER,
    MARK,
    JobAddress,
    checked_namespace,
    parsed_job,
)
from inventory.drivers.clusters.kubernetes.nodes import reading_of_node
from inventory.drivers.clusters.kubernetes.queues import queueing_of
from inventory.drivers.clusters.kubernetes.reads import until_of
from inventory.drivers.clusters.kubernetes.submission import is_whole, job_body, name_of, resource_of
from inventory.drivers.clusters.readings import ClusterNode
from inventory.observations import FailureKind

NO_SIGNAL = "Kubernetes sends no signals to a pod's processes; cancel ends them with SIGTERM"
NO_SUSPEND = "Kubernetes can't stop a pod's processes and keep its cards; requeue gives the cards back"
_BY_KUEUE = "Kueue decides when this Job runs: change it in its queue"
_ALONE = "a pod without a controller does not come back: cancel it and submit again"
_MOST_TRIES = 6
_LOOK = 0.2  # s between two looks at a Job that gives up its pods
_JOB = msgspec.json.Decoder(wire.Job)
_POD = msgspec.json.Decoder(wire.Pod)
_SCALE = msgspec.json.Decoder(wire.Scale)
_NODE = msgspec.json.Decoder(wire.Node)
T = TypeVar("T")
_SCALED = {"deployment": "deployments", "statefulset": "statefulsets"}


class Control:
    """The part of the driver that acts on jobs."""

    _connection: Connection

    async def submit(self, job: JobSpec, *, deadline: float) -> ActResult:
        """Makes a Job in the namespace that `account` names; indexed where it is a gang, a pod a node.

        A mark that is used already starts nothing (UNCHANGED). A hold is `suspend`.
        """
        end = until_of(deadline)
        try:
            namespace = checked_namespace(job.account)
            resource, product = await self._card(job, end)
            queueing = set(await queueing_of(self._connection, until=end)) if job.queue else set()
            body = job_body(job, namespace, resource, product, queueing)
            try:
                path, query = path_of("apis/batch/v1", "namespaces", namespace, "jobs"), {"fieldManager": MANAGER}
                await self._connection.send("POST", path, until=end, query=query, body=body)
            except KubernetesError as error:
                if error.note == "exists":
                    return await self._already(job, namespace, end)
                raise
        except KubernetesError as error:
            if error.note == "missing":  # the namespace, or a node: it is the job that was refused
                return ActResult(outcome=Outcome.REFUSED, detail=error.detail[:2000], kind=error.kind)
            return error.result()
        return ActResult(outcome=Outcome.DONE, reference=str(JobAddress(namespace, "job", name_of(job))))

    async def _already(self, job: JobSpec, namespace: str, end: float) -> ActResult:
        address = JobAddress(namespace, "job", name_of(job))
        known = await self._job(address, end)
        if known.metadata.annotations.get(MARK) != job.mark:
            raise refused("submit", f"somebody else's Job has the name {address.name}")
        detail = "a Job with this mark is there already"
        return ActResult(outcome=Outcome.UNCHANGED, detail=detail, reference=str(address))

    async def _card(self, job: JobSpec, end: float) -> tuple[str, dict[str, str]]:
        """The resource to ask for and the label of nodes that chooses the card's type."""
        if job.nodes:
            found = await asyncio.gather(*(read_node(self._connection, name, until=end) for name in job.nodes))
            nodes = [reading_of_node(node, {}) for node in found]
        elif job.cards:

            def convert(raw: Raw) -> ClusterNode:
                return reading_of_node(_NODE.decode(raw), {})

            nodes = (await self._connection.listed("/api/v1/nodes", convert, until=end)).items
        else:
            nodes = []
        resource, cards = resource_of(job, nodes)
        chosen = cards is not None and not job.nodes and job.card_type and job.card_type != resource
        if chosen and cards is not None and is_whole(cards.kind) and resource.startswith("nvidia.com/"):
            return resource, {PRODUCT: cards.type}
        return resource, {}

    async def hold(self, job_id: str, *, deadline: float) -> ActResult:
        """Keeps a Job that has no pods from making any; one that runs is left alone."""
        return await self._suspended(job_id, True, until_of(deadline))

    async def release(self, job_id: str, *, deadline: float) -> ActResult:
        """Lets a held Job make its pods."""
        return await self._suspended(job_id, False, until_of(deadline))

    async def _suspended(self, job_id: str, wanted: bool, end: float) -> ActResult:
        try:
            address = _a_job(job_id, "hold")
            for _ in range(_MOST_TRIES):
                job = await self._job(address, end)
                if is_over(job):
                    raise refused("hold", "the job is over")
                if job.spec.suspend is wanted:
                    return ActResult(outcome=Outcome.UNCHANGED, detail="it is so already")
                if wanted and job.status.active:
                    raise refused("hold", "it runs already: requeue or cancel it")
                if await self._set_suspend(address, job, wanted, end):
                    return ActResult(outcome=Outcome.DONE)
        except KubernetesError as error:
            return error.result()
        return _contended()

    async def _set_suspend(self, address: JobAddress, job: wire.Job, wanted: bool, end: float) -> bool:
        """Patches `suspend`; False when somebody changed the Job meanwhile."""
        if KUEUE_QUEUE in job.metadata.labels:
            raise unsupported("hold", _BY_KUEUE)
        body = {"metadata": {"resourceVersion": job.metadata.resource_version}, "spec": {"suspend": wanted}}
        try:
            query = {"fieldManager": MANAGER}
            await self._connection.send("PATCH", _path(address), until=end, query=query, body=body, content=MERGE)
        except KubernetesError as error:
            if error.note == "conflict":
                return False
            raise
        return True

    async def signal(self, job_id: str, name: str, *, deadline: float) -> ActResult:
        """Not supported: it would need to run commands in other people's containers."""
        return ActResult(outcome=Outcome.NOT_SUPPORTED, detail=NO_SIGNAL, kind=FailureKind.NOT_SUPPORTED)

    async def suspend(self, job_id: str, *, deadline: float) -> ActResult:
        """Not supported."""
        return ActResult(outcome=Outcome.NOT_SUPPORTED, detail=NO_SUSPEND, kind=FailureKind.NOT_SUPPORTED)

    async def resume(self, job_id: str, *, deadline: float) -> ActResult:
        """Not supported."""
        return ActResult(outcome=Outcome.NOT_SUPPORTED, detail=NO_SUSPEND, kind=FailureKind.NOT_SUPPORTED)

    async def set_time_limit(self, job_id: str, seconds: int, *, deadline: float) -> ActResult:
        """Moves the deadline of a Job (`activeDeadlineSeconds`, one of the fields that may change while it runs)."""
        end = until_of(deadline)
        try:
            address = _a_job(job_id, "set_time_limit")
            body, query = {"spec": {"activeDeadlineSeconds": seconds}}, {"fieldManager": MANAGER}
            await self._connection.send("PATCH", _path(address), until=end, query=query, body=body, content=MERGE)
        except KubernetesError as error:
            return error.result()
        return ActResult(outcome=Outcome.DONE)

    async def cancel(self, job_id: str, *, deadline: float) -> ActResult:
        """Ends a job: a Job or pod is deleted, its pods first; a service is scaled to nothing and can come back.

        An ended Job or pod stays as it is.
        """
        end = until_of(deadline)
        try:
            address = parsed_job(job_id)
            if address.kind in _SCALED:
                return await self._scaled_to_zero(address, end)
            if address.kind not in ("job", "pod"):
                raise _foreign(address)
            if await self._is_over(address, end):
                return ActResult(outcome=Outcome.UNCHANGED, detail="over already")
            body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"}
            await self._connection.send("DELETE", _path(address), until=end, body=body)
        except KubernetesError as error:
            return error.result()
        return ActResult(outcome=Outcome.DONE)

    async def _is_over(self, address: JobAddress, end: float) -> bool:
        if address.kind == "job":
            job = await self._job(address, end)
            return is_over(job) or job.metadata.deletion_timestamp is not None
        pod = _decoded(_POD, await self._connection.get(_path(address), until=end))
        return pod.status.phase in ("Succeeded", "Failed") or pod.metadata.deletion_timestamp is not None

    async def _scaled_to_zero(self, address: JobAddress, end: float) -> ActResult:
        path = f"{_path(address)}/scale"
        scale = _decoded(_SCALE, await self._connection.get(path, until=end))
        if not scale.spec.replicas:
            return ActResult(outcome=Outcome.UNCHANGED, detail="it has no replicas")
        body: dict[str, Any] = {"spec": {"replicas": 0}}
        await self._connection.send("PATCH", path, until=end, query={"fieldManager": MANAGER}, body=body, content=MERGE)
        return ActResult(outcome=Outcome.DONE, detail=f"scaled from {scale.spec.replicas} replicas to none")

    async def requeue(self, job_id: str, *, deadline: float) -> ActResult:
        """Stops a Job's pods and lets it make new ones: it is suspended and released.

        UNKNOWN, with the reason, when the deadline passes in between: the Job is held then.
        """
        end = until_of(deadline)
        try:
            address = _a_job(job_id, "requeue")
            job = await self._job(address, end)
            if is_over(job):
                raise refused("requeue", "the job is over")
            if job.spec.suspend or not job.status.active:
                raise refused("requeue", "it does not run")
            if not await self._set_suspend(address, job, True, end):
                return _contended()
        except KubernetesError as error:
            return error.result()
        return await self._again(address, end)

    async def _again(self, address: JobAddress, end: float) -> ActResult:
        """Waits until the pods of a suspended Job are gone and releases it."""
        try:
            while True:
                job = await self._job(address, end)
                gone = not job.status.active and not job.status.terminating
                if gone and await self._set_suspend(address, job, False, end):
                    return ActResult(outcome=Outcome.DONE)
                await asyncio.sleep(_LOOK)
        except KubernetesError as error:
            detail = f"its pods were stopped and it is held still, release it: {error.detail}"
            return ActResult(outcome=Outcome.UNKNOWN, detail=detail[:2000], kind=error.kind)

    async def _job(self, address: JobAddress, end: float) -> wire.Job:
        return _decoded(_JOB, await self._connection.get(_path(address), until=end))


def _decoded(decoder: "msgspec.json.Decoder[T]", data: bytes) -> T:
    try:
        return decoder.decode(data)
    except msgspec.DecodeError as error:
        raise KubernetesError("GET", FailureKind.PROTOCOL, f"not the object asked for: {error}") from error


def _path(address: JobAddress) -> str:
    if address.kind == "job":
        return path_of("apis/batch/v1", "namespaces", address.namespace, "jobs", address.name)
    if address.kind == "pod":
        return path_of("api/v1", "namespaces", address.namespace, "pods", address.name)
    return path_of("apis/apps/v1", "namespaces", address.namespace, _SCALED[address.kind], address.name)


def _a_job(job_id: str, what: str) -> JobAddress:
    address = parsed_job(job_id)
    if address.kind == "pod":
        raise unsupported(what, _ALONE)
    if address.kind != "job":
        raise _foreign(address)
    return address


def _foreign(address: JobAddress) -> KubernetesError:
    return unsupported("job", f"a {address.kind} is steered by its own controller: use that one's tools")


def _contended() -> ActResult:
    detail = "the Job was changed by others meanwhile, again and again"
    return ActResult(outcome=Outcome.FAILED, detail=detail, kind=FailureKind.BUSY)
