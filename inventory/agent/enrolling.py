"""`enrol`: hands the server a one-time token and keeps the node token that it gives for it."""

import sys
from pathlib import Path
from typing import Any

import msgspec

from inventory.agent import VERSION
from inventory.agent.clock import SystemClock
from inventory.agent.config import Config, State, save_config
from inventory.agent.identity import Identity, read_identity
from inventory.agent.processes import ProcessTable
from inventory.agent.sources import NodeReader, Place, opener
from inventory.agent.transport import Client, Unreachable

ENROL_PATH = "/api/v1/agents/enrol/"


class EnrolmentFailed(Exception):
    """The node is not enrolled; the message says why."""


def read_token(place: str) -> str:
    """The enrolment token from a file, or from standard input for `-`: never from the command line, which all see."""
    text = sys.stdin.read() if place == "-" else Path(place).read_text()
    if not text.strip():
        raise EnrolmentFailed("the enrolment token is empty")
    return text.strip()


def identity_of(config: Config) -> tuple[Identity, bool]:
    """Who this node is, and whether it is simulated: then it is who its source says."""
    own = config.known(read_identity())
    if config.source == "local":
        return own, False
    clock = SystemClock()
    reader = NodeReader(opener(config.source), Place(own, ProcessTable()), clock)
    reading = reader.read(int(clock.wall()))
    reader.close()
    if reading.failures and not reading.cards:
        raise EnrolmentFailed(f"the source can't be read: {reading.failures[0].detail}")
    given = Identity(
        hostname=reading.hostname,
        machine_id=reading.machine_id,
        system_serial=reading.system_serial,
        system_uuid="" if reading.simulated else own.system_uuid,
        boot_id=reading.boot_id,
    )
    return given, reading.simulated


def enrol(config: Config, config_file: Path, state: State, token: str) -> dict[str, Any]:
    """Enrols this node and keeps configuration and node token. Raises EnrolmentFailed, OSError, ValueError."""
    identity, simulated = identity_of(config)
    body = {
        "token": token,
        "hostname": identity.hostname,
        "machine_id": identity.machine_id,
        "system_serial": identity.system_serial,
        "system_uuid": identity.system_uuid,
        "version": VERSION,
        "simulated": simulated,
    }
    client = Client(config.server, ca_file=config.ca_file)
    try:
        answer = client.request("POST", ENROL_PATH, msgspec.json.encode(body))
    except Unreachable as error:
        raise EnrolmentFailed(f"{config.server} can't be reached ({error.kind}): {error}") from error
    finally:
        client.close()
    told = answer.json()
    if answer.status != 201 or not isinstance(told.get("token"), str):
        raise EnrolmentFailed(f"{config.server} answered {answer.says}")
    state.save_token(told["token"])
    kept = msgspec.structs.replace(
        config,
        interval=int(told.get("interval", config.interval)),
        system_serial=identity.system_serial,
        system_uuid=identity.system_uuid,
    )
    save_config(config_file, kept)
    return told
