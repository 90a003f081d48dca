"""The command line of sensaka-agent."""

import argparse
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from inventory.agent import VERSION, checks, enrolling, loop
from inventory.agent.config import CONFIG, STATE, BadConfig, Config, State, load_config
from inventory.agent.sources import opener

OK, FAILED, USAGE = 0, 1, 2


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(prog="sensaka-agent", description="Reads this node's cards for Sensaka.")
    top.add_argument("--version", action="version", version=f"sensaka-agent {VERSION}")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--config", type=Path, default=CONFIG, help="configuration file (%(default)s)")
    shared.add_argument("--state", type=Path, default=STATE, help="folder of token and spool (%(default)s)")
    shared.add_argument("--source", help="local, or simulated:PATH-OR-URL")
    commands = top.add_subparsers(dest="command", required=True)
    enrol = commands.add_parser("enrol", parents=[shared], help="make this node known to a server")
    enrol.add_argument("--server", required=True, help="https://HOST[:PORT]")
    enrol.add_argument("--token-file", required=True, help="file with the enrolment token, - for standard input")
    enrol.add_argument("--ca-file", help="PEM of the authority that signed the server's certificate")
    run = commands.add_parser("run", parents=[shared], help="read and deliver until stopped")
    run.add_argument("--verbose", action="store_true", help="log more")
    commands.add_parser("check", parents=[shared], help="what can be read here, what not, and why")
    commands.add_parser("status", parents=[shared], help="what the running agent last did")
    return top


def main(arguments: list[str]) -> int:
    """Runs a command; 0 when all is well, 1 when not, 2 for wrong usage."""
    options = parser().parse_args(arguments)
    level = logging.DEBUG if getattr(options, "verbose", False) else logging.INFO
    logging.basicConfig(level=level, format="%(levelname)s %(message)s", stream=sys.stderr)
    try:
        config = load_config(options.config)
        if options.source is not None:
            opener(options.source)
            config = msgspec.structs.replace(config, source=options.source)
        return _COMMANDS[options.command](options, config, State(options.state))
    except (BadConfig, enrolling.EnrolmentFailed, loop.AlreadyRunning, OSError, ValueError) as error:
        print(f"sensaka-agent: {error}", file=sys.stderr)  # noqa: T201 - a command line
        return FAILED


def _enrol(options: argparse.Namespace, config: Config, state: State) -> int:
    ca_file = str(Path(options.ca_file).absolute()) if options.ca_file else config.ca_file
    config = msgspec.structs.replace(config, server=options.server, ca_file=ca_file)
    told = enrolling.enrol(config, options.config, state, enrolling.read_token(options.token_file))
    print(f"enrolled as node {told.get('name') or told.get('node')}; start it with: sensaka-agent run")  # noqa: T201
    return OK


def _run(options: argparse.Namespace, config: Config, state: State) -> int:
    if not config.server:
        raise BadConfig(f"{options.config} names no server: enrol this node first")
    state.token()  # without one nothing could ever be delivered: said at the start, not once a minute
    loop.run(config, state)
    return OK


def _check(options: argparse.Namespace, config: Config, state: State) -> int:
    found = list(checks.findings(config, state))
    print(checks.table(found))  # noqa: T201 - a command line
    return FAILED if any(finding.verdict is checks.Verdict.BAD for finding in found) else OK


def _status(options: argparse.Namespace, config: Config, state: State) -> int:
    try:
        told: dict[str, Any] = msgspec.json.decode(state.status_file.read_bytes())
    except (FileNotFoundError, msgspec.DecodeError):
        raise BadConfig(f"{state.folder} holds no status: the agent has not run yet") from None
    running = loop.is_held(state.lock)
    lines = [
        ("agent", f"running (pid {told['pid']})" if running else "not running"),
        ("server", config.server or "none"),
        ("said at", _time(told["at"])),
        ("last read", f"{_time(told['read_at'])}, {told['cards']} cards"),
        ("last delivered", _time(told["delivered_at"])),
        ("waiting", f"{told['pending']} records, {told['bytes'] / 2**20:.1f} MiB on disk"),
        (
            "lost",
            f"{told['dropped']} dropped, {told['refused']} refused by the server, {told['damaged']} damaged segments",
        ),
        ("rounds skipped", str(told["skipped"])),
        *(("not read", failure) for failure in told["failures"]),
        *((("trouble", told["trouble"]),) if told["trouble"] else ()),
    ]
    print("\n".join(f"{name:<15} {value}" for name, value in lines))  # noqa: T201 - a command line
    return OK if running and not told["trouble"] else FAILED


def _time(seconds: float | None) -> str:
    return "never" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


_COMMANDS: dict[str, Callable[[argparse.Namespace, Config, State], int]] = {
    "enrol": _enrol,
    "run": _run,
    "check": _check,
    "status": _status,
}
