"""Schedulers of the fleet: a slurmrestd for each Slurm cluster, an API server for each Kubernetes cluster.

Each slurmrestd has a loopback address of its own; the API servers share one and have a port each.
"""

import base64
import contextlib
from collections.abc import Mapping
from pathlib import Path

from inventory.drivers.fake.kubernetes.rights import EVERYTHING, Account
from inventory.drivers.fake.slurmrestd import SlurmRest, SlurmRestServer
from sensaka.fleet.access import SchedulerLogin
from sensaka.fleet.doors.bmcs import kept_certificate
from sensaka.fleet.kubernetes.cluster import KubernetesCluster
from sensaka.fleet.layout import SCHEDULERS
from sensaka.fleet.plan import SCHEDULER_NETWORK, Plan
from sensaka.fleet.storage import put
from sensaka.fleet.world import StateError, World

USER = "root"  # who may drain nodes and submit for others
API_ADDRESS = "127.0.0.1"


def addresses(plan: Plan) -> dict[str, str]:
    """The loopback address of each Slurm cluster's slurmrestd."""
    numbers = {name: place for place, name in enumerate(SCHEDULERS, 1)}
    return {
        name: f"{SCHEDULER_NETWORK}.{site.number}.{numbers[name]}"
        for name, site, scheduler in plan.clusters
        if scheduler == "slurm"
    }


class SlurmDoors:
    """One server a Slurm cluster; one that is stopped has its port closed. `keys` are the clusters' JWT keys."""

    def __init__(self, world: World, *, port: int, keys: Mapping[str, str]) -> None:
        self._world, self._keys = world, keys
        self._servers = {
            name: SlurmRestServer(
                SlurmRest(world.slurm[name].controller, key=keys[name].encode(), clock=None), address, port
            )
            for name, address in addresses(world.plan).items()
        }
        self._listening: set[str] = set()

    async def apply(self) -> None:
        """Open and close ports as the world says."""
        for name, server in self._servers.items():
            wanted = name not in self._world.schedulers_down
            if wanted and name not in self._listening:
                await server.start()
                self._listening.add(name)
            elif not wanted and name in self._listening:
                await server.stop()
                self._listening.discard(name)

    @property
    def requests(self) -> int:
        """How many were answered."""
        return sum(server.requests for server in self._servers.values())

    @property
    def acts(self) -> int:
        """How many requests of clients have changed something."""
        return sum(server.service.acts for server in self._servers.values())

    def logins(self) -> dict[str, SchedulerLogin]:
        """How the product gets in, by cluster: with Slurm's key it makes its own tokens."""
        return {
            name: SchedulerLogin(
                "slurm", address=server.url, username=USER,
                jwt_key=base64.b64encode(self._keys[name].encode()).decode(),
            )
            for name, server in self._servers.items()
        }  # fmt: skip

    async def close(self) -> None:
        """Close every port."""
        for server in self._servers.values():
            await server.stop()


class KubernetesDoors:
    """One API server a Kubernetes cluster, each in a thread of its own. `ports` and `tokens` are by cluster.

    Raises StateError when a kept state can't be read.
    """

    def __init__(self, world: World, folder: Path, *, ports: Mapping[str, int], tokens: Mapping[str, str]) -> None:
        self._world, self._folder, self._tokens = world, folder, tokens
        certificate = kept_certificate(folder / "certificates", API_ADDRESS)
        self.clusters: dict[str, KubernetesCluster] = {}
        self._saved: dict[str, int] = {}
        self._listening: set[str] = set()
        for name, port in ports.items():
            cluster = KubernetesCluster(world, name)
            cluster.server.port, cluster.server.certificate = port, certificate
            cluster.server.api.accounts = {tokens[name]: Account("kubernetes-admin", EVERYTHING)}
            self._restore(cluster)
            self.clusters[name] = cluster

    def _path(self, name: str) -> Path:
        return self._folder / f"kubernetes-{name}.json"

    def _restore(self, cluster: KubernetesCluster) -> None:
        path = self._path(cluster.name)
        with contextlib.suppress(FileNotFoundError):
            try:
                cluster.restore(path.read_bytes())
            except ValueError as error:
                cluster.server.stop()
                raise StateError(f"{path} can't be read ({error}): remove it to start its cluster anew") from error

    def start(self) -> None:
        """Fill every cluster and open its port. OSError when one is taken."""
        for name, cluster in self.clusters.items():
            cluster.sync()
            cluster.server.start()
            self._listening.add(name)
        self.apply()

    def apply(self) -> None:
        """Open and close ports as the world says."""
        for name, cluster in self.clusters.items():
            wanted = name not in self._world.schedulers_down
            if wanted and name not in self._listening:
                cluster.server.come_back()
                self._listening.add(name)
            elif not wanted and name in self._listening:
                cluster.server.go_away()
                self._listening.discard(name)

    def sync(self) -> None:
        """Bring every cluster and the world together."""
        for cluster in self.clusters.values():
            cluster.sync()

    def save(self) -> None:
        """Write the clusters that changed. OSError on a full disk."""
        for name, cluster in self.clusters.items():
            version = cluster.server.store.version
            if self._saved.get(name) != version:
                put(self._path(name), cluster.state())
                self._saved[name] = version

    def logins(self) -> dict[str, SchedulerLogin]:
        """How the product gets in, by cluster."""
        return {
            name: SchedulerLogin("kubernetes", kubeconfig=cluster.server.kubeconfig(self._tokens[name], name))
            for name, cluster in self.clusters.items()
        }

    def close(self) -> None:
        """End every server."""
        for cluster in self.clusters.values():
            cluster.server.stop()
