"""What an adapter of a cluster can do, one small Protocol a capability.

Deadlines are in seconds and bound the whole call. Reads never raise for a server's fault: what failed
stands in the reading. Acts answer with an `ActResult`, and a repeated act changes nothing.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from inventory.drivers.clusters.readings import (
    CardKind,
    JobsReading,
    NodesReading,
    QueuesReading,
    ReservationsReading,
    RunsReading,
    TenantsReading,
)
from inventory.observations import FailureKind, Name, ReadFailure, Text


class Capability(StrEnum):
    """What may be missing on an older server or without the command line."""

    NODES = "nodes"
    QUEUES = "queues"
    RESERVATIONS = "reservations"
    JOBS = "jobs"
    RUNS = "runs"
    CORDON = "cordon"
    SUBMIT = "submit"
    PLACE = "place"  # submit onto named nodes
    HOLD = "hold"
    SIGNAL = "signal"
    CANCEL = "cancel"
    REQUEUE = "requeue"
    SUSPEND = "suspend"
    TENANTS = "tenants"


class CapabilityState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether one capability is there, by which way, else why not."""

    capability: Capability
    available: bool
    via: Name = ""
    reason: Text = ""


class ClusterDescription(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What kind of cluster this is. `tested` is False for an interface newer than those we tested.

    `reason` says in words what is wrong or limited; `token_expires_at` is when our access ends.
    """

    observed_at: datetime
    reached: bool
    scheduler: Name
    cluster: Name = ""
    version: Name = ""
    interface: Name = ""
    tested: bool = True
    reason: Text = ""
    capabilities: tuple[CapabilityState, ...] = ()
    token_expires_at: datetime | None = None
    failures: tuple[ReadFailure, ...] = ()

    def has(self, capability: Capability) -> bool:
        """Whether this cluster can do it now."""
        return any(state.capability is capability and state.available for state in self.capabilities)


class Outcome(StrEnum):
    """How an act ended."""

    DONE = "done"
    UNCHANGED = "unchanged"  # it was so already
    HELD_BY_OTHER = "held_by_other"  # somebody else's reason stands there; nothing was touched
    NOT_FOUND = "not_found"
    REFUSED = "refused"  # the scheduler said no
    NOT_SUPPORTED = "not_supported"
    FAILED = "failed"  # it did not happen
    UNKNOWN = "unknown"  # it may have happened: look before trying again


class ActResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of an act. `reference` is the id of what was made; `kind` says why it failed."""

    outcome: Outcome
    detail: Text = ""
    reference: Name = ""
    kind: FailureKind | None = None

    @property
    def ok(self) -> bool:
        """Whether what was asked for is so now."""
        return self.outcome in (Outcome.DONE, Outcome.UNCHANGED)


class JobSpec(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Work to start. `mark` goes into the job's comment: by it the job is found again after a crash.

    `nodes` empty lets the scheduler choose `node_count`. `cards` is per node. `time_limit` is seconds,
    rounded up to the scheduler's minutes; `memory` bytes per node. `user` empty is whoever we are.
    """

    name: Name
    script: str
    mark: Name
    working_directory: str
    user: Name = ""
    account: Name = ""
    queue: Name = ""
    qos: Name = ""
    nodes: tuple[str, ...] = ()
    node_count: int = 1
    cards: int = 0
    card_type: Name = ""
    card_kind: CardKind = CardKind.CARD
    cpus: int | None = None
    memory: int | None = None
    time_limit: int | None = None
    environment: Mapping[str, str] = MappingProxyType({})
    output: str = "/dev/null"
    held: bool = False
    requeue: bool = True


class AccountSpec(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An account to have. None is no limit; users and qos that are already there stay."""

    name: Name
    description: Name = ""
    organization: Name = ""
    parent: Name = ""
    users: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    cards: int | None = None
    card_seconds: int | None = None


class QosSpec(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A quality of service to have. None is no limit."""

    name: Name
    priority: int = 0
    preempts: tuple[str, ...] = ()
    cards: int | None = None
    cards_per_user: int | None = None


class DescribesCluster(Protocol):
    """Says what this cluster is and can do; the first thing to ask of a new one."""

    async def describe(self, *, deadline: float) -> ClusterDescription: ...


class ReadsCluster(Protocol):
    """Lists what there is, what runs on which cards, and what ran.

    `read_runs` gives the runs that ended at or after `since` and those not over. `also` are job ids
    that the caller still takes for unfinished: they are read whatever their time (a job that was held
    until it was cancelled is found by no time).
    """

    async def read_nodes(self, *, deadline: float) -> NodesReading: ...

    async def read_queues(self, *, deadline: float) -> QueuesReading: ...

    async def read_reservations(self, *, deadline: float) -> ReservationsReading: ...

    async def read_jobs(self, *, deadline: float) -> JobsReading: ...

    async def read_runs(self, *, since: datetime, deadline: float, also: Collection[int] = ()) -> RunsReading: ...


class CordonsNodes(Protocol):
    """Takes nodes out of scheduling and back, under an owner mark.

    `cordon` lets what runs finish. A node that somebody else has taken out is left as it is
    (HELD_BY_OTHER), and `uncordon` lifts only what carries exactly this owner's mark.
    """

    async def cordon(self, node: str, *, owner: str, reason: str, deadline: float) -> ActResult: ...

    async def uncordon(self, node: str, *, owner: str, deadline: float) -> ActResult: ...


class ControlsJobs(Protocol):
    """Starts work and steers it. To cancel a job that is over is ok and changes nothing."""

    async def submit(self, job: JobSpec, *, deadline: float) -> ActResult: ...

    async def hold(self, job_id: int, *, deadline: float) -> ActResult: ...

    async def release(self, job_id: int, *, deadline: float) -> ActResult: ...

    async def signal(self, job_id: int, name: str, *, deadline: float) -> ActResult: ...

    async def cancel(self, job_id: int, *, deadline: float) -> ActResult: ...

    async def requeue(self, job_id: int, *, deadline: float) -> ActResult: ...

    async def suspend(self, job_id: int, *, deadline: float) -> ActResult: ...

    async def resume(self, job_id: int, *, deadline: float) -> ActResult: ...


class ManagesTenants(Protocol):
    """Accounts and qualities of service: made when missing, set to what is asked."""

    async def read_tenants(self, *, deadline: float) -> TenantsReading: ...

    async def ensure_account(self, account: AccountSpec, *, deadline: float) -> ActResult: ...

    async def ensure_qos(self, qos: QosSpec, *, deadline: float) -> ActResult: ...


class ClusterDriver(DescribesCluster, ReadsCluster, CordonsNodes, ControlsJobs, ManagesTenants, Protocol):
    """A whole adapter. `close` ends its connections; call it when done."""

    async def close(self) -> None: ...
