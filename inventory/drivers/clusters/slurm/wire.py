"""Answers of slurmrestd and of `--json`, as far as we use them, in both of their forms.

Up to v0.0.38 numbers are plain and states are one word; from v0.0.39 on a number that may be unset is
`{"set", "infinite", "number"}` and states are lists. Decoding skips what is not named here, which
keeps thousands of jobs with their core maps cheap. Each entry is decoded by itself: a broken one
costs itself only.
"""

from collections.abc import Sequence
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct, field

from inventory.drivers.clusters.slurm.values import ExitCode as ExitCode
from inventory.drivers.clusters.slurm.values import Number as Number
from inventory.drivers.clusters.slurm.values import SetNumber as SetNumber
from inventory.drivers.clusters.slurm.values import Signal as Signal
from inventory.drivers.clusters.slurm.values import Words as Words
from inventory.drivers.clusters.slurm.values import exit_of as exit_of
from inventory.drivers.clusters.slurm.values import integer as integer
from inventory.drivers.clusters.slurm.values import moment as moment
from inventory.observations import FailureKind, ReadFailure


class WireError(Struct):
    """One entry of `errors`; the code's name differs by version."""

    description: str | None = None
    error: str | None = None
    error_number: int | None = None
    error_code: int | None = None
    errno: int | None = None
    source: str | None = None

    @property
    def code(self) -> int:
        """The number, 0 for none."""
        return self.error_number or self.error_code or self.errno or 0

    @property
    def text(self) -> str:
        """What it says."""
        return ": ".join(part for part in (self.error, self.description) if part) or f"error {self.code}"


class StatusError(Struct):
    """The error in one entry of `status`."""

    code: int | None = None
    message: str | None = None


class ActStatus(Struct):
    """What became of one job of a request to end it (v0.0.42)."""

    error: StatusError | None = None


class SlurmVersion(Struct):
    """The server's release."""

    release: str = ""
    cluster: str = ""


class Meta(Struct):
    """Who answers; the key's spelling differs by version."""

    new: SlurmVersion | None = field(name="slurm", default=None)
    old: SlurmVersion | None = field(name="Slurm", default=None)


class Envelope(Struct):
    """Any answer, its entries left encoded."""

    meta: Meta | None = None
    errors: list[WireError] | None = None
    jobs: list[Raw] | None = None
    nodes: list[Raw] | Raw | None = None
    partitions: list[Raw] | Raw | None = None
    reservations: list[Raw] | Raw | None = None
    job_id: int | None = None
    status: list[ActStatus] | Raw | None = None

    def faults(self) -> list[WireError]:
        """All errors that it tells of, wherever they stand."""
        told = [] if isinstance(self.status, Raw) else [one.error for one in self.status or [] if one.error]
        return [
            *(self.errors or ()),
            *(WireError(error=one.message, error_number=one.code) for one in told if one.code),
        ]


class AllocatedNode(Struct):
    """One node of an allocation."""

    nodename: str = ""
    name: str = ""


class NewAllocation(Struct):
    """`job_resources.nodes` of the newer form."""

    allocation: list[AllocatedNode] = []


class JobResources(Struct):
    """Where a job runs; the older form lists nodes beside, the newer one inside."""

    nodes: str | NewAllocation | None = None
    allocated_nodes: list[AllocatedNode] | dict[str, Raw] | None = None

    def names(self) -> list[str]:
        """Node names in the order that `gres_detail` follows."""
        if isinstance(self.nodes, NewAllocation):
            return [node.name for node in self.nodes.allocation if node.name]
        if isinstance(self.allocated_nodes, list):
            return [node.nodename or node.name for node in self.allocated_nodes]
        return []


class WireJob(Struct):
    """A job of `jobs` or squeue."""

    job_id: int
    cluster: str | None = None
    name: str | None = None
    user_name: str | None = None
    user_id: int | None = None
    account: str | None = None
    qos: str | None = None
    partition: str | None = None
    job_state: Words = None
    state_reason: str | None = None
    exit_code: int | ExitCode | None = None
    array_job_id: Number = None
    array_task_id: Number = None
    array_task_string: str | None = None
    het_job_id: Number = None
    het_job_offset: Number = None
    submit_time: Number = None
    eligible_time: Number = None
    start_time: Number = None
    end_time: Number = None
    time_limit: Number = None
    nodes: str | None = None
    job_resources: JobResources | None = None
    gres_detail: list[str] | None = None
    tres_alloc_str: str | None = None
    tres_req_str: str | None = None
    comment: str | None = None
    resv_name: str | None = None
    priority: Number = None
    restart_cnt: Number = None


