"""Adapters of clusters behind one contract: `capabilities` says what one can do, `readings` what it gives."""

from collections.abc import Mapping

from msgspec import Struct

from inventory.drivers.clusters.capabilities import ClusterDriver
from inventory.drivers.clusters.slurm import CommandDoor, Login, Renew, RestDoor, SlurmCluster


class SlurmTarget(Struct, frozen=True, kw_only=True):
    """How to reach one Slurm: a slurmrestd (`http://host:6820`, `unix:/path`), its commands here, or both.

    The token is never shown: repr leaves it out. `environment` of the commands holds SLURM_CONF where
    it is not the default.
    """

    url: str = ""
    user: str = ""
    token: str = ""
    ca_file: str = ""
    commands: bool = False
    environment: Mapping[str, str] = {}
    prefix: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"SlurmTarget({self.url or 'commands'}, {self.user})"


def open_slurm(target: SlurmTarget, *, renew: Renew | None = None) -> ClusterDriver:
    """A driver for one Slurm, to be closed by the caller. ValueError when the target names no way in."""
    rest = RestDoor(target.url, Login(target.user, target.token, renew), ca_file=target.ca_file or None)
    command = CommandDoor(environment=target.environment, prefix=target.prefix) if target.commands else None
    return SlurmCluster(rest=rest if target.url else None, command=command)


class KubernetesTarget(Struct, frozen=True, kw_only=True):
    """How to reach one Kubernetes: a kubeconfig's text with its context, or the pod that we run in.

    The kubeconfig holds a token and is never shown: repr leaves it out.
    """

    kubeconfig: str = ""
    context: str = ""
    in_cluster: bool = False

    def __repr__(self) -> str:
        return f"KubernetesTarget({'in-cluster' if self.in_cluster else self.context or 'kubeconfig'})"


def open_kubernetes(target: KubernetesTarget) -> ClusterDriver:
    """A driver for one Kubernetes, to be closed by the caller. KubeconfigError (a ValueError) says what is wrong."""
    # Its client is large (aiohttp, pydantic): only a process that reads a Kubernetes pays for it.
    from inventory.drivers.clusters.kubernetes import KubernetesCluster, access_in_cluster, access_of

    return KubernetesCluster(access_in_cluster() if target.in_cluster else access_of(target.kubeconfig, target.context))


__all__ = ["KubernetesTarget", "SlurmTarget", "open_kubernetes", "open_slurm"]
