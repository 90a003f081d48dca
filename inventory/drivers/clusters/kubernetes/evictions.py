"""Emptying a node by the Eviction API, which keeps to disruption budgets."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import Raw

from inventory.drivers.clusters.capabilities import EvictionResult, Outcome, Remaining
from inventory.drivers.clusters.kubernetes import wire
from inventory.drivers.clusters.kubernetes.connection import Connection, path_of
from inventory.drivers.clusters.kubernetes.cordons import read_node
from inventory.drivers.clusters.kubernetes.errors import KubernetesError
from inventory.drivers.clusters.kubernetes.names import MIRROR
from inventory.drivers.clusters.kubernetes.nodes import cordon_of
from inventory.drivers.clusters.kubernetes.owners import Owners, address_of, belongs_to_node
from inventory.drivers.clusters.kubernetes.reads import until_of
from inventory.drivers.clusters.kubernetes.snapshot import POD, PODS, learn_owners
from inventory.observations import FailureKind

_AT_ONCE = 8
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 15.0  # s between two tries against a budget
_LOOK = 1.0  # s between two looks at pods that are to go
_ALONE = "no controller would start it again: cancel it if it is to go"


@dataclass(slots=True)
class _Progress:
    """What became of each pod."""

    evicted: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # UID to reason
    failed: KubernetesError | None = None


class Evictions:
    """The part of the driver that empties nodes."""

    _connection: Connection

    async def evict(self, node: str, *, owner: str, deadline: float) -> EvictionResult:
        """Asks every pod that has a controller to go, again and again while a budget forbids it, until the deadline.

        Pods of DaemonSets and static pods stay; a pod without a controller is left to who started it.
        DONE when nothing else is left; FAILED (BUSY) with what is left and why.
        """
        end = until_of(deadline)
        progress = _Progress()
        try:
            seen = await read_node(self._connection, node, until=end)
            if not seen.spec.unschedulable:
                return EvictionResult(
                    outcome=Outcome.REFUSED, detail="cordon the node first, or new work comes at once"
                )
            holder, text = cordon_of(seen)
            if holder != owner or not owner:
                return EvictionResult(outcome=Outcome.HELD_BY_OTHER, detail=text[:2000])
            left = await self._emptied(node, progress, end)
        except KubernetesError as error:
            told = error.result()
            return EvictionResult(
                outcome=told.outcome, detail=told.detail, kind=told.kind, evicted=tuple(progress.evicted)
            )
        return _result(progress, left)

    async def _emptied(self, node: str, progress: _Progress, end: float) -> list[Remaining]:
        """Evicts and waits; what is left at the end."""
        loop = asyncio.get_running_loop()
        asked: set[str] = set()
        while True:
            pods = await self._pods_on(node, end)
            movable = [pod for pod in pods if _stays(pod) is None]
            fresh = [pod for pod in movable if pod.metadata.uid not in asked]
            if fresh:
                asked.update(pod.metadata.uid for pod in fresh)
                await self._evict_all(fresh, progress, end - _LOOK)
                continue
            waiting = [pod for pod in movable if pod.metadata.uid not in progress.refused]
            if not waiting or loop.time() + 2 * _LOOK >= end:
                owners = await learn_owners(self._connection, pods, until=end)
                return [_remaining(pod, progress, owners) for pod in pods]
            await asyncio.sleep(_LOOK)

    async def _pods_on(self, node: str, end: float) -> list[wire.Pod]:
        def convert(raw: Raw) -> wire.Pod | None:
            pod = POD.decode(raw)
            return None if pod.status.phase in ("Succeeded", "Failed") else pod

        return (await self._connection.listed(PODS, convert, until=end, query=_on(node))).items

    async def _evict_all(self, pods: Sequence[wire.Pod], progress: _Progress, end: float) -> None:
        slots = asyncio.Semaphore(_AT_ONCE)

        async def one(pod: wire.Pod) -> None:
            if pod.metadata.deletion_timestamp is not None:
                return  # on its way already
            async with slots:
                await self._evict(pod, progress, end)

        await asyncio.gather(*(one(pod) for pod in pods))

    async def _evict(self, pod: wire.Pod, progress: _Progress, end: float) -> None:
        """One pod. A UID is a condition: its successor of the same name is another pod."""
        loop = asyncio.get_running_loop()
        meta = pod.metadata
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": meta.name, "namespace": meta.namespace},
            "deleteOptions": {"preconditions": {"uid": meta.uid}},
        }
        path = path_of("api/v1", "namespaces", meta.namespace, "pods", meta.name, "eviction")
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._connection.send("POST", path, until=end, body=body, patient=False)
            except KubernetesError as error:
                if error.note in ("missing", "conflict"):
                    return  # it is gone, or another one has its name
                pause = max(pause, error.retry_after or 0.0)
                if error.note not in ("budget", "busy") or loop.time() + pause >= end:
                    progress.refused[meta.uid] = error.detail[:2000]
                    progress.failed = progress.failed or error
                    return
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                progress.evicted.append(meta.uid)
                return


def _on(node: str) -> dict[str, str]:
    return {"fieldSelector": f"spec.nodeName={node}"}


def _stays(pod: wire.Pod) -> str | None:
    """Why a pod is not evicted, None where it is to go."""
    if belongs_to_node(pod.metadata, MIRROR):
        return "it belongs to the node"
    return _ALONE if pod.metadata.controller() is None else None


def _remaining(pod: wire.Pod, progress: _Progress, owners: Owners) -> Remaining:
    meta = pod.metadata
    stays = belongs_to_node(meta, MIRROR)
    reason = _stays(pod) or progress.refused.get(meta.uid) or "it is ending"
    address = address_of(meta.namespace, meta.name, owners.chain(meta))
    return Remaining(key=meta.uid, job_id=str(address), reason=reason, stays=stays)


def _result(progress: _Progress, left: list[Remaining]) -> EvictionResult:
    evicted, moving = tuple(progress.evicted), [one for one in left if not one.stays]
    if not moving:
        outcome = Outcome.DONE if evicted else Outcome.UNCHANGED
        return EvictionResult(outcome=outcome, evicted=evicted, left=tuple(left))
    detail = f"{len(moving)} pods are left: {moving[0].reason}"
    kind = progress.failed.kind if progress.failed is not None else FailureKind.BUSY
    return EvictionResult(outcome=Outcome.FAILED, detail=detail[:2000], kind=kind, evicted=evicted, left=tuple(left))


__all__ = ["Evictions"]
