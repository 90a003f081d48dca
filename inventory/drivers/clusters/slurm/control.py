"""Starting jobs and steering them."""

import os
import re

from inventory.drivers.clusters.capabilities import ActResult, JobSpec, Outcome
from inventory.drivers.clusters.slurm.doors import Doors, checked_job, done, unchanged, until
from inventory.drivers.clusters.slurm.errors import SlurmError, from_text
from inventory.drivers.clusters.slurm.submission import environment_of, minutes_of, rest_body, sbatch_words
from inventory.drivers.clusters.slurm.versions import NEW_FORM
from inventory.observations import FailureKind

_SILENT = ("v0.0.40", "v0.0.41")  # 24.11 answers these with success for a job that does not exist
_SIGNAL = re.compile(r"^[A-Z0-9]{1,10}$", re.ASCII)


class Control:
    """The part of the driver that acts on jobs."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors

    async def submit(self, job: JobSpec, *, deadline: float) -> ActResult:
        """Submits; the reference is the job's number. UNKNOWN: look for the mark before trying again."""
        end = until(deadline)
        try:
            number = await self._doors.rest_number(until=end)
            by_command = self._doors.command is not None and not self._doors.command.carries_token
            if number is None or (number < NEW_FORM and by_command):
                return await self._submit_by_command(job, end)
            return await self._submit_by_rest(job, number, end)
        except SlurmError as error:
            if error.note == "missing":  # a node of the list: it is the job that was refused
                return ActResult(outcome=Outcome.REFUSED, detail=error.detail[:2000], kind=error.kind)
            return error.result()

    async def _submit_by_rest(self, job: JobSpec, number: int, end: float) -> ActResult:
        assert self._doors.rest is not None
        body = rest_body(job, new_form=number >= NEW_FORM)
        answer = await self._doors.rest.send("POST", "job/submit", body=body, until=end, user=job.user)
        if not answer.job_id:
            raise SlurmError("job/submit", FailureKind.PROTOCOL, "the answer names no job")
        return done(reference=str(answer.job_id))

    async def _submit_by_command(self, job: JobSpec, end: float) -> ActResult:
        command = self._doors.commands("submit")
        if command.carries_token:
            raise SlurmError("submit", FailureKind.NOT_SUPPORTED, "sbatch would hand our token to the job")
        memory = os.memfd_create("environment")  # the job's environment must not become sbatch's own
        try:
            os.write(memory, environment_of(job))
            os.lseek(memory, 0, os.SEEK_SET)
            words = sbatch_words(job, environment_fd=memory)
            output = await command.run(*words, until=end, stdin=job.script.encode(), pass_fds=(memory,))
        finally:
            os.close(memory)
        number = output.decode(errors="replace").strip().partition(";")[0]
        if not number.isdigit():
            raise SlurmError("sbatch", FailureKind.PROTOCOL, f"no job number: {number[:200]}")
        return done(reference=number)

    async def hold(self, job_id: str, *, deadline: float) -> ActResult:
        """Keeps a waiting job from starting."""
        return await self._hold(job_id, True, until(deadline))

    async def release(self, job_id: str, *, deadline: float) -> ActResult:
        """Lets a held job start."""
        return await self._hold(job_id, False, until(deadline))

    async def _hold(self, job_id: str, held: bool, end: float) -> ActResult:
        try:
            job = checked_job(job_id)
            number = await self._doors.rest_number(until=end)
            if self._doors.rest is not None and number is not None and number >= NEW_FORM:
                await self._doors.rest.send("POST", f"job/{job}", body={"hold": held}, until=end)
                return done()
            word = "hold" if held else "release"
            await self._doors.commands(word).run("scontrol", word, job, until=end)
        except SlurmError as error:
            return error.result()
        return done()

    async def signal(self, job_id: str, name: str, *, deadline: float) -> ActResult:
        """Sends a signal (`USR1`) to all processes of a job, its script included."""
        if not _SIGNAL.match(name):
            return ActResult(outcome=Outcome.REFUSED, detail=f"{name[:20]!r} is no signal's name")
        return await self._kill(job_id, name, until(deadline))

    async def cancel(self, job_id: str, *, deadline: float) -> ActResult:
        """Ends a job."""
        return await self._kill(job_id, "", until(deadline))

    async def _kill(self, job_id: str, name: str, end: float) -> ActResult:
        try:
            job = checked_job(job_id)
            if self._doors.rest is not None:
                if (await self._doors.rest.interface(until=end)).name in _SILENT:
                    await self._doors.rest.get("slurm", f"job/{job}", until=end)
                query = {"signal": name} if name else None
                await self._doors.rest.send("DELETE", f"job/{job}", query=query, until=end)
                return done()
            words = ("scancel", "--verbose", *(("--full", f"--signal={name}") if name else ()), job)
            said: list[str] = []
            await self._doors.commands("cancel").run(*words, until=end, said=said)
            if "error:" in said[0]:  # scancel ends with 0 for a job that does not exist
                raise from_text("scancel", said[0].partition("error:")[2].strip())
        except SlurmError as error:
            if error.note == "over" and not name:
                return unchanged(error.detail)
            return error.result()
        return done()

    async def requeue(self, job_id: str, *, deadline: float) -> ActResult:
        """Stops a run and puts the job back into the queue; Slurm lets it wait two minutes."""
        return await self._scontrol("requeue", job_id, until(deadline))

    async def suspend(self, job_id: str, *, deadline: float) -> ActResult:
        """Stops a job's processes; it keeps its cards."""
        return await self._scontrol("suspend", job_id, until(deadline))

    async def resume(self, job_id: str, *, deadline: float) -> ActResult:
        """Lets a suspended job go on."""
        return await self._scontrol("resume", job_id, until(deadline))

    async def set_time_limit(self, job_id: str, seconds: int, *, deadline: float) -> ActResult:
        """Lets a job run for so long in all, in whole minutes. Raising it takes an operator's rights in Slurm."""
        end, minutes = until(deadline), minutes_of(seconds)
        try:
            job = checked_job(job_id)
            number = await self._doors.rest_number(until=end)
            if self._doors.rest is not None and number is not None and number >= NEW_FORM:
                limit = {"set": True, "infinite": False, "number": minutes}
                await self._doors.rest.send("POST", f"job/{job}", body={"time_limit": limit}, until=end)
                return done()
            words = ("scontrol", "update", f"jobid={job}", f"timelimit={minutes}")
            await self._doors.commands("set_time_limit").run(*words, until=end)
        except SlurmError as error:
            return error.result()
        return done()

    async def _scontrol(self, word: str, job_id: str, end: float) -> ActResult:
        try:
            job = checked_job(job_id)
            await self._doors.commands(word).run("scontrol", word, job, until=end)
        except SlurmError as error:
            if word == "resume" and "is not suspended" in error.detail:
                return unchanged(error.detail)
            return error.result()
        return done()
