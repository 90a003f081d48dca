"""What is held and whether it is used: the evidence on all work that holds cards of some pools, by its own samples.

Cards are told of by their own activity, a slice by the slice's: a sibling that is busy makes no slice busy.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q

from inventory.models import ProcessBinding
from inventory.selectors.samples import current_samples
from inventory.selectors.use import Span, last_busy, use_over
from pools.models import OPEN_IDLE, IdleCase, IdleExemption, IdlePolicy, Pool
from pools.rules.reclaim import Action, Seen, State, Verdict, judge, period, resident
from pools.rules.reclaim import IdlePolicy as Policy
from pools.selectors.held import open_at


@dataclass(frozen=True, slots=True)
class Unit:
    """A card, or a slice of one, that is held through one row of the ledger."""

    allocation: UUID
    card: UUID
    slice: UUID | None
    node: UUID
    series: int
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Work:
    """All that a request, a job, or a row of the ledger without either holds: it is idle, and goes, as a whole."""

    key: tuple[str, UUID]
    pool: UUID
    units: tuple[Unit, ...]
    name: str
    owner: str
    tenant: str
    project: UUID | None
    spec: UUID | None
    cluster: UUID | None
    suspended: bool
    ending: bool

    @property
    def lead(self) -> Unit:
        """The unit by which the work is known."""
        return self.units[0]

    @property
    def started_at(self) -> int:
        """When all that it holds was held, in epoch seconds."""
        return max(int(unit.started_at.timestamp()) for unit in self.units)

    def of(self, kind: str) -> UUID | None:
        """The id of its request or job, None without."""
        return self.key[1] if self.key[0] == kind else None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the samples say of a work: the verdict of the rule with what it rests on.

    `since` (epoch seconds) is from when on nothing is known but idleness, with the coverage that the pool asks
    for. `memory_held` (bytes) and `processes` are as of now, and looked up for idle work alone.
    """

    work: Work
    verdict: Verdict
    seen: tuple[Seen, ...] = ()
    since: int | None = None
    processes: int = 0

    @property
    def highest(self) -> float | None:
        """The highest activity (percent) of any of its cards in the period."""
        return max((one.highest for one in self.seen if one.highest is not None), default=None)


_FIELDS = (
    "id", "card", "slice", "node", "card__series", "slice__series", "span", "unit", "suspended", "pool", "spec",
    "project", "tenant__name", "node__cluster", "request", "request__name", "request__submitter__username",
    "request__end_asked_at", "request__signalled_at", "job", "job__job_id", "job__name", "job__user", "spec__name",
)  # fmt: skip


def works(now: datetime, pools: Collection[UUID]) -> list[Work]:
    """Everything that is held of these pools, by who holds it, in the order of the ledger. One query."""
    rows = open_at(now).filter(pool__in=list(pools)).order_by("unit", "id").values(*_FIELDS)
    groups: dict[tuple[str, UUID], list[dict[str, Any]]] = {}
    for row in rows:
        kind = "request" if row["request"] else "job" if row["job"] else "allocation"
        groups.setdefault((kind, row["id" if kind == "allocation" else kind]), []).append(row)
    return [_work(key, own) for key, own in groups.items()]


def _work(key: tuple[str, UUID], rows: Sequence[Mapping[str, Any]]) -> Work:
    first = rows[0]
    units = tuple(
        Unit(
            row["id"], row["card"], row["slice"], row["node"], row["slice__series"] or row["card__series"],
            row["span"].lower,
        )
        for row in rows
    )  # fmt: skip
    job = f"job {first['job__job_id']}" if first["job__job_id"] else ""
    return Work(
        key, first["pool"], units, name=first["request__name"] or job or first["spec__name"] or "what it holds",
        owner=first["request__submitter__username"] or first["job__user"] or "", tenant=first["tenant__name"] or "",
        project=first["project"], spec=first["spec"], cluster=first["node__cluster"],
        suspended=any(row["suspended"] for row in rows),
        ending=first["request__end_asked_at"] is not None or first["request__signalled_at"] is not None,
    )  # fmt: skip


def policy_of(pool: Pool) -> Policy:
    """A pool's rule about idle cards."""
    return Policy(Action(pool.idle_policy), pool.idle_after, pool.idle_grace, pool.idle_warning_gap, pool.idle_coverage)


def watched_pools() -> dict[UUID, Policy]:
    """The pools that do something about idle cards, and those where a case is open. One query."""
    open_cases = IdleCase.objects.filter(state__in=OPEN_IDLE).values("allocation__pool")
    rows = Pool.objects.filter(~Q(idle_policy=IdlePolicy.OFF) | Q(pk__in=open_cases))
    return {pool.pk: policy_of(pool) for pool in rows}


