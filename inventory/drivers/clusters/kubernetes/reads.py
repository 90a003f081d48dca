"""Reading nodes, queues, jobs and what is left of finished ones."""

import asyncio
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import Raw

from inventory.drivers.clusters.kubernetes import wire
from inventory.drivers.clusters.kubernetes.accelerators import asked_of
from inventory.drivers.clusters.kubernetes.claims import accelerators_by_node, devices_of
from inventory.drivers.clusters.kubernetes.connection import Connection
from inventory.drivers.clusters.kubernetes.errors import KubernetesError
from inventory.drivers.clusters.kubernetes.nodes import reading_of_node
from inventory.drivers.clusters.kubernetes.queues import read_queue_objects
from inventory.drivers.clusters.kubernetes.snapshot import PODS, read_slices, take_snapshot
from inventory.drivers.clusters.readings import (
    ClusterNode,
    JobFacts,
    JobReading,
    JobsReading,
    JobState,
    NodesReading,
    QueuesReading,
    ReservationsReading,
    RunReading,
    RunsReading,
)

OVERLAP = timedelta(minutes=10)  # clocks differ, and a kubelet tells late: the watermark stays this far behind
_NODES = "/api/v1/nodes"
_UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
_NODE = msgspec.json.Decoder(wire.Node)
_USING = msgspec.json.Decoder(wire.UsingPod)


def now() -> datetime:
    """The present second."""
    return datetime.now(UTC).replace(microsecond=0)


def until_of(deadline: float) -> float:
    """The event loop's time at which `deadline` seconds are over."""
    return asyncio.get_running_loop().time() + deadline


class Reads:
    """The reading half of the driver."""

    _connection: Connection
    _cluster: str

    async def read_nodes(self, *, deadline: float) -> NodesReading:
        """All nodes with their accelerators and how many of them pods take."""
        start, end = now(), until_of(deadline)
        try:
            used, slices = await asyncio.gather(self._used(end), read_slices(self._connection, end))
            claimed = accelerators_by_node(devices_of(slices).values())

            def convert(raw: Raw) -> ClusterNode:
                node = _NODE.decode(raw)
                reading = reading_of_node(node, used.get(node.metadata.name, {}))
                if not reading.accelerators and reading.name in claimed:
                    return msgspec.structs.replace(reading, accelerators=claimed[reading.name])
                return reading

            listed = await self._connection.listed(_NODES, convert, until=end)
        except KubernetesError as error:
            return NodesReading(observed_at=start, complete=False, failures=(error.failure(),))
        failures = tuple(listed.failures)
        return NodesReading(observed_at=start, complete=not failures, nodes=tuple(listed.items), failures=failures)

    async def _used(self, end: float) -> dict[str, dict[str, int]]:
        """Accelerators that unfinished pods take, by node and resource."""
        used: dict[str, dict[str, int]] = {}

        def convert(raw: Raw) -> None:
            spec = _USING.decode(raw).spec
            if spec.node_name:
                of_node = used.setdefault(spec.node_name, {})
                for resource, count in asked_of(spec.containers, spec.init_containers).items():
                    of_node[resource] = of_node.get(resource, 0) + count

        await self._connection.listed(PODS, convert, until=end, query={"fieldSelector": _UNFINISHED})
        return used

    async def read_queues(self, *, deadline: float) -> QueuesReading:
        """Queues of Kueue and Volcano, none where neither is installed."""
        start = now()
        try:
            queues = await read_queue_objects(self._connection, until=until_of(deadline))
        except KubernetesError as error:
            return QueuesReading(observed_at=start, complete=False, failures=(error.failure(),))
        return QueuesReading(observed_at=start, queues=queues)

    async def read_reservations(self, *, deadline: float) -> ReservationsReading:
        """Kubernetes has none; whether it answers is asked all the same."""
        start = now()
        try:
            await self._connection.get("/version", until=until_of(deadline))
        except KubernetesError as error:
            return ReservationsReading(observed_at=start, complete=False, failures=(error.failure(),))
        return ReservationsReading(observed_at=start)

    async def read_jobs(self, *, deadline: float) -> JobsReading:
        """Every pod that is a run of a job, and every Job that waits without pods."""
        start = now()
        try:
            snapshot = await take_snapshot(self._connection, self._cluster, until=until_of(deadline))
        except KubernetesError as error:
            return JobsReading(observed_at=start, complete=False, failures=(error.failure(),))
        failures = tuple(snapshot.failures)
        return JobsReading(observed_at=start, complete=not failures, jobs=tuple(snapshot.jobs), failures=failures)

    async def read_runs(self, *, since: datetime, deadline: float, also: Collection[str] = ()) -> RunsReading:
        """Runs whose pods are still there. Kubernetes keeps no accounting: a pod that was removed is gone."""
        reading = await self.read_jobs(deadline=deadline)
        start = reading.observed_at
        if not reading.complete:
            return RunsReading(observed_at=start, complete=False, watermark=since, failures=reading.failures)
        wanted = frozenset(also)
        runs = [
            _run(job, start)
            for job in reading.jobs
            if job.ended_at is None or job.ended_at >= since or job.job_id in wanted
        ]
        return RunsReading(observed_at=start, watermark=max(since, start - OVERLAP), runs=tuple(runs))


def _run(job: JobReading, present: datetime) -> RunReading:
    facts: dict[str, Any] = {name: getattr(job, name) for name in JobFacts.__struct_fields__}
    elapsed = 0
    if job.started_at is not None:
        elapsed = max(0, int(((job.ended_at or present) - job.started_at).total_seconds()))
    by = "system" if job.state in (JobState.PREEMPTED, JobState.NODE_FAIL) else ""
    return RunReading(**facts, elapsed=elapsed, suspended=0, cancelled_by=by)
