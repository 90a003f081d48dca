"""Why a request waits: the code, its arguments, one sentence, and what would unblock it.

A reason is its code and plain arguments, so that it can be stored and told again in another time
zone. All that apply to a request are listed, in the order of `Code`. Amounts are in the unit of the
sentence; times are UTC seconds since 1970.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import Any


class Code(StrEnum):
    """What stands in the way. The order is the one in which reasons are listed."""

    HELD = "HELD"
    NOT_BEFORE = "NOT_BEFORE"
    SPEC_UNAVAILABLE = "SPEC_UNAVAILABLE"
    CLUSTER_UNREACHABLE = "CLUSTER_UNREACHABLE"
    QUOTA_HOURS = "QUOTA_HOURS"
    QUOTA_CONCURRENT = "QUOTA_CONCURRENT"
    QUOTA_MEMORY = "QUOTA_MEMORY"
    QUOTA_TOKENS = "QUOTA_TOKENS"
    QUOTA_STORAGE = "QUOTA_STORAGE"
    MAINTENANCE = "MAINTENANCE"
    NO_FREE_CARDS = "NO_FREE_CARDS"
    FRAGMENTED = "FRAGMENTED"
    GANG_INCOMPLETE = "GANG_INCOMPLETE"
    TOPOLOGY = "TOPOLOGY"
    BEHIND_PRIORITY = "BEHIND_PRIORITY"
    BACKFILL_BLOCKED = "BACKFILL_BLOCKED"
    WAKING_NODES = "WAKING_NODES"
    PREEMPTING = "PREEMPTING"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason. `detail` and `unblock` tell it in UTC, `told` in another zone."""

    code: Code
    args: Mapping[str, Any] = field(default_factory=dict)

    @property
    def detail(self) -> str:
        """What is missing, with the number."""
        return self.told()[0]

    @property
    def unblock(self) -> str:
        """What would take the reason away."""
        return self.told()[1]

    def told(self, *, zone: tzinfo = UTC, now: int | None = None) -> tuple[str, str]:
        """(detail, unblock); times of the day of `now` are told without their date."""
        return _SENTENCES[self.code](_Args(self.args, zone, now))


class _Args:
    """Arguments and how to say them."""

    def __init__(self, values: Mapping[str, Any], zone: tzinfo, now: int | None) -> None:
        self._values, self._zone = values, zone
        moment = now if now is not None else values.get("now")
        self._today = self._local(moment).date() if moment is not None else None

    def __getitem__(self, name: str) -> Any:
        return self._values.get(name)

    def _local(self, moment: int) -> datetime:
        return datetime.fromtimestamp(moment, UTC).astimezone(self._zone)

    def time(self, name: str) -> str:
        """As "14:10 UTC", with the date when it is another day."""
        local = self._local(self._values[name])
        shown = "%H:%M %Z" if local.date() == self._today else "%Y-%m-%d %H:%M %Z"
        return local.strftime(shown)

    def amount(self, name: str) -> str:
        """A number without needless decimals, in groups of three."""
        return figure(self._values[name])


def figure(value: float) -> str:
    """As "1,234" or "0.14": at most two decimals."""
    rounded = round(float(value), 2)
    return f"{rounded:,.0f}" if rounded == int(rounded) else f"{rounded:,.2f}".rstrip("0")


def counted(number: float, noun: str) -> str:
    """As "1 node" or "2 nodes"."""
    return f"{figure(number)} {noun}" if number == 1 else f"{figure(number)} {noun}s"


Sentence = tuple[str, str]


def _held(a: _Args) -> Sentence:
    why = f": {a['text']}" if a["text"] else ""
    end = f" until {a.time('until')}" if a["until"] is not None else ""
    lift = f"It ends at {a.time('until')}, or " if a["until"] is not None else ""
    who = f" by {a['by']}" if a["by"] else ""
    return f"the {a['scope']} is on hold{who}{end}{why}", f"{lift}{'l' if lift else 'L'}ift the hold."


