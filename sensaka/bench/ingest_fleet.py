"""The nodes, agents and cards of `bench ingest`: `python -m sensaka.bench.ingest_fleet NODES CARDS`.

Identities follow from the number of a node and card, so that load client, exporter pages and database agree.
"""

import sys
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from uuid import uuid4


def token(node: int) -> str:
    """The token of node number `node`."""
    return f"ska_bench_{node:06d}"


def card_uuid(node: int, card: int) -> str:
    """A UUID as NVIDIA writes it."""
    digest = sha256(f"{node}/{card}".encode()).hexdigest()
    return f"GPU-{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


def build(nodes: int, cards: int) -> None:
    """Writes site, nodes, agents, cards and their stays."""
    from django.db import connection

    from inventory.models import Agent, Card, Node, Placement, Site

    now = datetime.now(UTC)
    site = Site.objects.create(id=uuid4(), name="Bench", simulated=True)
    rows = Node.objects.bulk_create(
        [Node(id=uuid4(), site=site, name=f"bench-{n:06d}", simulated=True) for n in range(nodes)]
    )
    Agent.objects.bulk_create(
        [Agent(node=row, token_digest=sha256(token(n).encode()).hexdigest(), interval=10) for n, row in enumerate(rows)]
    )
    made = Card.objects.bulk_create(
        [
            Card(id=uuid4(), node=row, uuid=card_uuid(n, c), first_seen_at=now, state_since=now, simulated=True)
            for n, row in enumerate(rows)
            for c in range(cards)
        ]
    )
    stay = (now - timedelta(days=1), None)
    Placement.objects.bulk_create([Placement(card=card, node=card.node, span=stay) for card in made])
    with connection.cursor() as cursor:
        # rolled up until ten minutes ago, as in a running installation: what is posted is not late
        cursor.execute("UPDATE inventory_rollup_state SET claimed = %s, done = %s", [now - timedelta(minutes=30)] * 2)
        cursor.execute("ANALYZE")


if __name__ == "__main__":
    import django

    django.setup()
    build(int(sys.argv[1]), int(sys.argv[2]))
