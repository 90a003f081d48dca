"""Cards that are held and not used: when they count as idle, whom to warn, and when to take them back.

Idle is an allocation whose activity stayed below the threshold at every sample of a whole period that
began after its start grace, with samples for enough of it. What is unknown is never idle: a missing
stretch neither restarts the count nor lets the next step happen.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pools.rules.fleet import Id

COVERAGE = 90.0
"""Percent of the period that samples must cover."""

RESIDENT = 15 * 2**20
"""Bytes that a driver may keep on a card on which nothing runs: the limit of gcm's check of idle memory."""


class Action(StrEnum):
    """What a pool does about idle cards."""

    OFF = "off"
    WARN = "warn"
    """Two warnings; then an operator decides."""
    RECLAIM = "reclaim"
    """Two warnings; then they are taken back."""


@dataclass(frozen=True, slots=True)
class IdlePolicy:
    """A pool's rule. Seconds: `after` of idleness, `grace` from the start of the work, `gap` between steps.

    `coverage` (percent) is never taken as less than COVERAGE.
    """

    action: Action = Action.WARN
    after: int = 7200
    grace: int = 1800
    gap: int = 1800
    coverage: float = COVERAGE


@dataclass(frozen=True, slots=True)
class Seen:
    """What samples say of one card or slice over [start, end): seconds in all, and the highest activity (percent).

    `memory_held` is what is resident (bytes), None when unknown.
    """

    unit: Id
    start: int
    end: int
    busy: int
    idle: int
    highest: float | None = None
    memory_held: int | None = None

    @property
    def coverage(self) -> float:
        """Percent of the span that samples cover."""
        return 100 * (self.busy + self.idle) / (self.end - self.start) if self.end > self.start else 0.0


def resident(used: int | None, *, processes: int) -> int | None:
    """Bytes that work keeps on a card of whose memory `used` is used: none while it is the driver's alone."""
    return 0 if used is not None and used <= RESIDENT and not processes else used


class State(StrEnum):
    """What an allocation is doing, as far as is known."""

    BUSY = "busy"
    IDLE = "idle"
    UNKNOWN = "unknown"
    TOO_EARLY = "too_early"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of an allocation and, when idle, since when at least and whether memory is held."""

    state: State
    since: int | None = None
    coverage: float = 0.0
    memory_held: int | None = None

    @property
    def idle_held(self) -> bool:
        """Idle with memory resident: not used, and not free either."""
        return self.state is State.IDLE and bool(self.memory_held)


def period(policy: IdlePolicy, *, started_at: int, now: int) -> tuple[int, int] | None:
    """The span that is looked at; None while the work is too young for a whole period after its grace."""
    return (now - policy.after, now) if started_at + policy.grace <= now - policy.after else None


def judge(policy: IdlePolicy, seen: Sequence[Seen], *, started_at: int, now: int) -> Verdict:
    """The verdict on an allocation of several cards: idle only when each of them is, by its own samples."""
    span = period(policy, started_at=started_at, now=now)
    if span is None:
        return Verdict(State.TOO_EARLY)
    coverage = min((one.coverage for one in seen), default=0.0)
    if any(one.busy > 0 for one in seen):
        return Verdict(State.BUSY, coverage=coverage)
    whole = bool(seen) and all(one.start <= span[0] and one.end >= span[1] for one in seen)
    if not whole or coverage < max(policy.coverage, COVERAGE):
        return Verdict(State.UNKNOWN, coverage=coverage)
    held = [one.memory_held for one in seen if one.memory_held is not None]
    return Verdict(State.IDLE, max(one.start for one in seen), coverage, sum(held) if held else None)


@dataclass(frozen=True, slots=True)
class Case:
    """An open case of an idle allocation and how far it went."""

    since: int
    first_warned_at: int | None = None
    second_warned_at: int | None = None
    extension_asked: bool = False
    extended_until: int | None = None
    asked_at: int | None = None
    """When the reclaim was asked for; nothing more happens then."""


class Step(StrEnum):
    """What is to be done next."""

    NOTHING = "nothing"
    OPEN = "open"
    """Open a case and warn the owner a first time."""
    WARN_AGAIN = "warn_again"
    ASK_OPERATOR = "ask_operator"
    RECLAIM = "reclaim"
    CLOSE = "close"
    """It is in use again."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A step, why, and when to look again at the latest (None: no sooner than usual)."""

    step: Step
    why: str
    again_at: int | None = None


def decide(policy: IdlePolicy, verdict: Verdict, case: Case | None, *, now: int, exempt: bool = False) -> Decision:
    """The next step for an allocation. `exempt`: its tenant, project, class or request is spared by a rule."""
    if policy.action is Action.OFF or exempt:
        why = "the allocation is exempt" if exempt else "the pool takes nothing back"
        return Decision(Step.CLOSE if case is not None else Step.NOTHING, why)
    if verdict.state is State.BUSY:
        return Decision(Step.CLOSE if case is not None else Step.NOTHING, "it is in use")
    if verdict.state is not State.IDLE:
        missing = "its samples cover too little" if verdict.state is State.UNKNOWN else "it started too recently"
        return Decision(Step.NOTHING, f"{missing}: nothing is decided")
    if case is None or case.first_warned_at is None:
        return Decision(Step.OPEN, f"below the threshold for {_minutes(policy.after)}", now + policy.gap)
    return _go_on(policy, case, now)


def _go_on(policy: IdlePolicy, case: Case, now: int) -> Decision:
    if case.asked_at is not None:
        return Decision(Step.NOTHING, "it is being taken back or an operator was asked")
    if case.extended_until is not None and now < case.extended_until:
        return Decision(Step.NOTHING, "its owner was given more time", case.extended_until)
    if case.extension_asked:
        return Decision(Step.NOTHING, "its owner asked for more time; somebody has to decide")
    assert case.first_warned_at is not None
    if case.second_warned_at is None:
        due = case.first_warned_at + policy.gap
        if now < due:
            return Decision(Step.NOTHING, "its owner was warned once", due)
        return Decision(Step.WARN_AGAIN, f"still idle {_minutes(now - case.first_warned_at)} after the warning")
    due = max(case.second_warned_at + policy.gap, case.extended_until or 0)
    if now < due:
        return Decision(Step.NOTHING, "its owner was warned twice", due)
    step = Step.RECLAIM if policy.action is Action.RECLAIM else Step.ASK_OPERATOR
    return Decision(step, f"idle since {_minutes(now - case.since)} and warned twice")


def _minutes(seconds: int) -> str:
    return f"{seconds // 60} min"


def idle_rate(verdicts: Iterable[Verdict]) -> float | None:
    """Percent of the judged allocations that are idle; None when none is judged."""
    known = [one.state for one in verdicts if one.state in (State.BUSY, State.IDLE)]
    return 100 * known.count(State.IDLE) / len(known) if known else None
