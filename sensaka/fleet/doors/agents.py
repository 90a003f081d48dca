"""Agents of simulated nodes: the real agent's reading, spool and delivery, with the world as their source.

Only the rhythm differs from `sensaka-agent run`: one wheel drives all of them, and their deliveries
share a few threads. What the server has acknowledged stands in each agent's own log, one JSON object
a line, so that after a fault the database can be counted against it.
"""

import gzip
import json
import logging
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock
from typing import Any

import msgspec

from inventory.agent import VERSION
from inventory.agent.clock import SystemClock
from inventory.agent.config import State
from inventory.agent.delivery import TELEMETRY_PATH, Delivery
from inventory.agent.enrolling import ENROL_PATH
from inventory.agent.identity import Identity
from inventory.agent.processes import ProcessTable
from inventory.agent.rounds import Rounds
from inventory.agent.sources import NodeReader, Place
from inventory.agent.spool import Spool
from inventory.agent.transport import Answer, Client, Unreachable
from inventory.observations import FailureKind, NodeReading
from sensaka.fleet.plan import NodePlan
from sensaka.fleet.readings import node_reading
from sensaka.fleet.world import World

log = logging.getLogger("sensaka.fleet")

INTERVAL = 10  # s
DELIVERING_THREADS = 12
SPOOL_BYTES = 16 * 1024 * 1024  # about eight hours of eight cards
LOG_BYTES = 1024 * 1024  # an agent's log of acknowledgements; one older file of the same size is kept


class WorldSource:
    """The cards of one simulated node as a source of the agent."""

    name = "simulated"
    available = True
    reason = "the simulated fleet"

    def __init__(self, world: World, node: NodePlan) -> None:
        self._world, self._node = world, node

    def read(self, *, deadline: float) -> NodeReading:
        """What the node's driver would give now."""
        return node_reading(self._world, self._node)

    def close(self) -> None:
        """Nothing is held open."""


class AckLog:
    """What the server acknowledged to one agent: a line a post, and totals over all files."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._totals = path.with_name("acknowledged-total.json")
        self._lock = Lock()
        self.samples = self.stored = self.posts = 0
        try:
            kept = json.loads(self._totals.read_text())
            self.samples, self.stored, self.posts = kept["samples"], kept["stored"], kept["posts"]
        except (OSError, ValueError, KeyError):
            pass  # a new agent, or a file cut short by a crash: the lines themselves are still there

    def write(self, body: bytes, answer: Mapping[str, Any], at: float) -> None:
        """Note a post that was answered with success."""
        times = [sample["sampled_at"] for sample in msgspec.json.decode(body)["samples"]]
        line = {
            "at": round(at, 3), "first": min(times), "last": max(times), "samples": len(times),
            "stored": answer.get("stored"), "repeated": answer.get("repeated"),
        }  # fmt: skip
        with self._lock:
            self.samples += len(times)
            self.stored += int(answer.get("stored") or 0)
            self.posts += 1
            if self._path.exists() and self._path.stat().st_size > LOG_BYTES:
                self._path.replace(self._path.with_suffix(".old.jsonl"))
            with self._path.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def save(self) -> None:
        """Keep the totals."""
        with self._lock:
            totals = {"samples": self.samples, "stored": self.stored, "posts": self.posts}
            self._totals.write_text(json.dumps(totals))


class LineClient(Client):
    """The agent's client on a line that can be cut, with a log of what was acknowledged."""

    def __init__(self, server: str, acknowledged: AckLog, clock: SystemClock) -> None:
        super().__init__(server)
        self._acknowledged, self._clock = acknowledged, clock
        self.cut = False

    def request(
        self, method: str, path: str, body: bytes | None = None, *, token: str = "", headers: Mapping[str, str] = {}
    ) -> Answer:
        """As the agent's; Unreachable while the line is cut."""
        if self.cut:
            raise Unreachable(FailureKind.UNREACHABLE, "the line to the server is cut")
        answer = super().request(method, path, body, token=token, headers=headers)
        if path == TELEMETRY_PATH and 200 <= answer.status < 300 and body is not None:
            plain = _unpacked(body) if "Content-Encoding" in headers else body
            self._acknowledged.write(plain, answer.json(), self._clock.wall())
        return answer