def _not_before(a: _Args) -> Sentence:
    return f"asked not to start before {a.time('at')}", f"Wait until {a.time('at')}, or change the start time."


def _spec_unavailable(a: _Args) -> Sentence:
    if a["cause"] == "withdrawn":
        return f"the spec {a['spec']} is no longer offered", "Ask for another spec."
    if a["cause"] == "empty":
        return (
            f"the pool has no {a['models']} that is in service",
            f"Bring a node with {a['models']} into the pool, or ask for another spec.",
        )
    if a["cause"] == "mode":
        return (
            f"no card of the pool may be divided as {a['spec']} needs",
            "Allow this way of sharing in the pool, or ask for another spec.",
        )
    return (
        f"needs {a.amount('needed')} {a['what']}; the pool has {a.amount('most')} at most, even when empty",
        f"Ask for no more than {a.amount('most')} {a['what']}, or add nodes to the pool.",
    )


def _unreachable(a: _Args) -> Sentence:
    return (
        f"{counted(a['cards'], 'card')} of the spec {'is' if a['cards'] == 1 else 'are'} in {a['clusters']}, "
        "which can't be reached",
        f"Restore the connection to {a['clusters']}.",
    )


def _quota(what: str, *, period: bool = False, stored: bool = False) -> Callable[[_Args], Sentence]:
    def tell(a: _Args) -> Sentence:
        subject = f"{what} of {a['holder']}" + (f" on {a['model']}" if a["model"] else "")
        borrowed = f", {a.amount('borrowable')} of it borrowed from others" if a["borrowable"] else ""
        if stored:
            detail = f"{subject}: {a.amount('used')} used of {a.amount('limit')} {a['unit']}"
        else:
            detail = (
                f"{subject}: needs {a.amount('needed')} {a['unit']}, {a.amount('left')} left of "
                f"{a.amount('limit')}{borrowed}; short by {a.amount('short')}"
            )
        renew = f" or wait for the new period at {a.time('period_end')}" if period and a["period_end"] else ""
        free = "" if period else " or release some of what is in use"
        return detail, f"Raise the quota by {a.amount('short')} {a['unit']},{free}{renew}.".replace(",.", ".")

    return tell


def _maintenance(a: _Args) -> Sentence:
    return (
        f"{counted(a['cards'], 'free card')} can't be used: {a['name']} starts at {a.time('start')}, "
        f"before the time limit would end at {a.time('would_end')}",
        f"Ask for at most {counted(a['minutes'], 'minute')}, or wait until the maintenance ends at {a.time('end')}.",
    )


def _release(a: _Args) -> str:
    if a["release_at"] is None:
        return ""
    by = f" when {a['release_by']} {'end' if a['holders'] and a['holders'] > 1 else 'ends'}" if a["release_by"] else ""
    return f"; {a.amount('released')} come free at {a.time('release_at')}{by}"


def _wait(a: _Args) -> str:
    return f"Wait until {a.time('release_at')}" if a["release_at"] is not None else "Wait for work to end"


def _no_free(a: _Args) -> Sentence:
    held = f", {counted(a['out'], 'card')} out of service" if a["out"] else ""
    return (
        f"needs {a.amount('needed')} {a['what']}{a['where'] or ''}; {a.amount('free')} free{held}, "
        f"largest block {a.amount('largest')}{_release(a)}",
        f"{_wait(a)}, or ask for at most {a.amount('free')}."
        if a["free"]
        else f"{_wait(a)}, or release or preempt work that holds {a['what']}.",
    )


