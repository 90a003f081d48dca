"""`check`: what this agent can and cannot read, and why. It changes nothing, here or on the server."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from inventory.agent.cgroups import is_private
from inventory.agent.clock import SystemClock
from inventory.agent.config import Config, State
from inventory.agent.identity import Identity, read_identity
from inventory.agent.processes import ProcessTable
from inventory.agent.rounds import sample_key
from inventory.agent.sources import NodeReader, Place, opener
from inventory.agent.transport import Answer, Client, Unreachable
from inventory.observations import NodeReading

SELF_PATH = "/api/v1/agents/self/"
SKEW_LIMIT = 5.0  # s; half a round: beyond it samples stand visibly beside those of other nodes


class Verdict(StrEnum):
    """GOOD, LIMITED (works, something is missing from what is shown), BAD (does not work)."""

    GOOD = "ok"
    LIMITED = "limited"
    BAD = "FAILED"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the table."""

    what: str
    verdict: Verdict
    detail: str


def findings(config: Config, state: State) -> Iterator[Finding]:
    """Every check, in the order in which things depend on one another."""
    identity = config.known(read_identity())
    yield from _identity(identity, config)
    yield from _state(config, state)
    yield from _proc(Path(config.proc))
    yield from _cards(config, identity)
    yield from _server(config, state)


def _identity(identity: Identity, config: Config) -> Iterator[Finding]:
    if config.source != "local":
        yield Finding("identity", Verdict.GOOD, f"taken from {config.source}")
        return
    yield Finding("host name", Verdict.GOOD if identity.hostname else Verdict.LIMITED, identity.hostname or "none set")
    yield _or_why("machine id", identity.machine_id, "/etc/machine-id can't be read: the node is known by its serial")
    why = "readable by root only: run `enrol` as root, it keeps them" if os.geteuid() else "the board does not tell it"
    yield _or_why("system serial", identity.system_serial, why)
    yield _or_why("system UUID", identity.system_uuid, why)
    yield _or_why("boot id", identity.boot_id, "a reboot will not be noticed")
    if not (identity.machine_id or identity.system_serial or identity.system_uuid):
        yield Finding("identity", Verdict.BAD, "nothing tells this node from others: it can't be enrolled")


def _or_why(what: str, value: str, why: str) -> Finding:
    return Finding(what, Verdict.GOOD, value) if value else Finding(what, Verdict.LIMITED, why)


def _state(config: Config, state: State) -> Iterator[Finding]:
    folder = state.folder
    if not folder.is_dir():
        yield Finding("state folder", Verdict.BAD, f"{folder} does not exist; `enrol` makes it")
        return
    if not os.access(folder, os.W_OK | os.X_OK):
        yield Finding("state folder", Verdict.BAD, f"{folder} can't be written by this user")
        return
    free = shutil.disk_usage(folder).free
    room = Verdict.GOOD if free > config.spool_bytes else Verdict.LIMITED
    yield Finding(
        "state folder", room, f"{folder}, {free >> 20} MiB free, the spool may take {config.spool_bytes >> 20}"
    )


def _proc(root: Path) -> Iterator[Finding]:
    own = _text(root / "self/cgroup")
    if not own:
        yield Finding("cgroups", Verdict.LIMITED, f"{root}/self/cgroup can't be read: no jobs or pods will be named")
    elif not _text(root / "1/cgroup"):
        why = f"{root} hides other users' processes (hidepid): their jobs and pods will not be named"
        yield Finding("cgroups", Verdict.LIMITED, why)
    elif is_private(_text(root / "1/cgroup")) and is_private(own):
        why = "this is a container with its own cgroup namespace: run with the host's PID and cgroup namespace"
        yield Finding("cgroups", Verdict.LIMITED, why)
    else:
        version = "v2" if own.startswith("0::") else "v1"
        yield Finding("cgroups", Verdict.GOOD, f"cgroup {version}, other processes are visible")


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _cards(config: Config, identity: Identity) -> Iterator[Finding]:
    clock = SystemClock()
    reader = NodeReader(opener(config.source), Place(identity, ProcessTable(Path(config.proc))), clock)
    try:
        sources = reader.sources()
        for source in sources:
            verdict = Verdict.GOOD if source.available else Verdict.LIMITED
            yield Finding(f"library {source.name}", verdict, source.reason or "loaded")
        started = clock.monotonic()
        reading = reader.read(int(clock.wall()))
        absent = {source.name for source in sources if not source.available}
        yield from _reading(reading, absent, clock.monotonic() - started)
    finally:
        reader.close()


