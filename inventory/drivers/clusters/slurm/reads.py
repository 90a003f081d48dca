"""Reading nodes, partitions, reservations, jobs and finished runs."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec import Raw

from inventory.drivers.clusters.readings import (
    JobsReading,
    NodesReading,
    QueuesReading,
    ReservationsReading,
    RunReading,
    RunsReading,
)
from inventory.drivers.clusters.slurm import text, wire
from inventory.drivers.clusters.slurm.command import CommandDoor
from inventory.drivers.clusters.slurm.doors import JSON_SCONTROL, Doors, checked_job, now, until
from inventory.drivers.clusters.slurm.errors import SlurmError, from_errors
from inventory.drivers.clusters.slurm.jobs import reading_of_job, reading_of_run
from inventory.drivers.clusters.slurm.places import reading_of_node, reading_of_queue, reading_of_reservation
from inventory.observations import FailureKind, ReadFailure

# slurmctld delivers to slurmdbd late while that is away, and clocks differ: the watermark stays this far behind.
OVERLAP = timedelta(minutes=10)
_PLAIN_EPOCH = 42  # the interface from which on a time in a query is a plain number
_AT_ONCE = 8
_IDS_A_COMMAND = 500
_RESERVATIONS_SINCE = 37


class Reads:
    """The reading half of the driver."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors

    async def read_nodes(self, *, deadline: float) -> NodesReading:
        """All nodes with their accelerators."""
        start, end = now(), until(deadline)
        try:
            opened = await self._nodes(end)
        except SlurmError as error:
            return NodesReading(observed_at=start, complete=False, failures=(error.failure(),))
        found, failures = wire.entries(wire.WireNode, opened.nodes, "node")
        nodes = tuple(reading_of_node(node) for node in found)
        return NodesReading(observed_at=start, complete=not failures, nodes=nodes, failures=tuple(failures))

    async def _nodes(self, end: float) -> wire.Envelope:
        if self._doors.rest is not None:
            return await self._doors.rest.get("slurm", "nodes", until=end)
        command = self._doors.commands("nodes")
        if await command.version(until=end) >= JSON_SCONTROL:
            return await _json(command, "scontrol", "show", "nodes", "--json", until=end)
        return await _json(command, "sinfo", "--all", "--json", until=end)

    async def read_queues(self, *, deadline: float) -> QueuesReading:
        """All partitions."""
        start, end = now(), until(deadline)
        try:
            raw = await self._listing("partitions", end)
        except SlurmError as error:
            return QueuesReading(observed_at=start, complete=False, failures=(error.failure(),))
        if isinstance(raw, str):
            found = tuple(queue for record in text.records(raw) if (queue := text.queue_of(record)))
            return QueuesReading(observed_at=start, queues=found)
        entries, failures = wire.entries(wire.WirePartition, raw.partitions, "partition")
        queues = tuple(reading_of_queue(entry) for entry in entries)
        return QueuesReading(observed_at=start, complete=not failures, queues=queues, failures=tuple(failures))

    async def read_reservations(self, *, deadline: float) -> ReservationsReading:
        """All reservations."""
        start, end = now(), until(deadline)
        try:
            raw = await self._listing("reservations", end)
        except SlurmError as error:
            return ReservationsReading(observed_at=start, complete=False, failures=(error.failure(),))
        if isinstance(raw, str):
            found = tuple(entry for record in text.records(raw) if (entry := text.reservation_of(record)))
            return ReservationsReading(observed_at=start, reservations=found)
        entries, failures = wire.entries(wire.WireReservation, raw.reservations, "reservation")
        return ReservationsReading(
            observed_at=start,
            complete=not failures,
            reservations=tuple(reading_of_reservation(entry) for entry in entries),
            failures=tuple(failures),
        )

    async def _listing(self, name: str, end: float) -> wire.Envelope | str:
        """Partitions or reservations, as JSON where something gives it, else scontrol's lines."""
        rest = self._doors.rest
        if rest is not None:
            number = (await rest.interface(until=end)).number
            if name != "reservations" or number >= _RESERVATIONS_SINCE:
                return await rest.get("slurm", name, until=end)
        command = self._doors.commands(name)
        if await command.version(until=end) >= JSON_SCONTROL:
            return await _json(command, "scontrol", "show", name, "--json", until=end)
        output = await command.run("scontrol", "show", name.removesuffix("s"), "--all", "-o", until=end)
        return output.decode(errors="replace")

    async def read_jobs(self, *, deadline: float) -> JobsReading:
        """All jobs that slurmctld remembers, with the cards of those that run."""
        start, end = now(), until(deadline)
        try:
            if self._doors.rest is not None:
                opened = await self._doors.rest.get("slurm", "jobs", until=end)
            else:
                opened = await self._jobs_by_command(end)
        except SlurmError as error:
            return JobsReading(observed_at=start, complete=False, failures=(error.failure(),))
        found, failures = wire.entries(wire.WireJob, opened.jobs, "job")
        jobs = tuple(reading_of_job(job) for job in found)
        return JobsReading(observed_at=start, complete=not failures, jobs=jobs, failures=tuple(failures))

    async def _jobs_by_command(self, end: float) -> wire.Envelope:
        command = self._doors.commands("jobs")
        if await command.version(until=end) >= JSON_SCONTROL:  # there squeue leaves out what has ended
            return await _json(command, "scontrol", "show", "jobs", "--details", "--all", "--json", until=end)
        return await _json(command, "squeue", "--all", "--json", until=end)

    async def read_runs(self, *, since: datetime, deadline: float, also: Collection[str] = ()) -> RunsReading:
        """Runs that ended at or after `since`, those not over, and those of the jobs in `also`.

        A run that was cancelled before it was eligible Slurm tells only of a job that is asked for by its id.
        """
        start, end = now(), until(deadline)
        wanted = sorted(set(also))
        try:
            runs, failures = await self._runs(since, wanted, end)
        except SlurmError as error:
            return RunsReading(observed_at=start, complete=False, watermark=since, failures=(error.failure(),))
        watermark = since if failures else max(since, start - OVERLAP)
        unique = {run.key: run for run in runs}
        return RunsReading(
            observed_at=start,
            complete=not failures,
            watermark=watermark,
            runs=tuple(unique.values()),
            failures=tuple(failures),
        )

    async def _runs(
        self, since: datetime, wanted: Sequence[str], end: float
    ) -> tuple[list[RunReading], list[ReadFailure]]:
        if self._doors.rest is None:
            return await self._runs_by_command(since, wanted, end)
        rest = self._doors.rest
        epoch = int(since.timestamp())
        # Up to v0.0.41 the time is parsed as sacct's --starttime is, where only `uts` marks an epoch.
        when = str(epoch) if (await rest.interface(until=end)).number >= _PLAIN_EPOCH else f"uts{epoch}"
        answers = [await rest.get("slurmdb", "jobs", until=end, query={"start_time": when})]
        slots = asyncio.Semaphore(_AT_ONCE)

        async def one(job_id: str) -> wire.Envelope | None:
            async with slots:
                try:
                    return await rest.get("slurmdb", f"job/{checked_job(job_id)}", until=end)
                except SlurmError as error:
                    if error.note == "missing":
                        return None  # the accounting doesn't know it (yet)
                    raise

        answers += [answer for answer in await asyncio.gather(*(one(job) for job in wanted)) if answer]
        runs: list[RunReading] = []
        failures: list[ReadFailure] = []
        for answer in answers:
            found, failed = wire.entries(wire.WireRun, answer.jobs, "run")
            runs += [reading_of_run(run) for run in found]
            failures += failed
        return runs, failures

    async def _runs_by_command(
        self, since: datetime, wanted: Sequence[str], end: float
    ) -> tuple[list[RunReading], list[ReadFailure]]:
        command = self._doors.commands("accounting")
        form = (f"--delimiter={text.SEPARATOR}", f"--format={','.join(text.RUN_FIELDS)}")
        base = ("sacct", "--allusers", "--duplicates", "--noheader", "--parsable2", *form)
        outputs = [await command.run(*base, f"--starttime=uts{int(since.timestamp())}", until=end)]
        for place in range(0, len(wanted), _IDS_A_COMMAND):
            listed = ",".join(checked_job(job) for job in wanted[place : place + _IDS_A_COMMAND])
            outputs.append(await command.run(*base, f"--jobs={listed}", until=end))
        runs: list[RunReading] = []
        odd = 0
        for output in outputs:
            found, strange = text.runs_of(output.decode(errors="replace"))
            runs += [reading_of_run(run) for run in found]
            odd += strange
        detail = f"{odd} lines of sacct were not understood"
        failures = [ReadFailure(what="sacct", kind=FailureKind.PROTOCOL, detail=detail)] if odd else []
        return runs, failures


