"""Running `amd-smi` with a deadline that holds even when it can't be killed.

A process that waits for a dead device in the kernel survives SIGKILL. It is then left behind and no
other one is started until it has gone, so there is never more than one.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from typing import IO

from inventory.observations import FailureKind, ReadFailure

MAX_OUTPUT = 32 * 1024 * 1024
_LAST_WORDS = 1.0


class Command:
    """One tool, run again and again."""

    def __init__(self, program: str) -> None:
        self.program = program
        self._stuck: subprocess.Popen[bytes] | None = None

    @property
    def path(self) -> str | None:
        """Where the tool is, None when it is not installed."""
        return shutil.which(self.program)

    def run(self, *arguments: str, until: float) -> str | ReadFailure:
        """Standard output of one run that ends before the monotonic time `until`, or why there is none."""
        what = " ".join((self.program, *arguments))[:200]
        path = self.path
        if path is None:
            return ReadFailure(what=what, kind=FailureKind.MISSING_LIBRARY, detail=f"{self.program} is not installed")
        if self._stuck is not None and self._stuck.poll() is None:
            return ReadFailure(what=what, kind=FailureKind.TIMEOUT, detail="an earlier run still hangs")
        # Files, not pipes: nobody has to read them while the process runs, or after it hangs.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                process = subprocess.Popen(
                    [path, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                    env={**os.environ, "LC_ALL": "C"},
                )
            except OSError as error:
                return ReadFailure(what=what, kind=FailureKind.UNKNOWN, detail=str(error)[:2000])
            try:
                code = process.wait(timeout=max(until - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                self._kill(process)
                return ReadFailure(what=what, kind=FailureKind.TIMEOUT, detail="no answer within the deadline")
            output = _read(out)
            if code != 0:
                detail = (_read(err).strip() or output.strip())[-500:]
                return ReadFailure(what=what, kind=_kind(detail), detail=f"exit {code}: {detail}")
        return output

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        self._stuck = process
        try:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=_LAST_WORDS)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            return  # gone already, or beyond reach: `_stuck` remembers which


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read(MAX_OUTPUT).decode(errors="replace")


def _kind(detail: str) -> FailureKind:
    lowered = detail.lower()
    if "permission" in lowered or "root" in lowered:
        return FailureKind.PERMISSION
    return FailureKind.UNREACHABLE if "driver" in lowered else FailureKind.PROTOCOL
