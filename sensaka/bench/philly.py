"""The Philly trace: when jobs of a production cluster came, how long they ran, on how many cards, whose they were.

It tells no time limits, states or priorities. Jobs of more cards than a node has are gangs of whole
nodes where that divides evenly, else of the largest units that do.
"""

import csv
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil, gcd
from pathlib import Path

FILE = "philly.csv"


@dataclass(frozen=True, slots=True)
class Job:
    """One job: `submitted` (Unix s), `runs` (s, known to nobody who may not look ahead), cards, and its team."""

    number: int
    submitted: int
    runs: int
    cards: int
    team: str

    @property
    def day(self) -> str:
        """The UTC date of its submission."""
        return datetime.fromtimestamp(self.submitted, UTC).date().isoformat()

    @property
    def month(self) -> str:
        """The UTC month of its submission."""
        return self.day[:7]

    def units(self, per_node: int) -> tuple[int, int]:
        """(how many units, cards of each): one unit where a node holds the job."""
        each = self.cards if self.cards <= per_node else gcd(self.cards, per_node)
        return self.cards // each, each


def jobs(folder: Path) -> list[Job]:
    """All jobs in the order of their submission; FileNotFoundError when the trace is not there."""
    if not (folder / FILE).is_file():
        raise FileNotFoundError(f"{folder} has no {FILE}")
    with (folder / FILE).open(newline="") as lines:
        rows = [
            (
                int(datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC).timestamp()),
                max(1, ceil(float(row["duration"]))),
                int(row["num_gpus"]),
                row["cluster"],
            )
            for row in csv.DictReader(lines)
        ]
    # jobs of the same second stay in the order of the file
    rows.sort(key=lambda row: row[0])
    return [Job(number, *row) for number, row in enumerate(rows)]
