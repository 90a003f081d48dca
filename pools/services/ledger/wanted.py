"""The entries that a job should have, matched with those that it has."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from pools.models import AllocationSource, Request
from pools.rules.mapping import OwnerBook
from pools.rules.spans import Stretch, stretches
from pools.services.ledger.entries import Entry
from pools.services.ledger.seen import SeenJob, Thing


@dataclass(frozen=True, slots=True)
class Terms:
    """What a job's entries say beside who, where and when: whose it is and by which promise."""

    request: UUID | None = None
    attempt: int = 0
    pool: UUID | None = None
    spec: UUID | None = None
    priority: UUID | None = None
    tenant: UUID | None = None
    project: UUID | None = None
    source: str = AllocationSource.OBSERVED.value
    cards_per_unit: int = 1
    ends_at: datetime | None = None


def terms_of(request: Request) -> Terms:
    """The terms of a request's present attempt; `project`, `spec` and `priority` are loaded."""
    return Terms(
        request.pk, request.attempt, request.pool_id, request.spec_id, request.priority_id, request.project.tenant_id,
        request.project_id, AllocationSource.MANAGED.value, request.spec.cards, request.ends_at,
    )  # fmt: skip


class Matcher:
    """Makes a job's entries; those on record keep their rows, and planned ones of its request become seen."""

    def __init__(self, recorded: Sequence[Entry], planned: Sequence[Entry], book: OwnerBook) -> None:
        self._recorded: dict[UUID, list[Entry]] = defaultdict(list)
        for entry in recorded:
            assert entry.job is not None
            self._recorded[entry.job].append(entry)
        self._planned: dict[UUID, list[Entry]] = defaultdict(list)
        for entry in planned:
            assert entry.request is not None
            self._planned[entry.request].append(entry)
        self._book = book

    def planned_of(self, request: UUID) -> list[Entry]:
        """What of its plan no job has taken yet."""
        return self._planned.get(request, [])

    def entries(
        self, job: SeenJob, terms: Terms | None, pools: Mapping[UUID, UUID]
    ) -> tuple[list[Entry], list[Entry]]:  # fmt: skip
        """What should stand in the ledger for a job, and which rows of it should not any more.

        `terms` of a managed job; None for one that somebody else started. Rows that are new have no id.
        """
        recorded = self._recorded.get(job.id, [])
        known: dict[tuple[UUID, UUID | None], list[Entry]] = defaultdict(list)
        for entry in recorded:
            known[entry.card, entry.slice].append(entry)
        pauses = sorted({(entry.start, entry.end) for entry in recorded if entry.suspended}, key=lambda one: one[0])
        spans = stretches(job.run, pauses)
        wanted: list[Entry] = []
        for number, thing in enumerate(self._things(job, terms, recorded)):
            rows = known.pop((thing.card, thing.slice), [])
            for place, span in enumerate(spans):
                old = rows[place] if place < len(rows) else None
                if old is None and place == 0 and terms is not None:
                    old = self._promised(terms, thing)
                wanted.append(self._entry(job, terms, thing, span, number, old, pools))
            known[thing.card, thing.slice] = rows[len(spans) :]
        return wanted, [entry for rows in known.values() for entry in rows]

    def _things(self, job: SeenJob, terms: Terms | None, recorded: Sequence[Entry]) -> Sequence[Thing]:
        """What it holds as seen; of a launched job whose cards nobody tells, as they were planned."""
        if not job.unknown:
            return job.things
        if terms is None or terms.request is None:
            return []
        own = list({(one.card, one.slice): one for one in recorded}.values())
        own += self._planned.get(terms.request, [])[: max(job.cards - len(own), 0)]
        return [Thing(one.card, one.slice, one.node, (one.low, one.high)) for one in own]

    def _promised(self, terms: Terms, thing: Thing) -> Entry | None:
        """The row of the plan that this is: of the same card, else of another one of the node."""
        if terms.request is None:
            return None
        own = self._planned.get(terms.request, [])
        best = min(own, key=lambda one: (one.card != thing.card, one.node != thing.node), default=None)
        if best is None or best.node != thing.node:
            return None
        own.remove(best)
        return best

    def _entry(
        self, job: SeenJob, terms: Terms | None, thing: Thing, span: Stretch, number: int, old: Entry | None,
        pools: Mapping[UUID, UUID],
    ) -> Entry:  # fmt: skip
        terms = terms or self._observed(job, old, ended=span.end is not None, pool=pools.get(thing.card))
        unit = number // terms.cards_per_unit if old is None else old.unit
        return Entry(
            old.id if old is not None else None, thing.card, thing.node, thing.slice, *thing.share, span.start,
            span.end, terms.ends_at or _limit(job), terms.request, job.id, terms.attempt, unit, terms.pool, terms.spec,
            terms.priority, terms.tenant, terms.project, terms.source, span.suspended, span.outcome,
        )  # fmt: skip

    def _observed(self, job: SeenJob, old: Entry | None, *, ended: bool, pool: UUID | None) -> Terms:
        """By the rules. What is over keeps its tenant and everything keeps its pool; the unassigned gets one."""
        if old is not None:
            kept = Terms(
                old.request, old.attempt, old.pool, old.spec, old.priority, old.tenant, old.project, old.source,
                ends_at=old.ends_at if old.request is not None else None,
            )  # fmt: skip
            if old.tenant is not None and (ended or old.request is not None):
                return kept
        else:
            kept = Terms(pool=pool)
        owner = job.owner(self._book)
        return replace(kept, tenant=owner and owner.tenant, project=owner and owner.project)  # type: ignore[arg-type]


def _limit(job: SeenJob) -> datetime | None:
    """When its time limit ends it."""
    if job.time_limit is None or job.run.started_at is None:
        return None
    try:
        return job.run.started_at.replace(microsecond=0) + timedelta(seconds=job.time_limit)
    except OverflowError:
        return None
