"""The state folder: the world and its schedulers, each written as a whole and put in place by a rename."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from sensaka.fleet.plan import Plan
from sensaka.fleet.slurm.cluster import SlurmCluster
from sensaka.fleet.world import StateError, World


class WorldFiles:
    """The files of one world. A crash leaves either the old or the new one whole; counters go on after a restart."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._world = folder / "world.json"
        self._saved: dict[str, tuple[int, int]] = {}

    def load(self, plan: Plan, now: float) -> World:
        """The kept world moved to `now`, or a fresh one; StateError when a file is unusable."""
        if not self._world.exists():
            return World.fresh(plan, now)
        try:
            world = World.restore(plan, json.loads(self._world.read_text()))
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(f"{self._world} can't be read ({error}): remove it to start the fleet anew") from error
        world.slurm = {name: self._scheduler(plan, name, world.at) for name in plan.slurm_clusters}
        world.advance(now)
        return world

    def _scheduler(self, plan: Plan, name: str, at: float) -> SlurmCluster:
        path = self._path(name)
        try:
            return SlurmCluster.kept(plan, name, at, path.read_bytes())
        except FileNotFoundError:
            return SlurmCluster.begin(plan, name, at)
        except ValueError as error:
            raise StateError(f"{path} can't be read ({error}): remove it to start its scheduler anew") from error

    def _path(self, cluster: str) -> Path:
        return self._folder / f"slurm-{cluster}.json"

    def save(self, world: World) -> None:
        """Write everything. OSError on a full disk."""
        self.save_schedulers(world)
        put(self._world, json.dumps(world.dump()).encode())

    def save_schedulers(self, world: World) -> None:
        """Write the schedulers that did something since they were last written."""
        for name, cluster in world.slurm.items():
            if cluster.changes != self._saved.get(name):
                put(self._path(name), cluster.state())
                self._saved[name] = cluster.changes


def put(path: Path, content: bytes) -> None:
    """Write a file as a whole: a crash leaves the old or the new one. OSError on a full disk."""
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def keep(path: Path, made: dict[str, Any]) -> dict[str, Any]:
    """What was kept in a small private file, or `made`, which is kept from now on."""
    with contextlib.suppress(OSError, ValueError):
        kept: dict[str, Any] = json.loads(path.read_text())
        return kept
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(made, file)
    partial.replace(path)
    return made
