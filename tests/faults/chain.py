"""The whole demo as one object: started in a folder of its own, watched, hurt, counted and ended.

It sees what a user sees (pages with a session, the live line), what the database holds (over its
socket), and what the fleet's agents noted as acknowledged.
"""

import asyncio
import http.cookiejar
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg
import websockets

from sensaka import embedded

ROOT = Path(__file__).resolve().parents[2]
AGENT = 1  # inventory_sample.source of an agent
COUNTS = """
SELECT (SELECT count(*) FROM inventory_site), (SELECT count(*) FROM inventory_node WHERE state <> 'retired'),
       (SELECT count(*) FROM inventory_card WHERE state <> 'retired')
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(check: Callable[[], Any], seconds: float, what: str, *, every: float = 0.25) -> float:
    """Seconds until `check` is true; an AssertionError naming the last outcome when it isn't in time."""
    began = time.monotonic()
    while True:
        try:
            outcome = check()
        except (OSError, psycopg.Error, websockets.WebSocketException, psutil.Error) as error:
            outcome, trouble = False, repr(error)
        else:
            trouble = repr(outcome)
        took = time.monotonic() - began
        if outcome:
            return took
        assert took < seconds, f"{what}: not within {seconds:g} s; last: {trouble}"
        time.sleep(every)


@dataclass
class Chain:
    """A supervisor with the simulated fleet. `log` is everything that it says."""

    var: Path
    port: int
    log: Path
    process: subprocess.Popen[bytes] | None = None
    _cookies: http.cookiejar.CookieJar = field(default_factory=http.cookiejar.CookieJar)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def fleet(self) -> Path:
        return self.var / "fleet"

    # -- life ---------------------------------------------------------------------------------

    def start(self) -> float:
        """Start and wait for the first ready page; the seconds that took."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in {"DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE"} and "SENSAKA" not in name
        }
        environment |= {"SENSAKA_VAR": str(self.var), "PORT": str(self.port)}
        began = time.monotonic()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "sensaka.supervisor", "demo"], cwd=ROOT, env=environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=embedded.die_with_parent(signal.SIGINT),
            )  # fmt: skip
        until(lambda: self._started() and self.ready(), 240, "the first ready page")
        return time.monotonic() - began

    def _started(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"ended early: {self.log.read_text()[-3000:]}"
        return True

    @property
    def root(self) -> psutil.Process:
        assert self.process is not None
        return psutil.Process(self.process.pid)

    def end(self, number: signal.Signals = signal.SIGINT) -> tuple[float, float, int]:
        """Send a signal; seconds until the supervisor ended, until nothing of it was left, and its status."""
        assert self.process is not None
        everyone = self.root.children(recursive=True)
        began = time.monotonic()
        self.process.send_signal(number)
        status = self.process.wait(60)
        ended = time.monotonic() - began
        until(lambda: not [one for one in everyone if running(one)], 60, "no process left", every=0.05)
        return ended, time.monotonic() - began, status

    # -- processes ----------------------------------------------------------------------------

    def find(self, *markers: str) -> list[psutil.Process]:
        """Processes of this demo whose command line holds all markers, parents first."""
        found = []
        for one in sorted(self.root.children(recursive=True), key=lambda each: (each.create_time(), each.pid)):
            try:
                command = " ".join(one.cmdline())
            except psutil.Error:
                continue
            if all(marker in command for marker in markers) and running(one):
                found.append(one)
        return found

    def kill(self, *markers: str, which: int = 0, number: signal.Signals = signal.SIGKILL) -> int:
        """Kill one of those; its pid."""
        victim = self.find(*markers)[which]
        victim.send_signal(number)
        return int(victim.pid)

    # -- what a user sees -----------------------------------------------------------------------

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def sign_in(self) -> None:
        """A session for the demo's operator."""
        name, password = self.login()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._cookies))
        page = opener.open(f"{self.address}/sign-in/", timeout=20).read().decode()
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert token
        form = urllib.parse.urlencode({"username": name, "password": password, "csrfmiddlewaretoken": token[1]})
        request = urllib.request.Request(
            f"{self.address}/sign-in/", form.encode(), {"Referer": f"{self.address}/sign-in/"}
        )
        opener.open(request, timeout=20).read()
        assert "sessionid" in self.cookie

    def login(self) -> tuple[str, str]:
        found = re.search(r"sign in as (\S+)\s+password (\S+)\s+\(operator\)", self.log.read_text())
        assert found, self.log.read_text()[-2000:]
        return found[1], found[2]

    @property
    def cookie(self) -> str:
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in self._cookies)

    def page(self, path: str = "/") -> bool:
        """Whether a signed-in page loads."""
        request = urllib.request.Request(f"{self.address}{path}", headers={"Cookie": self.cookie})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return bool(answer.status == 200 and "/sign-in/" not in answer.url)

    # -- what the database holds ------------------------------------------------------------------

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(embedded.Layout(self.var).database_url, autocommit=True, connect_timeout=5)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self.connect() as connection:
            return connection.execute(query, values).fetchall()  # type: ignore[arg-type]

    def one(self, query: str, *values: object) -> Any:
        return self.rows(query, *values)[0][0]

    def counts(self) -> tuple[int, int, int]:
        """Sites, nodes and cards that are not retired."""
        sites, nodes, cards = self.rows(COUNTS)[0]
        return sites, nodes, cards

    # -- what the fleet says ----------------------------------------------------------------------

    def act(self, do: str, **arguments: object) -> str:
        """Something happens to the hardware."""
        words = [f"--{name}={value}" for name, value in arguments.items()]
        done = subprocess.run(
            [sys.executable, "-m", "sensaka.fleet", "act", "--state", str(self.fleet), do, *words],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def acknowledgements(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every line of every simulated agent's log, with the node's name."""
        for path in sorted(self.fleet.glob("agents/*/acknowledged*.jsonl")):
            for line in path.read_text().splitlines():
                yield path.parent.name, json.loads(line)


def running(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


class LiveLine:
    """A page's WebSocket as static/js keeps it: connects again after a second whenever it breaks."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._ending = threading.Event()
        self.connections = 0
        self.messages = 0
        self.last_full_at = 0.0
        self.last_at = 0.0
        self.troubles: list[str] = []
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()

    async def _run(self) -> None:
        address = f"ws://127.0.0.1:{self._chain.port}/ws/live/"
        headers = {"Cookie": self._chain.cookie}
        while not self._ending.is_set():
            try:
                async with websockets.connect(
                    address, additional_headers=headers, origin=self._chain.address, open_timeout=5, max_size=None
                ) as line:  # type: ignore[arg-type]
                    self.connections += 1
                    await line.send(json.dumps({"subscribe": ["fleet"]}))
                    await self._listen(line)
            except (OSError, TimeoutError, websockets.WebSocketException) as error:
                self.troubles.append(repr(error)[:160])
            await asyncio.sleep(1)

    async def _listen(self, line: Any) -> None:
        while not self._ending.is_set():
            try:
                message = json.loads(await asyncio.wait_for(line.recv(), 1))
            except TimeoutError:
                continue
            if "values" in message:
                self.messages += 1
                self.last_at = time.monotonic()
                if message["full"]:
                    self.last_full_at = self.last_at

    def close(self) -> None:
        self._ending.set()
        self._thread.join(10)
