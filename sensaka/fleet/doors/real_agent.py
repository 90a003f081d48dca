"""One node is read by a real `sensaka-agent` process: enrolled, run and stopped as on a machine.

Its cards come from the fleet's control address, its line to the server leads through a relay that
can be cut.
"""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from inventory.agent.config import Config, State, load_config, save_config
from sensaka.embedded import die_with_parent, end_process
from sensaka.fleet.plan import NodePlan
from sensaka.fleet.world import World

log = logging.getLogger("sensaka.fleet")

PROJECT = Path(__file__).resolve().parents[3]
_ENROL_DEADLINE = 60.0  # s
_RESTART_AFTER = 5.0  # s
_PIECE = 64 * 1024


class Relay:
    """A line to the server: takes connections on a loopback port and passes bytes on, or nothing while it is cut."""

    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        self._host = parts.hostname or "127.0.0.1"
        self._port = parts.port or 80
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.cut = False
        self.port = 0

    async def start(self) -> None:
        """Open a free port, which `port` tells."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def set_cut(self, cut: bool) -> None:
        """Cut or mend the line; cutting ends what is under way."""
        self.cut = cut
        if cut:
            for task in list(self._tasks):
                task.cancel()

    async def stop(self) -> None:
        """Close the port and every connection."""
        if self._server is not None:
            self._server.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if not self.cut:
                there, back = await asyncio.open_connection(self._host, self._port)
                try:
                    await asyncio.gather(_pass(reader, back), _pass(there, writer))
                finally:
                    back.close()
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_PIECE):
        writer.write(data)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()


class RealAgent:
    """The process and its folder. `source` is where it reads its cards."""

    def __init__(self, world: World, node: NodePlan, folder: Path, relay: Relay) -> None:
        self.node = node
        self._world = world
        self._folder = folder
        self._config = folder / "agent.toml"
        self.state = State(folder)
        self.relay = relay
        self.source = ""
        self.process: subprocess.Popen[bytes] | None = None
        self._not_before = 0.0
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    @property
    def enrolled(self) -> bool:
        """Whether it has a node token."""
        return self.state.token_file.exists()

    def forget(self) -> None:
        """Drop a token that the server does not know."""
        self.state.token_file.unlink(missing_ok=True)

    @property
    def _server(self) -> str:
        return f"http://127.0.0.1:{self.relay.port}"

    def _command(self, *arguments: str) -> list[str]:
        return [
            sys.executable, "-m", "inventory.agent", *arguments, "--config", str(self._config),
            "--state", str(self._folder), "--source", f"simulated:{self.source}",
        ]  # fmt: skip

    @staticmethod
    def _environment() -> dict[str, str]:
        path = os.pathsep.join(part for part in (str(PROJECT), os.environ.get("PYTHONPATH", "")) if part)
        return {**os.environ, "PYTHONPATH": path}

    def enrol(self, token: str) -> str:
        """Run `sensaka-agent enrol`. Raises RuntimeError with its words."""
        with tempfile.NamedTemporaryFile("w", dir=self._folder, prefix="enrolment-") as file:
            file.write(token)
            file.flush()
            done = subprocess.run(
                self._command("enrol", "--server", self._server, "--token-file", file.name),
                capture_output=True, text=True, timeout=_ENROL_DEADLINE, check=False, cwd=PROJECT,
                env=self._environment(),
            )  # fmt: skip
        if done.returncode:
            raise RuntimeError(done.stderr.strip()[-300:])
        return done.stdout.strip()

    def apply(self, now: float) -> None:
        """Start, stop, start again, as the world says. To be called from the main thread (see die_with_parent)."""
        state = self._world.nodes[self.node.number]
        if self.relay.cut == state.line_up:
            self.relay.set_cut(not state.line_up)
        wanted = self._world.runs(self.node) and state.agent_up and self.enrolled
        running = self.process is not None and self.process.poll() is None
        if running and not wanted:
            self.stop()
        elif wanted and not running and now >= self._not_before:
            if self.process is not None:
                log.warning("the agent process of %s ended with %s", self.node.name, self.process.returncode)
            self._not_before = now + _RESTART_AFTER
            self._start()

    def _start(self) -> None:
        config = load_config(self._config) if self._config.exists() else Config()
        place = {"server": self._server, "source": f"simulated:{self.source}"}  # both ports may have changed
        save_config(self._config, msgspec.structs.replace(config, **place))
        with (self._folder / "agent.log").open("ab") as output:
            self.process = subprocess.Popen(
                self._command("run"), stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=PROJECT,
                env=self._environment(), start_new_session=True, preexec_fn=die_with_parent(signal.SIGTERM),
            )  # fmt: skip
        log.info("the agent of %s runs as its own process (pid %d)", self.node.name, self.process.pid)

    def stop(self) -> None:
        """End the process."""
        end_process(self.process, first=signal.SIGTERM, then=signal.SIGKILL, patience=3)
        self.process = None
