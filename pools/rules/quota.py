"""What a tenant or project may still take. What is over quota waits; nothing that runs is touched.

Amounts are whole numbers inside (thousandths of a card, of a card-second, bytes), so that limits are
kept exactly. Of its nominal amount a holder keeps back what it does not lend; what all members of a
cohort lend is one stock, from which each takes beyond what it keeps, up to its borrowing limit.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pools.rules.demand import Request, Running, Spec
from pools.rules.fleet import CARD, Id
from pools.rules.reasons import Code, Reason
from pools.rules.snapshot import Snapshot
from pools.rules.tenancy import Quota, Resource

GIB = 2**30

_SCALE: Mapping[Resource, int] = {
    Resource.HOURS: 3600 * CARD,
    Resource.CARDS: CARD,
    Resource.MEMORY: 1,
    Resource.TOKENS: 1,
    Resource.STORAGE: 1,
}
_SHOWN: Mapping[Resource, tuple[int, str]] = {
    Resource.HOURS: (3600 * CARD, "GPU-hours"),
    Resource.CARDS: (CARD, "cards"),
    Resource.MEMORY: (GIB, "GiB"),
    Resource.TOKENS: (1, "tokens"),
    Resource.STORAGE: (GIB, "GiB"),
}
_CODES: Mapping[Resource, Code] = {
    Resource.HOURS: Code.QUOTA_HOURS,
    Resource.CARDS: Code.QUOTA_CONCURRENT,
    Resource.MEMORY: Code.QUOTA_MEMORY,
    Resource.TOKENS: Code.QUOTA_TOKENS,
    Resource.STORAGE: Code.QUOTA_STORAGE,
}


_RECORDED = frozenset({Resource.TOKENS, Resource.STORAGE})


@dataclass(slots=True)
class _Account:
    """One limit and what is used of it, scaled."""

    quota: Quota
    nominal: int
    borrowing: int | None
    lendable: int
    used: int = 0

    @property
    def kept(self) -> int:
        return self.nominal - self.lendable

    @property
    def from_stock(self) -> int:
        """What it holds of the stock."""
        return max(0, self.used - self.kept)


@dataclass(slots=True)
class _Stock:
    """The accounts that lend to each other."""

    members: list[_Account] = field(default_factory=list)
    free: int = 0
    """What nobody holds of it; below zero when limits were lowered under what is in use."""

    def add(self, account: _Account) -> None:
        """One more that lends."""
        self.members.append(account)
        self.free += account.lendable - account.from_stock

    def use(self, account: _Account, amount: int) -> None:
        """The account uses more."""
        before = account.from_stock
        account.used += amount
        self.free -= account.from_stock - before

    def left(self, account: _Account) -> int:
        """How much more the account may take; 0 at least."""
        most = max(0, account.kept - account.used) + max(0, self.free)
        if account.borrowing is not None:
            most = min(most, account.nominal + account.borrowing - account.used)
        return max(0, most)

    def short(self, account: _Account, needed: int) -> int:
        """By how much its nominal amount must grow so that `needed` is left."""
        missing = needed - max(0, account.kept - account.used) - self.free
        if account.borrowing is not None:
            missing = max(missing, needed - (account.nominal + account.borrowing - account.used))
        if self.free >= 0:
            return max(0, missing)
        # limits were lowered under what is in use: what it keeps is there all the same, what it lends is not
        return bisect_left(range(missing + 1), True, key=lambda more: self._left_with(account, more) >= needed)

    def _left_with(self, account: _Account, more: int) -> int:
        raised = _account(account.quota, more)
        raised.used = account.used
        others = _Stock()
        for one in (raised, *(one for one in self.members if one is not account)):
            others.add(one)
        return others.left(raised)


class Ledger:
    """What is used of each quota, while a plan spends more of it."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._by_holder: dict[Id, list[tuple[_Account, _Stock]]] = defaultdict(list)
        stocks: dict[tuple[object, ...], _Stock] = defaultdict(_Stock)
        for quota in snapshot.quotas:
            account = _account(quota)
            stock = stocks[self._lends_in(quota)]
            stock.add(account)
            self._by_holder[quota.holder].append((account, stock))
        memory = {card.model: card.memory for card in snapshot.fleet.cards}
        self._memory = memory
        for running in snapshot.running if self._by_holder else ():
            self._count(running)

    def _lends_in(self, quota: Quota) -> tuple[object, ...]:
        kind = (quota.resource, quota.model)
        if (project := self._snapshot.projects.get(quota.holder)) is not None:
            return ("projects of", project.tenant, *kind)
        cohort = self._snapshot.tenants[quota.holder].cohort
        return ("cohort", cohort, *kind) if cohort is not None else ("alone", quota.holder, *kind)

    def _count(self, running: Running) -> None:
        """Charge what runs now; of GPU-hours, what it may still use by its time limit.

        Work without an end is counted up to now only: nobody knows what it will use.
        """
        fleet = self._snapshot.fleet
        by_model: dict[str, int] = defaultdict(int)
        for unit in running.units:
            by_model[fleet.cards[fleet.card_places[unit.card]].model] += unit.share
        for holder in {running.tenant, running.project} - {None}:
            for account, stock in self._by_holder.get(holder, ()):
                if account.quota.resource in _RECORDED:
                    continue
                for model, share in by_model.items():
                    end = running.ends_at if running.ends_at is not None else self._snapshot.now
                    stock.use(account, self._amount(account.quota, model, share, end - self._snapshot.now))

    def _amount(self, quota: Quota, model: str, share: int, seconds: int) -> int:
        """What `share` thousandths of cards of a model for some seconds take of a quota."""
        if quota.model is not None and quota.model != model:
            return 0
        if quota.resource is Resource.CARDS:
            return share
        if quota.resource is Resource.MEMORY:
            return share * self._memory.get(model, 0) // CARD
        if quota.resource is Resource.HOURS:
            if quota.period_end is not None:
                seconds = min(seconds, quota.period_end - self._snapshot.now)
            return share * max(0, seconds)
        # tokens and stored bytes come from records: something must be left before anything starts
        return 1

    def shortfalls(self, request: Request, model: str, share: int) -> list[Reason]:
        """Every quota that the request would exceed on cards of a model, `share` thousandths of cards in all."""
        found = []
        for holder in (request.tenant, request.project):
            for account, stock in self._by_holder.get(holder, ()):
                needed = self._amount(account.quota, model, share, request.time_limit)
                left = stock.left(account)
                if needed > left:
                    found.append(self._reason(account, stock, needed, left))
        return found

    def charge(self, request: Request, model: str, share: int) -> None:
        """The request starts."""
        for holder in (request.tenant, request.project):
            for account, stock in self._by_holder.get(holder, ()):
                if account.quota.resource not in _RECORDED:
                    stock.use(account, self._amount(account.quota, model, share, request.time_limit))

    def _reason(self, account: _Account, stock: _Stock, needed: int, left: int) -> Reason:
        quota = account.quota
        scale, unit = _SHOWN[quota.resource]
        borrowable = max(0, account.used + left - account.nominal)
        if account.borrowing is not None:
            borrowable = min(borrowable, account.borrowing)
        return Reason(
            _CODES[quota.resource],
            {
                "holder": self._name(quota.holder),
                "model": quota.model,
                "needed": needed / scale,
                "left": left / scale,
                "used": account.used / scale,
                "limit": (account.nominal + borrowable) / scale,
                "borrowable": borrowable / scale,
                "short": stock.short(account, needed) / scale,
                "unit": unit,
                "period_end": quota.period_end,
                "now": self._snapshot.now,
            },
        )

    def _name(self, holder: Id) -> str:
        known = self._snapshot.tenants.get(holder) or self._snapshot.projects.get(holder)
        return (known.name if known is not None else "") or str(holder)

    def standing(self) -> Iterable[tuple[Quota, float, float]]:
        """(quota, used, left) of each, in the quota's unit."""
        for accounts in self._by_holder.values():
            for account, stock in accounts:
                scale = _SCALE[account.quota.resource]
                yield account.quota, account.used / scale, stock.left(account) / scale


def _account(quota: Quota, more: int = 0) -> _Account:
    scale = _SCALE[quota.resource]
    nominal = round(quota.nominal * scale) + more
    lending = nominal if quota.lending is None else min(nominal, round(quota.lending * scale))
    borrowing = None if quota.borrowing is None else round(quota.borrowing * scale)
    used = round(quota.used * scale) if quota.resource in {*_RECORDED, Resource.HOURS} else 0
    return _Account(quota, nominal, borrowing, lending, used)


def total_share(request: Request, spec: Spec, share: int) -> int:
    """Thousandths of cards that a request takes when a unit takes `share` of each of its cards."""
    return request.count * spec.cards * share
