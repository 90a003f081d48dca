"""Children that end with this process, and how to end them."""

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

_PR_SET_PDEATHSIG = 1


class ServiceError(RuntimeError):
    """An embedded service did not start; the message ends with its own last words."""


def die_with_parent(last_signal: int) -> Callable[[], None]:
    """A preexec function: the kernel sends `last_signal` to the child when its parent ends."""
    libc = ctypes.CDLL(None, use_errno=True)  # not after the fork: loading takes locks
    parent = os.getpid()

    def arm() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, last_signal)
        if os.getppid() != parent:  # the parent ended between fork and prctl
            os._exit(1)

    return arm


def arm_death_signal(last_signal: int) -> None:
    """The kernel sends `last_signal` to this very process when its parent ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, last_signal)


def end_process(
    process: subprocess.Popen[bytes] | None, *, first: signal.Signals, then: signal.Signals, patience: float
) -> None:
    """Ask a child to end, insist after `patience` seconds, and reap it."""
    if process is None or process.poll() is not None:
        return
    process.send_signal(first)
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.send_signal(then)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def package_folder(name: str) -> Path:
    """Where a wheel lies, without importing it: both have side effects on import."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ServiceError(f"the Python package {name} is missing: install requirements.txt")
    return Path(spec.origin).parent