def _unpacked(body: bytes) -> bytes:
    return gzip.decompress(body)


class SimulatedAgent:
    """One agent. Reading happens where `round` is called, delivering in a thread of the pool."""

    def __init__(self, world: World, node: NodePlan, folder: Path, server: str) -> None:
        self.node = node
        self._world = world
        self.state = State(folder)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._clock = SystemClock()
        self.acknowledged = AckLog(folder / "acknowledged.jsonl")
        self.client = LineClient(server, self.acknowledged, self._clock)
        self.spool = Spool(self.state.spool, limit=SPOOL_BYTES)
        identity = Identity(
            hostname=node.name, machine_id=node.machine_id, system_serial=node.system_serial,
            system_uuid=node.system_uuid,
        )  # fmt: skip
        reader = NodeReader(lambda: [WorldSource(world, node)], Place(identity, ProcessTable()), self._clock)
        self.rounds = Rounds(reader, self.spool, self._clock)
        self.delivery = Delivery(
            self.spool, self.client, interval=INTERVAL, read_token=self.state.token,
            newest_report=self.rounds.newest_report, clock=self._clock,
        )  # fmt: skip
        self._under_way: Future[None] | None = None
        self._not_before = 0.0

    @property
    def enrolled(self) -> bool:
        """Whether it has a node token."""
        return self.state.token_file.exists()

    def forget(self) -> None:
        """Drop a token that the server does not know."""
        self.state.token_file.unlink(missing_ok=True)

    def enrol(self, token: str) -> str:
        """Enrol with a one-time token; the node's id. Raises Unreachable, and RuntimeError when refused."""
        node = self.node
        body = {
            "token": token, "hostname": node.name, "machine_id": node.machine_id,
            "system_serial": node.system_serial, "system_uuid": node.system_uuid, "version": VERSION,
            "simulated": True,
        }  # fmt: skip
        answer = self.client.request("POST", ENROL_PATH, msgspec.json.encode(body))
        told = answer.json()
        if answer.status != 201 or not isinstance(told.get("token"), str):
            raise RuntimeError(f"the agent of {node.name} was not enrolled: {answer.says}")
        self.state.save_token(told["token"])
        return str(told.get("node", ""))

    @property
    def alive(self) -> bool:
        """Whether the agent's process would run: its machine is up and nobody stopped it."""
        return self._world.runs(self.node) and self._world.nodes[self.node.number].agent_up

    def round(self, pool: ThreadPoolExecutor, stop: Event) -> None:
        """Read once into the spool and see that a delivery is under way."""
        if not self.alive or not self.enrolled:
            return
        self.client.cut = not self._world.nodes[self.node.number].line_up
        self.rounds.run()
        waiting = self._under_way is not None and not self._under_way.done()
        if not waiting and self._clock.monotonic() >= self._not_before:
            self._under_way = pool.submit(self._deliver, stop)

    def _deliver(self, stop: Event) -> None:
        """Everything that waits, until the delivery asks for a pause; the next round goes on after it."""
        try:
            while not stop.is_set() and self.alive:
                pause = self.delivery.step()
                if pause is None:
                    return
                if pause > 0:
                    self._not_before = self._clock.monotonic() + pause
                    return
        except Exception:
            # A fault of ours must not end one agent for good: the spool keeps everything, the next round tries again.
            log.exception("the delivery of the agent of %s failed", self.node.name)

    def close(self) -> None:
        """End the connection and keep what waits."""
        self.client.close()
        self.spool.close()
        self.acknowledged.save()
