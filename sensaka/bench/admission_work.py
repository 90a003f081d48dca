"""Fills a database with a queue and admits from it, for `bench admission`, which gives it a PostgreSQL of its own.

`python -m sensaka.bench.admission_work REQUESTS QUEUES NODES SECONDS` prints one JSON line.
"""

import json
import random
import sys
import time
from datetime import timedelta
from typing import Any

import django

CARDS = 8
SIZES = ((1, 50), (2, 20), (4, 15), (8, 15))
"""Cards of a request, and how many of a hundred ask for so many."""

_END = """
UPDATE pools_allocation SET span = tstzrange(lower(span), GREATEST(date_trunc('second', clock_timestamp()),
       lower(span) + interval '1 second')), outcome = 'completed', updated_at = now()
 WHERE upper_inf(span)
"""


def fill(requests: int, queues: int, nodes: int) -> Any:
    """A managed cluster with whole cards, tenants of ten projects each, and a queue. Returns the pool."""
    from django.utils import timezone

    from inventory.models import Card, CardModel, Cluster, ClusterConnection, Node, Site
    from pools.models import ClusterMode, Pool, PoolRule, PriorityClass, Project, Request, Spec, Tenant

    now, chance = timezone.now(), random.Random(1)  # noqa: S311 - a workload, not a secret
    site = Site.objects.create(name="Bench")
    cluster = Cluster.objects.create(site=site, name="bench", scheduler="slurm")
    ClusterMode.objects.create(cluster=cluster, mode="managed")
    able = [{"capability": one, "available": True} for one in ("submit", "place")]
    ClusterConnection.objects.create(cluster=cluster, scheduler="slurm", enabled=True, capabilities=able)
    model = CardModel.objects.create(slug="h100", vendor="NVIDIA", name="H100", memory=80 * 2**30)
    Node.objects.bulk_create(
        Node(site=site, cluster=cluster, name=f"n{number:04d}", state="active") for number in range(nodes)
    )
    Card.objects.bulk_create(
        Card(node=node, model=model, uuid=f"GPU-{node.name}-{slot}", slot=str(slot), first_seen_at=now, state_since=now)
        for node in Node.objects.all()
        for slot in range(CARDS)
    )
    pool = Pool.objects.create(name="Bench")
    PoolRule.objects.create(pool=pool, model=model)
    specs = []
    for size, _ in SIZES:
        spec = Spec.objects.create(name=f"{size} x H100", cards=size)
        spec.card_models.add(model)
        spec.pools.add(pool)
        specs.append(spec)
    classes = [PriorityClass.objects.create(name=f"class {value}", value=value) for value in (0, 10, 20)]
    Tenant.objects.bulk_create(Tenant(name=f"Tenant {number}", slug=f"t{number}") for number in range(-(-queues // 10)))
    tenants = list(Tenant.objects.order_by("id"))
    Project.objects.bulk_create(
        Project(tenant=tenants[number // 10], name=f"Project {number}", slug=f"p{number}") for number in range(queues)
    )
    projects = list(Project.objects.order_by("id"))
    weights = [weight for _, weight in SIZES]
    Request.objects.bulk_create(
        (
            Request(
                project=chance.choice(projects), spec=chance.choices(specs, weights)[0], pool=pool,
                priority=chance.choice(classes), launch="cards", time_limit=chance.choice((1800, 3600, 14_400)),
                state="queued", state_since=now, submitted_at=now - timedelta(seconds=number % 86_400),
                waited_since=now - timedelta(seconds=number % 86_400),
            )
            for number in range(requests)
        ),
        batch_size=2000,
    )  # fmt: skip
    return pool


def admit_for(pool: Any, seconds: float) -> dict[str, Any]:
    """Passes until the queue is empty or the time is over; what was started is over before the next pass.

    Then all that still wait are looked at and told why, as happens every minute.
    """
    from django.db import connection, transaction
    from django.utils import timezone

    from pools.models import Request
    from pools.services.admission import admit, look_through_all

    passes: list[tuple[int, float]] = []
    ending = 0.0
    cpu, begun = time.process_time(), time.monotonic()
    while time.monotonic() - begun < seconds and Request.objects.filter(state="queued").exists():
        start = time.monotonic()
        started = admit(pool).started
        passes.append((started, time.monotonic() - start))
        start, now = time.monotonic(), timezone.now()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_END)
            Request.objects.filter(state="starting").update(state="completed", state_since=now, ended_at=now)
        time.sleep(1.0)  # spans are whole seconds: the next promise begins in another one
        ending += time.monotonic() - start
    left, start = Request.objects.filter(state="queued").count(), time.monotonic()
    look_through_all()
    return {
        "told": left,
        "telling": time.monotonic() - start,
        "passes": passes,
        "ending": ending,
        "wall": start - begun,
        "cpu": time.process_time() - cpu,
        "left": left,
    }


def main() -> None:
    """Fill, admit, print."""
    django.setup()
    requests, queues, nodes = (int(word) for word in sys.argv[1:4])
    pool = fill(requests, queues, nodes)
    sys.stdout.write(json.dumps(admit_for(pool, float(sys.argv[4]))) + "\n")


if __name__ == "__main__":
    main()