async def _json(command: CommandDoor, *words: str, until: float) -> wire.Envelope:
    what = " ".join(words)
    output = await command.run(*words, until=until)
    try:
        opened = wire.envelope(output)
    except msgspec.DecodeError as error:
        raise SlurmError(what, FailureKind.PROTOCOL, f"no JSON as expected: {error}") from error
    if opened.errors:
        raise from_errors(what, opened.errors)
    return opened


async def node_entry(doors: Doors, name: str, *, until: float) -> wire.WireNode:
    """One node as it is now; SlurmError when there is none of that name."""
    if doors.rest is not None:
        opened = await doors.rest.get("slurm", f"node/{name}", until=until)
    else:
        command = doors.commands("node")
        if await command.version(until=until) >= JSON_SCONTROL:
            opened = await _json(command, "scontrol", "show", "node", name, "--json", until=until)
        else:
            opened = await _json(command, "sinfo", "--all", "--json", f"--nodes={name}", until=until)
    raw: Sequence[Raw] | Raw | None = opened.nodes
    found, failures = wire.entries(wire.WireNode, raw, f"node {name}")
    for node in found:
        if node.name == name:
            return node
    if failures:
        raise SlurmError(f"node {name}", failures[0].kind, failures[0].detail)
    raise SlurmError(f"node {name}", FailureKind.PROTOCOL, "there is no such node", answered=True, note="missing")


__all__ = ["OVERLAP", "Reads", "node_entry"]
