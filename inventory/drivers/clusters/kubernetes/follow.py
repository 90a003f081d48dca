"""Following pods and Jobs by watches that go on where they stood.

A change's cursor holds the versions of both kinds. A watch that is cut, silent or ended goes on from
the last version that came; where the server keeps that no longer (410), everything is read anew and
told as a whole change. What was told once is not told again.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from inventory.drivers.clusters.kubernetes import wire
from inventory.drivers.clusters.kubernetes.connection import Connection, path_of
from inventory.drivers.clusters.kubernetes.errors import KubernetesError
from inventory.drivers.clusters.kubernetes.jobs import reading_of_waiting, waits
from inventory.drivers.clusters.kubernetes.pods import (
    Surroundings,
    reading_of_pod,
    state_when_gone,
    was_killed,
)
from inventory.drivers.clusters.kubernetes.snapshot import (
    JOB,
    JOBS,
    OWNER_PATHS,
    POD,
    PODS,
    counts_as_job,
    node_labels,
    read_claims,
    take_snapshot,
)
from inventory.drivers.clusters.readings import ENDED, JobReading, JobsChange, JobState
from inventory.observations import ReadFailure

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0  # s between two tries of a server that does not answer
_WAITING = 50  # batches of events; a watch is not read on while so many wait
_VERSIONED = msgspec.json.Decoder(wire.Versioned)

Batch = list[wire.WatchEvent]


class _Expired(Exception):
    pass


class Follower:
    """One run of following; `changes` gives them until the deadline."""

    def __init__(self, connection: Connection, cluster: str, cursor: str, end: float) -> None:
        self._connection = connection
        self._cluster = cluster
        self._end = end
        self._around = Surroundings(cluster=cluster)
        self._known: dict[str, JobReading] = {}
        pods, _, jobs = cursor.partition(",")
        self._versions = {PODS: pods, JOBS: jobs} if pods.isdigit() and jobs.isdigit() else {}
        self._asked: dict[str, wire.Job | None] = {}

    async def changes(self) -> AsyncIterator[JobsChange]:
        """Changes until the deadline; a fault is told as an incomplete one, then it is tried again."""
        loop = asyncio.get_running_loop()
        pause = _FIRST_PAUSE
        while loop.time() < self._end:
            try:
                if not self._versions:
                    yield await self._whole()
                async for change in self._watched():
                    pause = _FIRST_PAUSE
                    yield change
            except _Expired:
                self._versions = {}
            except KubernetesError as error:
                if loop.time() >= self._end:
                    return
                yield self._change(failures=(error.failure(),))
                await asyncio.sleep(min(pause, max(0.0, self._end - loop.time())))
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _change(
        self,
        jobs: tuple[JobReading, ...] = (),
        gone: tuple[JobReading, ...] = (),
        *,
        whole: bool = False,
        failures: tuple[ReadFailure, ...] = (),
    ) -> JobsChange:
        cursor = f"{self._versions[PODS]},{self._versions[JOBS]}" if self._versions else ""
        return JobsChange(
            observed_at=datetime.now(UTC).replace(microsecond=0),
            complete=not failures,
            failures=failures,
            jobs=jobs,
            gone=gone,
            whole=whole,
            cursor=cursor,
        )

    async def _whole(self) -> JobsChange:
        snapshot = await take_snapshot(self._connection, self._cluster, until=self._end)
        self._around = snapshot.around
        self._known = {job.key: job for job in snapshot.jobs}
        self._versions = {PODS: snapshot.pods_version, JOBS: snapshot.jobs_version}
        return self._change(tuple(snapshot.jobs), whole=True, failures=tuple(snapshot.failures))

    async def _watched(self) -> AsyncIterator[JobsChange]:
        """Changes from both watches, until one of them fails or the deadline passes."""
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[tuple[str, Batch] | KubernetesError] = asyncio.Queue(_WAITING)
        tasks = [asyncio.create_task(self._pump(path, events)) for path in (JOBS, PODS)]
        try:
            while (left := self._end - loop.time()) > 0:
                try:
                    async with asyncio.timeout(left):
                        told = await events.get()
                except TimeoutError:
                    return
                if isinstance(told, KubernetesError):
                    if told.note == "expired":
                        raise _Expired
                    raise told
                change = await self._applied(*told)
                if change is not None:
                    yield change
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task

    async def _pump(self, path: str, events: "asyncio.Queue[tuple[str, Batch] | KubernetesError]") -> None:
        """Reads one watch after the other, each from the version that the one before it reached."""
        loop = asyncio.get_running_loop()
        version = self._versions[path]
        try:
            while loop.time() < self._end:
                async for batch in self._connection.watch(path, version=version, until=self._end):
                    if batch:
                        await events.put((path, batch))
                        version = _version_of(batch[-1]) or version
        except KubernetesError as error:
            await events.put(error)

    async def _applied(self, path: str, batch: Batch) -> JobsChange | None:
        self._asked.clear()
        jobs: dict[str, JobReading] = {}
        gone: dict[str, JobReading] = {}
        for event in batch:
            version = _version_of(event)
            if event.type in ("ADDED", "MODIFIED", "DELETED"):
                try:
                    for reading, absent in await self._readings(path, event):
                        (gone if absent else jobs)[reading.key] = reading
                except msgspec.DecodeError:
                    continue  # an object of a form that we don't know costs itself only
            if version:
                self._versions[path] = version
        for key in gone:
            jobs.pop(key, None)
        if jobs or gone or any(event.type == "BOOKMARK" for event in batch):
            return self._change(tuple(jobs.values()), tuple(gone.values()))
        return None

    async def _readings(self, path: str, event: wire.WatchEvent) -> list[tuple[JobReading, bool]]:
        """What an event tells: a reading, and whether it is gone. Nothing where it says nothing new."""
        if path == JOBS:
            return self._of_job(JOB.decode(event.object), removed=event.type == "DELETED")
        pod = POD.decode(event.object)
        if not counts_as_job(pod):
            return []
        await self._learn(pod)
        if event.type == "DELETED":
            return [(self._ended(pod), True)]
        known = self._known.get(pod.metadata.uid)
        if known is not None and known.state in ENDED:
            return []  # an end stays as it was seen first
        reading = reading_of_pod(pod, self._around)
        if reading == known:
            return []
        self._known[reading.key] = reading
        return [(reading, False)]

    def _ended(self, pod: wire.Pod) -> JobReading:
        """The last of a pod. What was seen to have ended keeps that end."""
        known = self._known.pop(pod.metadata.uid, None)
        if known is not None and known.state in ENDED:
            return known
        state = state_when_gone(pod, self._around.job_of(pod.metadata))
        reading = reading_of_pod(pod, self._around, state)
        if pod.status.phase in ("Succeeded", "Failed"):
            return reading
        at = datetime.now(UTC).replace(microsecond=0)  # nobody told when its containers ended: they have by now
        return msgspec.structs.replace(reading, ended_at=max(at, reading.started_at or at))

    def _of_job(self, job: wire.Job, *, removed: bool) -> list[tuple[JobReading, bool]]:
        uid = job.metadata.uid
        if removed:
            self._around.jobs.pop(uid, None)
            known = self._known.pop(uid, None)
            if known is None:
                return []
            at = datetime.now(UTC).replace(microsecond=0)
            return [(msgspec.structs.replace(known, state=JobState.CANCELLED, held=False, ended_at=at), True)]
        self._around.jobs[uid] = job
        self._around.owners.learn(job.metadata)
        known = self._known.get(uid)
        if not waits(job):
            return [(self._known.pop(uid), True)] if known is not None else []
        reading = reading_of_waiting(job, self._around.owners, self._cluster)
        if reading == known:
            return []
        self._known[uid] = reading
        return [(reading, False)]

    async def _learn(self, pod: wire.Pod) -> None:
        """Asks for what this pod's reading needs and nobody told yet: its Job as it is now, owners, labels."""
        owner = pod.metadata.controller()
        if owner is not None and owner.kind == "Job":
            over = pod.metadata.deletion_timestamp is not None and was_killed(pod)
            if over or owner.uid not in self._around.jobs:
                await self._learn_job(pod.metadata.namespace, owner)
        elif owner is not None and owner.kind in OWNER_PATHS and owner.uid not in self._around.owners.of:
            root, plural = OWNER_PATHS[owner.kind]
            found = await self._found(path_of(root, "namespaces", pod.metadata.namespace, plural, owner.name))
            meta = msgspec.json.decode(found, type=wire.PartialObject).metadata if found else None
            self._around.owners.of[owner.uid] = meta.controller() if meta is not None else None
        key = (pod.metadata.namespace, pod.metadata.name)
        if pod.spec.resource_claims and pod.spec.node_name and key not in self._around.claims:
            self._around.claims = await read_claims(self._connection, self._end)
        if pod.spec.node_name and not self._around.labels:
            self._around.labels = await node_labels(self._connection, self._end)

    async def _learn_job(self, namespace: str, owner: wire.Owner) -> None:
        """The pod's Job at this moment, once for each batch: why a pod was removed hangs on it."""
        if owner.uid in self._asked:
            return
        found = await self._found(path_of("apis/batch/v1", "namespaces", namespace, "jobs", owner.name))
        job = JOB.decode(found) if found else None
        if job is not None and job.metadata.uid != owner.uid:
            job = None  # another one of the same name
        self._asked[owner.uid] = job
        if job is None:
            self._around.jobs.pop(owner.uid, None)
        else:
            self._around.jobs[owner.uid] = job
            self._around.owners.learn(job.metadata)

    async def _found(self, path: str) -> bytes | None:
        try:
            return await self._connection.get(path, until=self._end)
        except KubernetesError as error:
            if error.note == "missing":
                return None
            raise


def _version_of(event: wire.WatchEvent) -> str:
    try:
        return _VERSIONED.decode(event.object).metadata.resource_version
    except msgspec.DecodeError:
        return ""
