"""A whole Slurm cluster behind the adapter contract."""

from collections.abc import AsyncIterator, Iterator

from inventory.drivers.clusters.capabilities import Capability, CapabilityState, ClusterDescription
from inventory.drivers.clusters.polling import INTERVAL, follow_by_polling
from inventory.drivers.clusters.readings import JobsChange, JobsReading
from inventory.drivers.clusters.slurm.command import CommandDoor
from inventory.drivers.clusters.slurm.control import Control
from inventory.drivers.clusters.slurm.cordons import NO_EVICTION, Cordons
from inventory.drivers.clusters.slurm.doors import Doors, now, until
from inventory.drivers.clusters.slurm.errors import SlurmError
from inventory.drivers.clusters.slurm.reads import Reads
from inventory.drivers.clusters.slurm.rest import RestDoor
from inventory.drivers.clusters.slurm.tenants import ENFORCED, Tenants
from inventory.drivers.clusters.slurm.versions import NEW_FORM, Interface
from inventory.drivers.clusters.slurm.wire import Envelope
from inventory.observations import FailureKind, ReadFailure

_COMMAND_JSON = (21, 8)  # the release from which on squeue, sinfo and sacct know --json
_PATIENCE = 5.0  # s; commands try for a long time to reach a slurmctld that is down
_BY_REST = frozenset({Capability.NODES, Capability.QUEUES, Capability.JOBS, Capability.FOLLOW, Capability.RUNS})
_BY_NEW_REST = frozenset({Capability.CORDON, Capability.PLACE, Capability.HOLD})


class SlurmCluster(Reads, Cordons, Control, Tenants):
    """One Slurm, by slurmrestd, by its commands, or by both. Safe for concurrent use in one event loop."""

    def __init__(
        self, *, rest: RestDoor | None = None, command: CommandDoor | None = None, interval: float = INTERVAL
    ) -> None:
        self._doors = Doors(rest, command)
        self._interval = interval

    async def close(self) -> None:
        """Ends connections."""
        await self._doors.close()

    async def follow_jobs(self, *, cursor: str = "", deadline: float) -> AsyncIterator[JobsChange]:
        """Changes of jobs, found by reading them every few seconds; begins with all of them."""

        async def read(left: float) -> JobsReading:
            return await self.read_jobs(deadline=left)

        async for change in follow_by_polling(read, deadline=deadline, interval=self._interval):
            yield change

    async def describe(self, *, deadline: float) -> ClusterDescription:
        """Version, interface, and what can be done by which way; failures of both ways kept apart."""
        end = until(deadline)
        start = now()
        failures: list[ReadFailure] = []
        interface, answer = await self._ask_rest(end, failures)
        commands = await self._ask_commands(end, failures)
        version = self._doors.command.release if commands and self._doors.command else ""
        cluster = ""
        if answer is not None and answer.meta is not None:
            told = answer.meta.new or answer.meta.old
            version, cluster = (told.release or version, told.cluster) if told else (version, "")
        notes = [interface.note] if interface and interface.note else []
        notes += [f"{failure.what}: {failure.detail}" for failure in failures]
        return ClusterDescription(
            observed_at=start,
            reached=interface is not None or commands,
            scheduler="slurm",
            cluster=cluster,
            version=version,
            interface=interface.name if interface else ("commands" if commands else ""),
            tested=interface.tested if interface else True,
            reason="; ".join(notes)[:2000],
            capabilities=tuple(_capabilities(interface, commands)),
            enforces=ENFORCED if commands else (),
            token_expires_at=self._doors.rest.login.expires_at if self._doors.rest else None,
            failures=tuple(failures),
        )

    async def _ask_rest(self, end: float, failures: list[ReadFailure]) -> tuple[Interface | None, Envelope | None]:
        if self._doors.rest is None:
            return None, None
        try:
            return await self._doors.rest.interface(until=end), await self._doors.rest.get("slurm", "ping", until=end)
        except SlurmError as error:
            failures.append(error.failure())
            return None, None

    async def _ask_commands(self, end: float, failures: list[ReadFailure]) -> bool:
        if self._doors.command is None:
            return False
        try:
            await self._doors.command.version(until=end)
            await _ping(self._doors.command, end)
        except SlurmError as error:
            failures.append(error.failure())
            return False
        return True


async def _ping(command: CommandDoor, end: float) -> None:
    """Raises when no controller answers. `scontrol ping` says only that one is down, so another command tells why."""
    try:
        await command.run("scontrol", "ping", until=end)
    except SlurmError as error:
        if " is UP" in error.detail:
            return  # a backup serves
        try:
            await command.run("sinfo", "--noheader", "--format=%P", until=min(end, until(_PATIENCE)))
        except SlurmError as why:
            if why.kind is not FailureKind.TIMEOUT:
                raise
            told = error.detail.partition("\n")[0]
            raise SlurmError(error.what, FailureKind.UNREACHABLE, told) from None


def _capabilities(interface: Interface | None, commands: bool) -> Iterator[CapabilityState]:
    for capability in Capability:
        if capability is Capability.EVICT:
            yield CapabilityState(capability=capability, available=False, reason=NO_EVICTION)
        elif interface is not None and _rest_can(capability, interface):
            yield CapabilityState(capability=capability, available=True, via=f"slurmrestd {interface.name}")
        elif commands:
            yield CapabilityState(capability=capability, available=True, via="commands")
        else:
            reason = "neither slurmrestd nor Slurm's commands answer"
            if interface is not None:
                reason = f"slurmrestd {interface.name} can't; set up Slurm's commands on this host"
            yield CapabilityState(capability=capability, available=False, reason=reason)


def _rest_can(capability: Capability, interface: Interface) -> bool:
    if capability is Capability.RESERVATIONS:
        return interface.number > 36
    if capability in (Capability.SUBMIT, Capability.SIGNAL, Capability.CANCEL):
        return True
    return capability in _BY_REST or (capability in _BY_NEW_REST and interface.number >= NEW_FORM)
