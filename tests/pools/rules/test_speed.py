"""A plan for a large installation takes no longer than a pass of admission may: 10,000 cards, 1,000 requests."""

import random
import time

from pools.rules.demand import Request, Running, Spec, Unit
from pools.rules.fleet import Card, Node, Pool, Rule
from pools.rules.plan import admit
from pools.rules.snapshot import Snapshot
from pools.rules.tenancy import Project, Quota, Resource, Tenant
from tests.pools.rules.build import GIB, HOUR, NOW, snapshot

NODES, CARDS, WAITING = 1250, 8, 1000
MODELS = ("A100", "H100", "H200")


def _running(chance: random.Random) -> list[Running]:
    """Most cards are held, in blocks, by work of all classes."""
    found = []
    for node in range(NODES):
        first = 0
        while first < CARDS:
            size = min(chance.choice([1, 1, 2, 4, 8]), CARDS - first)
            if chance.random() < 0.95:
                project = chance.randrange(100)
                found.append(
                    Running(
                        f"j{node}-{first}", f"t{project % 50}", f"p{project}",
                        tuple(Unit(f"n{node}/{first + number}") for number in range(size)),
                        NOW - chance.randrange(1, 100_000), NOW + chance.randrange(60, 200_000),
                        priority=chance.choice(["high", "normal"]),
                        hosts={f"n{node}": (12.0 * size, 100 * GIB * size)},
                    )
                )  # fmt: skip
            first += size
    return found


def large(chance: random.Random) -> Snapshot:
    specs = [
        Spec(f"{model}x{size}", frozenset({model}), cards=size, cpu=12.0 * size, memory=100 * GIB * size)
        for model in MODELS
        for size in (1, 2, 4, 8)
    ]
    waiting = []
    for number in range(WAITING):
        project = chance.randrange(100)
        waiting.append(
            Request(
                f"r{number:04}", f"t{project % 50}", f"p{project}", "main", chance.choice(specs).id,
                chance.choice(["high", "normal", "spot"]), NOW - chance.randrange(1, 500_000),
                chance.choice([HOUR, 10 * HOUR, 48 * HOUR]), count=chance.choice([1, 1, 2, 4, 16]),
            )
        )  # fmt: skip
    return snapshot(
        nodes=[
            Node(f"n{number}", "c1", rack=number // 8, leaf=number // 32, cpu=128.0, memory=1024 * GIB)
            for number in range(NODES)
        ],
        cards=[
            Card(f"n{node}/{number}", f"n{node}", MODELS[node * len(MODELS) // NODES], memory=80 * GIB)
            for node in range(NODES)
            for number in range(CARDS)
        ],
        specs=specs,
        pools=[Pool("main", rules=(Rule(models=frozenset(MODELS)),))],
        tenants=[Tenant(f"t{number}", cohort="all") for number in range(50)],
        projects=[Project(f"p{number}", f"t{number % 50}") for number in range(100)],
        quotas=[Quota(f"t{number}", Resource.CARDS, 400, borrowing=None) for number in range(50)],
        running=_running(chance),
        waiting=waiting,
    )


def test_a_plan_for_ten_thousand_cards_and_a_thousand_requests() -> None:
    taken = large(random.Random(1))
    started = time.process_time()
    plan = admit(taken)
    spent = time.process_time() - started
    assert len(plan.starts) + len(plan.waits) == WAITING
    assert plan.starts
    assert plan.preemptions, "displacement is part of what is measured"
    assert all(wait.reasons and wait.expected_start is not None for wait in plan.waits)
    assert spent < 6.0, "about 1 s on an idle core; the bound leaves room for a busy one"
