"""The admission plan: from a frozen snapshot to what starts, in one pass over the queue.

Requests are looked at in their order. One that fits within its quotas starts; the first of a kind that
does not fit is promised the earliest start there is (see `backfill`), may displace lower work (see
`preemption`), and those behind it start only where they keep that promise. All others wait with every
reason. The plan leaves no choice open, and depends on nothing but the snapshot.
"""

from collections import Counter, defaultdict

from pools.rules.backfill import Reservation, earliest, reserve
from pools.rules.demand import Request, Running, Unit
from pools.rules.dividing import place
from pools.rules.fleet import Id, Mode
from pools.rules.forecast import Forecast
from pools.rules.ordering import order
from pools.rules.placement import Placement
from pools.rules.preemption import Preemption, Victims
from pools.rules.quota import Ledger, total_share
from pools.rules.reasons import Code, Reason, ordered
from pools.rules.result import Plan, Promise, Start, Wait
from pools.rules.sharing import share_of
from pools.rules.snapshot import Snapshot
from pools.rules.space import Space, Taken, Wish, wishes
from pools.rules.why import Lack, over_quota, standing


def admit(snapshot: Snapshot, *, told: bool = True) -> Plan:
    """The plan for a snapshot.

    Unless they are to be `told`, the plan has no `waits`: all else is the same, and in a long queue much sooner made.
    """
    return _Pass(snapshot).run(told=told)


class _Waiting:
    """A request that does not start in this pass, and what is known about that."""

    def __init__(self, request: Request, position: int, options: list[Wish], stopped: list[Reason]) -> None:
        self.request, self.position, self.options = request, position, options
        self.stopped = stopped
        self.events: list[Reason] = []
        self.starts_at: int | None = None
        self.waking = False


