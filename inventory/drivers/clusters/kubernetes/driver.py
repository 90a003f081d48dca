"""A whole Kubernetes cluster behind the adapter contract."""

import asyncio
from collections.abc import AsyncIterator, Mapping

import msgspec
from msgspec import Struct

from inventory.drivers.clusters.capabilities import Capability, CapabilityState, ClusterDescription
from inventory.drivers.clusters.kubernetes.connection import Connection
from inventory.drivers.clusters.kubernetes.control import NO_SIGNAL, NO_SUSPEND, Control
from inventory.drivers.clusters.kubernetes.cordons import Cordons
from inventory.drivers.clusters.kubernetes.errors import KubernetesError
from inventory.drivers.clusters.kubernetes.evictions import Evictions
from inventory.drivers.clusters.kubernetes.follow import Follower
from inventory.drivers.clusters.kubernetes.kubeconfig import Access
from inventory.drivers.clusters.kubernetes.queues import queueing_of
from inventory.drivers.clusters.kubernetes.reads import Reads, now, until_of
from inventory.drivers.clusters.kubernetes.rights import allowed, needed_for
from inventory.drivers.clusters.kubernetes.tenants import ENFORCED, NO_QOS, Tenants
from inventory.drivers.clusters.readings import JobsChange
from inventory.drivers.clusters.tokens import expires_at
from inventory.observations import FailureKind

TESTED = ("1.36",)
_ABSENT: Mapping[Capability, str] = {
    Capability.RESERVATIONS: "Kubernetes has no reservations",
    Capability.RUNS: "Kubernetes keeps no accounting: a pod that was removed is told by nobody but who follows",
    Capability.SIGNAL: NO_SIGNAL,
    Capability.SUSPEND: NO_SUSPEND,
    Capability.QOS: NO_QOS,
}


class _Version(Struct, frozen=True, rename="camel"):
    major: str = ""
    minor: str = ""
    git_version: str = ""


class KubernetesCluster(Reads, Cordons, Evictions, Control, Tenants):
    """One API server. Safe for concurrent use in one event loop."""

    def __init__(self, access: Access) -> None:
        self._connection = Connection(access)
        self._cluster = access.name

    async def close(self) -> None:
        """Ends connections."""
        await self._connection.close()

    async def follow_jobs(self, *, cursor: str = "", deadline: float) -> AsyncIterator[JobsChange]:
        """Changes of pods and Jobs by watches."""
        follower = Follower(self._connection, self._cluster, cursor, until_of(deadline))
        async for change in follower.changes():
            yield change

    async def describe(self, *, deadline: float) -> ClusterDescription:
        """Version, and what can be done with the rights that our account has."""
        start, end = now(), until_of(deadline)
        expires = expires_at(self._connection.access.token)
        try:
            version = await self._version(end)
            rights, queueing = await asyncio.gather(
                allowed(self._connection, until=end), queueing_of(self._connection, until=end)
            )
        except KubernetesError as error:
            reason = f"{error.what}: {error.detail}"[:2000]
            return ClusterDescription(
                observed_at=start,
                reached=False,
                scheduler="kubernetes",
                cluster=self._cluster,
                reason=reason,
                capabilities=tuple(
                    CapabilityState(capability=one, available=False, reason=reason) for one in Capability
                ),
                token_expires_at=expires,
                failures=(error.failure(),),
            )
        number = f"{version.major}.{version.minor.rstrip('+')}"
        note = "" if number in TESTED else f"Kubernetes {number} is untested; tested is {', '.join(TESTED)}"
        states = tuple(_state(one, rights, queueing) for one in Capability)
        return ClusterDescription(
            observed_at=start,
            reached=True,
            scheduler="kubernetes",
            cluster=self._cluster,
            version=version.git_version[:200],
            interface=" ".join(["v1", *sorted(queueing)])[:200],
            tested=not note,
            reason=note,
            capabilities=states,
            enforces=ENFORCED,
            token_expires_at=expires,
        )

    async def _version(self, end: float) -> _Version:
        data = await self._connection.get("/version", until=end)
        try:
            return msgspec.json.decode(data, type=_Version)
        except msgspec.DecodeError as error:
            raise KubernetesError("GET /version", FailureKind.PROTOCOL, f"no version: {error}") from error


def _state(
    capability: Capability, rights: Mapping[tuple[str, str, str], bool], queueing: Mapping[str, str]
) -> CapabilityState:
    if capability in _ABSENT:
        return CapabilityState(capability=capability, available=False, reason=_ABSENT[capability])
    if capability is Capability.QUEUES and not queueing:
        reason = "neither Kueue nor Volcano is installed"
        return CapabilityState(capability=capability, available=False, reason=reason)
    missing = [right for right in needed_for(capability) if not rights.get(right, False)]
    if missing:
        told = ", ".join(f"{verb} {resource}" for verb, _, resource in missing)
        reason = f"our account may not: {told}"[:2000]
        return CapabilityState(capability=capability, available=False, reason=reason)
    return CapabilityState(capability=capability, available=True, via="v1")
