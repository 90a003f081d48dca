"""RedfishBmc: the capabilities of `inventory.drivers.bmc.capabilities` over one BMC's Redfish service."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from inventory.drivers.bmc.capabilities import PowerAction
from inventory.drivers.bmc.redfish import discovery, logs, polling, power, writes
from inventory.drivers.bmc.redfish.client import RedfishClient
from inventory.drivers.bmc.redfish.failures import FailureList, RedfishError
from inventory.drivers.bmc.redfish.links import Links, export, restored
from inventory.drivers.bmc.redfish.reader import Reader, advertised_levels
from inventory.drivers.bmc.redfish.resources import Resource, dig, path_of
from inventory.drivers.bmc.redfish.session import Login
from inventory.drivers.bmc.redfish.systems import choose_host
from inventory.observations import BmcReading, BmcTarget, FailureKind, LogEntry, ReadFailure

_ROOT = "/redfish/v1"


class RedfishBmc:
    """One BMC. Keeps a session between calls; `close` gives it back, so close it whatever happens.

    One call at a time: a visit has one deadline and its own counts.

    `links` is what `export_links` of an earlier driver gave: with it a poll needs no walk. `concurrency`
    is the most requests that one BMC gets at once; small web servers on BMCs suffer from more.
    """

    def __init__(self, target: BmcTarget, *, links: Mapping[str, Any] | None = None, concurrency: int = 4) -> None:
        self._client = RedfishClient(target, concurrency=concurrency)
        self._login = Login(target, self._client)
        self._links = restored(links)
        self._root: Resource | None = None
        if self._links is not None and self._links.sessions:
            self._login.sessions = self._links.sessions

    def export_links(self) -> dict[str, Any]:
        """What was learnt, as JSON types; {} before the first discovery. Holds no secret."""
        return export(self._links) if self._links is not None else {}

    async def discover(self, *, deadline: float) -> BmcReading:
        """Everything worth knowing once, within `deadline` seconds; what is missing is in `failures`."""
        return await self._visit(self._discover, deadline)

    async def poll(self, *, deadline: float) -> BmcReading:
        """What changes, within `deadline` seconds; a driver without links walks as discovery does."""
        return await self._visit(self._poll, deadline)

    async def read_log(
        self, *, since: datetime | None, deadline: float
    ) -> tuple[Sequence[LogEntry], Sequence[ReadFailure]]:
        """Entries of the hardware's logs that are newer than `since`, oldest first, with what failed."""
        self._client.begin(deadline)
        failures = FailureList()
        entries: Sequence[LogEntry] = ()
        try:
            reader = await self._enter(failures)
            entries = await logs.read_log(reader, self._root or {}, since=since)
        except RedfishError as error:
            failures.add(error.failure())
        return entries, failures.result()

    async def set_power(self, action: PowerAction, *, deadline: float) -> ReadFailure | None:
        """Asks for a power change; None when the BMC accepted it."""
        self._client.begin(deadline)
        try:
            reader = await self._enter(FailureList())
            await power.set_power(self._client, reader, await self._host(reader), action)
        except RedfishError as error:
            return error.failure()
        return None

    async def patch(self, path: str, changes: Resource, *, deadline: float) -> ReadFailure | None:
        """Changes properties of a resource, with its entity tag; None when the BMC accepted."""
        self._client.begin(deadline)
        try:
            await self._enter(FailureList())
            await writes.patch(self._client, self._login, path, changes)
        except RedfishError as error:
            return error.failure()
        return None

    async def close(self) -> None:
        """Ends the session on the BMC (at most five seconds) and the connections."""
        try:
            await self._login.close()
        finally:
            await self._client.close()

    async def __aenter__(self) -> "RedfishBmc":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _visit(self, work: Callable[[Reader], Awaitable[BmcReading]], deadline: float) -> BmcReading:
        started = time.monotonic()
        self._client.begin(deadline)
        failures = FailureList()
        try:
            reading = await work(await self._enter(failures))
        except RedfishError as error:
            failures.add(error.failure())
            reading = BmcReading(observed_at=datetime.now(UTC), reached=False)
        return msgspec.structs.replace(
            reading,
            failures=failures.result(),
            requests=self._client.requests,
            peak_concurrency=self._client.peak,
            elapsed=time.monotonic() - started,
            tls_fingerprint=self._client.fingerprint,
        )

    async def _enter(self, failures: FailureList) -> Reader:
        """Logs in and learns the service root where that is not known from links."""
        if self._links is None and self._root is None:
            root = await self._open_root()
            sessions = path_of(dig(root, "Links", "Sessions")) or path_of(dig(root, "SessionService"))
            if sessions.rstrip("/").endswith("/Sessions"):
                self._login.sessions = sessions.rstrip("/")
            self._root = root or None
        await self._login.ensure()
        levels = self._links.levels if self._links is not None else advertised_levels(self._root or {})
        return Reader(self._client, self._login, failures, levels=levels)

    async def _open_root(self) -> Resource:
        """The service root without a login, as the standard has it; {} where it wants one all the same."""
        try:
            return await self._client.get(_ROOT, authenticated=False)
        except RedfishError as error:
            if error.status not in (401, 403):
                raise
            return {}

    async def _discover(self, reader: Reader) -> BmcReading:
        if self._root is None:
            self._root = await self._client.get(_ROOT)
        reader.levels = advertised_levels(self._root)
        reading, links = await discovery.discover(reader, self._root)
        links.sessions = self._login.sessions
        links.levels = reader.levels
        if links.host:
            self._links = links
        if not (links.host or reading.bmc_firmware or reading.sensors or reading.cards):
            if not reader.failures.result():
                raise RedfishError(_ROOT, FailureKind.PROTOCOL, "the service shows nothing that can be read")
            return BmcReading(observed_at=datetime.now(UTC), reached=False)
        return reading

    async def _poll(self, reader: Reader) -> BmcReading:
        links: Links | None = self._links
        if links is None:
            return await self._discover(reader)
        try:
            reader.broken = set(links.broken)
            reading = await polling.poll(reader, links)
        except polling.LinksOutdated:
            reader.broken = set()
            return await self._discover(reader)
        links.levels = min(links.levels, reader.levels)
        return reading

    async def _host(self, reader: Reader) -> Resource:
        if self._links is not None and self._links.host:
            found = await reader.fetch(self._links.host)
        else:
            systems = await reader.members(path_of(dig(self._root, "Systems")) or f"{_ROOT}/Systems")
            found = choose_host(systems.members) if systems else None
        if found is None:
            raise RedfishError("power", FailureKind.PROTOCOL, "the system can't be read")
        return found
