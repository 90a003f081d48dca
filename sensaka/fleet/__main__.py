"""`python -m sensaka.fleet`: run the simulated fleet, or tell a running one to do something.

python -m sensaka.fleet --server URL --operator-token-file FILE --state DIR [--nodes 64] [--seed 1]
python -m sensaka.fleet act --state DIR swap_cards --a NODE:SLOT --b NODE:SLOT
python -m sensaka.fleet state --state DIR [--node NODE]
python -m sensaka.fleet jobs --state DIR [--cluster NAME]
"""

import argparse
import asyncio
import json
import logging
import os
import sys
import time
from pathlib import Path

from sensaka.fleet.acts import ACTS
from sensaka.fleet.control import ControlError, ask
from sensaka.fleet.doors.bmcs import PortError
from sensaka.fleet.ipmi import SimulatorError
from sensaka.fleet.layout import FULL_SIZE
from sensaka.fleet.run import AlreadyRunning, Options, run
from sensaka.fleet.world import StateError

OK, FAILED = 0, 1
QUIET = 15.0  # s


class OneForAll(logging.Filter):
    """Many agents in one process meet the same trouble at the same moment: one of them tells it, for a while."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        topic, now = str(record.msg).split(" [", 1)[0], time.monotonic()
        if not record.name.startswith("sensaka.agent") or now - self._told.get(topic, -QUIET) >= QUIET:
            self._told[topic] = now
            return True
        return False


def run_parser() -> argparse.ArgumentParser:
    """Options of the fleet itself."""
    parser = argparse.ArgumentParser(prog="python -m sensaka.fleet", description=__doc__.splitlines()[0])
    parser.add_argument("--server", required=True, help="address of the product, http://HOST:PORT")
    parser.add_argument("--operator-token-file", required=True, type=Path, help="file with an operator's API token")
    parser.add_argument("--state", required=True, type=Path, help="folder that outlives a restart")
    parser.add_argument("--nodes", type=int, default=FULL_SIZE, help="3 to 200 (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="another number makes another fleet (%(default)s)")
    return parser


def act_parser() -> argparse.ArgumentParser:
    """Options of `act`."""
    parser = argparse.ArgumentParser(prog="python -m sensaka.fleet act")
    parser.add_argument("--state", required=True, type=Path)
    parser.add_argument("do", choices=sorted(ACTS))
    parser.add_argument("--node")
    parser.add_argument("--slot", type=int, help="0 to 7")
    parser.add_argument("--a", help="NODE:SLOT")
    parser.add_argument("--b", help="NODE:SLOT")
    parser.add_argument("--serial", help="return_card: which one")
    parser.add_argument("--profiles", help="reconfigure_mig: such as 3g.40gb,4g.40gb, or off")
    parser.add_argument("--on", choices=["true", "false"], help="grow_ecc: begin or end")
    parser.add_argument("--cluster", help="acts on jobs and schedulers: which Slurm cluster")
    parser.add_argument("--job", help="cancel_job, fail_job: its number")
    parser.add_argument("--code", help="fail_job: exit code")
    parser.add_argument("--reason", help="drain_node: why")
    for name, text in (
        ("user", "who"),
        ("name", "of the job"),
        ("partition", "the first one without it"),
        ("cards", "on each node"),
        ("nodes", "how many"),
        ("minutes", "time limit"),
    ):
        parser.add_argument(f"--{name}", help=f"submit_job: {text}")
    return parser


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _act(arguments: list[str]) -> int:
    options = vars(act_parser().parse_args(arguments))
    folder = options.pop("state")
    _say(ask(folder, "POST", "/act", {name: value for name, value in options.items() if value is not None})["done"])
    return OK


def _state(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m sensaka.fleet state")
    parser.add_argument("--state", required=True, type=Path)
    parser.add_argument("--node")
    options = parser.parse_args(arguments)
    _say(json.dumps(ask(options.state, "GET", f"/state?node={options.node}" if options.node else "/state"), indent=1))
    return OK


def _jobs(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m sensaka.fleet jobs")
    parser.add_argument("--state", required=True, type=Path)
    parser.add_argument("--cluster")
    options = parser.parse_args(arguments)
    path = f"/jobs?cluster={options.cluster}" if options.cluster else "/jobs"
    _say(json.dumps(ask(options.state, "GET", path), indent=1))
    return OK


def _run(arguments: list[str]) -> int:
    options = run_parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    logging.getLogger().handlers[0].addFilter(OneForAll())
    for name in ("httpx", "httpcore", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)
    asyncio.run(
        run(Options(options.server, options.operator_token_file, options.state.resolve(), options.nodes, options.seed))
    )
    return OK


def main(arguments: list[str]) -> int:
    """0 when all is well, 1 with one line on standard error when not."""
    commands = {"act": _act, "state": _state, "jobs": _jobs}
    try:
        if arguments and arguments[0] in commands:
            return commands[arguments[0]](arguments[1:])
        return _run(arguments)
    except (ControlError, StateError, AlreadyRunning, PortError, SimulatorError, ValueError, OSError) as error:
        sys.stderr.write(f"sensaka.fleet: {error}\n")
        return FAILED


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # A delivery thread may still wait for a server that hangs; everything that matters is on disk.
    os._exit(code)
