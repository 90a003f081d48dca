"""A cluster in memory that keeps the adapter contract: for tests and as the contract's reference.

`scheduler` is what a test looks at and steers; `out_of_reach`, when set, is why nothing answers.
"""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import Any

from inventory.drivers.clusters.capabilities import (
    AccountSpec,
    ActResult,
    Capability,
    CapabilityState,
    ClusterDescription,
    JobSpec,
    Outcome,
    QosSpec,
)
from inventory.drivers.clusters.readings import (
    HOLDING,
    Accelerators,
    CardKind,
    ClusterNode,
    JobReading,
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
        self._accounts: dict[str, TenantReading] = {}
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

    async def read_runs(self, *, since: datetime, deadline: float, also: Collection[int] = ()) -> RunsReading:
        """Runs that ended at or after `since`, those not over, and all of the jobs in `also`."""
        asked = self._asked("runs")
        if not asked["complete"]:
            return RunsReading(**asked, watermark=since)
        runs = [r for r in self.scheduler.runs if r.ended_at is None or r.ended_at >= since or r.job_id in also]
        watermark = max(since, self.scheduler.clock() - OVERLAP)
        return RunsReading(**asked, watermark=watermark, runs=tuple(self._run(run) for run in runs))

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

    async def submit(self, job: JobSpec, *, deadline: float) -> ActResult:
        """Queues a job; what can never run is refused."""
        if self.out_of_reach:
            return self._not_there("cluster")
        if refusal := self.scheduler.refusal(job):
            return ActResult(outcome=Outcome.REFUSED, detail=refusal)
        return ActResult(outcome=Outcome.DONE, reference=str(self.scheduler.submit(job).job_id))

    async def hold(self, job_id: int, *, deadline: float) -> ActResult:
        """Keeps a waiting job from starting."""
        return self._steer(job_id, {JobState.PENDING}, lambda run: setattr(run, "held", True))

    async def release(self, job_id: int, *, deadline: float) -> ActResult:
        """Lets a held job start."""
        return self._steer(job_id, {JobState.PENDING}, lambda run: setattr(run, "held", False))

    async def signal(self, job_id: int, name: str, *, deadline: float) -> ActResult:
        """Accepted for a job that runs; nothing listens."""
        return self._steer(job_id, HOLDING, lambda run: None)

    async def cancel(self, job_id: int, *, deadline: float) -> ActResult:
        """Ends a job."""
        run = self.scheduler.current(job_id)
        if self.out_of_reach or run is None:
            return self._not_there(f"job {job_id}")
        if run.ended_at is not None:
            return ActResult(outcome=Outcome.UNCHANGED, detail="over already")
        self.scheduler.end(run, JobState.CANCELLED)
        return ActResult(outcome=Outcome.DONE)

    async def requeue(self, job_id: int, *, deadline: float) -> ActResult:
        """Ends the run and lets the job wait again."""
        return self._steer(job_id, HOLDING, lambda run: self.scheduler.again(run, JobState.REQUEUED))

    async def suspend(self, job_id: int, *, deadline: float) -> ActResult:
        """Stops a job, which keeps its cards."""
        return self._steer(job_id, {JobState.RUNNING}, self.scheduler.suspend)

    async def resume(self, job_id: int, *, deadline: float) -> ActResult:
        """Lets a suspended job go on."""
        return self._steer(job_id, {JobState.SUSPENDED}, self.scheduler.resume)

    async def read_tenants(self, *, deadline: float) -> TenantsReading:
        """All accounts and qualities of service."""
        asked = self._asked("tenants")
        if not asked["complete"]:
            return TenantsReading(**asked)
        return TenantsReading(**asked, tenants=tuple(self._accounts.values()), qos=tuple(self._qos.values()))

    async def ensure_account(self, account: AccountSpec, *, deadline: float) -> ActResult:
        """Makes or sets an account; users and qos that are there stay."""
        if self.out_of_reach:
            return self._not_there("cluster")
        known = self._accounts.get(account.name)
        wanted = TenantReading(
            account=account.name,
            parent=known.parent if known else account.parent,
            users=tuple(sorted({*account.users, *(known.users if known else ())})),
            qos=tuple(sorted({*account.qos, *(known.qos if known else ())})),
            cards=account.cards,
            card_seconds=account.card_seconds,
        )
        self._accounts[account.name] = wanted
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

    def _steer(self, job_id: int, states: Collection[JobState], act: Callable[[FakeRun], None]) -> ActResult:
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
