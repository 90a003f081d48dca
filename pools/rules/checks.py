"""What must be true of the parts of a snapshot before anything is decided on them."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import pairwise
from typing import Any

from pools.rules.demand import Running, Spec
from pools.rules.fleet import CARD, Card, Id, Mode
from pools.rules.tenancy import Quota
from sensaka.kernel.errors import InvalidInput


def check(parts: Mapping[str, Any], *, changed: Collection[str] | None = None) -> None:
    """InvalidInput with the first fault of the arguments of `snapshot.build`.

    `changed` names those that were not found sound before; None is all of them.
    """
    known = {kind: _known(kind, parts[kind]) for kind in _KINDS}
    for place, test in _REFERENCES:
        for item in parts[place] if changed is None or place in changed else ():
            for kind, value in test(item):
                if value not in known[kind]:
                    raise InvalidInput(f"{place}: {item.id!r} names {value!r}, which is not among the {kind}")
    if changed is None:
        _check_still(parts)
    for request in parts["waiting"]:
        if request.count < 1 or request.time_limit < 1:
            raise InvalidInput(f"waiting: {request.id!r} needs a count and a time limit of at least 1")
    for quota in parts["quotas"]:
        _check_quota(quota, known["tenants"] | known["projects"])
    _check_bookings(parts["running"])


def _check_still(parts: Mapping[str, Any]) -> None:
    """What work does not change."""
    for spec in parts["specs"]:
        _check_spec(spec)
    for card in parts["cards"]:
        _check_card(card)
    for window in parts["maintenance"]:
        if window.end <= window.start:
            raise InvalidInput(f"maintenance: {window.id!r} ends before it starts")


_KINDS = ("clusters", "nodes", "cards", "pools", "specs", "priorities", "tenants", "projects", "waiting", "running")

_Named = Iterable[tuple[str, Id]]


def _of_running(one: Running) -> _Named:
    yield from (("cards", unit.card) for unit in one.units)
    for kind, value in (("priorities", one.priority), ("specs", one.spec)):
        if value is not None:
            yield kind, value


_REFERENCES: tuple[tuple[str, Callable[[Any], _Named]], ...] = (
    ("nodes", lambda node: [("clusters", node.cluster)]),
    ("cards", lambda card: [("nodes", card.node)]),
    ("projects", lambda project: [("tenants", project.tenant)]),
    (
        "waiting",
        lambda request: [
            ("tenants", request.tenant),
            ("projects", request.project),
            ("pools", request.pool),
            ("specs", request.spec),
            ("priorities", request.priority),
        ],
    ),
    ("running", _of_running),
)


def _known(kind: str, items: Iterable[Any]) -> set[Id]:
    seen: set[Id] = set()
    for item in items:
        if item.id in seen:
            raise InvalidInput(f"{kind}: {item.id!r} stands twice")
        seen.add(item.id)
    return seen


def _check_spec(spec: Spec) -> None:
    if spec.cards < 1 or not spec.models:
        raise InvalidInput(f"specs: {spec.id!r} needs a model and at least one card")
    if not (1 < spec.shares <= CARD if spec.mode in (Mode.TIME_SLICE, Mode.MPS) else spec.shares == 1):
        raise InvalidInput(f"specs: {spec.shares} shares of a card don't fit {spec.mode}, in {spec.id!r}")
    if spec.mode is not Mode.WHOLE and spec.cards != 1:
        raise InvalidInput(f"specs: {spec.id!r} is a share; a unit of it is on one card")
    if (spec.mode is Mode.MIG) != bool(spec.profile):
        raise InvalidInput(f"specs: {spec.id!r} must name a profile if and only if it is a MIG spec")
    if spec.cpu < 0 or spec.memory < 0:
        raise InvalidInput(f"specs: {spec.id!r} asks for less than nothing of a host")


def _check_card(card: Card) -> None:
    if (card.mode in (Mode.TIME_SLICE, Mode.MPS)) != (card.shares > 1):
        raise InvalidInput(f"cards: {card.id!r} must have shares if and only if it is time sliced or MPS")
    if card.layout and card.mode is not Mode.MIG:
        raise InvalidInput(f"cards: {card.id!r} has MIG instances but is {card.mode}")


def _check_quota(quota: Quota, holders: set[Id]) -> None:
    if quota.holder not in holders:
        raise InvalidInput(f"quotas: {quota.holder!r} is neither a tenant nor a project")
    if quota.nominal < 0 or (quota.borrowing or 0) < 0 or (quota.lending or 0) < 0:
        raise InvalidInput(f"quotas: a limit of {quota.holder!r} is below zero")


def _check_bookings(running: Iterable[Running]) -> None:
    """Two promises of the same thing can't overlap."""
    held: dict[Id, list[tuple[int, int, Id]]] = defaultdict(list)
    for one in running:
        for unit in one.units:
            if not 0 <= unit.start < unit.stop <= CARD:
                raise InvalidInput(f"running: {one.id!r} holds [{unit.start}, {unit.stop}) of card {unit.card!r}")
            held[unit.card].append((unit.start, unit.stop, one.id))
    for card, ranges in held.items():
        ranges.sort(key=lambda entry: entry[:2])
        for (_, stop, left), (start, _, right) in pairwise(ranges):
            if start < stop:
                raise InvalidInput(f"running: {left!r} and {right!r} hold the same part of card {card!r}")
