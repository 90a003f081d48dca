"""Completes the processes that a driver saw with their name, user and owner from /proc."""

import logging
import pwd
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec

from inventory.agent.cgroups import owner_of
from inventory.observations import ProcessReading

log = logging.getLogger("sensaka.agent")

# A directory service that is down may hold a look-up for minutes; a reading waits for it this long (s).
NAME_PATIENCE = 0.5
NAMES_KEPT = 1000


class UserNames:
    """Names of users by number. Until the directory has answered, the number itself is the name."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._asking: threading.Thread | None = None

    def name(self, uid: int) -> str:
        """The name, or the number where nobody knows it yet."""
        if uid not in self._names and (self._asking is None or not self._asking.is_alive()):
            if len(self._names) >= NAMES_KEPT:
                self._names.clear()
            self._asking = threading.Thread(target=self._ask, args=(uid,), daemon=True, name="user-name")
            self._asking.start()
            self._asking.join(NAME_PATIENCE)
        return self._names.get(uid, str(uid))

    def _ask(self, uid: int) -> None:
        try:
            self._names[uid] = pwd.getpwuid(uid).pw_name
        except KeyError:
            self._names[uid] = str(uid)


class ProcessTable:
    """/proc, or a folder of the same shape: a container mounts the host's elsewhere."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        self.root = root
        self._users = UserNames()

    def complete(self, processes: Sequence[ProcessReading]) -> tuple[ProcessReading, ...]:
        """The same processes with name, user and owner, as far as /proc tells; what is known stays."""
        return tuple(self._complete(process) for process in processes)

    def _complete(self, process: ProcessReading) -> ProcessReading:
        folder = self.root / str(process.pid)
        owner = owner_of(_text(folder / "cgroup"))
        uid = _uid(_text(folder / "status"))
        return msgspec.structs.replace(
            process,
            name=(process.name or _text(folder / "comm").strip())[:200],
            user=process.user or ("" if uid is None else self._users.name(uid)),
            container_id=process.container_id or owner.container_id,
            pod_uid=process.pod_uid or owner.pod_uid,
            slurm_job_id=process.slurm_job_id or owner.slurm_job_id,
        )


def _text(path: Path) -> str:
    """The file, or nothing: a process may end between two looks, and some files are not ours to read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _uid(status: str) -> int | None:
    """The real user of a process. The owner of its folder is no substitute: it is root when not dumpable."""
    for line in status.splitlines():
        if line.startswith("Uid:"):
            fields = line.split()
            return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else None
    return None
