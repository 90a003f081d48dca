"""The whole fleet in one process: world, doors, control address, registration, from start to a clean end."""

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensaka.fleet import ipmi
from sensaka.fleet.control import Control
from sensaka.fleet.doors.agents import DELIVERING_THREADS, INTERVAL, SimulatedAgent
from sensaka.fleet.doors.bmcs import IpmiBmcs, RedfishBmcs
from sensaka.fleet.doors.exporters import Exporters
from sensaka.fleet.doors.real_agent import RealAgent, Relay
from sensaka.fleet.events import due_events, note_enrolled
from sensaka.fleet.layout import Door
from sensaka.fleet.logins import USERNAME, bmc_login, exporter_port, kubernetes_doors, slurm_doors
from sensaka.fleet.plan import make_plan
from sensaka.fleet.product import Product, Refused
from sensaka.fleet.registration import Enrolling, Registration
from sensaka.fleet.storage import WorldFiles
from sensaka.fleet.wheel import Wheel
from sensaka.fleet.world import StateError

log = logging.getLogger("sensaka.fleet")

SAVE_EVERY = 30.0  # s
TIDY_EVERY = 600.0  # s
SYNC_EVERY = 5.0  # s between two looks at what Kubernetes clusters do
SHOW_EVERY = 10.0  # s between two settings of the IPMI sensors
CLOSING = 4.0  # s for a clean end
_TOKEN_PATIENCE = 120.0  # s for the operator token's file to appear
_REGISTER_AGAIN = 30.0  # s


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line gives."""

    server: str
    token_file: Path
    state: Path
    nodes: int
    seed: int


class AlreadyRunning(RuntimeError):
    """Another fleet uses this state folder."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """The state folder for this process alone. Raises AlreadyRunning."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise AlreadyRunning(f"another fleet runs on {folder}") from error
    finally:
        os.close(descriptor)


