"""`run`: the reading loop and the delivering thread, from start to a clean end."""

import fcntl
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from inventory.agent.clock import Clock, SystemClock
from inventory.agent.config import Config, State, replace_file
from inventory.agent.delivery import Delivery
from inventory.agent.identity import read_identity
from inventory.agent.processes import ProcessTable
from inventory.agent.rounds import Rounds
from inventory.agent.sources import NodeReader, Place, Source, opener
from inventory.agent.spool import Spool
from inventory.agent.telling import Teller
from inventory.agent.transport import Client

log = logging.getLogger("sensaka.agent")

SYNC_EVERY = 60.0  # s
STATUS_EVERY = 30.0  # s
PARTING = 3.0  # s that a delivery under way is given at the end


class AlreadyRunning(Exception):
    """Another agent holds this state folder."""


@contextmanager
def held(lock: Path) -> Iterator[None]:
    """The state folder for this process alone: two agents would deliver one spool twice. Raises AlreadyRunning."""
    lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise AlreadyRunning(f"another sensaka-agent uses {lock.parent}") from error
    finally:
        os.close(descriptor)


def is_held(lock: Path) -> bool:
    """Whether an agent runs on this state folder. Raises OSError when that can't be told."""
    try:
        descriptor = os.open(lock, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


class AgentLoop:
    """Everything that runs, put together. Raises OSError, ValueError or ssl.SSLError when a part can't be had."""

    def __init__(
        self,
        config: Config,
        state: State,
        *,
        clock: Clock | None = None,
        open_sources: Callable[[], Sequence[Source]] | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.stop = threading.Event()
        self._config, self._state = config, state
        self._tell = Teller(log, self.clock)
        self.client = Client(config.server, ca_file=config.ca_file, timeout=config.timeout)
        place = Place(config.known(read_identity()), ProcessTable(Path(config.proc)))
        self._reader = NodeReader(open_sources or opener(config.source), place, self.clock)
        self.spool = Spool(state.spool, limit=config.spool_bytes)
        self.rounds = Rounds(self._reader, self.spool, self.clock)
        self.delivery = Delivery(
            self.spool,
            self.client,
            interval=config.interval,
            read_token=state.token,
            newest_report=self.rounds.newest_report,
            clock=SystemClock(),
        )
        self._thread = threading.Thread(target=self._deliver, daemon=True, name="delivery")
        self._synced_at = self.clock.monotonic()
        self._told_at = self._synced_at + 1.0 - STATUS_EVERY  # from the second round on: then something was delivered

    def run(self) -> None:
        """Reads until `stop` is set; the rhythm is kept on a clock that does not jump."""
        interval = self._config.interval
        log.info(
            "reading every %d s, delivering to %s; %d records wait", interval, self._config.server, self.spool.pending
        )
        self._thread.start()
        due = self.clock.monotonic()
        while not self.stop.is_set():
            self.rounds.run()
            self.delivery.wake.set()
            self._keep()
            due += interval
            late = self.clock.monotonic() - due
            if late >= 0:
                missed = int(late // interval) + 1
                self.spool.count(skipped=missed)
                self._tell.warning("late", "a round took too long, %d left out", missed)
                due += missed * interval
            self.clock.wait(self.stop, due - self.clock.monotonic())
        self._end()

    def _deliver(self) -> None:
        while not self.stop.is_set():
            try:
                self.delivery.run(self.stop)
            except Exception:
                # A fault of ours must not end delivery while reading goes on unseen; the spool still has everything.
                log.exception("the delivery failed unexpectedly, it starts again in a minute")
                self.stop.wait(60.0)

    def _keep(self) -> None:
        now = self.clock.monotonic()
        if now - self._synced_at >= SYNC_EVERY:
            self._synced_at = now
            try:
                self.spool.sync()
            except OSError as error:
                self._tell.error("sync", "the spool can't be synced: %s", error)
        if now - self._told_at >= STATUS_EVERY:
            self._told_at = now
            self.write_status()

    def write_status(self) -> None:
        """Leaves for `status` what only the running agent knows."""
        reading = self.rounds.reading
        status = {
            "pid": os.getpid(),
            "at": self.clock.wall(),
            "read_at": reading.observed_at.timestamp() if reading else None,
            "cards": len(reading.cards) if reading else 0,
            "failures": [f"{f.what}: {f.kind} {f.detail}".strip() for f in reading.failures] if reading else [],
            "pending": self.spool.pending,
            "bytes": self.spool.size,
            "dropped": self.spool.progress.dropped,
            "refused": self.spool.progress.refused,
            "skipped": self.spool.progress.skipped,
            "damaged": self.spool.progress.damaged,
            "delivered_at": self.delivery.delivered_at or None,
            "trouble": self.delivery.trouble,
        }
        try:
            replace_file(self._state.status_file, msgspec.json.encode(status).decode(), mode=0o644, durable=False)
        except OSError as error:
            self._tell.warning("status", "the status file can't be written: %s", error)

    def _end(self) -> None:
        self.delivery.wake.set()
        self._thread.join(PARTING)
        self.client.close()
        self._reader.close()
        self.write_status()
        self.spool.close()
        log.info("ended; %d records wait for the next start", self.spool.pending)


def run(config: Config, state: State) -> None:
    """Runs until SIGTERM or SIGINT. Raises AlreadyRunning, OSError, ValueError."""
    with held(state.lock):
        loop = AgentLoop(config, state)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: loop.stop.set())
        loop.run()
