"""Random small installations for the property tests: nodes of two models, shared cards, quotas, holds, queues."""

from typing import Any

from hypothesis import strategies as st

from pools.rules.demand import Hold, Near, Running, Scope, Spec, Unit
from pools.rules.fleet import Card, Maintenance, Mode, Node, Pool, Rule, Slice
from pools.rules.snapshot import Policy, Snapshot
from pools.rules.tenancy import Quota, Resource, Tenant
from tests.pools.rules.build import GIB, HOUR, NOW, request, snapshot

H100 = {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1}
BOTH = frozenset({"H100", "A100"})
ONLY = frozenset({"H100"})
SPECS = [
    Spec("one", ONLY, cpu=4.0), Spec("any", BOTH, cpu=2.0), Spec("two", ONLY, cards=2, cpu=8.0, memory=10 * GIB),
    Spec("four", BOTH, cards=4, cpu=16.0), Spec("mig", ONLY, mode=Mode.MIG, profile="2g.20gb", cpu=1.0),
    Spec("slice", BOTH, mode=Mode.TIME_SLICE, shares=4), Spec("mps", BOTH, mode=Mode.MPS, shares=2),
]  # fmt: skip
LAYOUT = (Slice("2g.20gb", 0), Slice("2g.20gb", 2), Slice("2g.20gb", 4), Slice("1g.10gb", 6))
PARTS = {Mode.MIG: (0, 250), Mode.TIME_SLICE: (250, 500), Mode.MPS: (0, 500), Mode.WHOLE: (0, 1000)}


@st.composite
def cards(draw: st.DrawFn, nodes: list[Node]) -> list[Card]:
    found = []
    for one in nodes:
        model = draw(st.sampled_from(["H100", "H100", "A100"]))
        for number in range(4):
            mode = draw(st.sampled_from([Mode.WHOLE, Mode.WHOLE, Mode.WHOLE, Mode.MIG, Mode.TIME_SLICE, Mode.MPS]))
            if model == "A100" and mode is Mode.MIG:
                mode = Mode.WHOLE
            flag = draw(st.sampled_from(["", "", "", "", "cordoned", "preemptible_only", "broken"]))
            found.append(
                Card(
                    f"{one.id}/{number}", one.id, model, memory=80 * GIB, island=number // 2, mode=mode,
                    layout=LAYOUT if mode is Mode.MIG else (),
                    shares={Mode.TIME_SLICE: 4, Mode.MPS: 2}.get(mode, 0),
                    available=flag != "broken", cordoned=flag == "cordoned",
                    preemptible_only=flag == "preemptible_only",
                )
            )  # fmt: skip
    return found


@st.composite
def holders(draw: st.DrawFn, all_cards: list[Card], *, preemption: bool) -> list[Running]:
    found: list[Running] = []
    for card in all_cards:
        if not draw(st.booleans()):
            continue
        tenant = draw(st.sampled_from(["1", "2"]))
        ends = draw(st.sampled_from([NOW + 600, NOW + HOUR, NOW + 5 * HOUR, None]))
        priority = draw(st.sampled_from(["high", "normal", "spot", None] if preemption else ["high"]))
        joins = found and draw(st.integers(0, 3)) == 0
        unit = Unit(card.id, *PARTS[card.mode])
        if joins:
            last = found.pop()
            found.append(
                Running(
                    last.id, last.tenant, last.project, (*last.units, unit), last.started_at, last.ends_at,
                    priority=last.priority, hosts=last.hosts,
                )
            )  # fmt: skip
        else:
            found.append(
                Running(
                    f"run{card.id}", f"t{tenant}", f"p{tenant}", (unit,), NOW - draw(st.integers(1, 2 * HOUR)), ends,
                    priority=priority, hosts={card.node: (4.0, GIB)},
                )
            )  # fmt: skip
    return found


LIMITS = st.sampled_from([300, HOUR, 4 * HOUR, 30 * HOUR])


@st.composite
def worlds(draw: st.DrawFn, *, preemption: bool = True, windows: bool = True) -> Snapshot:
    count = draw(st.integers(1, 5))
    nodes = [
        Node(
            f"n{number}", "c1", rack=number // 2, leaf=number // 4, cpu=draw(st.sampled_from([8.0, 32.0, None])),
            memory=100 * GIB, state=draw(st.sampled_from(["active", "active", "active", "asleep", "draining"])),
        )
        for number in range(count)
    ]  # fmt: skip
    all_cards = draw(cards(nodes))
    waiting = [
        request(
            f"r{number:02}", draw(st.sampled_from([spec.id for spec in SPECS])), tenant=f"t{tenant}",
            project=f"p{tenant}", count=draw(st.integers(1, 4)), time_limit=draw(LIMITS),
            priority=draw(st.sampled_from(["high", "normal", "spot"])),
            submitted_at=NOW - draw(st.integers(0, 9)) * HOUR,
            near=draw(st.sampled_from([None, None, None, *Near])),
            not_before=draw(st.sampled_from([None, None, None, None, NOW + HOUR])),
        )
        for number in range(draw(st.integers(0, 8)))
        for tenant in [draw(st.sampled_from(["1", "2"]))]
    ]  # fmt: skip
    parts: dict[str, Any] = {
        "nodes": nodes, "cards": all_cards, "specs": SPECS, "profiles": {"H100": H100},
        "tenants": [Tenant("t1", cohort="all"), Tenant("t2", cohort="all")],
        "pools": [Pool("main", rules=(Rule(models=BOTH),), sharing=draw(st.sampled_from(
            [frozenset(Mode), frozenset({Mode.WHOLE}), frozenset({Mode.MIG, Mode.WHOLE})]
        )))],
        "running": draw(holders(all_cards, preemption=preemption)),
        "waiting": waiting,
        "quotas": draw(st.lists(st.builds(
            Quota, st.sampled_from(["t1", "t2", "p1"]),
            st.sampled_from([Resource.CARDS, Resource.HOURS, Resource.MEMORY]), st.sampled_from([0, 2, 8, 500, 1e12]),
            st.sampled_from([0, 2, None]), st.sampled_from([0, 1, None]),
        ), max_size=3)),
        "holds": draw(st.lists(st.builds(
            Hold, st.just("h"), st.just(Scope.PROJECT), st.sampled_from(["p1", "p2", "p3", "p4"])
        ), max_size=1)),
        "maintenance": draw(st.lists(st.builds(
            Maintenance, st.just("m"), st.sampled_from([frozenset({"n0"}), frozenset({"n1", "n2"})]),
            st.just(NOW + 2 * HOUR), st.just(NOW + 6 * HOUR),
        ), max_size=1 if windows else 0)),
        "policy": Policy(reservations=draw(st.sampled_from([1, 1, 3])), preemption=preemption),
    }  # fmt: skip
    return snapshot(**parts)