def _reading(reading: NodeReading, absent: set[str], seconds: float) -> Iterator[Finding]:
    found = f"{len(reading.cards)} cards, {len(reading.processes)} processes on them, read in {seconds:.2f} s"
    yield Finding("cards", Verdict.GOOD if reading.cards else Verdict.BAD, found)
    for card in reading.cards:
        name = sample_key(card) or "without a name"
        if not sample_key(card):
            why = "it has no UUID, serial or PCI address: it is listed, but its values can't be sent"
            yield Finding(f"card {name}", Verdict.LIMITED, why)
        for failure in card.failures:
            yield Finding(f"card {name}", Verdict.LIMITED, f"{failure.what}: {failure.kind} {failure.detail}".strip())
    for failure in (failure for failure in reading.failures if failure.what not in absent):
        yield Finding(failure.what, Verdict.LIMITED, f"{failure.kind} {failure.detail}".strip())
    unowned = sum(not (p.pod_uid or p.container_id or p.slurm_job_id) for p in reading.processes)
    if unowned:
        yield Finding("owners", Verdict.GOOD, f"{unowned} processes belong to no pod, container or Slurm job")


def _server(config: Config, state: State) -> Iterator[Finding]:
    if not config.server:
        yield Finding("server", Verdict.BAD, "no server is configured; `enrol` does it")
        return
    try:
        token = state.token()
    except FileNotFoundError:
        yield Finding("node token", Verdict.BAD, "this node is not enrolled")
        token = ""
    except OSError as error:
        yield Finding("node token", Verdict.BAD, f"{state.token_file} can't be read: {error.strerror}")
        token = ""
    try:
        client = Client(config.server, ca_file=config.ca_file)
    except (OSError, ValueError) as error:
        yield Finding("server", Verdict.BAD, f"{config.server}, {config.ca_file or 'system authorities'}: {error}")
        return
    clock = SystemClock()
    try:
        started = clock.wall()
        answer = client.request("GET", SELF_PATH, token=token)
        yield Finding("server", Verdict.GOOD, f"{config.server} answers in {clock.wall() - started:.2f} s")
        yield from _answer(answer, (started + clock.wall()) / 2, bool(token))
    except Unreachable as error:
        yield Finding("server", Verdict.BAD, f"{config.server}: {error.kind}, {error}")
    finally:
        client.close()


def _answer(answer: Answer, asked_at: float, had_token: bool) -> Iterator[Finding]:
    if answer.status == 200:
        yield Finding("node token", Verdict.GOOD, f"accepted, this is node {answer.json().get('name', '')}")
    elif had_token:
        yield Finding("node token", Verdict.BAD, f"the server answers {answer.says}")
    if answer.date is None:
        yield Finding("clock", Verdict.LIMITED, "the server sent no Date to compare with")
        return
    skew = asked_at - answer.date - 0.5  # Date is cut to whole seconds: half a second late on average
    verdict = Verdict.GOOD if abs(skew) <= SKEW_LIMIT else Verdict.BAD
    yield Finding("clock", verdict, f"{abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the server's")


def table(found: list[Finding]) -> str:
    """The findings as aligned lines."""
    width = max((len(finding.what) for finding in found), default=0)
    return "\n".join(f"{finding.verdict:<8} {finding.what:<{width}}  {finding.detail}" for finding in found)
