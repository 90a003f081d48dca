"""Log-ins, keys and ports of the simulated doors: generated and chosen at the first start, then kept."""

import secrets
import socket
from pathlib import Path
from typing import Any

from sensaka.fleet.access import BmcLogin
from sensaka.fleet.doors.bmcs import free_port
from sensaka.fleet.doors.schedulers import API_ADDRESS, KubernetesDoors, SlurmDoors, addresses
from sensaka.fleet.layout import Door
from sensaka.fleet.plan import Plan
from sensaka.fleet.storage import keep
from sensaka.fleet.world import World

USERNAME = "operator"
REDFISH_PORT, IPMI_PORT, EXPORTER_PORT, SLURM_PORT, API_PORT = 8443, 6230, 9400, 6820, 6443


def bmc_login(folder: Path, plan: Plan) -> BmcLogin:
    """The log-in and ports of the simulated BMCs: generated and chosen once, then kept. Raises PortError."""
    path = folder / "bmc.json"
    by_protocol = {
        protocol: [node.address for node in plan.nodes if node.protocol == protocol] for protocol in ("redfish", "ipmi")
    }
    kept = keep(
        path,
        {
            "password": secrets.token_hex(8),  # IPMI 1.5 takes 16 characters
            "redfish_port": free_port(by_protocol["redfish"], REDFISH_PORT) if not path.exists() else 0,
            "ipmi_port": free_port(by_protocol["ipmi"], IPMI_PORT, socket.SOCK_DGRAM) if not path.exists() else 0,
        },
    )
    return BmcLogin(USERNAME, kept["password"], kept["redfish_port"], kept["ipmi_port"])


def slurm_doors(folder: Path, world: World) -> SlurmDoors:
    """The slurmrestds. Raises PortError."""
    path = folder / "slurm.json"
    by_cluster = addresses(world.plan)
    made = {} if path.exists() else {
        "port": free_port(by_cluster.values(), SLURM_PORT),
        "keys": {name: secrets.token_hex(32) for name in by_cluster},
    }  # fmt: skip
    kept = keep(path, made)
    return SlurmDoors(world, port=int(kept["port"]), keys=kept["keys"])


def kubernetes_doors(folder: Path, world: World) -> KubernetesDoors:
    """The API servers. Raises PortError, and StateError for a kept state that can't be read."""
    path = folder / "kubernetes.json"
    names = [name for name, _, scheduler in world.plan.clusters if scheduler == "kubernetes"]
    made: dict[str, Any] = {"ports": {}, "tokens": {name: secrets.token_urlsafe(24) for name in names}}
    first = API_PORT
    for name in [] if path.exists() else names:
        made["ports"][name] = free_port([API_ADDRESS], first)
        first = made["ports"][name] + 1
    kept = keep(path, made)
    return KubernetesDoors(world, folder, ports=kept["ports"], tokens=kept["tokens"])


def exporter_port(folder: Path, plan: Plan) -> int:
    """The port of all exporter pages. Raises PortError."""
    by_door = [node.exporter_address for node in plan.nodes if node.door is Door.EXPORTER]
    path = folder / "exporters.json"
    port = {} if path.exists() else {"port": free_port(by_door, EXPORTER_PORT)}
    return int(keep(path, port)["port"])