class _Pass:
    """One pass over the queue."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self.now = snapshot, snapshot.now
        self.space = Space(snapshot)
        self.ledger = Ledger(snapshot)
        self.victims = Victims(self.space)
        self.starts: list[Start] = []
        self.waiting: list[_Waiting] = []
        self.reservations: list[Reservation] = []
        self.preemptions: list[Preemption] = []
        self.wakes: set[int] = set()
        self._claims: Counter[tuple[Id, str]] = Counter()
        self._failed: dict[Wish, int] = {}
        self._lacks: dict[Wish, Lack] = {}
        self._impossible: dict[Wish, Reason | None] = {}
        self._demand = Counter(
            {
                spec.profile: count
                for spec_id, count in _asked(snapshot).items()
                if (spec := snapshot.specs[spec_id]).mode is Mode.MIG
            }
        )

    def run(self, *, told: bool) -> Plan:
        """Look at every request, then tell those that wait why."""
        for number, ranked in enumerate(order(self.snapshot), start=1):
            self._look_at(ranked.request, number)
        fleet = self.snapshot.fleet
        return Plan(
            at=self.now,
            starts=tuple(self.starts),
            waits=tuple(self._told()) if told else (),
            preemptions=tuple(self.preemptions),
            promises=tuple(
                Promise(one.request, one.at, tuple(fleet.cards[self.space.card(*card)].id for card in one.cards))
                for one in self.reservations
            ),
            wakes=tuple(fleet.nodes[node].id for node in sorted(self.wakes)),
        )

    def _look_at(self, request: Request, position: int) -> None:
        options = wishes(self.snapshot, request)
        stopped = standing(self.snapshot, request)
        possible = [wish for wish in options if self._impossible_reason(wish) is None]
        if not possible:
            stopped += [reason for wish in options[:1] if (reason := self._impossible_reason(wish)) is not None]
        affordable = [wish for wish in possible if self._affordable(request, wish)]
        waiting = _Waiting(request, position, possible or options, stopped)
        if stopped or not affordable:
            self.waiting.append(waiting)
            return
        found = self._place(request, affordable)
        if found is not None and not found.asleep:
            self._start(request, found)
            return
        self.waiting.append(waiting)
        if found is not None:
            self._wake(waiting, found)
        else:
            waiting.options = affordable
            self._blocked(waiting)

    def _affordable(self, request: Request, wish: Wish) -> bool:
        share = share_of(wish.spec, self.snapshot.profiles.get(wish.model, {}))
        if share is None:
            return False
        return not self.ledger.shortfalls(request, wish.model, total_share(request, wish.spec, share))

    def _impossible_reason(self, wish: Wish) -> Reason | None:
        if wish not in self._impossible:
            self._impossible[wish] = Lack(self.space, wish).impossible()
        return self._impossible[wish]

    def _place(self, request: Request, options: list[Wish]) -> Placement | None:
        """The first model that has a place; what failed for a time fails for a longer one."""
        for wish in options:
            if self._failed.get(wish, request.time_limit + 1) <= request.time_limit:
                continue
            found = place(self.space, wish, self.now + request.time_limit, self._demand)
            if found is not None:
                return found
            self._failed[wish] = request.time_limit
        return None

    def _charge(self, request: Request, found: Placement) -> None:
        share = share_of(found.wish.spec, self.snapshot.profiles.get(found.wish.model, {}))
        assert share is not None, "it was placed"
        self.ledger.charge(request, found.wish.model, total_share(request, found.wish.spec, share))
        if found.wish.spec.profile:
            self._demand[found.wish.spec.profile] -= request.count

    def _start(self, request: Request, found: Placement) -> None:
        fleet = self.snapshot.fleet
        self._charge(request, found)
        self.starts.append(
            Start(
                request=request,
                model=found.wish.model,
                units=tuple(tuple(map(self._unit, unit)) for unit in found.units),
                nodes=tuple(fleet.nodes[unit[0].node].id for unit in found.units),
                divided={fleet.cards[self.space.card(*card)].id: new for card, new in found.divided.items()},
                ends_at=self.now + request.time_limit,
                why=found.why,
            )
        )

    def _unit(self, part: Taken) -> Unit:
        card = self.snapshot.fleet.cards[self.space.card(part.node, part.column)]
        return Unit(card.id, part.start, part.stop)

    def _wake(self, waiting: _Waiting, found: Placement) -> None:
        """Its place is kept; it starts when its nodes are awake."""
        self._charge(waiting.request, found)
        self.wakes |= found.asleep
        waiting.waking = True
        waiting.starts_at = self.now + self.snapshot.policy.wake
        args = {"nodes": len(found.asleep), "ready_at": waiting.starts_at, "now": self.now}
        waiting.events.append(Reason(Code.WAKING_NODES, args))

    def _blocked(self, waiting: _Waiting) -> None:
        """There is no place now: is one being made, can one be made, and when will there be one anyhow?"""
        request, options = waiting.request, waiting.options
        ahead = max(self._claims[wish.pool, wish.model] for wish in options)
        freeing = self.victims.being_freed(request, options) or self._preempt(request, options)
        if not freeing and ahead >= self.snapshot.policy.reservations:
            return
        reservation = reserve(self.space, request, options)
        if reservation is None:
            return
        self.reservations.append(reservation)
        self._claims[reservation.wish.pool, reservation.wish.model] += 1
        waiting.starts_at = reservation.at
        if freeing:
            more = f" and {len(freeing) - 3} more" if freeing[3:] else ""
            args = {
                "cards": sum(len(one.units) for one in freeing),
                "victims": ", ".join(one.name or str(one.id) for one in freeing[:3]) + more,
                "free_at": reservation.at,
                "now": self.now,
            }
            waiting.events.append(Reason(Code.PREEMPTING, args))

    def _preempt(self, request: Request, options: list[Wish]) -> list[Running]:
        """Who is told to leave for it now."""
        chosen = self.victims.choose(request, options)
        if chosen is None:
            return []
        wish, preemptions = chosen
        soon = earliest(self.space, wish, request.time_limit)
        if soon is not None and soon[0] <= max(one.leaves_at for one in preemptions):
            return []  # there will be room no later without anybody being displaced
        self.preemptions += preemptions
        self.victims.tell(preemptions)
        return [one.running for one in preemptions]

    def _told(self) -> list[Wait]:
        """Reasons and expected starts, in the order of the queue."""
        forecast = Forecast(self.space, self.reservations)
        ahead: dict[tuple[Id, str], list[Request]] = defaultdict(list)
        waits = []
        for one in self.waiting:
            request = one.request
            # what it will take when its nodes are awake is charged already
            short = [] if one.waking else over_quota(self.ledger, self.snapshot, request, one.options)
            reasons = [*one.stopped, *short, *one.events]
            stopped = bool(one.stopped or short)
            lacking = [] if one.waking else self._lacking(one)
            reasons += lacking
            key = (request.pool, one.options[0].model)
            if lacking and not stopped and ahead[key]:
                first = ahead[key][0]
                args = {"ahead": len(ahead[key]), "first": first.name or str(first.id)}
                reasons.append(Reason(Code.BEHIND_PRIORITY, args))
            if not stopped:
                ahead[key].append(request)
            waits.append(Wait(request, one.position, ordered(reasons), self._expected(forecast, one, reasons)))
        return waits

    def _lacking(self, one: _Waiting) -> list[Reason]:
        """What is missing of the model that lacks least, and what can't be reached."""
        found: list[Reason] | None = None
        for wish in one.options:
            if self._impossible_reason(wish) is not None:
                continue
            lack = self._lacks.setdefault(wish, Lack(self.space, wish))
            others = [own for own in self.reservations if own.request is not one.request]
            reasons = lack.reasons(others, one.request.time_limit)
            if found is None or len(reasons) < len(found):
                found = reasons
        away = Lack(self.space, one.options[0]).unreachable() if found is None or found else None
        return [*(found or []), *([away] if away is not None else [])]

    def _expected(self, forecast: Forecast, one: _Waiting, reasons: list[Reason]) -> int | None:
        """None when it depends on somebody's decision or on work without an end."""
        if one.starts_at is not None:
            return one.starts_at
        by_people = {Code.HELD, Code.SPEC_UNAVAILABLE} | {code for code in Code if code.startswith("QUOTA")}
        if any(reason.code in by_people for reason in reasons):
            return None
        request = one.request
        not_before = max(self.now, request.not_before or 0)
        return forecast.start(one.options[0], request.time_limit, not_before)


def _asked(snapshot: Snapshot) -> Counter[Id]:
    """Units of each spec that wait."""
    asked: Counter[Id] = Counter()
    for request in snapshot.waiting:
        asked[request.spec] += request.count
    return asked
