"""A pod as a run of a job: its state, times, end, and what it holds. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from inventory.drivers.clusters.kubernetes import wire
from inventory.drivers.clusters.kubernetes.accelerators import asked_of, offer_of
from inventory.drivers.clusters.kubernetes.bindings import bindings_of
from inventory.drivers.clusters.kubernetes.jobs import killed_state, queue_of
from inventory.drivers.clusters.kubernetes.names import INDEX, MARK, POD_INDEX, USER
from inventory.drivers.clusters.kubernetes.owners import Owners, Step, address_of, workload_of
from inventory.drivers.clusters.kubernetes.quantities import whole
from inventory.drivers.clusters.readings import ENDED, HOLDING, CardBinding, CardKind, JobReading, JobState

_PUSHED = {
    "PreemptionByScheduler": JobState.PREEMPTED,
    "TerminationByKubelet": JobState.PREEMPTED,  # the node ran out of something, or is being shut down
    "DeletionByTaintManager": JobState.NODE_FAIL,
    "DeletionByPodGC": JobState.NODE_FAIL,
}
_EVICTED = "EvictionByEvictionAPI"


@dataclass(slots=True)
class Surroundings:
    """What a pod's reading needs beside the pod."""

    cluster: str = ""
    owners: Owners = field(default_factory=Owners)
    jobs: dict[str, wire.Job] = field(default_factory=dict)  # by UID
    labels: dict[str, Mapping[str, str]] = field(default_factory=dict)  # of nodes
    claims: Mapping[tuple[str, str], tuple[CardBinding, ...]] = field(default_factory=dict)

    def job_of(self, pod: wire.Meta) -> wire.Job | None:
        """The Job that made the pod, None for none or an unknown one."""
        owner = pod.controller()
        return self.jobs.get(owner.uid) if owner is not None else None


def condition(pod: wire.Pod, name: str) -> wire.Condition | None:
    """One of the pod's conditions."""
    return next((one for one in pod.status.conditions if one.type == name), None)


def scheduled_at(pod: wire.Pod) -> datetime | None:
    """When the pod got its node, and with it its cards."""
    if not pod.spec.node_name:
        return None
    told = condition(pod, "PodScheduled")
    at = told.last_transition_time if told is not None and told.status == "True" else None
    return at or pod.status.start_time or pod.metadata.creation_timestamp


def _terminated(pod: wire.Pod) -> list[wire.Terminated]:
    states = [status.state for status in pod.status.container_statuses]
    return [state.terminated for state in states if state is not None and state.terminated is not None]


def ended_at(pod: wire.Pod) -> datetime | None:
    """When the last of its containers ended, else when it was seen to be over."""
    finished = [one.finished_at for one in _terminated(pod) if one.finished_at is not None]
    if finished:
        return max(finished)
    changed = [one.last_transition_time for one in pod.status.conditions if one.last_transition_time is not None]
    return max(changed, default=pod.status.start_time or pod.metadata.creation_timestamp)


def was_killed(pod: wire.Pod) -> bool:
    """Whether the pod was removed before its end: it ended no earlier than its removal was asked for."""
    deleted = pod.metadata.deletion_timestamp
    if deleted is None:
        return False
    asked = deleted - timedelta(seconds=pod.metadata.deletion_grace_period_seconds or 0)
    finished = [one.finished_at for one in _terminated(pod) if one.finished_at is not None]
    return not finished or max(finished) >= asked


def state_of(pod: wire.Pod, job: wire.Job | None) -> JobState:
    """One of our states. A pod holds its cards from when it has a node until its containers ended."""
    phase = pod.status.phase
    if phase in ("Succeeded", "Failed"):
        disrupted = _disruption(pod)
        if was_killed(pod) or (phase == "Failed" and disrupted is not None):
            return disrupted or _removed(pod, job)
        if phase == "Succeeded":
            return JobState.COMPLETED
        if pod.status.reason == "DeadlineExceeded":
            return JobState.TIMEOUT
        if any(one.reason == "OOMKilled" for one in _terminated(pod)):
            return JobState.OUT_OF_MEMORY
        return JobState.FAILED
    if phase not in ("Pending", "Running"):
        return JobState.UNKNOWN
    if pod.metadata.deletion_timestamp is not None:
        return JobState.COMPLETING if pod.spec.node_name else JobState.CANCELLED
    return JobState.RUNNING if pod.spec.node_name else JobState.PENDING


def state_when_gone(pod: wire.Pod, job: wire.Job | None) -> JobState:
    """How the run of a pod that exists no more ended, by the pod as it was last."""
    if pod.status.phase in ("Succeeded", "Failed"):
        return state_of(pod, job)
    return _disruption(pod) or _removed(pod, job)


def _disruption(pod: wire.Pod) -> JobState | None:
    told = condition(pod, "DisruptionTarget")
    if told is None or told.status != "True":
        return None
    if told.reason == _EVICTED:
        return JobState.REQUEUED if pod.metadata.controller() is not None else JobState.CANCELLED
    return _PUSHED.get(told.reason)


def _removed(pod: wire.Pod, job: wire.Job | None) -> JobState:
    owner = pod.metadata.controller()
    return killed_state(job) if owner is not None and owner.kind == "Job" else JobState.CANCELLED


