"""One model of jobs for every scheduler: their states, what they hold, and the seconds that they held it.

A row is one run: a requeue ends a run and the job comes back as another one.
"""

from datetime import datetime
from enum import StrEnum


class JobState(StrEnum):
    """One model of job states. `requeued` and `preempted` end a run; the job comes back as another run."""

    PENDING = "pending"
    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETING = "completing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    NODE_FAIL = "node_fail"
    PREEMPTED = "preempted"
    OUT_OF_MEMORY = "out_of_memory"
    REQUEUED = "requeued"
    BOOT_FAIL = "boot_fail"
    DEADLINE = "deadline"
    UNKNOWN = "unknown"


WAITING = frozenset({JobState.PENDING})
HOLDING = frozenset({JobState.RUNNING, JobState.SUSPENDED, JobState.COMPLETING})
ENDED = frozenset(JobState) - WAITING - HOLDING - {JobState.UNKNOWN}


class CardKind(StrEnum):
    """What a scheduler hands out: whole cards, MIG instances, or shares of a card."""

    CARD = "card"
    MIG = "mig"
    SHARD = "shard"
    MPS = "mps"


def gpu_seconds(
    *, cards: int, started_at: datetime | None, until: datetime | None, suspended: int | None
) -> int | None:
    """Whole seconds of cards that a run held: cards x (until - start - suspended), never below zero.

    None for a run that never started or of which no end is known. A suspended run keeps its cards but
    the scheduler's own accounting leaves that time out (Slurm: ElapsedRaw), so it is left out here.
    """
    if started_at is None or until is None:
        return None
    return cards * max(int((until - started_at).total_seconds()) - (suspended or 0), 0)
