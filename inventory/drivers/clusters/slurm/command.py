"""Slurm's commands: started with a list of words, never through a shell, under a deadline.

Times are asked for as epochs (`SLURM_TIME_FORMAT=%s`), so no time zone can come in between.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping, Sequence

from inventory.drivers.clusters.slurm.errors import SlurmError, from_text
from inventory.observations import FailureKind

MOST_BYTES = 512 * 1024 * 1024
_PATH = "/usr/bin:/bin:/usr/local/bin:/opt/slurm/bin:/usr/sbin:/sbin"
_PASSED_ON = ("PATH", "SLURM_CONF", "HOME", "LD_LIBRARY_PATH")


class CommandDoor:
    """Runs Slurm's commands here. `prefix` goes before them (`sudo -n -u slurm`, a chroot's entry)."""

    def __init__(self, *, environment: Mapping[str, str] | None = None, prefix: Sequence[str] = ()) -> None:
        kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        fixed = {"LC_ALL": "C", "TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}
        self._environment = {"PATH": _PATH, **kept, **(environment or {}), **fixed}
        self._prefix = tuple(prefix)
        self._version: tuple[int, int] | None = None
        self.release = ""

    def installed(self) -> bool:
        """Whether Slurm's commands are here (with a prefix: whether that is)."""
        return shutil.which((*self._prefix, "scontrol")[0], path=self._environment["PATH"]) is not None

    async def version(self, *, until: float) -> tuple[int, int]:
        """Slurm's release as (year, month), e.g. (22, 5)."""
        if self._version is None:
            text = (await self.run("scontrol", "--version", until=until)).decode(errors="replace").split()
            self.release = text[-1] if text else ""
            numbers = self.release.split(".")
            if len(numbers) < 2 or not (numbers[0].isdigit() and numbers[1].isdigit()):
                raise SlurmError("scontrol --version", FailureKind.PROTOCOL, f"no version: {' '.join(text)[:200]}")
            self._version = (int(numbers[0]), int(numbers[1]))
        return self._version

    @property
    def carries_token(self) -> bool:
        """Whether a JWT is in the environment; sbatch would hand it to the job, as all SLURM_ variables."""
        return "SLURM_JWT" in self._environment

    async def run(
        self, *words: str, until: float, stdin: bytes = b"", said: list[str] | None = None, pass_fds: Sequence[int] = ()
    ) -> bytes:
        """Standard output; SlurmError with the command's own words when it fails or is too slow.

        `said` gets the standard error of a run that succeeded.
        """
        what = " ".join(words[:4])[:200]
        try:
            process = await asyncio.create_subprocess_exec(
                *self._prefix,
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment,
                start_new_session=True,
                pass_fds=tuple(pass_fds),
            )
        except OSError as error:
            raise SlurmError(what, FailureKind.MISSING_LIBRARY, f"{words[0]} can't be started: {error}") from error
        try:
            async with asyncio.timeout_at(until):
                output, errors = await process.communicate(stdin)
        except TimeoutError as error:
            raise SlurmError(what, FailureKind.TIMEOUT, "no end within the deadline") from error
        finally:
            if process.returncode is None:
                _kill(process.pid)
                await process.wait()
        if process.returncode:
            text = (errors.decode(errors="replace").strip() or output.decode(errors="replace").strip())[-1000:]
            raise from_text(what, text or f"exit {process.returncode}", code=process.returncode)
        if said is not None:
            said.append(errors.decode(errors="replace"))
        if len(output) > MOST_BYTES:
            raise SlurmError(what, FailureKind.PROTOCOL, f"the output is longer than {MOST_BYTES} bytes")
        return output


def _kill(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it ended in the meantime
