"""Where readings come from: the libraries of this node, or a simulated node behind a file or an address."""

import logging
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from inventory.agent.clock import Clock, utc
from inventory.agent.identity import Identity
from inventory.agent.processes import ProcessTable
from inventory.agent.telling import Teller
from inventory.observations import FailureKind, NodeReading, ReadFailure

log = logging.getLogger("sensaka.agent")

DEADLINE = 5.0  # s for one source; a round has ten
RETRY = 60.0  # s after which sources that were not there are tried again
_PAGE_LIMIT = 4 * 1024 * 1024
# Without the proxies of the environment, which would not find a page on this machine.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Source(Protocol):
    """A library that reads cards, as `inventory.drivers.cards.open_local_cards` gives them."""

    @property
    def name(self) -> str: ...

    @property
    def available(self) -> bool: ...

    @property
    def reason(self) -> str: ...

    def read(self, *, deadline: float) -> NodeReading: ...

    def close(self) -> None: ...


class SimulatedCards:
    """A node that a file or an HTTP page describes as a NodeReading. Whatever it says, it is marked simulated."""

    name = "simulated"
    available = True

    def __init__(self, place: str) -> None:
        self._place = place
        self.reason = f"read from {place}"

    def read(self, *, deadline: float) -> NodeReading:
        """The page as it is now; a failure where it can't be had or is no NodeReading."""
        try:
            reading = msgspec.json.decode(self._fetch(deadline), type=NodeReading)
        except (OSError, ValueError, msgspec.DecodeError, RecursionError) as error:
            kind = FailureKind.UNREACHABLE if isinstance(error, OSError) else FailureKind.PROTOCOL
            failure = ReadFailure(what=self._place[:200], kind=kind, detail=str(error)[:2000])
            return NodeReading(observed_at=utc(0), failures=(failure,), complete=False, simulated=True)
        return msgspec.structs.replace(reading, simulated=True)

    def _fetch(self, deadline: float) -> bytes:
        if not self._place.startswith(("http://", "https://")):
            return Path(self._place).read_bytes()
        with _DIRECT.open(self._place, timeout=deadline) as page:
            return bytes(page.read(_PAGE_LIMIT))

    def close(self) -> None:
        """Nothing is held open."""


def opener(source: str) -> Callable[[], Sequence[Source]]:
    """How to open what `source` names: `local`, or `simulated:PATH-OR-URL`. Raises ValueError for anything else."""
    kind, _, place = source.partition(":")
    if kind == "simulated" and place:
        return lambda: [SimulatedCards(place)]
    if source != "local":
        raise ValueError(f"{source!r} is no source of readings: local or simulated:PATH-OR-URL is expected")
    # Imported when needed: a simulated node loads no vendor's library.
    from inventory.drivers.cards import open_local_cards

    return open_local_cards


@dataclass(frozen=True, slots=True)
class Place:
    """What the readings of this node are completed with."""

    identity: Identity
    processes: ProcessTable


class NodeReader:
    """Reads every source of this node into one reading."""

    def __init__(self, open_sources: Callable[[], Sequence[Source]], place: Place, clock: Clock) -> None:
        self._open_sources, self._place, self._clock = open_sources, place, clock
        self._tell = Teller(log, clock)
        self._sources: Sequence[Source] = ()
        self._tried_at = 0.0

    def sources(self) -> Sequence[Source]:
        """The sources of this node, available or not."""
        if not self._sources:
            self._sources = self._open_sources()
            self._tried_at = self._clock.monotonic()
        return self._sources

    def read(self, second: int) -> NodeReading:
        """One reading of everything, observed at `second`; it does not raise for what a source does.

        Sources that were not there are tried again from time to time: a driver may be loaded later. Their absence
        is told only when no other source is there.
        """
        sources = self.sources()
        now = self._clock.monotonic()
        again = now - self._tried_at >= RETRY
        self._tried_at = now if again else self._tried_at
        readings = [reading for source in sources if (reading := self._if_there(source, again)) is not None]
        if not readings:
            failures = tuple(
                ReadFailure(what=source.name, kind=FailureKind.MISSING_LIBRARY, detail=source.reason[:2000])
                for source in sources
            )
            readings = [NodeReading(observed_at=utc(second), failures=failures, complete=False)]
        return self._complete(merged(readings, second))

    def _if_there(self, source: Source, again: bool) -> NodeReading | None:
        if source.available:
            return self._read(source)
        if again:
            reading = self._read(source)
            return reading if source.available else None
        return None

    def _read(self, source: Source) -> NodeReading:
        try:
            return source.read(deadline=DEADLINE)
        except Exception as error:
            # A driver gives its failures as data; should one raise nevertheless, the other source still counts.
            self._tell.error(source.name, "%s could not be read: %r", source.name, error)
            failure = ReadFailure(what=source.name, kind=FailureKind.UNKNOWN, detail=repr(error)[:2000])
            return NodeReading(observed_at=utc(0), failures=(failure,), complete=False)

    def _complete(self, reading: NodeReading) -> NodeReading:
        identity = self._place.identity
        processes = reading.processes
        if not reading.simulated:  # the process numbers of a simulated node mean nothing here
            processes = self._place.processes.complete(processes)
        return msgspec.structs.replace(
            reading,
            hostname=reading.hostname or identity.hostname,
            machine_id=reading.machine_id or identity.machine_id,
            system_serial=reading.system_serial or identity.system_serial,
            boot_id=reading.boot_id or identity.boot_id,
            processes=processes,
        )

    def close(self) -> None:
        """Lets go of the libraries."""
        for source in self._sources:
            source.close()
        self._sources = ()


def merged(readings: Sequence[NodeReading], second: int) -> NodeReading:
    """Several sources' readings of one node as one: cards side by side, the first that knows a fact gives it."""

    def first(name: str) -> str:
        return next((value for reading in readings if (value := getattr(reading, name))), "")

    return NodeReading(
        observed_at=utc(second),
        hostname=first("hostname"),
        machine_id=first("machine_id"),
        system_serial=first("system_serial"),
        boot_id=first("boot_id"),
        driver_version=first("driver_version"),
        runtime_version=first("runtime_version"),
        cards=tuple(card for reading in readings for card in reading.cards),
        processes=tuple(process for reading in readings for process in reading.processes),
        failures=tuple(failure for reading in readings for failure in reading.failures),
        complete=all(reading.complete for reading in readings),
        simulated=any(reading.simulated for reading in readings),
    )
