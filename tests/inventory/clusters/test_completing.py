"""A run that completes: Slurm tells its cards no longer, and they stay what they were."""

import pytest

from inventory.drivers.clusters.readings import JobState
from tests.inventory.clusters.building import Lab, Opener, add_cards, new_lab

pytestmark = pytest.mark.django_db


@pytest.fixture
def lab(opener: Opener) -> Lab:
    found = new_lab(opener)
    found.sync()
    return found


def test_its_cards_stay(lab: Lab) -> None:
    add_cards(lab.node("n1"))
    run = lab.submit(cards=2, nodes=("n1",))
    lab.sync()
    held = lab.cards(run.key)
    run.state, run.bindings = JobState.COMPLETING, []
    lab.sync()
    (row,) = lab.runs()
    assert (row.state, row.cards_known, row.cards_reason) == ("completing", True, "")
    assert lab.cards(run.key) == held == [("n1", 0, "scheduler"), ("n1", 1, "scheduler")]
