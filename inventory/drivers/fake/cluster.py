"""A cluster in memory that keeps the adapter contract: for tests and as the contract's reference.

`scheduler` is what a test looks at and steers; `out_of_reach`, when set, is why nothing answers.
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from inventory.drivers.clusters.capabilities import (
    ActResult,
    Capability,
    CapabilityState,
    ClusterDescription,
    EvictionResult,
    JobSpec,
    Outcome,
    QosSpec,
    TenantSpec,
)
from inventory.drivers.clusters.polling import follow_by_polling
from inventory.drivers.clusters.readings import (
    HOLDING,
    Accelerators,
    CardKind,
    ClusterNode,
    JobReading,
    JobsChange,
    JobsReading,
    JobState,
    NodeLoad,
    NodesReading,
    QosReading,
    Queue,
    QueuesReading,
    ReservationsReading,
    RunReading,
    RunsReading,
    TenantReading,
    TenantsReading,
)
from inventory.drivers.fake.scheduler import FakeNode, FakeRun, FakeScheduler, present
from inventory.observations import FailureKind, ReadFailure

OVERLAP = timedelta(minutes=10)
_MARK = "sensaka:"
_QUEUE = "default"


class FakeCluster:
    """The whole contract, kept in memory."""

    def __init__(
        self, nodes: Iterable[FakeNode], *, name: str = "fake", clock: Callable[[], datetime] = present
    ) -> None:
        self.scheduler = FakeScheduler(nodes, clock)
        self.name = name
        self.out_of_reach = ""
        self.interval = 0.05  # s between two looks of who follows jobs
        self._tenants: dict[str, TenantReading] = {}
        self._qos: dict[str, QosReading] = {}

    async def describe(self, *, deadline: float) -> ClusterDescription:
        """All capabilities are there while it is in reach."""
        asked = self._asked("describe")
        return ClusterDescription(
            observed_at=asked["observed_at"],
            reached=asked["complete"],
            scheduler="fake",
            cluster=self.name,
            version="1",
            interface="memory",
            reason=self.out_of_reach,
            capabilities=tuple(
                CapabilityState(capability=one, available=asked["complete"], via="memory", reason=self.out_of_reach)
                for one in Capability
            ),
            enforces=("parent", "users", "qos", "cards", "cards_by_type", "card_seconds", "storage", "isolated"),
            failures=asked["failures"],
        )

    async def read_nodes(self, *, deadline: float) -> NodesReading:
        """All nodes with their cards."""
        asked = self._asked("nodes")
        nodes = self.scheduler.nodes.values() if asked["complete"] else ()
        return NodesReading(**asked, nodes=tuple(self._node(node) for node in nodes))

    async def read_queues(self, *, deadline: float) -> QueuesReading:
        """One queue with all nodes."""
        asked = self._asked("queues")
        queue = Queue(name=_QUEUE, nodes=tuple(self.scheduler.nodes), default=True)
        return QueuesReading(**asked, queues=(queue,) if asked["complete"] else ())

    async def read_reservations(self, *, deadline: float) -> ReservationsReading:
        """There are none."""
        return ReservationsReading(**self._asked("reservations"))

    async def read_jobs(self, *, deadline: float) -> JobsReading:
        """The latest run of every job."""
        asked = self._asked("jobs")
        latest = {run.job_id: run for run in self.scheduler.runs} if asked["complete"] else {}
        return JobsReading(**asked, jobs=tuple(self._job(run) for run in latest.values()))

    async def read_runs(self, *, since: datetime, deadline: float, also: Collection[str] = ()) -> RunsReading:
        """Runs that ended at or after `since`, those not over, and all of the jobs in `also`."""
        asked = self._asked("runs")
        if not asked["complete"]:
            return RunsReading(**asked, watermark=since)
        runs = [r for r in self.scheduler.runs if r.ended_at is None or r.ended_at >= since or r.job_id in also]
        watermark = max(since, self.scheduler.clock() - OVERLAP)
        return RunsReading(**asked, watermark=watermark, runs=tuple(self._run(run) for run in runs))

    async def follow_jobs(self, *, cursor: str = "", deadline: float) -> AsyncIterator[JobsChange]:
        """Changes of jobs, as the contract wants them."""

        async def read(left: float) -> JobsReading:
            return await self.read_jobs(deadline=left)

        async for change in follow_by_polling(read, deadline=deadline, interval=self.interval):
            yield change

    async def cordon(self, node: str, *, owner: str, reason: str, deadline: float) -> ActResult:
        """Takes a node out under our mark; somebody else's stays."""
        known = self.scheduler.nodes.get(node)
        if self.out_of_reach or known is None:
            return self._not_there(f"node {node}")
        if known.cordoned:
            ours = _owner(known.reason) == owner
            return ActResult(outcome=Outcome.UNCHANGED if ours else Outcome.HELD_BY_OTHER, detail=known.reason)
        known.cordoned, known.reason = True, f"{_MARK}{owner} {reason}"
        return ActResult(outcome=Outcome.DONE)

    async def uncordon(self, node: str, *, owner: str, deadline: float) -> ActResult:
        """Lifts exactly this owner's cordon."""
        known = self.scheduler.nodes.get(node)
        if self.out_of_reach or known is None:
            return self._not_there(f"node {node}")
        if not known.cordoned:
            return ActResult(outcome=Outcome.UNCHANGED, detail="not cordoned")
        if _owner(known.reason) != owner:
            return ActResult(outcome=Outcome.HELD_BY_OTHER, detail=known.reason)
        known.cordoned, known.reason = False, ""
        self.scheduler.schedule()
        return ActResult(outcome=Outcome.DONE)

    async def evict(self, node: str, *, owner: str, deadline: float) -> EvictionResult:
        """Requeues what runs on a node that this owner has cordoned."""
        known = self.scheduler.nodes.get(node)
        if self.out_of_reach or known is None:
            absent = self._not_there(f"node {node}")
            return EvictionResult(outcome=absent.outcome, detail=absent.detail, kind=absent.kind)
        if not known.cordoned or _owner(known.reason) != owner:
            outcome = Outcome.HELD_BY_OTHER if known.cordoned else Outcome.REFUSED
            return EvictionResult(outcome=outcome, detail=known.reason or "cordon the node first")
        gone = [run for run in self.scheduler.runs if run.state in HOLDING and node in run.nodes]
        for run in gone:
            self.scheduler.again(run, JobState.REQUEUED)
        outcome = Outcome.DONE if gone else Outcome.UNCHANGED
        return EvictionResult(outcome=outcome, evicted=tuple(run.key for run in gone))

    async def submit(self, job: JobSpec, *, deadline: float) -> ActResult:
        """Queues a job; what can never run is refused."""
        if self.out_of_reach:
            return self._not_there("cluster")
        if refusal := self.scheduler.refusal(job):
            return ActResult(outcome=Outcome.REFUSED, detail=refusal)
        return ActResult(outcome=Outcome.DONE, reference=str(self.scheduler.submit(job).job_id))

    async def hold(self, job_id: str, *, deadline: float) -> ActResult:
        """Keeps a waiting job from starting."""
        return self._steer(job_id, {JobState.PENDING}, lambda run: setattr(run, "held", True))

    async def release(self, job_id: str, *, deadline: float) -> ActResult:
        """Lets a held job start."""
        return self._steer(job_id, {JobState.PENDING}, lambda run: setattr(run, "held", False))

    async def signal(self, job_id: str, name: str, *, deadline: float) -> ActResult:
        """Accepted for a job that runs; nothing listens."""
        return self._steer(job_id, HOLDING, lambda run: None)

    async def cancel(self, job_id: str, *, deadline: float) -> ActResult:
        """Ends a job."""
        run = self.scheduler.current(job_id)
        if self.out_of_reach or run is None:
            return self._not_there(f"job {job_id}")
        if run.ended_at is not None:
            return ActResult(outcome=Outcome.UNCHANGED, detail="over already")
        self.scheduler.end(run, JobState.CANCELLED)
        return ActResult(outcome=Outcome.DONE)

    async def requeue(self, job_id: str, *, deadline: float) -> ActResult:
        """Ends the run and lets the job wait again."""
        return self._steer(job_id, HOLDING, lambda run: self.scheduler.again(run, JobState.REQUEUED))

    async def suspend(self, job_id: str, *, deadline: float) -> ActResult:
        """Stops a job, which keeps its cards."""
        return self._steer(job_id, {JobState.RUNNING}, self.scheduler.suspend)

    async def resume(self, job_id: str, *, deadline: float) -> ActResult:
        """Lets a suspended job go on."""
        return self._steer(job_id, {JobState.SUSPENDED}, self.scheduler.resume)

    async def set_time_limit(self, job_id: str, seconds: int, *, deadline: float) -> ActResult:
        """Lets a job run for so long in all."""
        states = {JobState.PENDING, *HOLDING}
        return self._steer(job_id, states, lambda run: setattr(run, "spec", replace(run.spec, time_limit=seconds)))

    async def read_tenants(self, *, deadline: float) -> TenantsReading:
        """All tenants and qualities of service."""
        asked = self._asked("tenants")
        if not asked["complete"]:
            return TenantsReading(**asked)
        return TenantsReading(**asked, tenants=tuple(self._tenants.values()), qos=tuple(self._qos.values()))

    async def ensure_tenant(self, tenant: TenantSpec, *, deadline: float) -> ActResult:
        """Makes or sets a tenant; users and qos that are there stay."""
        if self.out_of_reach:
            return self._not_there("cluster")
        known = self._tenants.get(tenant.name)
        wanted = TenantReading(
            name=tenant.name,
            parent=known.parent if known else tenant.parent,
            users=tuple(sorted({*tenant.users, *(known.users if known else ())})),
            qos=tuple(sorted({*tenant.qos, *(known.qos if known else ())})),
            cards=tenant.cards,
            cards_by_type=tuple(sorted(tenant.cards_by_type.items())),
            card_seconds=tenant.card_seconds,
            storage=tenant.storage,
            isolated=tenant.isolated,
            ours=True,
        )
        self._tenants[tenant.name] = wanted
        return ActResult(outcome=Outcome.UNCHANGED if known == wanted else Outcome.DONE)

    async def ensure_qos(self, qos: QosSpec, *, deadline: float) -> ActResult:
        """Makes or sets a quality of service."""
        if self.out_of_reach:
            return self._not_there("cluster")
        wanted = QosReading(
            name=qos.name,
            priority=qos.priority,
            preempts=qos.preempts,
            cards=qos.cards,
            cards_per_user=qos.cards_per_user,
        )
        known = self._qos.get(qos.name)
        self._qos[qos.name] = wanted
        return ActResult(outcome=Outcome.UNCHANGED if known == wanted else Outcome.DONE)

    async def close(self) -> None:
        """Nothing is open."""

    def _asked(self, what: str) -> dict[str, Any]:
        """What every reading begins with; time passes for the scheduler when it is asked."""
        self.scheduler.schedule()
        failures: tuple[ReadFailure, ...] = ()
        if self.out_of_reach:
            failures = (ReadFailure(what=what, kind=FailureKind.UNREACHABLE, detail=self.out_of_reach),)
        return {"observed_at": self.scheduler.clock(), "complete": not failures, "failures": failures}

    def _not_there(self, what: str) -> ActResult:
        if self.out_of_reach:
            return ActResult(outcome=Outcome.FAILED, detail=self.out_of_reach, kind=FailureKind.UNREACHABLE)
        return ActResult(outcome=Outcome.NOT_FOUND, detail=f"there is no {what}")

    def _steer(self, job_id: str, states: Collection[JobState], act: Callable[[FakeRun], None]) -> ActResult:
        run = self.scheduler.current(job_id)
        if self.out_of_reach or run is None:
            return self._not_there(f"job {job_id}")
        if run.state not in states:
            return ActResult(outcome=Outcome.REFUSED, detail=f"the job is {run.state}")
        act(run)
        self.scheduler.schedule()
        return ActResult(outcome=Outcome.DONE)

    def _node(self, node: FakeNode) -> ClusterNode:
        used = self.scheduler.used(node.name)
        load = NodeLoad.IDLE if not used else NodeLoad.MIXED if len(used) < node.cards else NodeLoad.ALLOCATED
        indices = tuple(sorted(used))
        cards = Accelerators(
            kind=CardKind.CARD, type=node.card_type, total=node.cards, used=len(used), used_indices=indices
        )
        return ClusterNode(
            name=node.name,
            hostname=node.name,
            load=NodeLoad.DOWN if node.down else load,
            raw_state=(NodeLoad.DOWN if node.down else load).upper(),
            cordoned=node.cordoned,
            responding=not node.down,
            reason=node.reason,
            owner=_owner(node.reason),
            queues=(_QUEUE,),
            accelerators=(cards,) if node.cards else (),
        )

    def _job(self, run: FakeRun) -> JobReading:
        bound = tuple(one for one in run.bindings if one.count) if run.state in HOLDING else ()
        held = run.held and run.state is JobState.PENDING
        return JobReading(**self._facts(run), bindings=bound, held=held, restarts=run.restarts)

    def _run(self, run: FakeRun) -> RunReading:
        end = run.ended_at or self.scheduler.clock()
        elapsed = int((end - run.started_at).total_seconds() - run.suspended) if run.started_at else 0
        return RunReading(**self._facts(run), elapsed=elapsed, suspended=int(run.suspended))

    def _facts(self, run: FakeRun) -> dict[str, Any]:
        count = len(run.spec.nodes) or run.spec.node_count
        return {
            "key": run.key,
            "job_id": run.job_id,
            "workload": run.job_id,
            "cluster": self.name,
            "name": run.spec.name,
            "user": run.spec.user,
            "account": run.spec.account,
            "queue": run.spec.queue or _QUEUE,
            "state": run.state,
            "raw_state": run.state.upper(),
            "reason": "JobHeldUser" if run.held else "",
            "exit_code": run.exit_code,
            "submitted_at": run.submitted_at,
            "started_at": run.started_at,
            "ended_at": run.ended_at,
            "time_limit": run.spec.time_limit,
            "nodes": run.nodes,
            "cards": sum(binding.count for binding in run.bindings),
            "cards_requested": run.spec.cards * count,
            "comment": run.spec.mark,
        }


def _owner(reason: str) -> str:
    return reason.removeprefix(_MARK).partition(" ")[0] if reason.startswith(_MARK) else ""
