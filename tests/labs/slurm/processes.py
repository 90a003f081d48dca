"""Processes of this machine: what they are called, what they hold open, and how a tree of them ends."""

import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path


def pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def end_tree(pid: int) -> None:
    try:
        children = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return
    for child in children:
        end_tree(child)
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(what: str, ready: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, f"{what} did not come up within {seconds} s"
        time.sleep(0.05)


def holds(pid: int, *parts: str) -> bool:
    """Whether a process has a file open whose path holds one of the parts."""
    try:
        links = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
        return any(part in link for link in links for part in parts)
    except OSError:
        return False  # it ended meanwhile
