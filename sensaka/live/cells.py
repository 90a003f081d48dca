"""How a value is written on a page: one text, one state, one time, the same at first paint and live.

Numbers carry their unit. What is not known is an en dash with the state `unknown`, never zero.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

UNKNOWN = "–"  # noqa: RUF001 - an en dash is how pages write "not known"
_GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Cell:
    """What one place on a page shows.

    `state` is "", "stale", "unknown", "good", "warn" or "bad"; `at` is the time of the reading;
    `hint` says where the value comes from; `fill` (0-100) is the length of a bar behind it.
    """

    text: str
    state: str = ""
    at: datetime | None = None
    hint: str = ""
    fill: float | None = None

    def wire(self) -> dict[str, Any]:
        """Short keys, absent when empty: this goes over the WebSocket once a second."""
        body: dict[str, Any] = {"t": self.text}
        if self.state:
            body["s"] = self.state
        if self.at is not None:
            body["a"] = int(self.at.timestamp())
        if self.hint:
            body["h"] = self.hint
        if self.fill is not None:
            body["f"] = round(self.fill, 1)
        return body


Cells = dict[str, Cell]


def unknown(hint: str = "") -> Cell:
    """A value that nobody reported."""
    return Cell(UNKNOWN, "unknown", hint=hint)


def moment(at: datetime | None, hint: str = "", state: str = "") -> Cell:
    """A time; the browser writes it relative and in the viewer's zone."""
    if at is None:
        return Cell("never", "unknown", hint=hint)
    return Cell(at.strftime("%Y-%m-%d %H:%M:%S UTC"), state, at=at, hint=hint)


def count(value: int | None) -> str:
    """A whole number with thousands separated."""
    return UNKNOWN if value is None else f"{value:,}"


def decimal(value: float, unit: str, digits: int = 0) -> str:
    """A number with its unit; a narrow no-break space keeps them together."""
    return f"{value:,.{digits}f}\u202f{unit}"


def percent(value: float | None, digits: int = 0) -> str:
    """Percent 0-100."""
    return UNKNOWN if value is None else decimal(value, "%", digits)


def watts(value: float | None) -> str:
    """W, from 10 kW on in kW, from 1 MW on in MW."""
    if value is None:
        return UNKNOWN
    if abs(value) >= 1e6:
        return decimal(value / 1e6, "MW", 2)
    return decimal(value / 1e3, "kW", 1) if abs(value) >= 1e4 else decimal(value, "W")


def size(value: float | None) -> str:
    """Bytes as GiB (MiB below one)."""
    if value is None:
        return UNKNOWN
    return decimal(value / _GIB, "GiB", 1) if abs(value) >= _GIB else decimal(value / 1024**2, "MiB")


def rate(value: float | None) -> str:
    """Bytes a second, in decimal units as links are rated."""
    if value is None:
        return UNKNOWN
    for limit, unit in ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")):
        if abs(value) >= limit:
            return decimal(value / limit, unit, 1)
    return decimal(value, "B/s")


def energy(value: float | None) -> str:
    """Joules as kWh."""
    return UNKNOWN if value is None else decimal(value / 3.6e6, "kWh", 1)


def duration(seconds: float | None) -> str:
    """Seconds, as people say them."""
    if seconds is None:
        return UNKNOWN
    if seconds < 1:
        return decimal(seconds * 1000, "ms")
    if seconds < 120:
        return decimal(seconds, "s", 1 if seconds < 10 else 0)
    if seconds < 7200:
        return decimal(seconds / 60, "min")
    return decimal(seconds / 3600, "h") if seconds < 172_800 else decimal(seconds / 86400, "d")


def version(*parts: object) -> Cell:
    """A short digest: the page fetches a part again when it changes."""
    return Cell(hashlib.sha256(repr(parts).encode()).hexdigest()[:12])
