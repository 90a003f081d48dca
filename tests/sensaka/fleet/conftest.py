"""Small simulated worlds."""

import pytest

from sensaka.fleet.plan import make_plan
from sensaka.fleet.world import World

NOON = 1_796_040_000.0  # 2026-11-30 12:00 UTC, a Monday


@pytest.fixture
def world() -> World:
    """The full fleet at a fixed moment."""
    return World.fresh(make_plan(seed=1, nodes=64, ipmi=True), NOON)
