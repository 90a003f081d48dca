"""The openb traces: nodes and tasks of a production cluster, untimed, and the workloads made of them."""

import csv
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

NODES_FILE = "openb_node_list_gpu_node.csv"
TASKS_FILE = "openb_pod_list_{}.csv"
FILL = 1.3
"""Tasks arrive until they ask for this many times the cards that there are."""


@dataclass(frozen=True, slots=True)
class Host:
    """A node: milli-cores, MiB, cards of one model."""

    cpu: int
    memory: int
    cards: int
    model: str


@dataclass(frozen=True, slots=True)
class Task:
    """One arrival: milli-cores, MiB, `cards` cards of `share` thousandths each; `models` empty means any."""

    cpu: int
    memory: int
    cards: int
    share: int
    models: frozenset[str]

    @property
    def size(self) -> int:
        """Thousandths of a card."""
        return self.cards * self.share

    @property
    def kind(self) -> str:
        """The class in which its failures are counted."""
        if not self.cards:
            return "cpu"
        return "share" if self.share < 1000 else str(self.cards)


def traces(folder: Path) -> list[str]:
    """The names of the traces in the folder; FileNotFoundError when nodes or tasks are not there."""
    if not (folder / NODES_FILE).is_file():
        raise FileNotFoundError(f"{folder} has no {NODES_FILE}")
    first, last = TASKS_FILE.split("{}")
    found = sorted(path.name.removeprefix(first).removesuffix(last) for path in folder.glob(TASKS_FILE.format("*")))
    if not found:
        raise FileNotFoundError(f"{folder} has no {TASKS_FILE.format('*')}")
    return found


def hosts(folder: Path) -> list[Host]:
    """All nodes."""
    with (folder / NODES_FILE).open(newline="") as lines:
        return [
            Host(int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]), row["model"])
            for row in csv.DictReader(lines)
        ]


def tasks(folder: Path, trace: str) -> list[Task]:
    """All tasks of a trace."""
    with (folder / TASKS_FILE.format(trace)).open(newline="") as lines:
        return [_task(row) for row in csv.DictReader(lines)]


def _task(row: dict[str, str]) -> Task:
    cards = int(row["num_gpu"])
    share = 0 if not cards else int(row["gpu_milli"]) if cards == 1 else 1000
    models = frozenset((row.get("gpu_spec") or "").split("|")) - {""}
    return Task(int(row["cpu_milli"]), int(row["memory_mib"]), cards, share, models)


def filling(all_tasks: Sequence[Task], capacity: int, chance: random.Random) -> Iterator[Task]:
    """The trace in random order, topped up by drawing from it, until FILL times `capacity` (thousandths) arrived."""
    order = list(all_tasks)
    chance.shuffle(order)
    arrived = 0
    place = 0
    while arrived < FILL * capacity:
        task = order[place] if place < len(order) else chance.choice(order)
        place += 1
        arrived += task.size
        yield task
