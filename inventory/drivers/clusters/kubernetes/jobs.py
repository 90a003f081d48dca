"""What is to be known of Jobs: for the pods that they make, and of those that have none yet. Pure."""

from collections.abc import Mapping

from inventory.drivers.clusters.kubernetes import wire
from inventory.drivers.clusters.kubernetes.accelerators import asked_of
from inventory.drivers.clusters.kubernetes.names import KUEUE_QUEUE, MARK, USER, VOLCANO_QUEUE
from inventory.drivers.clusters.kubernetes.owners import Owners, Step, address_of, workload_of
from inventory.drivers.clusters.readings import JobReading, JobState

_ENDED = frozenset({"Complete", "Failed"})
_ENDING = frozenset({"SuccessCriteriaMet", "FailureTarget"})
_MISSED = "DeadlineExceeded"


def is_over(job: wire.Job) -> bool:
    """Whether the Job has ended, well or not."""
    return any(one.type in _ENDED and one.status == "True" for one in job.status.conditions)


def missed_deadline(job: wire.Job) -> bool:
    """Whether its time limit ended it, or is about to."""
    return any(
        one.type in ("Failed", "FailureTarget") and one.status == "True" and one.reason == _MISSED
        for one in job.status.conditions
    )


def killed_state(job: wire.Job | None) -> JobState:
    """Why a pod of this Job was removed before its end; None is a Job that is gone itself.

    A Job that goes on makes another pod: the run was requeued, whoever removed the pod.
    """
    if job is None:
        return JobState.CANCELLED
    if missed_deadline(job):
        return JobState.TIMEOUT
    if job.metadata.deletion_timestamp is not None or is_over(job):
        return JobState.CANCELLED
    return JobState.REQUEUED


def queue_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """The queue of Kueue or Volcano that something waits in, "" for none."""
    return labels.get(KUEUE_QUEUE) or annotations.get(VOLCANO_QUEUE) or labels.get(VOLCANO_QUEUE, "")


def waits(job: wire.Job) -> bool:
    """Whether the Job is to run and has no pod. One that is about to be over doesn't."""
    if is_over(job) or job.status.active or job.metadata.deletion_timestamp is not None:
        return False
    if any(one.type in _ENDING and one.status == "True" for one in job.status.conditions):
        return False
    uncounted = job.status.uncounted_terminated_pods
    succeeded = job.status.succeeded + len((uncounted.succeeded if uncounted else None) or ())
    return job.spec.completions is None or succeeded < job.spec.completions


def reading_of_waiting(job: wire.Job, owners: Owners, cluster: str) -> JobReading:
    """A Job without pods, told under its own UID until it has some."""
    meta, spec = job.metadata, job.spec
    chain = [Step("Job", meta.name), *owners.chain(meta)]
    asked = asked_of(spec.template.spec.containers, spec.template.spec.init_containers)
    count = spec.parallelism if spec.parallelism is not None else 1
    indexed = spec.completion_mode == "Indexed"
    address = str(address_of(meta.namespace, meta.name, chain))
    reason = next((f"{one.reason}: {one.message}" for one in job.status.conditions if one.type == "Suspended"), "")
    return JobReading(
        key=meta.uid,
        job_id=address,
        workload=workload_of(meta.name, chain),
        cluster=cluster,
        name=meta.name,
        user=meta.annotations.get(USER, "")[:200],
        account=meta.namespace,
        qos=spec.template.spec.priority_class_name[:200],
        queue=queue_of(meta.labels, meta.annotations)[:200],
        state=JobState.PENDING,
        raw_state="Suspended" if spec.suspend else "NoPods",
        reason=reason[:2000] if spec.suspend else "",
        array_id=address if indexed else "",
        array_tasks=f"0-{max(0, (spec.completions or count) - 1)}" if indexed else "",
        submitted_at=meta.creation_timestamp,
        time_limit=spec.active_deadline_seconds,
        cards_requested=sum(asked.values()) * count,
        comment=meta.annotations.get(MARK, "")[:2000],
        held=spec.suspend,
        priority=spec.template.spec.priority,
    )
