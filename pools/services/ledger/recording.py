"""Pulling jobs from the inventory by watermark, and writing who held which cards from when to when.

A change of a job may be committed a little later than its time says, so that each pass looks back by
`OVERLAP`; what it reads again gives what stands there already.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from pools.models import Allocation, LedgerMark, Request
from pools.rules.claims import Claim, settle
from pools.rules.mapping import OwnerBook
from pools.rules.marks import PREFIX
from pools.selectors.membership import places
from pools.services.ledger import clashes, entries
from pools.services.ledger.entries import Entry
from pools.services.ledger.following import moves_of
from pools.services.ledger.seen import MARKED, SeenJob, add_things, changed_jobs, jobs_where, owner_book
from pools.services.ledger.wanted import Matcher, Terms, terms_of
from pools.services.moving import Move, move_all
from sensaka.platform.fields import new_ids

log = logging.getLogger(__name__)

AT_ONCE = 5000
OVERLAP = timedelta(seconds=60)
_CUT = "another job was seen on its card"
_OPEN_OR_UNASSIGNED = Q(span__upper_inf=True) | Q(tenant=None)


@dataclass(slots=True)
class Tally:
    """What a pass did: jobs read, entries opened, changed and taken out; jobs of unknown cards; clashes."""

    jobs: int = 0
    opened: int = 0
    changed: int = 0
    removed: int = 0
    unknown: int = 0
    clashes: int = 0
    moved: int = 0

    @property
    def written(self) -> int:
        """Whether anything differed."""
        return self.opened + self.changed + self.removed + self.moved


def record(*, at_once: int = AT_ONCE) -> Tally:
    """Brings the ledger up to date with the jobs. A fixed number of queries for each `at_once` of them."""
    tally = Tally()
    after: tuple[datetime, UUID] | None = None
    while True:
        with transaction.atomic():
            entries.take_turns()
            mark, _ = LedgerMark.objects.select_for_update().get_or_create(one=True)
            since = None if mark.jobs_until is None else mark.jobs_until - OVERLAP
            jobs = changed_jobs(since, after, at_once)
            book = owner_book()
            whole = len(jobs) < at_once
            if whole and mark.rules != book.digest:
                jobs = _with(jobs, _whose_rules_changed())
            _Batch(jobs, book, timezone.now(), tally).write()
            _advance(mark, jobs, book.digest if whole else mark.rules)
            entries.check_turn()
        if whole:
            return tally
        after = (jobs[-1].updated_at, jobs[-1].id)


def _with(jobs: list[SeenJob], more: Iterable[SeenJob]) -> list[SeenJob]:
    known = {job.id for job in jobs}
    return [*jobs, *(job for job in more if job.id not in known)]


def _whose_rules_changed() -> list[SeenJob]:
    """Jobs whose tenant may be another one by now: those that go on, and those that had none."""
    return jobs_where(Q(pk__in=Allocation.objects.filter(_OPEN_OR_UNASSIGNED, job__isnull=False).values("job")))


def _advance(mark: LedgerMark, jobs: Sequence[SeenJob], digest: str) -> None:
    latest = max((job.updated_at for job in jobs), default=mark.jobs_until)
    until = latest if mark.jobs_until is None else max(latest or mark.jobs_until, mark.jobs_until)
    if (until, digest) != (mark.jobs_until, mark.rules):
        mark.jobs_until, mark.rules = until, digest
        mark.save(update_fields=["jobs_until", "rules", "updated_at"])


class _Batch:
    """Some jobs and what they mean for the ledger, in one transaction that holds the lock."""

    def __init__(self, jobs: Sequence[SeenJob], book: OwnerBook, now: datetime, tally: Tally) -> None:
        self._now, self._tally, self._book = now, tally, book
        self._requests = self._requests_of(jobs)
        marks = {request.mark for request in self._requests.values()}
        self._jobs = _with(list(jobs), jobs_where(MARKED & Q(comment__in=marks)) if marks else ())
        tally.jobs += len(self._jobs)

    def _requests_of(self, jobs: Sequence[SeenJob]) -> dict[str, Request]:
        marks = {job.comment for job in jobs if job.comment.startswith(PREFIX)}
        if not marks:
            return {}
        rows = Request.objects.filter(mark__in=marks).select_related("project", "spec", "priority")
        return {row.mark: row for row in rows}

    def _request(self, job: SeenJob) -> Request | None:
        """The request that launched a job; a copied mark does not make somebody else's job its own."""
        request = self._requests.get(job.comment)
        return request if request is not None and request.job_reference in ("", job.job_id) else None

    def write(self) -> None:
        """Writes entries, then what follows for requests."""
        if not self._jobs:
            return
        add_things([job for job in self._jobs if job.run.started_at is not None])
        own = Q(job__in=[job.id for job in self._jobs])
        if self._requests:
            own |= Q(request__in=[request.pk for request in self._requests.values()], job=None)
        recorded = entries.stored(own)
        before = {entry.id: replace(entry) for entry in recorded}
        matcher = Matcher(
            [entry for entry in recorded if entry.job is not None], [entry for entry in recorded if entry.planned],
            self._book,
        )  # fmt: skip
        pools = {card: place.pool for card, place in places().items()}
        wanted, surplus = self._wanted(matcher, pools)
        moves = [move for mark, request in self._requests.items() for move in self._followed(mark, request)]
        surplus += self._unused(matcher, moves)
        if any(entry != before.get(entry.id) for entry in wanted):
            wanted = self._settled(wanted, {entry.id for entry in surplus}, before, pools)
        self._store(wanted, surplus, before)
        self._tally.moved += len(move_all(moves, now=self._now))

    def _wanted(self, matcher: Matcher, pools: dict[UUID, UUID]) -> tuple[list[Entry], list[Entry]]:
        wanted: list[Entry] = []
        surplus: list[Entry] = []
        for job in self._jobs:
            request = self._request(job)
            terms = None if request is None else self._terms(request, job)
            new, old = matcher.entries(job, terms, pools)
            wanted += new
            surplus += old
            self._tally.unknown += bool(job.unknown and job.run.started_at and job.run.open and not new)
        fresh = [entry for entry in wanted if entry.id is None]
        for entry, key in zip(fresh, new_ids(len(fresh)), strict=True):
            entry.id = key
        return wanted, surplus

    def _terms(self, request: Request, job: SeenJob) -> Terms:
        terms = terms_of(request)
        if terms.ends_at is None and job.run.started_at is not None:
            ends = job.run.started_at.replace(microsecond=0) + timedelta(seconds=request.time_limit)
            return replace(terms, ends_at=ends)
        return terms

    def _settled(
        self, wanted: list[Entry], going: set[UUID | None], before: dict[UUID | None, Entry], pools: dict[UUID, UUID]
    ) -> list[Entry]:
        """With no two on the same part of a card: entries of others that had to change are added.

        `going` are rows that are taken out anyway.
        """
        cards = {entry.card for entry in wanted}
        first = min(entry.start for entry in wanted)
        own = going | {entry.id for entry in wanted}
        overlapping = entries.stored(Q(card__in=cards, span__overlap=(first, None)))
        others = [entry for entry in overlapping if entry.id not in own]
        by_id = {entry.id: entry for entry in [*others, *wanted]}
        kept = {entry.id: replace(entry) for entry in others}
        claims = [
            Claim(entry.id, entry.card, entry.start, entry.end, str(entry.job or ""), entry.planned, entry.low,
                  entry.high)
            for entry in by_id.values()
        ]  # fmt: skip
        found = settle(claims)
        for claim in claims:
            entry = by_id[claim.id]  # type: ignore[index]
            entry.start, entry.end = claim.start, claim.end
            if claim.id in found.cut:
                entry.outcome = _CUT
        self._tally.clashes += len(found.cut) + len(found.void)
        void = [by_id[key] for key in found.void]  # type: ignore[index]
        entries.delete([entry for entry in void if entry.id in kept or entry.id in before])
        self._tally.removed += sum(entry.id in kept for entry in void)
        before.update((entry.id, kept[entry.id]) for entry in others)
        left = [entry for key, entry in by_id.items() if key not in found.void and key not in found.ousted]
        self._plan_again([by_id[key] for key in found.ousted], left, pools)  # type: ignore[index]
        return [entry for entry in left if entry.id not in kept or entry != kept[entry.id]]

    def _plan_again(self, ousted: Sequence[Entry], present: Sequence[Entry], pools: dict[UUID, UUID]) -> None:
        if not ousted:
            return
        held = {entry.card for entry in present if entry.end is None}
        again = clashes.plan_again(ousted, held=held, pools=pools, now=self._now)
        entries.delete(again.gone)
        entries.write(again.moved)
        move_all(again.moves, now=self._now)
        self._tally.clashes += len(ousted)
        self._tally.moved += len(again.moves)

    def _followed(self, mark: str, request: Request) -> list[Move]:
        runs = [job for job in self._jobs if job.comment == mark and self._request(job) is request]
        return moves_of(request, runs, self._now)

    def _unused(self, matcher: Matcher, moves: Sequence[Move]) -> list[Entry]:
        """Planned entries that no job will take any more, because the attempt is over."""
        over = {move.request for move in moves if move.target not in ("starting", "running")}
        return [entry for request in over for entry in matcher.planned_of(request)]

    def _store(self, wanted: Sequence[Entry], surplus: Sequence[Entry], before: dict[UUID | None, Entry]) -> None:
        changed = [entry for entry in wanted if entry != before.get(entry.id)]
        self._tally.opened += sum(entry.id not in before for entry in changed)
        self._tally.changed += sum(entry.id in before for entry in changed)
        self._tally.removed += len(surplus)
        entries.delete(surplus)
        entries.write(changed)
        if self._tally.clashes:
            log.info("%d clashes between jobs on the same cards", self._tally.clashes)
