"""From a driver's reading of a run to the columns of its row, and the digest that tells whether it changed."""

import hashlib
from typing import Any

import msgspec

from inventory.drivers.clusters.readings import JobFacts, JobReading, RunReading

TEXTS = {
    "job_id": 400, "workload": 400, "name": 500, "user": 200, "account": 255, "qos": 200, "queue": 255,
    "raw_state": 200, "reason": 2000, "array_id": 400, "group_id": 400, "comment": 2000, "reservation": 255,
}  # fmt: skip
PLAIN = (
    "state", "exit_code", "exit_signal", "array_task", "group_offset", "submitted_at", "eligible_at", "started_at",
    "ended_at", "time_limit", "cards", "shares", "cards_requested",
)  # fmt: skip
OF_LIVE = ("array_tasks", "priority", "held", "restarts")
OF_RUN = ("suspended", "cancelled_by", "steps")
FACTS = (*TEXTS, *PLAIN, "node_names", "cards_by_type", *OF_LIVE, *OF_RUN)
"""Every column that a reading can tell."""

_ENCODER = msgspec.msgpack.Encoder()


def live_facts(job: JobReading) -> dict[str, Any]:
    """What the scheduler remembers of a run."""
    return _facts(job) | {
        "array_tasks": job.array_tasks[:500],
        "priority": job.priority,
        "held": job.held,
        "restarts": job.restarts,
    }


def run_facts(run: RunReading) -> dict[str, Any]:
    """What the accounting knows of a run."""
    return _facts(run) | {
        "suspended": run.suspended,
        "cancelled_by": run.cancelled_by,
        "steps": msgspec.json.decode(msgspec.json.encode(run.steps)),
    }


def _facts(run: JobFacts) -> dict[str, Any]:
    facts: dict[str, Any] = {name: _text(getattr(run, name), most) for name, most in TEXTS.items()}
    for name in PLAIN:
        facts[name] = getattr(run, name)
    facts["node_names"] = list(run.nodes)
    facts["cards_by_type"] = dict(run.cards_by_type)
    return facts


def _text(value: str, most: int) -> str:
    """Cut to what the column takes; without NUL, which no text column can hold."""
    return value[:most].replace("\0", "") if value else value


def live_digest(job: JobReading) -> str:
    """Changes when the reading does. Without the priority, which grows with age each minute.

    So a stored priority is as old as the last change of anything else.
    """
    return _digest(msgspec.structs.replace(job, priority=None) if job.priority is not None else job)


def run_digest(run: RunReading) -> str:
    """Changes when the reading does; the seconds of a run that goes on are left out."""
    return _digest(msgspec.structs.replace(run, elapsed=None) if run.ended_at is None else run)


def _digest(reading: JobFacts) -> str:
    return hashlib.blake2b(_ENCODER.encode(reading), digest_size=16).hexdigest()
