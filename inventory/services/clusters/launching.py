"""Work that Sensaka itself starts in a cluster: submit, find again by its mark, signal, end, give more time.

All errands of one cluster go over one driver, several at a time. Nothing here writes to the database:
whoever sends errands stores what came of them.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from inventory.drivers.clusters.capabilities import ActResult, ClusterDriver, JobSpec, Outcome
from inventory.drivers.clusters.readings import CardKind, JobReading
from inventory.models import ClusterConnection
from inventory.services.clusters import opening
from inventory.services.clusters.opening import Access, access_of
from inventory.services.rounds import run_once
from sensaka.kernel.errors import InvalidInput

log = logging.getLogger(__name__)

Order = JobSpec
"""Work to start, as an adapter takes it."""

AT_ONCE = 8  # errands under way in one cluster
DEADLINE = 20.0  # s, of each

__all__ = ["Answer", "CardKind", "Errand", "Order", "Outcome", "Verb", "carry_out"]


class Verb(StrEnum):
    """What an errand is about."""

    SUBMIT = "submit"
    SIGNAL = "signal"
    END = "end"
    EXTEND = "extend"


@dataclass(frozen=True, slots=True)
class Errand:
    """One thing to do. `reference` is the job's id in its scheduler; where that is "", the job is looked for by `mark`.

    Of a SUBMIT `look_first` says that it may have been sent before.
    """

    key: UUID
    verb: Verb
    mark: str
    reference: str = ""
    order: Order | None = None
    look_first: bool = False
    signal: str = "TERM"
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of an errand. UNKNOWN: it may have happened, look before trying again."""

    outcome: Outcome
    detail: str = ""
    reference: str = ""

    @property
    def ok(self) -> bool:
        """Whether what was asked for is so now."""
        return self.outcome in (Outcome.DONE, Outcome.UNCHANGED)


def carry_out(cluster: UUID, errands: Sequence[Errand]) -> dict[UUID, Answer]:
    """Does them, and says what became of each. Never raises for what a cluster does."""
    connection = ClusterConnection.objects.filter(cluster=cluster, enabled=True).first()
    if connection is None:
        return {one.key: Answer(Outcome.FAILED, "the cluster has no connection in use") for one in errands}
    return run_once(_carry_out(access_of(connection), errands))


async def _carry_out(access: Access, errands: Sequence[Errand]) -> dict[UUID, Answer]:
    try:
        driver = opening.open_driver(access)
    except InvalidInput as error:
        return {one.key: Answer(Outcome.FAILED, str(error)) for one in errands}
    try:
        found = await _found(driver, errands)
        slots = asyncio.Semaphore(AT_ONCE)

        async def one_of(errand: Errand) -> Answer:
            async with slots:
                return await _one(driver, errand, found)

        answers = await asyncio.gather(*(one_of(errand) for errand in errands))
        return {errand.key: answer for errand, answer in zip(errands, answers, strict=True)}
    finally:
        await driver.close()


async def _found(driver: ClusterDriver, errands: Sequence[Errand]) -> dict[str, JobReading] | None:
    """The jobs with the marks that must be looked for; None when they could not be read."""
    wanted = {one.mark for one in errands if one.look_first or (not one.reference and one.verb is not Verb.SUBMIT)}
    if not wanted:
        return {}
    reading = await driver.read_jobs(deadline=DEADLINE)
    if not reading.complete:
        return None
    return {job.comment: job for job in reading.jobs if job.comment in wanted}


async def _one(driver: ClusterDriver, errand: Errand, found: dict[str, JobReading] | None) -> Answer:
    reference = errand.reference
    if not reference and (errand.look_first or errand.verb is not Verb.SUBMIT):
        if found is None:
            return Answer(Outcome.UNKNOWN, "the jobs of the cluster could not be read")
        if (job := found.get(errand.mark)) is not None:
            reference = job.job_id
            if errand.verb is Verb.SUBMIT:
                return Answer(Outcome.UNCHANGED, "it was found by its mark", reference)
        elif errand.verb is not Verb.SUBMIT:
            return Answer(Outcome.NOT_FOUND, "the cluster has no job with this mark")
    try:
        async with asyncio.timeout(DEADLINE + 5):
            result = await _act(driver, errand, reference)
    except TimeoutError:
        return Answer(Outcome.UNKNOWN, "the scheduler did not answer in time", reference)
    except Exception:
        log.exception("%s of %s failed inside the driver", errand.verb, errand.key)
        return Answer(Outcome.UNKNOWN, "the driver broke off; see the log", reference)
    return Answer(result.outcome, result.detail, result.reference or reference)


async def _act(driver: ClusterDriver, errand: Errand, reference: str) -> ActResult:
    match errand.verb:
        case Verb.SUBMIT:
            assert errand.order is not None, "a submission has its order"
            return await driver.submit(errand.order, deadline=DEADLINE)
        case Verb.SIGNAL:
            return await driver.signal(reference, errand.signal, deadline=DEADLINE)
        case Verb.END:
            return await driver.cancel(reference, deadline=DEADLINE)
        case Verb.EXTEND:
            return await driver.set_time_limit(reference, errand.seconds, deadline=DEADLINE)
