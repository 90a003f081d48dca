"""The two ways to a Slurm: slurmrestd where it can, the commands where it can't or is not there."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from inventory.drivers.clusters.capabilities import ActResult, Outcome
from inventory.drivers.clusters.slurm.command import CommandDoor
from inventory.drivers.clusters.slurm.errors import SlurmError, unsupported
from inventory.drivers.clusters.slurm.rest import RestDoor

_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$", re.ASCII)
_JOB = re.compile(r"^[1-9][0-9]{0,9}$", re.ASCII)
JSON_SCONTROL = (23, 2)  # the release from which on `scontrol show` knows --json


@dataclass(slots=True)
class Doors:
    """At least one of both is there."""

    rest: RestDoor | None
    command: CommandDoor | None

    def __post_init__(self) -> None:
        if self.rest is None and self.command is None:
            raise ValueError("a Slurm needs the address of a slurmrestd, or its commands")

    async def rest_number(self, *, until: float) -> int | None:
        """The number of the interface that slurmrestd speaks, None without slurmrestd."""
        return None if self.rest is None else (await self.rest.interface(until=until)).number

    def commands(self, what: str) -> CommandDoor:
        """The command line, else SlurmError: this needs it."""
        if self.command is None:
            raise unsupported(what, "this server's slurmrestd can't do it, and Slurm's commands are not set up")
        return self.command

    async def close(self) -> None:
        """Ends connections."""
        if self.rest is not None:
            await self.rest.close()


def until(deadline: float) -> float:
    """The event loop's time at which `deadline` seconds are over."""
    return asyncio.get_running_loop().time() + deadline


def now() -> datetime:
    """The present second."""
    return datetime.now(UTC).replace(microsecond=0)


def checked_name(what: str, name: str) -> str:
    """A name that can stand in a path or among a command's words, else SlurmError."""
    if not _NAME.match(name):
        raise unsupported(what, f"{name[:100]!r} is no name of Slurm's")
    return name


def checked_names(what: str, names: Sequence[str]) -> str:
    """Names joined by commas, each checked."""
    return ",".join(checked_name(what, name) for name in names)


def checked_job(job_id: str) -> str:
    """A job's number as a word, else SlurmError."""
    if not _JOB.match(job_id):
        raise unsupported("job", f"{job_id[:100]!r} is no job's number")
    return job_id


def done(detail: str = "", reference: str = "") -> ActResult:
    """An act that was carried out."""
    return ActResult(outcome=Outcome.DONE, detail=detail, reference=reference)


def unchanged(detail: str) -> ActResult:
    """An act that had nothing to do."""
    return ActResult(outcome=Outcome.UNCHANGED, detail=detail)


__all__ = [
    "JSON_SCONTROL",
    "Doors",
    "SlurmError",
    "checked_job",
    "checked_name",
    "checked_names",
    "done",
    "now",
    "unchanged",
    "until",
]
