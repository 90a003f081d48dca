"""Frozen readings of a cluster: what its scheduler says of nodes, jobs and finished runs.

A missing value is None and never zero. Times are aware UTC; memory is in bytes, lengths of time in
whole seconds. A read that gave nothing is data: the reading is not `complete` and holds the
`ReadFailure`; what is absent from an incomplete reading must not be taken for gone.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from inventory.observations import Name, ReadFailure, Text
from inventory.rules.jobs import ENDED as ENDED
from inventory.rules.jobs import HOLDING as HOLDING
from inventory.rules.jobs import WAITING as WAITING
from inventory.rules.jobs import CardKind as CardKind
from inventory.rules.jobs import JobState as JobState

Address = Annotated[str, Meta(max_length=400)]  # what names a job to its scheduler


class Accelerators(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The accelerators of one kind and type on a node.

    `used_indices` are the numbers that the scheduler gave out; `used` is None where it doesn't count.
    `resource` is the name that work asks for them by, where that is another one than the type
    (`nvidia.com/gpu`). `unhealthy` of `total` are there and not handed out.
    """

    kind: CardKind
    type: Name = ""
    resource: Name = ""
    total: int = 0
    unhealthy: int = 0
    used: int | None = None
    used_indices: tuple[int, ...] = ()


class NodeLoad(StrEnum):
    """What runs on a node, apart from whether it takes more."""

    IDLE = "idle"
    MIXED = "mixed"
    ALLOCATED = "allocated"
    DOWN = "down"
    UNKNOWN = "unknown"