class Fleet:
    """Everything that runs, put together. Raises StateError, PortError or SimulatorError when a part can't be had."""

    def __init__(self, options: Options) -> None:
        self.options = options
        folder = options.state
        missing = ipmi.available()
        if missing is not None:
            log.warning("%s; until then the IPMI nodes speak Redfish, and their label says so", missing)
        plan = make_plan(seed=options.seed, nodes=options.nodes, ipmi=missing is None)
        self._files = WorldFiles(folder)
        self.world = self._files.load(plan, time.time())
        self.login = bmc_login(folder, plan)
        redfish = [node for node in plan.nodes if node.protocol == "redfish"]
        over_ipmi = [node for node in plan.nodes if node.protocol == "ipmi"]
        self.redfish = RedfishBmcs(
            self.world, redfish, folder / "certificates", port=self.login.redfish_port, username=USERNAME,
            password=self.login.password,
        )  # fmt: skip
        self.ipmi = IpmiBmcs(
            self.world, over_ipmi, folder / "ipmi", port=self.login.ipmi_port, username=USERNAME,
            password=self.login.password,
        )  # fmt: skip
        paged = [node for node in plan.nodes if node.door is Door.EXPORTER]
        self.exporters = Exporters(self.world, paged, exporter_port(folder, plan))
        self.slurm = slurm_doors(folder, self.world)
        self.kubernetes = kubernetes_doors(folder, self.world)
        self.agents = [
            SimulatedAgent(self.world, node, folder / "agents" / node.name, options.server)
            for node in plan.nodes
            if node.door is Door.AGENT
        ]
        self.real = [
            RealAgent(self.world, node, folder / "agents" / node.name, Relay(options.server))
            for node in plan.nodes
            if node.door is Door.REAL_AGENT
        ]
        self.control = Control(self.world, folder, applied=self.apply, summary=self.summary)
        self.wheel = Wheel()
        self.stop = asyncio.Event()
        self._ending = threading.Event()
        self._pool = ThreadPoolExecutor(DELIVERING_THREADS, thread_name_prefix="deliver")
        self._applied = -1
        self._acts = 0
        self._applying = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    def summary(self) -> dict[str, Any]:
        """Numbers for GET /state."""
        return {
            "server": self.options.server,
            "agents": len(self.agents) + len(self.real),
            "enrolled": sum(agent.enrolled for agent in self._enrolling()),
            "acknowledged_samples": sum(agent.acknowledged.samples for agent in self.agents),
            "waiting_records": sum(agent.spool.pending for agent in self.agents),
            "redfish_requests": self.redfish.requests,
            "slurm_requests": self.slurm.requests,
            "cpu_seconds": round(time.process_time(), 2),
        }

    def _enrolling(self) -> list[Enrolling]:
        return [*self.real, *self.agents]

    async def apply(self) -> None:
        """Bring every door in line with the world."""
        async with self._applying:
            self._applied = self.world.changes
            await self.redfish.apply()
            await self.exporters.apply()
            await self.slurm.apply()
            self.kubernetes.apply()
            self.ipmi.apply()
            for agent in self.real:
                agent.apply(time.monotonic())

    async def start(self) -> None:
        """Open every door; nobody is told yet."""
        self.ipmi.start()
        self.kubernetes.start()
        await self.control.start()
        for agent in self.real:
            await agent.relay.start()
            agent.source = self.control.source_of(agent.node)
        await self.apply()
        self._wind()
        log.info(
            "%d nodes with %d cards: %d Redfish BMCs on port %d, %d IPMI BMCs on port %d, %d exporter pages on port %d",
            len(self.world.plan.nodes), len(self.world.plan.cards),
            sum(node.protocol == "redfish" for node in self.world.plan.nodes), self.login.redfish_port,
            sum(node.protocol == "ipmi" for node in self.world.plan.nodes), self.login.ipmi_port,
            sum(node.door is Door.EXPORTER for node in self.world.plan.nodes), self.exporters.port,
        )  # fmt: skip

    def _wind(self) -> None:
        wheel = self.wheel
        wheel.every(1.0, self._second)
        wheel.every(SHOW_EVERY, self.ipmi.apply, phase=2.3)
        wheel.every(SAVE_EVERY, self.save, phase=SAVE_EVERY)
        wheel.every(SYNC_EVERY, self.kubernetes.sync, phase=1.7)
        wheel.every(TIDY_EVERY, self.redfish.tidy, phase=TIDY_EVERY)
        for number, agent in enumerate(self.agents):
            phase = INTERVAL * number / max(1, len(self.agents))
            wheel.every(INTERVAL, lambda agent=agent: agent.round(self._pool, self._ending), phase=phase)  # type: ignore[misc]

    def _second(self) -> None:
        self.world.advance(time.time())
        due_events(self.world)
        self._keep_acts()
        if self.world.changes != self._applied:
            self._spawn(self.apply())
        for agent in self.real:
            agent.apply(time.monotonic())

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def save(self) -> None:
        """Keep the world and the agents' totals; a full disk is said and tried again."""
        try:
            self._files.save(self.world)
            self.kubernetes.save()
            for agent in self.agents:
                agent.acknowledged.save()
        except OSError as error:
            log.error("the state can't be kept: %s", error)

    def _keep_acts(self) -> None:
        try:
            if self.slurm.acts != self._acts:
                self._files.save_schedulers(self.world)
                self._acts = self.slurm.acts
        except OSError as error:
            log.error("the state of the schedulers can't be kept: %s", error)

    async def register(self) -> None:
        """Make the fleet known to the product, again after a refusal, until it is done."""
        token = await self._operator_token()
        product = Product(self.options.server, token)
        try:
            while True:
                registration = Registration(
                    product=product, plan=self.world.plan, agents=self._enrolling(), exporter_url=self.exporters.url_of,
                    login=self.login, schedulers={**self.slurm.logins(), **self.kubernetes.logins()},
                )  # fmt: skip
                try:
                    await registration.run()
                    break
                except Refused as refusal:
                    log.error("the product refused: %s; once more in %d s", refusal, _REGISTER_AGAIN)
                    await asyncio.sleep(_REGISTER_AGAIN)
        finally:
            await product.close()
        note_enrolled(self.world)

    async def _operator_token(self) -> str:
        end = time.monotonic() + _TOKEN_PATIENCE
        while True:
            with contextlib.suppress(FileNotFoundError):
                token = self.options.token_file.read_text().strip()
                if token:
                    return token
            if time.monotonic() > end:
                raise StateError(f"{self.options.token_file} holds no operator token")
            await asyncio.sleep(0.5)

    async def run(self) -> None:
        """Until `stop` is set."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop.set)
        tasks: list[asyncio.Task[Any]] = []
        try:
            await self.start()
            stopped = asyncio.create_task(self.stop.wait())
            working = {asyncio.create_task(self.wheel.turn()), asyncio.create_task(self.register())}
            tasks = [stopped, *working]
            while not stopped.done() and working:
                done, _ = await asyncio.wait({stopped, *working}, return_when=asyncio.FIRST_COMPLETED)
                for task in done & working:
                    task.result()  # raises what ended it
                working -= done
        finally:
            for task in tasks:
                task.cancel()
            await self._close()

    async def _close(self) -> None:
        self._ending.set()
        # A connection that comes in while its port closes ends with a cancelled task; nobody needs its trace.
        asyncio.get_running_loop().set_exception_handler(lambda _, context: log.debug("%s", context.get("message")))
        self.save()
        for agent in self.real:
            agent.stop()
        for simulated in self.agents:
            simulated.client.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSING / 2):
                for agent in self.real:
                    await agent.relay.stop()
                await self.control.stop()
                await self.exporters.close()
                await self.slurm.close()
                await self.redfish.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.ipmi.close()
        self.kubernetes.close()
        for simulated in self.agents:
            simulated.close()
        log.info("the fleet has ended")


async def run(options: Options) -> None:
    """Run a fleet until SIGTERM or SIGINT. Raises AlreadyRunning, StateError, PortError, SimulatorError."""
    with held(options.state):
        await Fleet(options).run()
