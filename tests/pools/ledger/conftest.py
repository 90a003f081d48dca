"""A cluster whose jobs are read by the real sync, cards that are ours, and a tenant that a rule names."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from inventory.models import Card, Job
from pools.models import Allocation, MappingRule, Pool, PoolRule
from pools.services.ledger import recording
from pools.services.ledger.recording import Tally
from tests.inventory.clusters.building import T0, Lab, Opener, add_cards, new_lab, opener
from tests.pools.building import Team, card_model, team

__all__ = ["opener"]


@dataclass
class Ledger:
    """The lab, its cards by node and minor number, and the teams."""

    lab: Lab
    cards: dict[tuple[str, int], Card]
    pool: Pool
    red: Team
    blue: Team

    def follow(self, seconds: float = 10) -> Tally:
        """Time passes, the cluster is read, the ledger follows."""
        self.lab.sync(seconds)
        return recording.record()

    def rows(self, **filters: Any) -> list[tuple[str, int | None, float, float | None, str]]:
        """(node, minor, start, end, outcome), times in seconds after the beginning."""
        found = Allocation.objects.filter(**filters).select_related("node", "card").order_by("span", "card__minor")
        return [
            (row.node.name, row.card.minor, _seconds(row.span.lower), _seconds(row.span.upper), row.outcome)
            for row in found
        ]


def _seconds(moment: Any) -> Any:
    return None if moment is None else (moment - T0) / timedelta(seconds=1)


@pytest.fixture
def ledger(opener: Opener, db: None) -> Ledger:
    lab = new_lab(opener)
    lab.sync()
    model = card_model()
    cards = {}
    for name in ("n1", "n2"):
        for card in add_cards(lab.node(name)):
            cards[name, card.minor or 0] = card
    Card.objects.update(model=model)
    pool = Pool.objects.create(name="Training")
    PoolRule.objects.create(pool=pool, model=model)
    red, blue = team("red"), team("blue")
    MappingRule.objects.create(cluster=lab.cluster, kind="account", value="physics", tenant=red.tenant,
                               project=red.project)  # fmt: skip
    return Ledger(lab, cards, pool, red, blue)


@pytest.fixture
def jobs() -> type[Job]:
    return Job
