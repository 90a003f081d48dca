"""CPU time of processes and their children, from /proc."""

import os
import signal
import subprocess
import time
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def family(pid: int) -> set[int]:
    """A process and all that descend from it now."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (fields := _stat(int(folder.name))):
            parents[int(folder.name)] = int(fields[1])
    found = {pid}
    while grown := {child for child, parent in parents.items() if parent in found} - found:
        found |= grown
    return found


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, its living descendants and those it has reaped, in seconds."""
    total = 0
    for member in family(pid):
        fields = _stat(member)
        if fields:
            total += sum(int(value) for value in fields[11:15])
    return total / _TICK


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the command: state, parent, ..."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []


def end(process: subprocess.Popen[bytes], *, patience: float = 10.0) -> None:
    """Ask a process to end; insist after `patience` seconds."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for_port(port: int, process: subprocess.Popen[bytes], *, deadline: float = 30.0) -> None:
    """Return when 127.0.0.1:port accepts; RuntimeError when the process ends before or it takes too long."""
    import socket

    until = time.monotonic() + deadline
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode} before it listened")
        with socket.socket() as probe:
            probe.settimeout(0.5)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens on port {port} after {deadline} s")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on at the moment."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
