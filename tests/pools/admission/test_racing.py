"""Eight processes admit from one queue at once: nobody gets a card twice, and nobody is started twice (P8)."""

import multiprocessing
import random
import time

import pytest
from django.conf import settings
from django.db import connection, connections, transaction
from django.db.models import Count, Q, Sum
from django.utils import timezone

from inventory.models import Card, Node
from pools.models import Allocation, Pool, Request, RequestEvent
from pools.services.admission import admit
from pools.services.ledger import entries
from pools.services.moving import Move, move_all
from tests.inventory.clusters.building import T0
from tests.pools.admission.building import Managed
from tests.pools.building import card_model

PROCESSES, REQUESTS, NODES = 8, 400, 16
pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True, available_apps=settings.INSTALLED_APPS)]

_OVERLAPS = """
SELECT count(*) FROM pools_allocation a JOIN pools_allocation b
    ON a.card_id = b.card_id AND a.id < b.id AND a.share && b.share AND a.span && b.span
"""


def _end_some(seed: random.Random) -> None:
    """Some of what was started is over, as the ledger would write it."""
    with transaction.atomic():
        entries.take_turns()
        now = timezone.now()
        started = list(Request.objects.filter(state="starting").order_by("id").values_list("id", flat=True)[:40])
        over = seed.sample(started, len(started) // 2) or started
        moved = move_all([Move(key, "starting", "complete", "It is over.", 1) for key in over], now=now)
        end = now.replace(microsecond=0)
        rows = entries.stored(Q(request__in=moved))
        for row in rows:
            row.end = end
        entries.delete([row for row in rows if row.start >= end])
        entries.write([row for row in rows if row.start < end])
        entries.check_turn()


def _work(number: int, until: float) -> None:
    connections.close_all()
    pool, seed = Pool.objects.get(name="Training"), random.Random(number)
    while Request.objects.filter(state="queued").exists() and time.monotonic() < until:
        admit(pool)
        _end_some(seed)
    connections.close_all()


def test_eight_processes_start_every_request_once(managed: Managed) -> None:
    cluster, model = managed.ledger.lab.cluster, card_model()
    nodes = [Node(site=cluster.site, cluster=cluster, name=f"x{number}", state="active") for number in range(NODES)]
    Node.objects.bulk_create(nodes)
    Card.objects.bulk_create(
        Card(node=node, model=model, uuid=f"GPU-{node.name}-{slot}", slot=str(slot), first_seen_at=T0, state_since=T0)
        for node in Node.objects.filter(name__startswith="x")
        for slot in range(8)
    )
    first = managed.ask()
    row = {
        field.attname: getattr(first, field.attname) for field in Request._meta.concrete_fields if field.name != "id"
    }
    Request.objects.bulk_create(Request(**(row | {"count": 1 + number % 8})) for number in range(REQUESTS - 1))
    until = time.monotonic() + 200
    context = multiprocessing.get_context("fork")
    connections.close_all()
    workers = [context.Process(target=_work, args=(number, until)) for number in range(PROCESSES)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(240)
    assert [worker.exitcode for worker in workers] == [0] * PROCESSES
    assert not Request.objects.filter(state="queued").exists()
    admitted = RequestEvent.objects.filter(event="admit").values("request").annotate(times=Count("id"))
    assert {row["times"] for row in admitted} == {1}
    assert len(admitted) == REQUESTS
    assert set(Request.objects.values_list("attempt", flat=True)) == {1}
    with connection.cursor() as cursor:
        cursor.execute(_OVERLAPS)
        assert cursor.fetchone() == (0,)
    running = Request.objects.filter(state="starting")
    held = Allocation.objects.filter(span__endswith=None)
    assert held.count() == (running.aggregate(cards=Sum("count"))["cards"] or 0)
    assert set(held.values_list("request", flat=True)) == set(running.values_list("id", flat=True))
