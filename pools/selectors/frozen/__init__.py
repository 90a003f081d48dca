"""The frozen snapshot of one pool, as the pure rules take it: a fixed number of queries for any number of rows."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from pools.models import Pool
from pools.rules.snapshot import Policy, Snapshot, build
from pools.selectors.frozen.fleet import fleet_of
from pools.selectors.frozen.tenants import catalogue, limits, parties
from pools.selectors.frozen.work import WINDOW as WINDOW
from pools.selectors.frozen.work import head_of, holds_on, maintenance_on, running_now, waiting_in

POLICY = Policy()


def freeze(
    pool: Pool, now: datetime, *, policy: Policy = POLICY, window: int | None = None, also: Collection[Any] = ()
) -> Snapshot:  # fmt: skip
    """Everything that admission to a pool looks at. Cards of other pools are there as far as somebody holds them.

    `window`: of a longer queue only so many from its head, and those of `also` (ids). Raises InvalidInput
    when what is stored contradicts itself.
    """
    at = int(now.timestamp())
    offered = catalogue()
    specs = {spec.id for spec in offered.specs}
    waiting = None if window is None else head_of(pool, now, specs=specs, most=window, also=also)
    if waiting is None:
        waiting = waiting_in(pool, specs=specs)
    running = running_now(now)
    fleet = fleet_of(pool, {unit.card for one in running for unit in one.units})
    known = {card.id for card in fleet.cards}
    there = [one for one in running if all(unit.card in known for unit in one.units)]
    tenants, projects = parties(now, half_life=policy.half_life)
    return build(
        now=at,
        clusters=fleet.clusters,
        nodes=fleet.nodes,
        cards=fleet.cards,
        pools=[fleet.pool],
        specs=offered.specs,
        priorities=offered.priorities,
        tenants=tenants,
        projects=projects,
        quotas=limits(now),
        waiting=waiting,
        running=there,
        holds=holds_on(pool, now),
        maintenance=maintenance_on(now, fleet.nodes),
        profiles=fleet.profiles,
        policy=policy,
    )
