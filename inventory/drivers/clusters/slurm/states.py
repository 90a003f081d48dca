"""Slurm's words for states, turned into our own. Pure.

Slurm joins a base state with flags: `RUNNING` and `COMPLETING`; one word in older interfaces (the
strongest flag, else the base), a list in newer ones. Meanings: slurm.schedmd.com/job_state_codes.html.
"""

from collections.abc import Iterable, Sequence

from inventory.drivers.clusters.readings import ENDED, JobState, NodeLoad

_BASE = {
    "PENDING": JobState.PENDING,
    "RUNNING": JobState.RUNNING,
    "SUSPENDED": JobState.SUSPENDED,
    "COMPLETED": JobState.COMPLETED,
    "CANCELLED": JobState.CANCELLED,
    "FAILED": JobState.FAILED,
    "TIMEOUT": JobState.TIMEOUT,
    "NODE_FAIL": JobState.NODE_FAIL,
    "PREEMPTED": JobState.PREEMPTED,
    "BOOT_FAIL": JobState.BOOT_FAIL,
    "DEADLINE": JobState.DEADLINE,
    "OUT_OF_MEMORY": JobState.OUT_OF_MEMORY,
}
# A flag says more than the base it stands beside; the first that is there counts.
_FLAGS = (
    ("COMPLETING", JobState.COMPLETING),
    ("STAGE_OUT", JobState.COMPLETING),
    ("REVOKED", JobState.CANCELLED),
    ("SPECIAL_EXIT", JobState.PENDING),
    ("REQUEUE_HOLD", JobState.PENDING),
    ("RESV_DEL_HOLD", JobState.PENDING),
    ("REQUEUE_FED", JobState.PENDING),
    ("STOPPED", JobState.SUSPENDED),
    ("CONFIGURING", JobState.RUNNING),
    ("POWER_UP_NODE", JobState.RUNNING),
    ("RESIZING", JobState.RUNNING),
    ("SIGNALING", JobState.RUNNING),
    ("UPDATE_DB", None),
    ("LAUNCH_FAILED", None),
    ("RECONFIG_FAIL", None),
    ("EXPEDITING", None),
)
_HELD_REASONS = ("JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue")


def words_of(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """The words of a state, upper case: `CANCELLED by 0` is CANCELLED, `IDLE+DRAIN` two, `down*` DOWN."""
    texts: Iterable[str] = value.split("+") if isinstance(value, str) else value or ()
    words = (text.split()[0].strip("*~#!%$@^-").upper() for text in texts if text.split())
    return tuple(word for word in words if word)


def job_state(words: Sequence[str], *, live: bool = True) -> JobState:
    """One state from Slurm's words; UNKNOWN for a word that nobody knows yet.

    In the accounting (`live` False) REQUEUED ends a run; among live jobs such a one waits again.
    """
    if "REQUEUED" in words and "COMPLETING" not in words:
        return JobState.PENDING if live else JobState.REQUEUED
    for flag, state in _FLAGS:
        if flag in words and state is not None:
            return state
    for word in words:
        if word in _BASE:
            return _BASE[word]
    return JobState.UNKNOWN


def is_ended(state: JobState) -> bool:
    """Whether a run in this state is over."""
    return state in ENDED


def is_held(reason: str) -> bool:
    """Whether a waiting job's reason is a hold."""
    return reason in _HELD_REASONS


_LOADS = {
    "IDLE": NodeLoad.IDLE,
    "PLANNED": NodeLoad.IDLE,
    "MIXED": NodeLoad.MIXED,
    "ALLOCATED": NodeLoad.ALLOCATED,
    "COMPLETING": NodeLoad.MIXED,
    "DOWN": NodeLoad.DOWN,
    "ERROR": NodeLoad.DOWN,
    "FUTURE": NodeLoad.UNKNOWN,
    "UNKNOWN": NodeLoad.UNKNOWN,
}
_OUT = frozenset({"DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING"})


def node_load(words: Sequence[str]) -> NodeLoad:
    """What runs on a node; DOWN counts before anything else."""
    loads = [_LOADS[word] for word in words if word in _LOADS]
    return NodeLoad.DOWN if NodeLoad.DOWN in loads else (loads[0] if loads else NodeLoad.UNKNOWN)


def is_cordoned(words: Sequence[str]) -> bool:
    """Whether somebody has taken the node out of scheduling; a maintenance reservation is another thing."""
    return bool(_OUT.intersection(words))


def responds(words: Sequence[str]) -> bool:
    """Whether its slurmd answers."""
    return "NOT_RESPONDING" not in words and "NO_RESPOND" not in words
