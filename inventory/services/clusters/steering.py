"""What operators do to a run: cancel, hold, release, requeue, signal, suspend, resume; each with a reason."""

import asyncio
from enum import StrEnum

from django.utils import timezone

from inventory.drivers.clusters.capabilities import ActResult, ClusterDriver, Outcome
from inventory.models import ClusterConnection, Job, JournalKind
from inventory.services.clusters import opening
from inventory.services.clusters.opening import Access, access_of
from inventory.services.journal import Note, write_entries
from inventory.services.rounds import run_once
from inventory.signals import jobs_changed
from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, InvalidInput, NotFound

SIGNALS = ("HUP", "INT", "QUIT", "USR1", "USR2", "TERM", "CONT", "STOP", "KILL")
_DEADLINE = 20.0


class Verb(StrEnum):
    """What can be done to a run that is not over."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"
    REQUEUE = "requeue"
    SIGNAL = "signal"
    SUSPEND = "suspend"
    RESUME = "resume"


_DONE = {
    Verb.CANCEL: "cancelled", Verb.HOLD: "held", Verb.RELEASE: "released", Verb.REQUEUE: "requeued",
    Verb.SIGNAL: "signalled", Verb.SUSPEND: "suspended", Verb.RESUME: "resumed",
}  # fmt: skip


def act(*, job: Job, verb: Verb, reason: str, actor: User, signal: str = "") -> ActResult:
    """Does it in the scheduler and writes the journal, whatever came of it. The next sync shows the result.

    Raises InvalidInput without a reason or for an unknown signal, Conflict for a run that is over or when
    the scheduler refuses or is out of reach, NotFound when it no longer has the job.
    """
    reason = " ".join(reason.split())
    if not reason:
        raise InvalidInput("say why: the reason stands in the journal", field="reason")
    if verb is Verb.SIGNAL and signal not in SIGNALS:
        raise InvalidInput(f"signal is one of {', '.join(SIGNALS)}", field="signal")
    connection = ClusterConnection.objects.filter(cluster=job.cluster_id).select_related("cluster").first()
    if connection is None:
        raise Conflict("this cluster has no connection to its scheduler")
    if not job.open:
        raise Conflict(f"job {job.job_id} is over ({job.state.replace('_', ' ')})")
    result = run_once(_act(access_of(connection), job.job_id, verb, signal))
    _tell(connection, job, verb, reason, signal, result, actor)
    ClusterConnection.objects.filter(pk=connection.pk, enabled=True).update(due_at=timezone.now())
    jobs_changed.send(sender=None, cluster=job.cluster_id)
    if result.ok:
        return result
    detail = result.detail or str(result.outcome).replace("_", " ")
    if result.outcome is Outcome.NOT_FOUND:
        raise NotFound(f"the scheduler no longer has job {job.job_id}: {detail}")
    raise Conflict(f"job {job.job_id} was not {_DONE[verb]}: {detail}", outcome=str(result.outcome))


async def _act(access: Access, job_id: str, verb: Verb, signal: str) -> ActResult:
    driver = opening.open_driver(access)
    try:
        async with asyncio.timeout(_DEADLINE + 5):
            return await _do(driver, job_id, verb, signal)
    except TimeoutError:
        return ActResult(outcome=Outcome.UNKNOWN, detail="the scheduler did not answer in time; look before repeating")
    finally:
        await driver.close()


async def _do(driver: ClusterDriver, job_id: str, verb: Verb, signal: str) -> ActResult:
    match verb:
        case Verb.CANCEL:
            return await driver.cancel(job_id, deadline=_DEADLINE)
        case Verb.HOLD:
            return await driver.hold(job_id, deadline=_DEADLINE)
        case Verb.RELEASE:
            return await driver.release(job_id, deadline=_DEADLINE)
        case Verb.REQUEUE:
            return await driver.requeue(job_id, deadline=_DEADLINE)
        case Verb.SIGNAL:
            return await driver.signal(job_id, signal, deadline=_DEADLINE)
        case Verb.SUSPEND:
            return await driver.suspend(job_id, deadline=_DEADLINE)
        case Verb.RESUME:
            return await driver.resume(job_id, deadline=_DEADLINE)


def _tell(
    connection: ClusterConnection, job: Job, verb: Verb, reason: str, signal: str, result: ActResult, actor: User
) -> None:
    what = f"Job {job.job_id} of cluster {connection.cluster.name}"
    how = f" ({signal})" if signal else ""
    if result.ok:
        text = f"{what} was {_DONE[verb]}{how}: {reason}."
    else:
        text = f"{what} was to be {_DONE[verb]}{how} ({reason}), which failed: {result.detail or result.outcome}."
    detail = {
        "job": str(job.pk), "job_id": job.job_id, "verb": str(verb), "reason": reason, "outcome": str(result.outcome),
    }  # fmt: skip
    note = Note(JournalKind.JOB_ACT, text, timezone.now(), None, None, "user", detail, connection.cluster_id)
    write_entries(notes=[note], actor=actor)
