"""Serves a recorded tree for trials: `python -m inventory.drivers.fake.redfish TREE --port N`."""

import argparse
import asyncio
import contextlib
import sys
from pathlib import Path

from inventory.drivers.fake.redfish.mockup import NotAMockup, load_mockup
from inventory.drivers.fake.redfish.server import RedfishServer
from inventory.drivers.fake.redfish.service import Behaviour
from inventory.drivers.fake.redfish.tree import StaticTree


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m inventory.drivers.fake.redfish", description=__doc__)
    parser.add_argument("tree", type=Path, help="folder or tarball of a Redfish mock-up")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--username", default="admin")
    parser.add_argument("--password", default="admin")
    parser.add_argument("--plain", action="store_true", help="HTTP without TLS")
    parser.add_argument("--open", action="store_true", help="answer without credentials")
    parser.add_argument("--page-size", type=int, default=None, help="members a page")
    parser.add_argument("--seconds", type=float, default=None, help="end by itself after so long")
    return parser.parse_args()


async def _run(arguments: argparse.Namespace) -> None:
    server = RedfishServer(
        StaticTree(load_mockup(arguments.tree)),
        arguments.username,
        arguments.password,
        arguments.host,
        arguments.port,
        tls=not arguments.plain,
        behaviour=Behaviour(needs_auth=not arguments.open, page_size=arguments.page_size),
    )
    async with server:
        sys.stdout.write(f"{server.url}/redfish/v1 {server.fingerprint}\n")
        sys.stdout.flush()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(arguments.seconds):
                await asyncio.Event().wait()


def main() -> int:
    """Runs until interrupted; 2 when the tree can't be read."""
    try:
        asyncio.run(_run(_arguments()))
    except NotAMockup as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