class ClusterNode(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node as its scheduler sees it.

    `cordoned`: takes no new work, by whoever's wish. `reason` is the scheduler's text, with our mark
    if it is ours; `owner` is the id in that mark, empty when the reason is somebody else's.
    `machine_id` and `system_uuid` are the server's own, where the scheduler tells them.
    """

    name: Name
    hostname: Name = ""
    address: Name = ""
    load: NodeLoad = NodeLoad.UNKNOWN
    raw_state: Name = ""
    cordoned: bool = False
    responding: bool = True
    reason: Text = ""
    reason_by: Name = ""
    reason_at: datetime | None = None
    owner: Name = ""
    queues: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    accelerators: tuple[Accelerators, ...] = ()
    cpus: int | None = None
    memory: int | None = None
    version: Name = ""
    booted_at: datetime | None = None
    machine_id: Name = ""
    system_uuid: Name = ""


class Queue(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A partition or queue. `default` is None where the server does not tell."""

    name: Name
    nodes: tuple[str, ...] = ()
    up: bool = True
    default: bool | None = None
    time_limit: int | None = None
    priority: int | None = None
    accounts: tuple[str, ...] = ()


class Reservation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Nodes kept for somebody for a time. `cards` is None when it is about whole nodes."""

    name: Name
    nodes: tuple[str, ...] = ()
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    cards: int | None = None
    maintenance: bool = False


class CardBinding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which accelerators of one node a job holds.

    `uuids` are the vendor's own, of cards or of MIG instances; where they are given they alone decide.
    `addresses` (PCI) decide where there is no UUID, and `indices` where there is neither.
    `indices` of a CARD are minor numbers, N of /dev/nvidiaN or of the vendor's like; never NVML's
    index. Of SHARD and MPS they are the minors of the cards that are shared and `count` the shares.
    Of MIG they are places in the node's list of gres, which the node's own table turns into a UUID.
    """

    node: Name
    kind: CardKind
    type: Name = ""
    count: int = 0
    uuids: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    indices: tuple[int, ...] = ()


class JobFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of one run of a job, live or finished.

    `key` names the run, is stable and never used again in this cluster. Slurm: job id and time of
    submission, which a requeue sets anew, so that runs of one job stay apart and an id used again is
    another job. Kubernetes: the pod's UID; a pod is one run on one node. What waits and has no pod yet
    (suspended, no quota) is told under the UID of its Job.

    `job_id` is what acts take: Slurm's number ("4711"), or the object that steers the pod
    ("namespace/job/train", "namespace/deployment/llm", "namespace/pod/shell"). `workload` groups runs:
    the id of an array or heterogeneous job, else of the job; the topmost owner ("CronJob/nightly").
    `account` is the account or namespace, `qos` the quality of service or priority class, `queue` the
    partition or the queue of Kueue or Volcano. `array_task` is the task or completion index.

    `cards` are those allocated (MIG instances count as the scheduler counts them), `shares` the
    shards. `suspended` and `elapsed` are seconds; elapsed leaves suspended time out.
    """

    key: Name
    job_id: Address
    workload: Address = ""
    cluster: Name = ""
    name: Text = ""
    user: Name = ""
    account: Name = ""
    qos: Name = ""
    queue: Name = ""
    state: JobState = JobState.UNKNOWN
    raw_state: Name = ""
    reason: Text = ""
    exit_code: int | None = None
    exit_signal: int | None = None
    array_id: Address = ""
    array_task: int | None = None
    group_id: Address = ""
    group_offset: int | None = None
    submitted_at: datetime | None = None
    eligible_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    time_limit: int | None = None
    nodes: tuple[str, ...] = ()
    cards: int = 0
    cards_by_type: tuple[tuple[str, int], ...] = ()
    shares: int = 0
    cards_requested: int = 0
    comment: Text = ""
    reservation: Name = ""


class JobReading(JobFacts, frozen=True, kw_only=True, omit_defaults=True):
    """A job that the scheduler still remembers.

    `ended_at` is set for ended jobs only. `cards_known` is False when the bindings don't account for
    all that is allocated: then the cards of this job are unknown, and are not to be guessed.
    `array_tasks` is the text of the tasks that one pending entry of an array stands for.
    """

    bindings: tuple[CardBinding, ...] = ()
    cards_known: bool = True
    array_tasks: Name = ""
    priority: int | None = None
    held: bool = False
    restarts: int = 0


class StepReading(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step of a run: `batch`, `extern` or a number."""

    step: Name
    name: Text = ""
    state: JobState = JobState.UNKNOWN
    started_at: datetime | None = None
    ended_at: datetime | None = None
    nodes: tuple[str, ...] = ()
    cards: int = 0


class RunReading(JobFacts, frozen=True, kw_only=True, omit_defaults=True):
    """One run from the accounting. `started_at` is None for one that never had nodes."""

    elapsed: int | None = None
    suspended: int | None = None
    cancelled_by: Name = ""
    steps: tuple[StepReading, ...] = ()


class _Reading(Struct, frozen=True, kw_only=True, omit_defaults=True):
    observed_at: datetime
    complete: bool = True
    failures: tuple[ReadFailure, ...] = ()


class NodesReading(_Reading, frozen=True, kw_only=True, omit_defaults=True):
    """All nodes of the cluster."""

    nodes: tuple[ClusterNode, ...] = ()


class QueuesReading(_Reading, frozen=True, kw_only=True, omit_defaults=True):
    """All partitions."""

    queues: tuple[Queue, ...] = ()


class ReservationsReading(_Reading, frozen=True, kw_only=True, omit_defaults=True):
    """All reservations."""

    reservations: tuple[Reservation, ...] = ()


class JobsReading(_Reading, frozen=True, kw_only=True, omit_defaults=True):
    """All jobs that the scheduler remembers: waiting, running, and ended a short while ago."""

    jobs: tuple[JobReading, ...] = ()


class JobsChange(_Reading, frozen=True, kw_only=True, omit_defaults=True):
    """What became of jobs since the change before it.

    `jobs` are those that are new or different, and all that there are where `whole`: what is absent
    then is gone. `gone` are those that the scheduler forgot, as they were last known. `cursor` is where
    to go on after a pause, "" where only a whole reading can begin again.
    """

    jobs: tuple[JobReading, ...] = ()
    gone: tuple[JobReading, ...] = ()
    whole: bool = False
    cursor: Text = ""


class RunsReading(_Reading, frozen=True, kw_only=True, omit_defaults=True):
    """Runs that ended, or were not over, at or after the watermark asked for.

    `watermark` is what to ask with next time; it stays where it was when the reading is incomplete,
    and lies behind the present, so runs are read several times: `key` tells them apart.
    """

    watermark: datetime
    runs: tuple[RunReading, ...] = ()


class TenantReading(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An account or namespace with its limits: `cards` at a time, `card_seconds` in sum, `storage` bytes.

    None is no limit. Types are gres types, or names of resources. `ours` tells one that we made.
    """

    name: Name
    parent: Name = ""
    users: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    cards: int | None = None
    cards_by_type: tuple[tuple[str, int], ...] = ()
    card_seconds: int | None = None
    storage: int | None = None
    isolated: bool = False
    ours: bool = False


class QosReading(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A quality of service or priority class: who goes first, who may push whom out, and limits."""

    name: Name
    priority: int = 0
    preempts: tuple[str, ...] = ()
    cards: int | None = None
    cards_per_user: int | None = None


class TenantsReading(_Reading, frozen=True, kw_only=True, omit_defaults=True):
    """All accounts or namespaces, and all qualities of service."""

    tenants: tuple[TenantReading, ...] = ()
    qos: tuple[QosReading, ...] = ()