def _fragmented(a: _Args) -> Sentence:
    if a["cause"] == "host":
        return (
            f"the free {a['what']} would do for {counted(a['units'], 'unit')}, but their nodes have cores and memory "
            f"free for {a.amount('fit')} only{_release(a)}",
            f"{_wait(a)}, or ask for a spec with fewer cores or less memory.",
        )
    return (
        f"needs {a.amount('each')} {a['what']} on one {a['place']}; {a.amount('free')} free, but spread over "
        f"{counted(a['places'], a['place'])}, largest block {a.amount('largest')}{_release(a)}",
        f"{_wait(a)}, or ask for units of at most {a.amount('largest')} {a['what']}."
        if a["largest"]
        else f"{_wait(a)}.",
    )


def _gang(a: _Args) -> Sentence:
    return (
        f"{a.amount('fit')} of {counted(a['units'], 'unit')} would fit now and all must start together{_release(a)}",
        f"{_wait(a)}, or ask for {a.amount('fit')}." if a["fit"] else f"{_wait(a)}.",
    )


def _topology(a: _Args) -> Sentence:
    return (
        f"must stand within one {a['near']}; {counted(a['fit'], 'unit')} of {a.amount('units')} fit in the best one, "
        f"{a.amount('elsewhere')} without this wish",
        f"Allow it to stand further apart than one {a['near']}, or {_wait(a).lower()}.",
    )


def _behind(a: _Args) -> Sentence:
    return (
        f"{counted(a['ahead'], 'request')} ahead in the queue {'waits' if a['ahead'] == 1 else 'wait'} for the same "
        f"cards, first {a['first']}",
        "Wait for them, or ask an operator to move this one up.",
    )


def _backfill(a: _Args) -> Sentence:
    others = f", others to {counted(a['others'], 'request')} behind it" if a["others"] else ""
    until = f"until {a['head']}{' and they have' if a['others'] else ' has'} started"
    ask = f"Ask for at most {counted(a['at_most'], 'minute')}, or w" if a["at_most"] > 0 else "W"
    return (
        f"the cards that are free are promised to {a['head']} at {a.time('reserved_at')}{others}, and the time limit "
        f"of {counted(a['minutes'], 'minute')} ends later",
        f"{ask}ait {until}.",
    )


def _waking(a: _Args) -> Sentence:
    return (
        f"{counted(a['nodes'], 'sleeping node')} {'is' if a['nodes'] == 1 else 'are'} being woken, ready at about "
        f"{a.time('ready_at')}",
        f"Wait until {a.time('ready_at')}.",
    )


def _preempting(a: _Args) -> Sentence:
    return (
        f"{counted(a['cards'], 'card')} {'is' if a['cards'] == 1 else 'are'} being freed: {a['victims']} "
        f"told to leave by {a.time('free_at')}",
        f"Wait until {a.time('free_at')}.",
    )


_SENTENCES: Mapping[Code, Callable[[_Args], Sentence]] = {
    Code.HELD: _held,
    Code.NOT_BEFORE: _not_before,
    Code.SPEC_UNAVAILABLE: _spec_unavailable,
    Code.CLUSTER_UNREACHABLE: _unreachable,
    Code.QUOTA_HOURS: _quota("GPU-hours", period=True),
    Code.QUOTA_CONCURRENT: _quota("cards at once"),
    Code.QUOTA_MEMORY: _quota("GPU memory"),
    Code.QUOTA_TOKENS: _quota("tokens", period=True, stored=True),
    Code.QUOTA_STORAGE: _quota("storage", stored=True),
    Code.MAINTENANCE: _maintenance,
    Code.NO_FREE_CARDS: _no_free,
    Code.FRAGMENTED: _fragmented,
    Code.GANG_INCOMPLETE: _gang,
    Code.TOPOLOGY: _topology,
    Code.BEHIND_PRIORITY: _behind,
    Code.BACKFILL_BLOCKED: _backfill,
    Code.WAKING_NODES: _waking,
    Code.PREEMPTING: _preempting,
}


def ordered(found: list[Reason]) -> tuple[Reason, ...]:
    """In the order of `Code`, as they are shown."""
    rank = {code: place for place, code in enumerate(Code)}
    return tuple(sorted(found, key=lambda reason: rank[reason.code]))
