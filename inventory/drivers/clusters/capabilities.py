"""What an adapter of a cluster can do, one small Protocol a capability.

Deadlines are in seconds and bound the whole call. Reads never raise for a server's fault: what failed
stands in the reading. Acts answer with an `ActResult`, and a repeated act changes nothing.
"""

from collections.abc import AsyncIterator, Collection, Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from inventory.drivers.clusters.readings import (
    Address,
    CardKind,
    JobsChange,
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
    RUNS = "runs"  # ended runs are remembered after they left the list of jobs
    FOLLOW = "follow"
    CORDON = "cordon"
    EVICT = "evict"
    SUBMIT = "submit"
    PLACE = "place"  # submit onto named nodes
    HOLD = "hold"
    SIGNAL = "signal"
    CANCEL = "cancel"
    REQUEUE = "requeue"
    SUSPEND = "suspend"
    TENANTS = "tenants"
    QOS = "qos"


class CapabilityState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether one capability is there, by which way, else why not."""

    capability: Capability
    available: bool
    via: Name = ""
    reason: Text = ""


class ClusterDescription(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What kind of cluster this is. `tested` is False for an interface newer than those we tested.

    `reason` says in words what is wrong or limited; `token_expires_at` is when our access ends.
    `enforces` are the fields of a `TenantSpec` that this scheduler can hold tenants to.
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
    enforces: tuple[Name, ...] = ()
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
    reference: Address = ""
    kind: FailureKind | None = None

    @property
    def ok(self) -> bool:
        """Whether what was asked for is so now."""
        return self.outcome in (Outcome.DONE, Outcome.UNCHANGED)


class Remaining(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Work that is still on a node. `stays`: it belongs to the node and is not to be moved away."""

    key: Name
    job_id: Address
    reason: Text = ""
    stays: bool = False


class EvictionResult(ActResult, frozen=True, kw_only=True, omit_defaults=True):
    """What became of emptying a node: the runs that went, and what is left with the reason."""

    evicted: tuple[Name, ...] = ()
    left: tuple[Remaining, ...] = ()


class JobSpec(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Work to start. `mark` goes into the job's comment: by it the job is found again after a crash.

    A mark is one job: where the scheduler can tell, a mark that is used already starts no second one.
    `nodes` empty lets the scheduler choose `node_count`. `cards` is per node; where nodes get different
    numbers it is 0, and `card_total` of them are spread over the nodes. `card_type` as a node's
    `Accelerators` tell it. `time_limit` is seconds, rounded up to the scheduler's minutes; `memory`
    bytes per node. `user` empty is whoever we are. `image` is for schedulers that start containers,
    where `account` is the namespace; there `working_directory` empty is the image's own.
    """

    name: Name
    script: str
    mark: Name
    working_directory: str
    image: Text = ""
    user: Name = ""
    account: Name = ""
    queue: Name = ""
    qos: Name = ""
    nodes: tuple[str, ...] = ()
    node_count: int = 1
    cards: int = 0
    card_total: int = 0
    card_type: Name = ""
    card_kind: CardKind = CardKind.CARD
    cpus: int | None = None
    memory: int | None = None
    time_limit: int | None = None
    environment: Mapping[str, str] = MappingProxyType({})
    output: str = "/dev/null"
    held: bool = False
    requeue: bool = True


class TenantSpec(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tenant's place: a Slurm account, a Kubernetes namespace. None is no limit.

    What a scheduler can't enforce (`ClusterDescription.enforces`) it leaves out and says so in the
    result's detail. `cards` at a time (on Kubernetes of each resource by itself), `cards_by_type` by
    gres type or resource name, `card_seconds` in sum, `storage` bytes of volume claims. A container
    that asks for nothing gets `default_cpus` and `default_memory` (bytes). `isolated` keeps other
    tenants' traffic out. Users and qos that are already there stay.
    """

    name: Name
    description: Name = ""
    organization: Name = ""
    parent: Name = ""
    users: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    cards: int | None = None
    cards_by_type: Mapping[str, int] = MappingProxyType({})
    card_seconds: int | None = None
    storage: int | None = None
    default_cpus: int | None = None
    default_memory: int | None = None
    isolated: bool = True


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
    until it was cancelled is found by no time). Without `Capability.RUNS` a run whose job was removed
    is told by nobody: it ended between the last reading that has it and the first complete one that
    has not, unless `follow_jobs` told how.
    """

    async def read_nodes(self, *, deadline: float) -> NodesReading: ...

    async def read_queues(self, *, deadline: float) -> QueuesReading: ...

    async def read_reservations(self, *, deadline: float) -> ReservationsReading: ...

    async def read_jobs(self, *, deadline: float) -> JobsReading: ...

    async def read_runs(self, *, since: datetime, deadline: float, also: Collection[str] = ()) -> RunsReading: ...


class FollowsJobs(Protocol):
    """Tells changes of jobs as they come, until the deadline; each is told once.

    The first one is whole, unless `cursor`, of an earlier change, can still be gone on from. A fault is
    an incomplete change with its failure, after which it goes on; after a gap a whole one comes. One
    without jobs moves the cursor.
    """

    def follow_jobs(self, *, cursor: str = "", deadline: float) -> AsyncIterator[JobsChange]: ...


class CordonsNodes(Protocol):
    """Takes nodes out of scheduling and back, under an owner mark.

    `cordon` lets what runs finish. A node that somebody else has taken out is left as it is
    (HELD_BY_OTHER), and `uncordon` lifts only what carries exactly this owner's mark. `evict` asks the
    work on a node that this owner has cordoned to go, within what its owners allow at a time.
    """

    async def cordon(self, node: str, *, owner: str, reason: str, deadline: float) -> ActResult: ...

    async def uncordon(self, node: str, *, owner: str, deadline: float) -> ActResult: ...

    async def evict(self, node: str, *, owner: str, deadline: float) -> EvictionResult: ...


class ControlsJobs(Protocol):
    """Starts work and steers it. To cancel a job that is over is ok and changes nothing."""

    async def submit(self, job: JobSpec, *, deadline: float) -> ActResult: ...

    async def hold(self, job_id: str, *, deadline: float) -> ActResult: ...

    async def release(self, job_id: str, *, deadline: float) -> ActResult: ...

    async def signal(self, job_id: str, name: str, *, deadline: float) -> ActResult: ...

    async def cancel(self, job_id: str, *, deadline: float) -> ActResult: ...

    async def requeue(self, job_id: str, *, deadline: float) -> ActResult: ...

    async def suspend(self, job_id: str, *, deadline: float) -> ActResult: ...

    async def resume(self, job_id: str, *, deadline: float) -> ActResult: ...

    async def set_time_limit(self, job_id: str, seconds: int, *, deadline: float) -> ActResult: ...


class ManagesTenants(Protocol):
    """Places of tenants and qualities of service: made when missing, set to what is asked."""

    async def read_tenants(self, *, deadline: float) -> TenantsReading: ...

    async def ensure_tenant(self, tenant: TenantSpec, *, deadline: float) -> ActResult: ...

    async def ensure_qos(self, qos: QosSpec, *, deadline: float) -> ActResult: ...


class ClusterDriver(DescribesCluster, ReadsCluster, FollowsJobs, CordonsNodes, ControlsJobs, ManagesTenants, Protocol):
    """A whole adapter. `close` ends its connections; call it when done."""

    async def close(self) -> None: ...
