"""Who this node is: host name, machine id, the board's serial and UUID, and the boot it is in."""

import socket
from pathlib import Path

from msgspec import Struct

from inventory.rules.identity import known_text, system_uuid


class Identity(Struct, frozen=True, kw_only=True):
    """What tells this node from others. Empty: not readable here, and why is what `check` says."""

    hostname: str = ""
    machine_id: str = ""
    system_serial: str = ""
    system_uuid: str = ""
    boot_id: str = ""


def read_identity(root: Path = Path("/")) -> Identity:
    """The identity of the machine whose file system is at `root`. The board's serial is readable by root only."""
    dmi = root / "sys/class/dmi/id"
    return Identity(
        hostname=socket.gethostname(),
        machine_id=first_line(root / "etc/machine-id"),
        system_serial=known_text(first_line(dmi / "product_serial")),
        system_uuid=system_uuid(first_line(dmi / "product_uuid")),
        boot_id=first_line(root / "proc/sys/kernel/random/boot_id"),
    )


def first_line(path: Path) -> str:
    """The first line of a small file, or nothing where it can't be read."""
    try:
        with path.open(errors="replace") as file:
            return file.readline(300).strip()
    except OSError:
        return ""
