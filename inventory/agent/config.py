"""The agent's configuration (a TOML file that `enrol` writes) and its state folder."""

import json
import os
import tomllib
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from inventory.agent.identity import Identity
from inventory.agent.spool import LIMIT

CONFIG = Path("/etc/sensaka/agent.toml")
STATE = Path("/var/lib/sensaka-agent")


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What agent.toml may hold.

    `interval` and `timeout` (of a connection and of each answer) are in seconds, `spool_bytes` bounds the spool on
    disk, `proc` is where the host's /proc is seen.
    `system_serial` and `system_uuid` are what `enrol` read as root, for an agent that then runs as somebody else.
    """

    server: str = ""
    ca_file: str = ""
    interval: Annotated[int, Meta(ge=1, le=1200)] = 10
    timeout: Annotated[float, Meta(ge=0.1, le=300)] = 15.0
    source: str = "local"
    spool_bytes: Annotated[int, Meta(ge=64 * 1024)] = LIMIT
    proc: str = "/proc"
    system_serial: str = ""
    system_uuid: str = ""

    def known(self, identity: Identity) -> Identity:
        """The identity, completed with what was readable when the node was enrolled."""
        return msgspec.structs.replace(
            identity,
            system_serial=identity.system_serial or self.system_serial,
            system_uuid=identity.system_uuid or self.system_uuid,
        )


class BadConfig(Exception):
    """The configuration can't be used; the message names the file and the field."""


def load_config(path: Path) -> Config:
    """The configuration at `path`; all defaults where there is none yet. Raises BadConfig."""
    try:
        return msgspec.convert(tomllib.loads(path.read_text()), Config)
    except FileNotFoundError:
        return Config()
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise BadConfig(f"{path}: {error}") from error


def save_config(path: Path, config: Config) -> None:
    """Writes what differs from the defaults. Raises OSError."""
    fields = msgspec.to_builtins(config)
    defaults = msgspec.to_builtins(Config())
    # A JSON string or number is a TOML one too, once non-ASCII is escaped as JSON does.
    lines = [f"{name} = {json.dumps(value)}" for name, value in fields.items() if value != defaults[name]]
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, "\n".join(lines) + "\n", mode=0o644)


class State:
    """The state folder: node token, spool, lock, what the running agent last said of itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token_file = folder / "token"
        self.spool = folder / "spool"
        self.lock = folder / "lock"
        self.status_file = folder / "status.json"

    def token(self) -> str:
        """The node token. Raises OSError."""
        return self.token_file.read_text().strip()

    def save_token(self, token: str) -> None:
        """Keeps the token readable by the owner of the state folder only. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(self.token_file, token + "\n", mode=0o600)


def replace_file(path: Path, text: str, *, mode: int, durable: bool = True) -> None:
    """Writes the file whole or not at all; root leaves it to the owner of its folder. Raises OSError."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        os.fchmod(file.fileno(), mode)
        owner = path.parent.stat()
        if os.geteuid() == 0:
            os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    temporary.replace(path)
