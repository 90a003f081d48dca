"""Fixtures of idle cards."""

import pytest

from tests.inventory.samples.test_rollups import set_watermark
from tests.pools.building import World
from tests.pools.idle.building import Idling


@pytest.fixture
def idling(place: World) -> Idling:
    made = Idling(place)
    set_watermark(made.ago(720))  # nothing is rolled up yet: samples that come now are not late
    return made
