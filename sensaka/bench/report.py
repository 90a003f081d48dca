"""What a benchmark hands back, and the machine it ran on."""

import json
import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One figure beside a peer's. `ratio` <= 1 means ahead; None where there is no peer."""

    case: str
    value: float
    unit: str
    peer: str | None = None
    peer_value: float | None = None
    lower_is_better: bool = False

    @property
    def ratio(self) -> float | None:
        """ours / peer where lower is better, else peer / ours."""
        if not self.peer_value or not self.value:
            return None
        return round(self.value / self.peer_value if self.lower_is_better else self.peer_value / self.value, 4)

    def document(self) -> dict[str, Any]:
        shown = {name: value for name, value in asdict(self).items() if name != "lower_is_better"}
        return shown | {"ratio": self.ratio}


@dataclass(slots=True)
class Report:
    """One run of a benchmark; `cpu_seconds` is what the measured parts used together."""

    name: str
    work: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    failed: list[str] = field(default_factory=list)

    def line(self) -> str:
        """The one JSON line."""
        return json.dumps(
            {
                "name": self.name,
                "work": self.work,
                "rows": [row.document() for row in self.rows],
                "cpu_seconds": round(self.cpu_seconds, 2),
                "wall_seconds": round(self.wall_seconds, 2),
                "machine": machine(),
            }
        )


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line gives every benchmark."""

    data: Path | None
    seconds: float
    say: Callable[[str], None]
    only: tuple[str, ...] = ()
    departures: bool = False


def machine() -> dict[str, Any]:
    """Processor, cores, memory (bytes) and versions."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory": pages * size,
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
