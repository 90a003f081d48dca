"""What counts as idle: whole periods, known well enough, of every card that the work holds (P10, U4)."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from inventory.models import Card, ProcessBinding, Slice
from inventory.services.rollups import roll_up
from pools.models import IdleCase
from pools.rules.reclaim import State
from pools.selectors.idleness import Evidence, evidence, watched_pools
from tests.inventory.samples.test_rollups import set_watermark
from tests.pools.idle.building import GIB, Idling, opened


def found(idling: Idling) -> list[Evidence]:
    return evidence(watched_pools(), now=idling.now)


def test_a_whole_period_below_the_threshold_is_idle_since_its_last_use(idling: Idling) -> None:
    card = idling.place.cards[0]
    idling.request([card])
    idling.feed(card, 90, since=600, until=300)
    idling.feed(card, 4.9, since=300)
    set_watermark(idling.ago(660))
    while roll_up(now=idling.now).done < idling.ago(10):
        pass
    assert opened(idling.look()) == 1
    case = idling.case()
    # busy until 300 minutes ago, as far as closed buckets of five minutes tell
    assert timedelta(0) <= case.since - idling.ago(300) <= timedelta(minutes=5)
    assert (case.coverage, case.highest_activity, case.cards) == (100.0, pytest.approx(4.9), 1)


def test_a_busy_card_without_telemetry_for_an_hour_is_not_idle(idling: Idling) -> None:
    """Its last samples said that it was busy; then nothing came."""
    card = idling.place.cards[0]
    idling.request([card])
    idling.feed(card, 95, since=240, until=60)
    assert idling.look().changed == 0
    assert found(idling)[0].verdict.state is State.BUSY
    for later in (30, 60, 61, 90, 240):
        assert idling.look(later).changed == 0
    assert not IdleCase.objects.exists()


def test_an_idle_card_of_which_an_hour_is_missing_is_unknown(idling: Idling) -> None:
    card = idling.place.cards[0]
    idling.request([card])
    idling.feed(card, 0, since=240, until=90)
    idling.feed(card, 0, since=30)
    (one,) = found(idling)
    assert one.verdict.state is State.UNKNOWN
    assert one.verdict.coverage == pytest.approx(50, abs=1)
    assert idling.look().changed == 0


@pytest.mark.parametrize(("missing", "cases"), [(12 * 60, 1), (12 * 60 + 72, 0)], ids=["90 %", "89 %"])
def test_the_coverage_that_is_asked_for(idling: Idling, missing: int, cases: int) -> None:
    """Of the two hours, 7,200 s, a tenth may be unknown and no more."""
    card = idling.place.cards[0]
    idling.request([card])
    # a sample holds for a minute: the last one before the gap ends it at the gap's beginning
    idling.feed(card, 0, since=240, until=60)
    idling.feed(card, 0, since=60 - missing / 60)
    (one,) = found(idling)
    assert one.verdict.coverage == 100 * (7200 - missing) / 7200
    assert opened(idling.look()) == cases


def test_one_busy_sample_restarts_the_count(idling: Idling) -> None:
    card = idling.place.cards[0]
    idling.request([card])
    idling.feed(card, 0, since=400, until=110)
    idling.feed(card, 5.0, since=110, until=109)
    idling.feed(card, 0, since=109)
    assert idling.look().changed == 0
    idling.feed(card, 0, since=0, until=-15)
    assert idling.look(10).changed == 0
    assert opened(idling.look(11)) == 1


def test_the_start_is_left_alone(idling: Idling) -> None:
    """Two hours after a grace of thirty minutes, and not a second earlier."""
    card = idling.place.cards[0]
    idling.request([card], hours=2.5 - 1 / 3600)
    idling.feed(card, 0, since=150, until=-2)
    assert idling.look().changed == 0
    assert found(idling)[0].verdict.state is State.TOO_EARLY
    assert opened(idling.look(1 / 60)) == 1


def test_a_gang_is_idle_as_a_whole(idling: Idling) -> None:
    cards = idling.place.cards[:4]
    idling.request(cards)
    for card in cards[:3]:
        idling.feed(card, 0)
    idling.feed(cards[3], 60)
    assert idling.look().changed == 0
    other = idling.place.cards[4:6]
    idling.request(other)
    for card in other:
        idling.feed(card, 1)
    assert opened(idling.look()) == 1
    assert idling.case().cards == 2


def test_a_slice_is_judged_by_its_own_activity(idling: Idling) -> None:
    card, place = idling.place.cards[0], idling.place
    slices = [
        Slice.objects.create(card=card, uuid=f"MIG-{number}", profile="3g.40gb", opened_at=idling.ago(900))
        for number in range(2)
    ]
    for one in slices:
        one.refresh_from_db()
    idle = idling.hold(card, place.red, slice=slices[0], share=(0, 500))
    idling.hold(card, place.blue, slice=slices[1], share=(500, 1000))
    idling.feed(slices[0], 0)
    idling.feed(slices[1], 80)
    idling.feed(card, 40)  # the card as a whole is busy
    assert opened(idling.look()) == 1
    assert idling.case().allocation == idle


def test_memory_that_is_held_and_processes(idling: Idling) -> None:
    """Idle-held is idle with memory resident; what the driver keeps for itself is none."""
    bare, full = idling.place.cards[:2]
    idling.request([bare], name="bare")
    idling.request([full], name="full")
    idling.feed(bare, 0, memory=4 * 2**20)
    idling.feed(full, 0, memory=60 * GIB)
    ProcessBinding.objects.create(
        node=full.node, card=full, pid=77, name="python", first_seen_at=idling.now, seen_at=idling.now
    )
    assert opened(idling.look()) == 2
    cases = {case.allocation.request.name: case for case in IdleCase.objects.select_related("allocation__request")}
    assert (cases["bare"].memory_held, cases["bare"].held, cases["bare"].processes) == (0, False, 0)
    assert (cases["full"].memory_held, cases["full"].held, cases["full"].processes) == (60 * GIB, True, 1)


def test_without_a_fresh_sample_the_memory_is_unknown(idling: Idling) -> None:
    card = idling.place.cards[0]
    idling.request([card])
    idling.feed(card, 0, until=5, memory=60 * GIB)
    assert opened(idling.look()) == 1
    assert idling.case().memory_held is None


def test_what_stands_still_or_is_about_to_end_is_left_alone(idling: Idling) -> None:
    suspended, ending, leaving = idling.place.cards[:3]
    idling.hold(suspended, idling.place.red, suspended=True)
    idling.request([ending], end_asked="cancel", end_asked_at=idling.now)
    idling.request([leaving], signalled_at=idling.now)
    for card in (suspended, ending, leaving):
        idling.feed(card, 0)
    assert idling.look().changed == 0


def test_a_pool_that_is_off_is_not_looked_at(idling: Idling) -> None:
    card = idling.place.cards[0]
    idling.request([card])
    idling.feed(card, 0)
    idling.policy(idle_policy="off")
    assert idling.look().changed == 0
    idling.policy(idle_policy="warn")
    assert opened(idling.look()) == 1


def test_the_number_of_queries_does_not_grow(idling: Idling) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            idling.look()
        return len(caught)

    def fill(cards: list[Card]) -> None:
        for card in cards:
            idling.request([card], name=card.uuid)
            idling.feed(card, 0, since=150)

    fill(idling.place.cards[:1])
    queries()
    fill(idling.place.cards[1:2])
    few, few_again = queries(), queries()
    fill(idling.place.cards[2:])
    assert queries() == few
    assert queries() == few_again
    assert few < 30
    assert IdleCase.objects.count() == 8
