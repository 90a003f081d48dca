"""Makes the fleet known to the product, as an operator would: places, credential, tokens, exporters, discoveries.

Everything is looked up by name or address before it is made, so a second start adds nothing. What
the product finds out by itself (nodes, cards) is only placed: rack, position, labels.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from sensaka.fleet.access import BmcLogin, SchedulerLogin
from sensaka.fleet.layout import RACK_DESIGN_POWER, RACK_HEIGHT, Door
from sensaka.fleet.plan import NodePlan, Plan
from sensaka.fleet.product import Product, Refused, Row

log = logging.getLogger("sensaka.fleet")

CREDENTIAL = "Simulated BMCs"
INTERVAL = 10  # s; a source that stops is seen to be stale after three of them
DISCOVERY_TRIES = 6
_LOOK_EVERY = 2.0  # s
_DISCOVERY_PATIENCE = 120.0  # s
_PLACING_PATIENCE = 600.0  # s


class Enrolling(Protocol):
    """An agent that may need enrolment; `enrol` blocks."""

    node: NodePlan

    @property
    def enrolled(self) -> bool: ...

    def forget(self) -> None: ...

    def enrol(self, token: str) -> str: ...


@dataclass
class Places:
    """Ids that the product gave."""

    sites: dict[str, str] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=dict)
    racks: dict[str, str] = field(default_factory=dict)
    connected: set[str] = field(default_factory=set)  # clusters whose scheduler it knows


def address_ranges(addresses: Sequence[str]) -> str:
    """Addresses as a list of ranges: `127.77.1.1-127.77.1.4, 127.77.1.9`."""
    numbered = sorted(tuple(int(part) for part in address.split(".")) for address in addresses)
    runs: list[list[tuple[int, ...]]] = []
    for number in numbered:
        if runs and number[:3] == runs[-1][-1][:3] and number[3] == runs[-1][-1][3] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    text = [[".".join(map(str, end)) for end in (run[0], run[-1])] for run in runs]
    return ", ".join(first if first == last else f"{first}-{last}" for first, last in text)


class Registration:
    """One run of it. `run` ends when every node stands in its rack."""

    def __init__(
        self,
        *,
        product: Product,
        plan: Plan,
        agents: Sequence[Enrolling],
        exporter_url: Callable[[NodePlan], str],
        login: BmcLogin,
        schedulers: Mapping[str, SchedulerLogin],
    ) -> None:
        self._product, self._plan, self._agents = product, plan, agents
        self._exporter_url, self._login, self._schedulers = exporter_url, login, schedulers
        self._places = Places()

    async def run(self) -> None:
        """Everything, the four kinds of sources side by side. Raises Refused when the product says no."""
        await self._make_places()
        results = await asyncio.gather(
            self._enrol_agents(), self._add_exporters(), self._discover(), self._connect(), return_exceptions=True
        )
        problems = [result for result in results if isinstance(result, BaseException)]
        for problem in problems:
            if not isinstance(problem, Refused):
                raise problem
            log.error("%s", problem)
        await self._place_nodes()

    async def _make_places(self) -> None:
        product, places = self._product, self._places
        for site in self._plan.sites:
            row = await product.ensure(
                "sites", {"name": site.name}, kind=site.kind, time_zone=site.time_zone, simulated=True
            )
            places.sites[site.name] = row["id"]
        for name, site, _ in self._plan.clusters:
            row = await product.ensure("clusters", {"site": places.sites[site.name], "name": name})
            places.clusters[name] = row["id"]
            places.connected |= {name} if row.get("scheduler") else set()
        known = {(row["site"], row["name"]): row["id"] for row in await product.all("racks")}
        for rack in self._plan.racks:
            key = (places.sites[rack.site.name], rack.name)
            if key not in known:
                body = {"height": RACK_HEIGHT, "design_power": RACK_DESIGN_POWER}
                known[key] = (await product.create("racks", {"site": key[0], "name": key[1], **body}))["id"]
            places.racks[rack.name] = known[key]
        log.info("%d sites, %d clusters, %d racks", len(places.sites), len(places.clusters), len(places.racks))

    # agents

    async def _enrol_agents(self) -> None:
        await self._forget_unknown()
        groups: dict[tuple[str, str], list[Enrolling]] = defaultdict(list)
        for agent in self._agents:
            if not agent.enrolled:
                groups[agent.node.cluster, agent.node.rack].append(agent)
        if not groups:
            return
        await asyncio.gather(*(self._enrol_rack(*place, agents) for place, agents in groups.items()))
        enrolled = sum(agent.enrolled for agent in self._agents)
        log.info("%d of %d agents are enrolled", enrolled, len(self._agents))

    async def _forget_unknown(self) -> None:
        """Drop the tokens of agents that the product does not know (its database is newer than our state)."""
        if not any(agent.enrolled for agent in self._agents):
            return
        serials = {row["id"]: row["system_serial"] for row in await self._product.all("nodes")}
        rows = await self._product.all("agents")
        known = {serials.get(row["node"]) for row in rows if row.get("revoked_at") is None}
        for agent in self._agents:
            if agent.enrolled and agent.node.system_serial not in known:
                agent.forget()

    async def _enrol_rack(self, cluster: str, rack: str, agents: list[Enrolling]) -> None:
        site = agents[0].node.site
        made = await self._product.create(
            "enrolment-tokens",
            {
                "name": f"Simulated agents {cluster} {rack}",
                "site": self._places.sites[site.name],
                "cluster": self._places.clusters[cluster],
                "rack": self._places.racks[rack],
                "uses": len(agents) + 2,  # an answer that is lost has used it up
                "expires_at": (datetime.now(UTC) + timedelta(hours=2)).isoformat(),
            },
        )
        for agent in agents:
            await self._enrol_one(agent, made["token"])

    async def _enrol_one(self, agent: Enrolling, token: str) -> None:
        for pause in (1.0, 3.0, 6.0, 0.0):
            try:
                await asyncio.to_thread(agent.enrol, token)
                return
            except Exception as error:
                # Unreachable, refused, or the real agent's own process failed: said, and tried again.
                log.warning("%s could not be enrolled: %s", agent.node.name, error)
                await asyncio.sleep(pause)

    # exporters

    async def _add_exporters(self) -> None:
        nodes = [node for node in self._plan.nodes if node.door is Door.EXPORTER]
        known = {row["url"] for row in await self._product.all("exporters")}
        for node in nodes:
            if self._exporter_url(node) in known:
                continue
            await self._product.create(
                "exporters",
                {
                    "url": self._exporter_url(node),
                    "site": self._places.sites[node.site.name],
                    "cluster": self._places.clusters[node.cluster],
                    "rack": self._places.racks[node.rack],
                    "interval": INTERVAL,
                },
            )
        log.info("%d exporter pages", len(nodes))

    # BMCs

    async def _discover(self) -> None:
        credential = await self._credential()
        for attempt in range(DISCOVERY_TRIES):
            known = {(row["address"], row["port"]) for row in await self._product.all("bmcs")}
            missing = [node for node in self._plan.nodes if (node.address, self._login.port_of(node)) not in known]
            if not missing:
                break
            if attempt:
                log.info("%d BMCs are not found yet, searching again", len(missing))
                await asyncio.sleep(5.0 * attempt)
            groups: dict[tuple[str, str], list[NodePlan]] = defaultdict(list)
            for node in missing:
                groups[node.cluster, node.protocol].append(node)
            await asyncio.gather(*(self._search(nodes, credential) for nodes in groups.values()))

    async def _credential(self) -> str:
        secret = {"username": self._login.username, "password": self._login.password}
        found = await self._product.find("credentials", name=CREDENTIAL)
        if found is None:
            return str((await self._product.create("credentials", {"name": CREDENTIAL, **secret}))["id"])
        await self._product.change("credentials", found["id"], secret)  # the state folder may be a new one
        return str(found["id"])

    async def _search(self, nodes: list[NodePlan], credential: str) -> None:
        first = nodes[0]
        started = await self._product.create(
            "discoveries",
            {
                "addresses": address_ranges([node.address for node in nodes]),
                "ports": [self._login.port_of(first)],
                "protocol": first.protocol,
                "credential": credential,
                "tls": "fingerprint",
                "interval": INTERVAL,
                "site": self._places.sites[first.site.name],
                "cluster": self._places.clusters[first.cluster],
                "rack": self._places.racks[first.rack] if len({node.rack for node in nodes}) == 1 else None,
            },
        )
        patience = asyncio.get_running_loop().time() + _DISCOVERY_PATIENCE
        row: Row = started
        while row["state"] == "running" and asyncio.get_running_loop().time() < patience:
            await asyncio.sleep(_LOOK_EVERY)
            row = await self._product.request("GET", f"discoveries/{started['id']}/")
        log.info("%s of %s BMCs found at %s (%s)", row["found"], len(nodes), row["addresses"], first.protocol)

    # schedulers

    async def _connect(self) -> None:
        """Say to the product how each cluster's scheduler is reached; what is so already stays."""
        for name, login in self._schedulers.items():
            path = f"clusters/{self._places.clusters[name]}/connection/"
            body = {key: value for key, value in asdict(login).items() if value}
            method = "PATCH" if name in self._places.connected else "POST"
            await self._product.request(method, path, body=body)
        log.info("%d clusters are connected to their schedulers", len(self._schedulers))

    # nodes

    async def _place_nodes(self) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + _PLACING_PATIENCE
        open_nodes = {node.name: node for node in self._plan.nodes}
        while open_nodes and loop.time() < end:
            rows = await self._product.all("nodes")
            by_serial = {row["system_serial"]: row for row in rows if row.get("system_serial")}
            by_name = {row["name"]: row for row in rows}
            for name, node in list(open_nodes.items()):
                row = by_serial.get(node.system_serial) or by_name.get(name)
                if row is not None:
                    await self._place(node, row)
                    del open_nodes[name]
            if open_nodes:
                await asyncio.sleep(_LOOK_EVERY)
        if open_nodes:
            log.warning("%d nodes did not appear: %s", len(open_nodes), ", ".join(sorted(open_nodes)))
        else:
            log.info("all %d nodes are in the tree", len(self._plan.nodes))

    async def _place(self, node: NodePlan, row: Row) -> None:
        wanted: Row = {"rack": self._places.racks[node.rack], "rack_position": node.rack_position}
        labels = {**(row.get("labels") or {}), **node_labels(node)}
        changes = {key: value for key, value in wanted.items() if row.get(key) != value}
        if labels != (row.get("labels") or {}):
            changes["labels"] = labels
        if changes:
            try:
                await self._product.change("nodes", row["id"], changes)
            except Refused as refusal:
                log.warning("%s could not be placed: %s", node.name, refusal)


def node_labels(node: NodePlan) -> dict[str, str]:
    """What the fleet writes on a node: that it is simulated, by what it is read, what it is used for."""
    labels = {"simulated": "true", "read-by": str(node.door).replace("_", " "), "work": str(node.work)}
    if node.ipmi_missing:
        labels["bmc"] = "speaks Redfish instead of IPMI: ipmi_sim (Debian package openipmi) is not installed"
    return labels
