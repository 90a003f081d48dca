"""The fleet's control address on loopback: what is so (GET /state), make something happen (POST /act).

Its port and its token stand in STATE/control.json, which only the fleet's user can read. The page of
readings for the real agent has its own token in its address, because an agent's source is only a URL.
"""

import hmac
import json
import logging
import os
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from inventory.drivers.fake.slurmrestd import Job
from sensaka.fleet.acts import ACTS, ActError, perform
from sensaka.fleet.plan import SLOTS, NodePlan
from sensaka.fleet.readings import node_reading
from sensaka.fleet.slurm.cluster import SlurmCluster
from sensaka.fleet.web import Reply, Request, WebServer
from sensaka.fleet.world import World

log = logging.getLogger("sensaka.fleet")

FILE = "control.json"
_SOURCE = "/source/"
_PATIENCE = 30.0  # s for an act: a BMC process may have to start


class ControlError(RuntimeError):
    """The running fleet could not be asked, or it refused; the message says why."""


def node_state(world: World, node: NodePlan) -> dict[str, Any]:
    """One node as GET /state shows it."""
    state = world.nodes[node.number]
    slots: list[dict[str, Any] | None] = []
    for slot in range(SLOTS):
        card = world.card_at(node, slot)
        if card is None:
            slots.append(None)
            continue
        layout = world.partitions.get(card.number)
        slots.append(
            {
                "serial": card.serial,
                "uuid": card.uuid,
                "model": card.kind.name,
                "lost": card.number in world.lost,
                "growing_ecc": card.number in world.growing_ecc,
                "mig": list(layout.profiles) if layout else None,
                "activity": round(float(world.sensors.activity[card.number]), 1),
                "temperature": round(float(world.sensors.temperature[card.number]), 1),
                "power": round(float(world.sensors.power[card.number]), 1),
            }
        )
    return {
        "site": node.site.name,
        "cluster": node.cluster,
        "rack": node.rack,
        "door": str(node.door),
        "bmc": f"{node.protocol}://{node.address}",
        "style": node.chassis.style,
        "power_on": state.power_on,
        "os_up": state.os_up,
        "agent_up": state.agent_up,
        "line_up": state.line_up,
        "bmc_up": state.bmc_up,
        "exporter_silent": state.exporter_silent,
        "slots": slots,
    }


def job_state(cluster: SlurmCluster, job: Job) -> dict[str, Any]:
    """One job as GET /jobs shows it."""
    return {
        "job": job.id,
        "name": job.wish.name,
        "user": job.wish.user,
        "account": job.wish.account,
        "partition": job.wish.partition,
        "state": job.state,
        "reason": job.reason,
        "cards": {share.node: cluster.slots(share) for share in job.shares},
        "submitted": job.submitted,
        "started": job.started or None,
        "ended": job.ended or None,
    }


class Control:
    """Serves the world. `applied` is awaited after an act, so that the answer means that every door shows it."""

    def __init__(
        self,
        world: World,
        folder: Path,
        *,
        applied: Callable[[], Awaitable[None]],
        summary: Callable[[], dict[str, Any]],
    ) -> None:
        self._world = world
        self._file = folder / FILE
        self._applied, self._summary = applied, summary
        self._token = secrets.token_urlsafe(24)
        self._source_token = secrets.token_urlsafe(24)
        self._server = WebServer(self._answer)

    async def start(self) -> None:
        """Open a port and write the file that says which."""
        await self._server.start()
        self._file.unlink(missing_ok=True)
        with os.fdopen(os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump({"url": self.url, "token": self._token, "pid": os.getpid()}, file)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{self._server.host}:{self._server.port}"

    def source_of(self, node: NodePlan) -> str:
        """Where a real agent reads the cards of a node."""
        return f"{self.url}{_SOURCE}{node.name}?token={self._source_token}"

    async def stop(self) -> None:
        """Close the port."""
        self._file.unlink(missing_ok=True)
        await self._server.stop()

    async def _answer(self, request: Request) -> Reply:
        if request.path.startswith(_SOURCE):
            return self._source(request)
        given = request.headers.get("authorization", "").removeprefix("Token ")
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            return Reply.of(401, {"error": f"the token in {FILE} is needed"})
        if request.path == "/state" and request.method == "GET":
            return Reply.of(200, self._state(request.query.get("node")))
        if request.path == "/jobs" and request.method == "GET":
            return Reply.of(200, self._jobs(request.query.get("cluster")))
        if request.path == "/act" and request.method == "POST":
            return await self._act(request)
        return Reply.of(404, {"error": "there are GET /state, GET /jobs and POST /act"})

    def _state(self, name: str | None) -> dict[str, Any]:
        world = self._world
        nodes = [node for node in world.plan.nodes if name in (None, node.name)]
        return {
            **self._summary(),
            "seed": world.plan.seed,
            "at": round(world.at, 3),
            "cards": len(world.plan.cards),
            "shelf": [world.plan.cards[number].serial for number in world.shelf],
            "events": sorted(world.events),
            "clusters": {name: self._cluster(cluster) for name, cluster in world.slurm.items()},
            "nodes": {node.name: node_state(world, node) for node in nodes},
        }

    def _cluster(self, cluster: SlurmCluster) -> dict[str, Any]:
        controller = cluster.controller
        return {
            "scheduler_up": cluster.name not in self._world.schedulers_down,
            "running": len(controller.running()),
            "waiting": len(controller.waiting()),
            "runs": len(controller.runs),
        }

    def _jobs(self, name: str | None) -> dict[str, Any]:
        clusters = [cluster for cluster in self._world.slurm.values() if name in (None, cluster.name)]
        return {
            cluster.name: [job_state(cluster, job) for job in cluster.controller.jobs.values()] for cluster in clusters
        }

    async def _act(self, request: Request) -> Reply:
        try:
            arguments = json.loads(request.body)
            if not isinstance(arguments, dict):
                raise ValueError("not an object")
        except ValueError:
            return Reply.of(400, {"error": "the body is a JSON object: do, node, slot ...", "acts": sorted(ACTS)})
        try:
            told = perform(self._world, arguments)
        except ActError as error:
            return Reply.of(422, {"error": str(error)})
        await self._applied()
        log.info("%s", told)
        return Reply.of(200, {"done": told, "at": round(time.time(), 3)})

    def _source(self, request: Request) -> Reply:
        node = self._world.plan.by_name.get(request.path.removeprefix(_SOURCE))
        given = request.query.get("token", "")
        if node is None or not hmac.compare_digest(given.encode(), self._source_token.encode()):
            return Reply.of(404, {"error": "no such source"})
        if not self._world.runs(node):
            return Reply.of(503, {"error": "the node is down"})
        return Reply(200, msgspec.json.encode(node_reading(self._world, node)))


def ask(folder: Path, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Ask the fleet that runs on this state folder. Raises ControlError."""
    try:
        control = json.loads((folder / FILE).read_text())
    except FileNotFoundError:
        raise ControlError(f"no fleet runs on {folder}: there is no {FILE} in it") from None
    except (OSError, ValueError) as error:
        raise ControlError(f"{folder / FILE} can't be read: {error}") from error
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310 - our own loopback address
        control["url"] + path, data, {"Authorization": f"Token {control['token']}"}, method=method
    )
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=_PATIENCE) as answer:
            told: dict[str, Any] = json.load(answer)
            return told
    except urllib.error.HTTPError as error:
        raise ControlError(json.load(error).get("error", f"the fleet answered {error.code}")) from error
    except (OSError, ValueError) as error:
        raise ControlError(f"the fleet at {control['url']} does not answer: {error}") from error