def reading_of_pod(pod: wire.Pod, around: Surroundings, state: JobState | None = None) -> JobReading:
    """One run. `state` is given for a pod that is gone."""
    meta, spec = pod.metadata, pod.spec
    job = around.job_of(meta)
    state = state or state_of(pod, job)
    asked = asked_of(spec.containers, spec.init_containers)
    labels = around.labels.get(spec.node_name, {})
    claimed = around.claims.get((meta.namespace, meta.name), ())
    chain = around.owners.chain(meta)
    address = str(address_of(meta.namespace, meta.name, chain))
    bindings, known = bindings_of(pod, asked, labels, claimed) if state in HOLDING else ((), True)
    if spec.resource_claims and not claimed and state in HOLDING:
        known = False
    code, signal = _exit(pod) if state in ENDED else (None, None)
    limit = spec.active_deadline_seconds
    return JobReading(
        key=meta.uid,
        job_id=address,
        workload=workload_of(meta.name, chain),
        cluster=around.cluster,
        name=meta.name,
        user=meta.annotations.get(USER, "")[:200],
        account=meta.namespace,
        qos=spec.priority_class_name[:200],
        queue=_queue(meta, job)[:200],
        state=state,
        raw_state=_raw_state(pod)[:200],
        reason=_reason(pod)[:2000],
        exit_code=code,
        exit_signal=signal,
        submitted_at=meta.creation_timestamp,
        eligible_at=meta.creation_timestamp,
        started_at=scheduled_at(pod),
        ended_at=ended_at(pod) if state in ENDED else None,
        time_limit=limit if limit is not None else (job.spec.active_deadline_seconds if job else None),
        nodes=(spec.node_name,) if spec.node_name else (),
        comment=meta.annotations.get(MARK, "")[:2000],
        bindings=bindings,
        cards_known=known,
        priority=spec.priority,
        held=state is JobState.PENDING and bool(spec.scheduling_gates),
        restarts=sum(status.restart_count for status in pod.status.container_statuses),
        **_place(meta, chain, address),
        **_counts(asked, labels, claimed, holds=bool(spec.node_name)),
    )


def _place(meta: wire.Meta, chain: list[Step], address: str) -> dict[str, Any]:
    text = meta.labels.get(INDEX) or meta.annotations.get(INDEX) or meta.labels.get(POD_INDEX)
    index = whole(text)
    return {} if index is None or not chain else {"array_id": address, "array_task": index}


def _counts(
    asked: Mapping[str, int], labels: Mapping[str, str], claimed: tuple[CardBinding, ...], *, holds: bool
) -> dict[str, Any]:
    cards: dict[str, int] = {}
    shares = 0
    for resource, count in asked.items():
        offer = offer_of(resource, labels)
        if offer is None:
            continue
        if offer.kind in (CardKind.CARD, CardKind.MIG):
            cards[offer.type] = cards.get(offer.type, 0) + count
        else:
            shares += count
    for binding in claimed:
        cards[binding.type] = cards.get(binding.type, 0) + binding.count
    wanted = sum(cards.values())
    if not holds:
        return {"cards_requested": wanted}
    by_type = tuple(sorted((name, count) for name, count in cards.items() if count))
    return {"cards_requested": wanted, "cards": wanted, "cards_by_type": by_type, "shares": shares}


def _queue(meta: wire.Meta, job: wire.Job | None) -> str:
    own = queue_of(meta.labels, meta.annotations)
    return own or (queue_of(job.metadata.labels, job.metadata.annotations) if job is not None else "")


def _exit(pod: wire.Pod) -> tuple[int | None, int | None]:
    """Exit code and signal of the container that failed first, 0 where none did."""
    ended = [one for one in _terminated(pod) if one.exit_code is not None]
    failed = sorted((one for one in ended if one.exit_code), key=lambda one: str(one.finished_at))
    if failed:
        return failed[0].exit_code, failed[0].signal or None
    return (0, None) if ended else (None, None)


def _raw_state(pod: wire.Pod) -> str:
    return f"{pod.status.phase}+Terminating" if pod.metadata.deletion_timestamp is not None else pod.status.phase


def _reason(pod: wire.Pod) -> str:
    if pod.status.reason or pod.status.message:
        return f"{pod.status.reason}: {pod.status.message}".strip(": ")
    told = condition(pod, "DisruptionTarget")
    if told is not None and told.status == "True":
        return f"{told.reason}: {told.message}".strip(": ")
    scheduled = condition(pod, "PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        return f"{scheduled.reason}: {scheduled.message}".strip(": ")
    if pod.spec.scheduling_gates:
        return f"SchedulingGated: {', '.join(gate.name for gate in pod.spec.scheduling_gates)}"
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if status.state is not None and status.state.waiting is not None and status.state.waiting.reason:
            return f"{status.state.waiting.reason}: {status.state.waiting.message}".strip(": ")
        if status.state is not None and status.state.terminated is not None and status.state.terminated.exit_code:
            return f"{status.state.terminated.reason}: {status.state.terminated.message}".strip(": ")
    return ""
