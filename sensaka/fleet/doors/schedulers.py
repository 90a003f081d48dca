"""Schedulers of the fleet: an emulated slurmrestd for each Slurm cluster, on its own loopback address."""

import base64
from collections.abc import Mapping

from inventory.drivers.fake.slurmrestd import SlurmRest, SlurmRestServer
from sensaka.fleet.layout import SCHEDULERS
from sensaka.fleet.plan import SCHEDULER_NETWORK, Plan
from sensaka.fleet.registration import SchedulerLogin
from sensaka.fleet.world import World

USER = "root"  # who may drain nodes and submit for others


def addresses(plan: Plan) -> dict[str, str]:
    """The loopback address of each Slurm cluster's slurmrestd."""
    numbers = {name: place for place, name in enumerate(SCHEDULERS, 1)}
    return {
        name: f"{SCHEDULER_NETWORK}.{site.number}.{numbers[name]}"
        for name, site, scheduler in plan.clusters
        if scheduler == "slurm"
    }


class Schedulers:
    """One server a cluster; one that is stopped has its port closed. `keys` are the clusters' JWT keys."""

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

    def logins(self) -> dict[str, SchedulerLogin]:
        """How the product gets in, by cluster: with Slurm's key it makes its own tokens."""
        return {
            name: SchedulerLogin("slurm", server.url, USER, base64.b64encode(self._keys[name].encode()).decode())
            for name, server in self._servers.items()
        }

    @property
    def acts(self) -> int:
        """How many requests of clients have changed something."""
        return sum(server.service.acts for server in self._servers.values())

    async def close(self) -> None:
        """Close every port."""
        for server in self._servers.values():
            await server.stop()
