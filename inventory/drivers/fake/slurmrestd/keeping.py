"""The state of a controller as plain data that outlives a restart."""

from typing import Any

import msgspec

from inventory.drivers.fake.slurmrestd.controller import Controller
from inventory.drivers.fake.slurmrestd.jobs import Job


class Kept(msgspec.Struct):
    """What is kept: jobs, runs, and what was set on nodes. Layout, reservations and hardware come from the plan."""

    now: int
    next_job: int
    jobs: list[Job]
    runs: list[Job]
    nodes: dict[str, dict[str, Any]]


_NODE_FIELDS = ("booted", "drained", "down", "responding", "reason", "reason_by", "reason_at", "silent_since")


def dump(controller: Controller) -> bytes:
    """The state as JSON."""
    nodes = {
        name: {field: getattr(node, field) for field in _NODE_FIELDS} for name, node in controller.nodes.items()
    }  # fmt: skip
    return msgspec.json.encode(
        Kept(controller.now, controller.next_job, list(controller.jobs.values()), controller.runs, nodes)
    )


def restore(controller: Controller, kept: bytes) -> None:
    """Take over a kept state. ValueError when it is none; then nothing has changed."""
    state = msgspec.json.decode(kept, type=Kept)
    for name, fields in state.nodes.items():
        node = controller.nodes.get(name)
        if node is not None:
            for field in _NODE_FIELDS:
                setattr(node, field, fields[field])
    controller.now, controller.next_job, controller.runs = state.now, state.next_job, state.runs
    controller.jobs = {job.id: job for job in state.jobs}
    controller.refresh()
