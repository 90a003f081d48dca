"""What a BMC driver can do, one small Protocol a capability."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from inventory.observations import BmcReading, LogEntry, ReadFailure


class PowerAction(StrEnum):
    """What can be asked of chassis power."""

    ON = "on"
    OFF = "off"
    SOFT_OFF = "soft_off"
    CYCLE = "cycle"
    RESET = "reset"


class DiscoversNode(Protocol):
    """Reads everything that is worth knowing once: identity, cards, firmware, sensors, power."""

    async def discover(self, *, deadline: float) -> BmcReading: ...


class PollsNode(Protocol):
    """Reads what changes (power state, card and node sensors) in few requests."""

    async def poll(self, *, deadline: float) -> BmcReading: ...


class ReadsLog(Protocol):
    """Reads log entries newer than `since` (all when None), oldest first, with what failed."""

    async def read_log(
        self, *, since: datetime | None, deadline: float
    ) -> tuple[Sequence[LogEntry], Sequence[ReadFailure]]: ...


class ControlsPower(Protocol):
    """Changes chassis power; None when the BMC accepted, else why not."""

    async def set_power(self, action: PowerAction, *, deadline: float) -> ReadFailure | None: ...


class BmcDriver(DiscoversNode, PollsNode, ReadsLog, ControlsPower, Protocol):
    """A whole BMC driver. `close` ends sessions on the BMC; call it when done."""

    async def close(self) -> None: ...
