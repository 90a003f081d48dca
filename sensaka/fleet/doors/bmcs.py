"""BMCs of simulated nodes: Redfish services on their own loopback addresses, and ipmi_sim processes."""

import contextlib
import json
import logging
import os
import socket
from collections.abc import Iterable
from pathlib import Path

from inventory.drivers.fake.redfish import Certificate, RedfishServer, self_signed
from sensaka.fleet.ipmi import IpmiSimulator, SimulatedBmc, SimulatorError
from sensaka.fleet.plan import SLOTS, NodePlan
from sensaka.fleet.trees import behaviour_of, make_tree
from sensaka.fleet.trees.environment import FAN_TOP, fan_percent
from sensaka.fleet.world import World

log = logging.getLogger("sensaka.fleet")

FANS = 8
_PORT_TRIES = 50


class PortError(RuntimeError):
    """No port is free on all addresses; the message names the range."""


def free_port(addresses: Iterable[str], first: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """The first port from `first` that can be bound on every address. Raises PortError."""
    addresses = list(addresses)
    for port in range(first, first + _PORT_TRIES):
        if all(_bindable(address, port, kind) for address in addresses):
            return port
    raise PortError(f"no port from {first} to {first + _PORT_TRIES - 1} is free on all simulated addresses")


def _bindable(address: str, port: int, kind: socket.SocketKind) -> bool:
    with socket.socket(socket.AF_INET, kind) as probe:
        if kind is socket.SOCK_STREAM:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
        return True


def kept_certificate(folder: Path, address: str) -> Certificate:
    """The certificate of an address, made once: a real BMC keeps its own over restarts, and clients pin it."""
    path = folder / f"{address}.json"
    with contextlib.suppress(OSError, ValueError, TypeError):
        return Certificate(**json.loads(path.read_text()))
    made = self_signed(address)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        parts = {"certificate": made.certificate, "key": made.key, "fingerprint": made.fingerprint}
        json.dump(parts, file)
    partial.replace(path)
    return made


class RedfishBmcs:
    """One service a Redfish node; a BMC that is stopped has its port closed."""

    def __init__(
        self, world: World, nodes: Iterable[NodePlan], folder: Path, *, port: int, username: str, password: str
    ) -> None:
        self._world = world
        self._servers = {
            node.number: RedfishServer(
                make_tree(world, node), username, password, node.address, port,
                behaviour=behaviour_of(node.chassis.style), certificate=kept_certificate(folder, node.address),
            )
            for node in nodes
        }  # fmt: skip
        self._listening: set[int] = set()
        self._answered = 0

    async def apply(self) -> None:
        """Open and close ports as the world says."""
        for number, server in self._servers.items():
            wanted = self._world.nodes[number].bmc_up
            if wanted and number not in self._listening:
                await server.start()
                self._listening.add(number)
            elif not wanted and number in self._listening:
                self._listening.discard(number)
                await server.stop()

    @property
    def requests(self) -> int:
        """How many requests all of them have answered."""
        return self._answered + sum(server.log.total for server in self._servers.values())

    def tidy(self) -> None:
        """Empty the emulators' request logs, which are made for tests and would grow over days."""
        answered = self.requests
        for server in self._servers.values():
            server.log.clear()
        self._answered = answered

    async def close(self) -> None:
        """Close every port."""
        self._listening.clear()
        for server in self._servers.values():
            await server.stop()


class IpmiBmcs:
    """The ipmi_sim processes, kept in step with the world in both directions: power goes both ways."""

    def __init__(
        self, world: World, nodes: Iterable[NodePlan], folder: Path, *, port: int, username: str, password: str
    ) -> None:
        self._world = world
        self._nodes = list(nodes)
        bmcs = [
            SimulatedBmc(
                name=node.name, address=node.address, serial=node.system_serial, system_uuid=node.system_uuid,
                product=node.chassis.product, manufacturer=f"Sensaka Simulated {node.chassis.vendor}", fans=FANS,
            )
            for node in self._nodes
        ]  # fmt: skip
        self._simulator = IpmiSimulator(folder, bmcs, port=port, username=username, password=password)
        self._powered = {node.number: True for node in self._nodes}
        self._resets = {node.number: 0 for node in self._nodes}

    def start(self) -> None:
        """Start all. To be called from the main thread: the processes end with the thread that started them."""
        if self._nodes:
            self._simulator.start()

    def apply(self) -> None:
        """Stop and start BMCs, take over power that the product switched, show the present sensor values."""
        for node in self._nodes:
            try:
                self._apply(node)
            except SimulatorError as error:
                log.warning("%s", error)

    def _apply(self, node: NodePlan) -> None:
        state, simulator = self._world.nodes[node.number], self._simulator
        running = simulator.running(node.name)
        if running and not state.bmc_up:
            simulator.stop_bmc(node.name)
        elif not running and state.bmc_up:
            simulator.start_bmc(node.name)
        if not state.bmc_up:
            return
        self._power(node)
        self._show(node)

    def _power(self, node: NodePlan) -> None:
        state, simulator = self._world.nodes[node.number], self._simulator
        outside = simulator.powered(node.name)
        if outside != self._powered[node.number]:  # somebody used the BMC
            state.power_on = outside
            if outside:
                state.os_up = True
                self._world.boot(node)
            self._world.changed()
        elif state.power_on != outside:  # an act in the simulator
            simulator.set_power(node.name, state.power_on)
        self._powered[node.number] = state.power_on
        resets = simulator.resets(node.name)
        if resets != self._resets[node.number]:
            self._resets[node.number] = resets
            state.os_up = True
            self._world.boot(node)
            self._world.changed()

    def _show(self, node: NodePlan) -> None:
        world, name, simulator = self._world, node.name, self._simulator
        on = world.nodes[node.number].power_on
        simulator.set_value(name, "Inlet Temp", node.site.inlet)
        simulator.set_value(name, "Node Power", world.node_power(node))
        for slot in range(SLOTS):
            card = world.card_at(node, slot)
            known = card is not None and on and card.number not in world.lost
            degrees = float(world.sensors.temperature[card.number]) if card is not None and known else node.site.inlet
            simulator.set_value(name, f"GPU{slot + 1} Temp", degrees)
        speed = fan_percent(on, world.node_power(node)) / 100 * FAN_TOP
        for number in range(1, FANS + 1):
            simulator.set_value(name, f"Fan{number}", speed)

    def close(self) -> None:
        """End every process."""
        self._simulator.stop()