class WireNode(Struct):
    """A node of `nodes`, sinfo (22.05) or `scontrol show nodes`."""

    name: str
    hostname: str | None = None
    address: str | None = None
    state: Words = None
    state_flags: list[str] | None = None
    reason: str | None = None
    reason_set_by_user: str | None = None
    reason_changed_at: Number = None
    partitions: Words = None
    features: Words = None
    gres: str | None = None
    gres_used: str | None = None
    cpus: int | None = None
    real_memory: Number = None
    version: str | None = None
    slurmd_version: str | None = None
    boot_time: Number = None


class Assigned(Struct):
    """`nodes` and `accounts` of a partition in the newer form."""

    configured: str | None = None
    allowed: str | None = None


class Maximums(Struct):
    """Limits of a partition in the newer form."""

    time: Number = None


class Priority(Struct):
    """Ranks of a partition in the newer form."""

    tier: Number = None


class PartitionState(Struct):
    """State of a partition in the newer form."""

    state: Words = None


class WirePartition(Struct):
    """A partition; from v0.0.39 on its fields are grouped."""

    name: str
    nodes: str | Assigned | None = None
    flags: list[str] | None = None
    state: Words = None
    max_time_limit: Number = None
    priority_tier: Number = None
    allowed_accounts: str | None = None
    accounts: Assigned | None = None
    maximums: Maximums | None = None
    priority: Priority | None = None
    partition: PartitionState | None = None


class WireReservation(Struct):
    """A reservation."""

    name: str
    node_list: str | None = None
    start_time: Number = None
    end_time: Number = None
    users: str | None = None
    accounts: str | None = None
    flags: list[str] | None = None
    tres: str | None = None


class WireTres(Struct):
    """One entry of a TRES list in the accounting."""

    type: str
    name: str | None = None
    count: Number = None


class TresLists(Struct):
    """The TRES lists of a run or step."""

    allocated: list[WireTres] = []
    requested: list[WireTres] | dict[str, Raw] | None = None


class RunTimes(Struct):
    """Times of a run or step, in seconds."""

    elapsed: Number = None
    eligible: Number = None
    submission: Number = None
    start: Number = None
    end: Number = None
    suspended: Number = None
    limit: Number = None


class RunState(Struct):
    """State of a run."""

    current: Words = None
    reason: str | None = None


class ArrayPlace(Struct):
    """Which task of which array."""

    job_id: Number = None
    task_id: Number = None


class HetPlace(Struct):
    """Which part of which heterogeneous job."""

    job_id: Number = None
    job_offset: Number = None


class StepName(Struct):
    """Name of a step; its id is `batch`, a number, or with the job's in front (`1.batch`)."""

    id: str | int | None = None
    name: str | None = None


class StepNodes(Struct):
    """Nodes of a step."""

    range: str | None = None


class WireStep(Struct):
    """A step."""

    time: RunTimes = field(default_factory=RunTimes)
    state: Words = None
    nodes: StepNodes | None = None
    step: StepName = field(default_factory=StepName)
    tres: TresLists | None = None


class RunComment(Struct):
    """Comments of a run."""

    job: str | None = None


class RunReservation(Struct):
    """The reservation of a run; no name is 0 in 22.05."""

    name: str | int | None = None


class WireRun(Struct):
    """A run of the accounting."""

    job_id: int
    cluster: str | None = None
    name: str | None = None
    user: str | None = None
    account: str | None = None
    qos: str | None = None
    partition: str | None = None
    comment: RunComment | None = None
    array: ArrayPlace | None = None
    het: HetPlace | None = None
    time: RunTimes = field(default_factory=RunTimes)
    state: RunState = field(default_factory=RunState)
    exit_code: ExitCode | None = None
    nodes: str | None = None
    kill_request_user: str | None = None
    reservation: RunReservation | None = None
    tres: TresLists = field(default_factory=TresLists)
    steps: list[WireStep] | None = None


T = TypeVar("T", bound=Struct)
_MOST_FAILURES = 20
_ENVELOPE = msgspec.json.Decoder(Envelope)


def envelope(body: bytes) -> Envelope:
    """An answer's outside. msgspec.DecodeError when it is no such JSON."""
    return _ENVELOPE.decode(body)


def entries(kind: type[T], raw: Sequence[Raw] | Raw | None, what: str) -> tuple[list[T], list[ReadFailure]]:
    """Each entry decoded; what is not understood is told, at most twenty times."""
    decoder = msgspec.json.Decoder(kind)
    found: list[T] = []
    failures: list[ReadFailure] = []
    for place, entry in enumerate([] if raw is None or isinstance(raw, Raw) else raw):
        try:
            found.append(decoder.decode(entry))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if len(failures) < _MOST_FAILURES:
                detail = str(error)[:500]
                failures.append(ReadFailure(what=f"{what} {place}", kind=FailureKind.PROTOCOL, detail=detail))
    return found, failures
