"""A node with an agent and cards, for tests of samples."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from inventory.models import Agent, Card, Node, Placement, Site

LONG_AGO = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Enrolled:
    """A node and what its agent would know."""

    node: Node
    agent: Agent
    token: str
    cards: list[Card]

    @property
    def uuids(self) -> list[str]:
        return [card.uuid for card in self.cards]


def card(node: Node, *, uuid: str | None = None, **fields: object) -> Card:
    now = datetime.now(UTC)
    made = Card.objects.create(
        node=node, uuid=uuid if uuid is not None else f"GPU-{secrets.token_hex(8)}", first_seen_at=now,
        state_since=now, **fields,
    )  # fmt: skip
    Placement.objects.create(card=made, node=node, span=(now - LONG_AGO, None))
    made.refresh_from_db()
    return made


def enrolled(*, cards: int = 2) -> Enrolled:
    site, _ = Site.objects.get_or_create(name="Here")
    node = Node.objects.create(site=site, name=f"node-{secrets.token_hex(4)}")
    token = f"ska_{secrets.token_hex(16)}"
    agent = Agent.objects.create(node=node, token_digest=hashlib.sha256(token.encode()).hexdigest(), interval=10)
    return Enrolled(node, agent, token, [card(node) for _ in range(cards)])


def whole_hour(hours_ago: int = 3) -> datetime:
    """The start of a UTC hour some hours ago."""
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=hours_ago)