def evidence(policies: Mapping[UUID, Policy], *, now: datetime) -> list[Evidence]:
    """The evidence on everything that is held of these pools. A fixed number of queries for any number of cards."""
    held = works(now, policies)
    second = int(now.timestamp())
    spans: list[Span] = []
    looked_at: list[tuple[Work, int]] = []
    found: list[Evidence] = []
    for work in held:
        span = period(policies[work.pool], started_at=work.started_at, now=second)
        if span is None or work.suspended:
            found.append(Evidence(work, Verdict(State.TOO_EARLY)))
            continue
        looked_at.append((work, len(spans)))
        spans += [Span(unit.series, *span) for unit in work.units]
    uses = use_over(spans, until_busy=True)
    for work, place in looked_at:
        seen = tuple(
            Seen(unit.allocation, span.start, span.end, use.busy, use.idle, use.highest)
            for unit, span, use in zip(work.units, spans[place:], uses[place:], strict=False)
        )
        verdict = judge(policies[work.pool], seen, started_at=work.started_at, now=second)
        found.append(Evidence(work, verdict, seen))
    idle = [one for one in found if one.verdict.state is State.IDLE]
    more = {one.work.key: one for one in _with_memory(_with_since(idle, policies, second), now)}
    return [more.get(one.work.key, one) for one in found]


def _with_since(idle: Sequence[Evidence], policies: Mapping[UUID, Policy], now: int) -> list[Evidence]:
    """Since the end of the last busy time, where enough is known of what came after, else since the period's start."""
    begun = [Span(unit.series, one.work.started_at, now) for one in idle for unit in one.work.units]
    ends = iter(last_busy(begun))
    starts = [max(max(next(ends) or 0 for _ in one.work.units), one.work.started_at) for one in idle]
    after = [Span(unit.series, start, now) for one, start in zip(idle, starts, strict=True) for unit in one.work.units]
    uses = iter(use_over(after))
    found = []
    for one, start in zip(idle, starts, strict=True):
        coverage = min((next(uses).coverage or 0.0) for _ in one.work.units)
        known = coverage >= policies[one.work.pool].coverage
        found.append(replace(one, since=start if known else one.verdict.since))
    return found


@dataclass(slots=True)
class _Running:
    """Processes by card and by slice."""

    cards: dict[UUID, int] = field(default_factory=dict)
    slices: dict[UUID, int] = field(default_factory=dict)

    def on(self, unit: Unit) -> int:
        """How many are seen on a unit."""
        return self.cards.get(unit.card, 0) if unit.slice is None else self.slices.get(unit.slice, 0)


def _processes(units: Iterable[Unit]) -> _Running:
    found = _Running()
    rows = ProcessBinding.objects.filter(card__in={unit.card for unit in units}).order_by().values_list("card", "slice")
    for card, part, number in rows.annotate(number=Count("id")):
        found.cards[card] = found.cards.get(card, 0) + number
        if part is not None:
            found.slices[part] = number
    return found


def _with_memory(idle: Sequence[Evidence], now: datetime) -> list[Evidence]:
    units = [unit for one in idle for unit in one.work.units]
    samples = current_samples({unit.series for unit in units}) if units else {}
    running = _processes(units)
    found = []
    for one in idle:
        seen = []
        for unit, part in zip(one.work.units, one.seen, strict=True):
            sample = samples.get(unit.series)
            used = sample.values.memory_used if sample is not None and sample.fresh(now) else None
            whole = None if used is None else int(used)
            seen.append(replace(part, memory_held=resident(whole, processes=running.on(unit))))
        known = [part.memory_held for part in seen if part.memory_held is not None]
        verdict = replace(one.verdict, memory_held=sum(known) if known else None)
        processes = sum(running.on(unit) for unit in one.work.units)
        found.append(replace(one, verdict=verdict, seen=tuple(seen), processes=processes))
    return found


def moment(second: int) -> datetime:
    """Epoch seconds as a time."""
    return datetime.fromtimestamp(second, UTC)


@dataclass(frozen=True, slots=True)
class Spared:
    """What is left alone at a moment: projects, requests and specs."""

    projects: frozenset[UUID] = frozenset()
    requests: frozenset[UUID] = frozenset()
    specs: frozenset[UUID] = frozenset()

    def spares(self, work: Work) -> bool:
        """Whether a work is left alone."""
        return work.project in self.projects or work.of("request") in self.requests or work.spec in self.specs


def spared(now: datetime) -> Spared:
    """The exemptions that hold at `now`. One query."""
    rows = IdleExemption.objects.filter(lifted_at=None, until__gt=now).values_list("project", "request", "spec")
    columns = [frozenset(key for key in column if key is not None) for column in zip(*rows, strict=True)]
    return Spared(*columns) if columns else Spared()
